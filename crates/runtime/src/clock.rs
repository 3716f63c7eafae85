//! The only clock and the only source of ids. All waiting uses tokio's timer and reads the time
//! from this clock, so that a simulation can replace both.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tandem_record::{RunId, Timestamp};
use uuid::Uuid;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Moves the clock forward, where that is allowed. Returns the new time.
    fn advance(&self, ms: i64) -> Timestamp;

    /// Total offset by which the clock was moved.
    fn offset_ms(&self) -> i64;
}

/// Wall time plus an offset that only test routes set.
#[derive(Default)]
pub struct SystemClock {
    offset_ms: AtomicI64,
}

impl SystemClock {
    pub fn shifted(offset_ms: i64) -> Self {
        Self {
            offset_ms: AtomicI64::new(offset_ms),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = since_epoch.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
        Timestamp(ms + self.offset_ms.load(Ordering::Relaxed))
    }

    fn advance(&self, ms: i64) -> Timestamp {
        self.offset_ms.fetch_add(ms.max(0), Ordering::Relaxed);
        self.now()
    }

    fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }
}

pub trait Ids: Send + Sync {
    fn run_id(&self) -> RunId;
}

/// Time-ordered random ids.
#[derive(Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn run_id(&self) -> RunId {
        RunId::from(format!("run-{}", Uuid::now_v7()))
    }
}
