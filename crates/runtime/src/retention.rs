//! How long ended runs keep their log. By the clock a run is gone the moment its time is over;
//! its rows are removed in small batches afterwards. What stays is its row in the listing, with
//! what a reader of the memory it shared still has to know.

use crate::remember::origin_of;
use crate::runtime::Runtime;
use serde_json::json;
use std::time::Duration;
use tandem_record::Timestamp;
use tandem_store::{Fault, StoredRun};

/// Runs removed before others may write again for a while.
const BATCH: usize = 64;
const EVERY: Duration = Duration::from_secs(60);

impl Runtime {
    /// Whether nothing of the run may be read any more.
    pub fn is_past_retention(&self, stored: &StoredRun) -> bool {
        let old = |at: Timestamp| at < self.kept_since();
        stored.tombstone.is_some() || stored.row.ended_at.is_some_and(old)
    }

    /// Runs that ended before are gone.
    fn kept_since(&self) -> Timestamp {
        let kept = i64::try_from(self.inner.config.retention_ms).unwrap_or(i64::MAX);
        Timestamp(self.clock().now().0.saturating_sub(kept))
    }

    pub(crate) async fn bury_old_runs(self) {
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.retention_bell.notified() => {}
                () = tokio::time::sleep(EVERY) => {}
            }
            if let Err(fault) = self.bury_all().await {
                tracing::warn!(%fault, "logs of old runs could not be removed");
            }
        }
    }

    async fn bury_all(&self) -> Result<(), Fault> {
        while !self.is_stopping() {
            let old = self.store().ended_before(self.kept_since(), BATCH).await?;
            for run in &old {
                let request = self.first_request(run).await?;
                let memory = request.as_ref().map(origin_of);
                let tombstone = json!({"memory": memory, "buriedAt": self.clock().now()});
                self.store().bury(run, &tombstone.to_string()).await?;
                self.inner.live.forget(run);
            }
            if old.len() < BATCH {
                return Ok(());
            }
        }
        Ok(())
    }
}
