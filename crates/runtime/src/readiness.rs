//! Whether this process is ready: the store takes writes, and timers fire in time.

use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How long a result is reused, so that frequent checks cause few writes.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Time limit of the check of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// How late timers may be before the process is not ready.
const MAX_LATE: Duration = Duration::from_secs(60);

pub(crate) struct Readiness {
    /// Held while the store is checked; concurrent callers get the same result.
    answer: tokio::sync::Mutex<Option<(Instant, Result<(), String>)>>,
    timers_caught_up: Mutex<Instant>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            answer: tokio::sync::Mutex::default(),
            timers_caught_up: Mutex::new(Instant::now()),
        }
    }
}

impl Readiness {
    /// All timers that were due have been handled.
    pub(crate) fn timers_caught_up(&self) {
        *self.timers_caught_up.lock() = Instant::now();
    }
}

impl Runtime {
    /// `Err` with the reason when not ready. Checks the store at most once a second.
    pub async fn readiness(&self) -> Result<(), String> {
        let mut answer = self.inner.readiness.answer.lock().await;
        if let Some((at, result)) = &*answer
            && at.elapsed() < CACHE_TTL
        {
            return result.clone();
        }
        let checked = tokio::time::timeout(STORE_TIMEOUT, self.check_readiness()).await;
        let result = checked.unwrap_or_else(|_| {
            let seconds = STORE_TIMEOUT.as_secs();
            Err(format!("the store did not answer within {seconds} s"))
        });
        if let Err(reason) = &result {
            tracing::warn!(reason, "not ready");
        }
        *answer = Some((Instant::now(), result.clone()));
        result
    }

    async fn check_readiness(&self) -> Result<(), String> {
        let refused =
            |fault: tandem_store::Fault| format!("the store refuses writes: {}", fault.code);
        self.store().ping().await.map_err(refused)?;
        let since = self.inner.readiness.timers_caught_up.lock().elapsed();
        if since < MAX_LATE {
            return Ok(());
        }
        let next = self.store().next_timer().await.map_err(refused)?;
        let late_ms = next.map_or(0, |due| self.clock().now().ms_since(due));
        if Duration::from_millis(late_ms) > MAX_LATE {
            return Err(format!("timers are late by {} s", late_ms / 1_000));
        }
        Ok(())
    }
}
