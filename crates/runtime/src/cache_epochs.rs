//! Caches follow epochs in the store, so that changes by other processes are seen after a short time. A
//! process that is alone invalidates its caches itself and reads no epochs.
//!
//! An epoch is read before the data that is cached under it. A value that was read before a change of its
//! epoch was seen is not cached after it: clearing a cache also counts as a change of it.

use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::time::Duration;
use tandem_store::{CachedData, Fault};
use tokio::time::Instant;

/// How long a change by another process may stay unseen.
const MAX_STALENESS: Duration = Duration::from_millis(500);

/// The epoch of one cache, and when it was last read.
#[derive(Default)]
pub(crate) struct CacheEpoch(Mutex<Option<(u64, Instant)>>);

impl CacheEpoch {
    fn is_fresh(&self) -> bool {
        let seen = *self.0.lock();
        seen.is_some_and(|(_, at)| at.elapsed() < MAX_STALENESS)
    }

    /// Whether this is another epoch than the last one seen. `at` is when its read began.
    fn replace(&self, epoch: u64, at: Instant) -> bool {
        let before = self.0.lock().replace((epoch, at));
        before.is_none_or(|(seen, _)| seen != epoch)
    }
}

impl Runtime {
    /// Clears the cached meanings of workflow ids if another process changed the registry.
    pub(crate) async fn refresh_registry_cache(&self) -> Result<(), Fault> {
        let epoch = &self.inner.registry_epoch;
        if self.has_changed(epoch, CachedData::Registry).await? {
            self.inner.definitions.invalidate_all_current();
        }
        Ok(())
    }

    /// Clears the cached subscriptions if another process changed any.
    pub(crate) async fn refresh_subscription_cache(&self) -> Result<(), Fault> {
        let epoch = &self.inner.subscription_epoch;
        if self.has_changed(epoch, CachedData::Subscriptions).await? {
            self.inner.webhooks.invalidate_subscriptions();
        }
        Ok(())
    }

    async fn has_changed(&self, seen: &CacheEpoch, data: CachedData) -> Result<bool, Fault> {
        if self.inner.config.is_single_process || seen.is_fresh() {
            return Ok(false);
        }
        let at = Instant::now();
        let epoch = self.store().epoch(data).await?;
        Ok(seen.replace(epoch, at))
    }
}
