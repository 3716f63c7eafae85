//! Cache of folded runs between commands. Bounded: every entry can be dropped at any time and is
//! then folded again from the log.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::run::Run;
use tandem_record::{RunId, Seq};

/// One run's entry. Its lock orders the commands of this process to the run, so that they wait here
/// instead of conflicting in the store.
#[derive(Default)]
pub(crate) struct RunSlot {
    pub(crate) run: Option<Run>,
    /// Sequence of the stored snapshot, to decide when to write another.
    pub(crate) snapshot_at: Option<Seq>,
}

pub(crate) type SharedRunSlot = Arc<tokio::sync::Mutex<RunSlot>>;

pub(crate) struct RunCache {
    slots: Mutex<CachedSlots>,
    capacity: usize,
    /// Limit of cached state in bytes. State in use by commands may exceed it.
    max_bytes: usize,
}

#[derive(Default)]
struct CachedSlots {
    by_run: HashMap<RunId, CacheEntry>,
    /// Incremented with every use; the smallest stamp is the least recently used.
    clock: u64,
    bytes: usize,
}

struct CacheEntry {
    slot: SharedRunSlot,
    used: u64,
    bytes: usize,
}

impl RunCache {
    pub(crate) fn new(capacity: usize, max_bytes: usize) -> Self {
        Self {
            slots: Mutex::default(),
            capacity: capacity.max(16),
            max_bytes,
        }
    }

    pub(crate) fn slot(&self, run: &RunId) -> SharedRunSlot {
        let mut slots = self.slots.lock();
        slots.clock += 1;
        let used = slots.clock;
        if let Some(entry) = slots.by_run.get_mut(run) {
            entry.used = used;
            return Arc::clone(&entry.slot);
        }
        if slots.by_run.len() >= self.capacity {
            slots.evict(self.capacity - self.capacity / 4, usize::MAX);
        }
        let slot = SharedRunSlot::default();
        let entry = CacheEntry {
            slot: Arc::clone(&slot),
            used,
            bytes: 0,
        };
        slots.by_run.insert(run.clone(), entry);
        slot
    }

    /// Records the size of a run that is about to be cached.
    pub(crate) fn set_size(&self, run: &RunId, bytes: usize) {
        let mut slots = self.slots.lock();
        let Some(entry) = slots.by_run.get_mut(run) else {
            return;
        };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        slots.bytes = (slots.bytes + bytes).saturating_sub(before);
        if slots.bytes > self.max_bytes {
            slots.evict(usize::MAX, self.max_bytes - self.max_bytes / 4);
        }
    }

    /// An ended run is read from the store from now on.
    pub(crate) fn remove(&self, run: &RunId) {
        let mut slots = self.slots.lock();
        if let Some(entry) = slots.by_run.remove(run) {
            slots.bytes = slots.bytes.saturating_sub(entry.bytes);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.lock().by_run.len()
    }
}

impl CachedSlots {
    /// Drops the least recently used entries down to this limit and somewhat below, so that
    /// eviction stays rare. A slot in use is kept: with two slots for one run, commands would race.
    fn evict(&mut self, keep_runs: usize, keep_bytes: usize) {
        let idle = self.by_run.iter();
        let idle = idle.filter(|(_, entry)| Arc::strong_count(&entry.slot) == 1);
        let mut oldest: Vec<(u64, RunId)> =
            idle.map(|(run, entry)| (entry.used, run.clone())).collect();
        oldest.sort_unstable();
        for (_, run) in oldest {
            if self.by_run.len() <= keep_runs && self.bytes <= keep_bytes {
                return;
            }
            if let Some(entry) = self.by_run.remove(&run) {
                self.bytes = self.bytes.saturating_sub(entry.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max_bytes: usize) -> RunCache {
        let live = RunCache::new(64, max_bytes);
        for n in 0..10 {
            let run = RunId::new(format!("run-{n}"));
            live.slot(&run);
            live.set_size(&run, 100);
        }
        live
    }

    #[test]
    fn least_recently_used_runs_are_evicted_over_the_byte_limit() {
        let live = filled(1_000);
        assert_eq!(live.len(), 10, "all runs fit");
        let newest = RunId::new("run-new");
        let held = live.slot(&newest);
        live.set_size(&newest, 400);
        // Down to three quarters: 1,400 minus seven runs of 100.
        assert_eq!(live.len(), 4);
        assert!(
            Arc::ptr_eq(&held, &live.slot(&newest)),
            "a slot in use stays"
        );
        assert!(live.slots.lock().by_run.contains_key(&RunId::new("run-9")));
    }

    #[test]
    fn shrinking_or_ending_run_frees_bytes() {
        let live = filled(1_000);
        let first = RunId::new("run-0");
        live.set_size(&first, 0);
        live.remove(&RunId::new("run-1"));
        assert_eq!(live.slots.lock().bytes, 800);
    }
}
