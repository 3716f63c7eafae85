//! How much schema work may be done in one place before it is deferred to another.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Schema work allowed in one place, for all evaluations together. An evaluation over the limit is
/// not started, and the meter records that. The result that depended on it must be discarded and
/// computed again where there is time.
#[derive(Debug)]
pub struct Meter {
    allowed: u64,
    spent: AtomicU64,
    exceeded: AtomicBool,
    refused: AtomicBool,
}

impl Meter {
    pub fn with_limit(allowed: u64) -> Self {
        Self {
            allowed,
            spent: AtomicU64::new(0),
            exceeded: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        }
    }

    /// Accepts every evaluation. Each still has its own limit.
    pub fn unlimited() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// Work of the accepted evaluations.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Whether an evaluation was deferred.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Whether a text was too long for its pattern. The caller may not have got an error.
    pub fn refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Only one thread uses a meter; it is shared because the state around it is.
    pub(crate) fn try_spend(&self, work: u64) -> bool {
        let spent = self.spent().saturating_add(work);
        if spent > self.allowed {
            self.exceeded.store(true, Ordering::Relaxed);
            return false;
        }
        self.spent.store(spent, Ordering::Relaxed);
        true
    }
}
