//! How much schema work may be done before somebody else has to do it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Schema work allowed in one place, for all evaluations together. An evaluation that does not fit
/// any more is not started, and the meter remembers that: whatever was concluded from it has to be
/// thrown away and concluded again where there is time.
#[derive(Debug)]
pub struct Meter {
    left: AtomicU64,
    exceeded: AtomicBool,
}

impl Meter {
    pub fn up_to(units: u64) -> Self {
        Self {
            left: AtomicU64::new(units),
            exceeded: AtomicBool::new(false),
        }
    }

    /// Lets every evaluation through. Each is still bounded by itself.
    pub fn unlimited() -> Self {
        Self::up_to(u64::MAX)
    }

    /// Whether an evaluation was put off.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    pub(crate) fn admits(&self, work: u64) -> bool {
        let take = |left: u64| {
            if left == u64::MAX {
                return Some(left);
            }
            left.checked_sub(work)
        };
        let order = Ordering::Relaxed;
        let admitted = self.left.fetch_update(order, order, take).is_ok();
        if !admitted {
            self.exceeded.store(true, order);
        }
        admitted
    }
}
