//! Runs kept in memory between commands. A bounded cache: every entry can be dropped at any time
//! and is then folded again from the log.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_engine::run::Run;
use tandem_record::{RunId, Seq};

/// One run's place. Its lock orders the commands of this process to the run, so that they meet
/// each other here and not as conflicts in the store.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) run: Option<Run>,
    /// Where the stored snapshot is, to know when another is worth it.
    pub(crate) snapshot_at: Option<Seq>,
}

pub(crate) type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

pub(crate) struct LiveRuns {
    slots: Mutex<Slots>,
    capacity: usize,
    /// Bytes of state, over all slots. What commands hold at the moment may go beyond it.
    max_bytes: usize,
}

#[derive(Default)]
struct Slots {
    by_run: HashMap<RunId, Place>,
    /// Grows with every use; the smallest stamp is the least recently used.
    clock: u64,
    bytes: usize,
}

struct Place {
    slot: SharedSlot,
    used: u64,
    bytes: usize,
}

impl LiveRuns {
    pub(crate) fn new(capacity: usize, max_bytes: usize) -> Self {
        Self {
            slots: Mutex::default(),
            capacity: capacity.max(16),
            max_bytes,
        }
    }

    pub(crate) fn slot(&self, run: &RunId) -> SharedSlot {
        let mut slots = self.slots.lock();
        slots.clock += 1;
        let used = slots.clock;
        if let Some(place) = slots.by_run.get_mut(run) {
            place.used = used;
            return Arc::clone(&place.slot);
        }
        if slots.by_run.len() >= self.capacity {
            slots.evict(self.capacity - self.capacity / 4, usize::MAX);
        }
        let slot = SharedSlot::default();
        let place = Place {
            slot: Arc::clone(&slot),
            used,
            bytes: 0,
        };
        slots.by_run.insert(run.clone(), place);
        slot
    }

    /// Notes how large a run is that is about to be kept.
    pub(crate) fn weigh(&self, run: &RunId, bytes: usize) {
        let mut slots = self.slots.lock();
        let Some(place) = slots.by_run.get_mut(run) else {
            return;
        };
        let before = std::mem::replace(&mut place.bytes, bytes);
        slots.bytes = (slots.bytes + bytes).saturating_sub(before);
        if slots.bytes > self.max_bytes {
            slots.evict(usize::MAX, self.max_bytes - self.max_bytes / 4);
        }
    }

    /// A run that ended is read from the store from now on.
    pub(crate) fn forget(&self, run: &RunId) {
        let mut slots = self.slots.lock();
        if let Some(place) = slots.by_run.remove(run) {
            slots.bytes = slots.bytes.saturating_sub(place.bytes);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.lock().by_run.len()
    }
}

impl Slots {
    /// Drops the least recently used until no more than this is left; a good part at once, so that
    /// eviction stays rare. A slot somebody holds is kept: two slots for one run would let commands
    /// race.
    fn evict(&mut self, keep_runs: usize, keep_bytes: usize) {
        let idle = self.by_run.iter();
        let idle = idle.filter(|(_, place)| Arc::strong_count(&place.slot) == 1);
        let mut oldest: Vec<(u64, RunId)> =
            idle.map(|(run, place)| (place.used, run.clone())).collect();
        oldest.sort_unstable();
        for (_, run) in oldest {
            if self.by_run.len() <= keep_runs && self.bytes <= keep_bytes {
                return;
            }
            if let Some(place) = self.by_run.remove(&run) {
                self.bytes = self.bytes.saturating_sub(place.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max_bytes: usize) -> LiveRuns {
        let live = LiveRuns::new(64, max_bytes);
        for n in 0..10 {
            let run = RunId::new(format!("run-{n}"));
            live.slot(&run);
            live.weigh(&run, 100);
        }
        live
    }

    #[test]
    fn the_least_recently_used_runs_go_when_all_together_are_too_large() {
        let live = filled(1_000);
        assert_eq!(live.len(), 10, "they fit");
        let newest = RunId::new("run-new");
        let held = live.slot(&newest);
        live.weigh(&newest, 400);
        // Down to three quarters: 1,400 less seven runs of 100.
        assert_eq!(live.len(), 4);
        assert!(Arc::ptr_eq(&held, &live.slot(&newest)), "one in use stays");
        assert!(live.slots.lock().by_run.contains_key(&RunId::new("run-9")));
    }

    #[test]
    fn a_run_that_shrinks_or_ends_makes_room() {
        let live = filled(1_000);
        let first = RunId::new("run-0");
        live.weigh(&first, 0);
        live.forget(&RunId::new("run-1"));
        assert_eq!(live.slots.lock().bytes, 800);
    }
}
