//! Moves the clock and waits until nothing is due, for tests.

use crate::runtime::Runtime;
use std::time::Duration;
use tandem_record::Timestamp;
use tandem_store::Fault;

/// Name of the setting that stores the test clock's offset across restarts.
pub const CLOCK_OFFSET: &str = "test.clock.offset_ms";

impl Runtime {
    /// Moves the clock forward and stores the offset. Only test routes lead here.
    pub async fn advance_clock(&self, ms: i64) -> Result<Timestamp, Fault> {
        let now = self.clock().advance(ms);
        let offset = self.clock().offset_ms().to_string();
        self.store().set(CLOCK_OFFSET, &offset).await?;
        self.inner.timer_bell.ring();
        self.inner.effects.bell.notify_one();
        self.inner.retention_bell.notify_one();
        Ok(now)
    }

    /// Waits until no timer is due and no effect is due or running. `false` on timeout.
    pub async fn wait_until_idle(&self, timeout: Duration) -> Result<bool, Fault> {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let now = self.clock().now();
            // Looked at before the store: work that ends while it is read may leave more to do there.
            let (was_idle, changes) = (self.inner.effects.is_idle(), self.inner.effects.changes());
            let timers = self
                .store()
                .next_timer()
                .await?
                .is_some_and(|due| due <= now);
            let effects = self.store().next_due().await?.is_some_and(|due| due <= now);
            let is_unchanged = self.inner.effects.changes() == changes;
            if !timers && !effects && was_idle && is_unchanged {
                return Ok(true);
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(false);
            }
            self.inner.timer_bell.ring();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
