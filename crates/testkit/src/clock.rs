//! A clock that follows tokio's paused time, plus jumps requested by a test.

use std::sync::atomic::{AtomicI64, Ordering};
use tandem_record::Timestamp;
use tandem_runtime::Clock;
use tokio::time::Instant;

/// `base` plus the time that tokio's clock has advanced since, plus an offset. Create it inside the
/// tokio runtime whose time it follows.
pub struct SimClock {
    base: Timestamp,
    origin: Instant,
    offset_ms: AtomicI64,
}

impl SimClock {
    pub fn starting_at(base: Timestamp) -> Self {
        Self {
            base,
            origin: Instant::now(),
            offset_ms: AtomicI64::new(0),
        }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.origin.elapsed().as_millis();
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        Timestamp(self.base.0 + elapsed + self.offset_ms.load(Ordering::Relaxed))
    }

    fn advance(&self, ms: i64) -> Timestamp {
        self.offset_ms.fetch_add(ms.max(0), Ordering::Relaxed);
        self.now()
    }

    fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }
}
