//! Named points where a test can abort the process. An unarmed point costs one atomic read. Only
//! test routes arm them.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub struct CrashPoints {
    armed: AtomicBool,
    point: Mutex<Option<String>>,
}

impl CrashPoints {
    /// The points of this host, then those of conversations (Z-258).
    pub const ALL: [&str; 13] = [
        "now",
        "commit.before",
        "commit.after",
        "effect.before",
        "effect.after",
        "timer.before",
        "after_claim",
        "before_commit",
        "after_commit",
        "before_send",
        "after_send",
        "after_tool_call",
        "after_hook",
    ];

    /// The process aborts when it reaches this point. `false` for an unknown name.
    pub fn arm(&self, point: &str) -> bool {
        if !Self::ALL.contains(&point) {
            return false;
        }
        *self.point.lock() = Some(point.to_owned());
        self.armed.store(true, Ordering::Release);
        true
    }

    /// Whether a test waits for a point.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    pub fn reach(&self, point: &str) {
        if self.armed.load(Ordering::Acquire) && self.point.lock().as_deref() == Some(point) {
            std::process::abort();
        }
    }
}
