//! Named places where a test may ask the process to die. Unarmed they cost one atomic read; only
//! test seams arm them.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub struct CrashPoints {
    armed: AtomicBool,
    point: Mutex<Option<String>>,
}

impl CrashPoints {
    pub const ALL: [&str; 6] = [
        "now",
        "commit.before",
        "commit.after",
        "effect.before",
        "effect.after",
        "timer.before",
    ];

    /// The process ends at once when it reaches this point. `false` for a name nobody knows.
    pub fn arm(&self, point: &str) -> bool {
        if !Self::ALL.contains(&point) {
            return false;
        }
        *self.point.lock() = Some(point.to_owned());
        self.armed.store(true, Ordering::Release);
        true
    }

    pub fn reach(&self, point: &str) {
        if self.armed.load(Ordering::Acquire) && self.point.lock().as_deref() == Some(point) {
            std::process::abort();
        }
    }
}
