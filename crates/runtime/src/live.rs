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
}

#[derive(Default)]
struct Slots {
    by_run: HashMap<RunId, (SharedSlot, u64)>,
    /// Grows with every use; the smallest stamp is the least recently used.
    clock: u64,
}

impl LiveRuns {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: Mutex::default(),
            capacity: capacity.max(16),
        }
    }

    pub(crate) fn slot(&self, run: &RunId) -> SharedSlot {
        let mut slots = self.slots.lock();
        slots.clock += 1;
        let stamp = slots.clock;
        if let Some((slot, used)) = slots.by_run.get_mut(run) {
            *used = stamp;
            return Arc::clone(slot);
        }
        if slots.by_run.len() >= self.capacity {
            slots.evict(self.capacity);
        }
        let slot = SharedSlot::default();
        slots.by_run.insert(run.clone(), (Arc::clone(&slot), stamp));
        slot
    }

    /// A run that ended is read from the store from now on.
    pub(crate) fn forget(&self, run: &RunId) {
        self.slots.lock().by_run.remove(run);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.lock().by_run.len()
    }
}

impl Slots {
    /// Makes room for a quarter of the capacity at once, so that eviction stays rare. A slot
    /// somebody holds is kept: two slots for one run would let commands race.
    fn evict(&mut self, capacity: usize) {
        let mut stamps: Vec<u64> = self.by_run.values().map(|(_, used)| *used).collect();
        let cut = stamps.len().saturating_sub(capacity - capacity / 4);
        if cut == 0 {
            return;
        }
        let cut = cut.min(stamps.len() - 1);
        let oldest_kept = *stamps.select_nth_unstable(cut).1;
        self.by_run
            .retain(|_, (slot, used)| *used >= oldest_kept || Arc::strong_count(slot) > 1);
    }
}
