//! How often keys were changed, by any process on the store, as far as this process has seen.
//!
//! Invariants:
//! - What depends on keys is invalidated before the new epoch is seen, so nothing that is cached under an epoch
//!   is older than it.
//! - Users of keys are checked once for each epoch, by one task at a time.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How long a change of keys by another process may stay unseen.
pub(crate) const MAX_STALENESS: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct KeyEpoch {
    /// The last epoch that was read, and when its read began.
    seen: Mutex<Option<(u64, Instant)>>,
    /// The epoch at which everything that uses a key was checked.
    pub(crate) checked: tokio::sync::Mutex<Option<u64>>,
}

impl KeyEpoch {
    pub(crate) fn is_fresh(&self) -> bool {
        let seen = *self.seen.lock();
        seen.is_some_and(|(_, at)| at.elapsed() < MAX_STALENESS)
    }

    pub(crate) fn seen(&self) -> Option<u64> {
        self.seen.lock().map(|(epoch, _)| epoch)
    }

    pub(crate) fn see(&self, epoch: u64, at: Instant, invalidate: impl FnOnce()) {
        let mut seen = self.seen.lock();
        if seen.is_none_or(|(before, _)| before != epoch) {
            invalidate();
        }
        *seen = Some((epoch, at));
    }
}
