//! How much work may be done in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Work allowed in one place, for all evaluations together. Work is charged before it is done. What
/// does not fit is not started, and the meter remembers that: whatever was concluded from it has to be
/// thrown away. Above a soft limit it is concluded again where there is time; above a hard limit it is
/// given up.
#[derive(Debug)]
pub struct Meter {
    allowed: u64,
    hard: bool,
    spent: AtomicU64,
    exceeded: AtomicBool,
    refused: AtomicBool,
    stop: Option<Arc<AtomicBool>>,
    steps: AtomicU64,
    failing_step: Option<u64>,
}

impl Meter {
    /// A soft limit.
    pub fn with_limit(allowed: u64) -> Self {
        Self {
            allowed,
            hard: false,
            spent: AtomicU64::new(0),
            exceeded: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            stop: None,
            steps: AtomicU64::new(0),
            failing_step: None,
        }
    }

    pub fn with_hard_limit(allowed: u64) -> Self {
        Self {
            hard: true,
            ..Self::with_limit(allowed)
        }
    }

    /// Lets every evaluation through. Those of a schema are still bounded, each by itself.
    pub fn unlimited() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// Nothing more is let through once this is set: nobody waits for the result any more.
    #[must_use]
    pub fn stopped_by(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// For doing the same again up to the step that did not fit. That one has to fail.
    #[must_use]
    pub fn up_to_failing_step(&self) -> Self {
        Self {
            hard: true,
            stop: self.stop.clone(),
            failing_step: Some(self.steps.load(Ordering::Relaxed)),
            ..Self::with_limit(self.allowed)
        }
    }

    /// Work that was let through.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Whether something was not let through.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Whether what was not let through is given up.
    pub fn exceeded_hard_limit(&self) -> bool {
        self.hard && self.exceeded() && !self.is_stopped()
    }

    /// Whether a text was too long for its pattern. The caller may not have been told.
    pub fn refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Counts a step. `false` when it is the one that has to fail.
    pub fn begin_step(&self) -> bool {
        let step = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(step, Ordering::Relaxed);
        self.failing_step != Some(step)
    }

    /// Charges work that is about to be done; it must not be done when this is `false`. Only one thread
    /// spends from a meter; it is shared because the state around it is.
    #[must_use]
    pub fn try_spend(&self, work: u64) -> bool {
        let spent = self.spent().saturating_add(work);
        if self.exceeded() || spent > self.allowed || self.is_stopped() {
            self.exceeded.store(true, Ordering::Relaxed);
            return false;
        }
        self.spent.store(spent, Ordering::Relaxed);
        true
    }

    fn is_stopped(&self) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}
