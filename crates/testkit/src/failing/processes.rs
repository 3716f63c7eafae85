//! What several processes agree on in the store, forwarded with injected faults.

use super::FailingStore;
use async_trait::async_trait;
use tandem_record::Timestamp;
use tandem_store::{CachedData, ClaimTimers, DueTimer, Fault, ReadEpochs, TaskLeases};

#[async_trait]
impl ClaimTimers for FailingStore {
    async fn claim_timers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>, Fault> {
        self.faults.of_read().await?;
        self.inner.claim_timers(now, until, limit).await
    }
}

#[async_trait]
impl ReadEpochs for FailingStore {
    async fn epoch(&self, of: CachedData) -> Result<u64, Fault> {
        self.faults.of_read().await?;
        self.inner.epoch(of).await
    }
}

#[async_trait]
impl TaskLeases for FailingStore {
    async fn hold_task(
        &self,
        task: &str,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Fault> {
        self.faults.of_read().await?;
        self.inner.hold_task(task, owner, now, until).await
    }
}
