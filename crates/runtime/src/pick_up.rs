//! Takes up outbox entries no process works on: left by the dead, put off, or written when all
//! workers were busy.

use crate::effects::LEASE_MS;
use crate::runtime::Runtime;
use crate::webhooks;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::Effect;
use tandem_store::{Fault, LeaseRequest};
use tokio::sync::OwnedSemaphorePermit;

/// How often the outbox is looked at when nobody rings.
const IDLE_LOOK: Duration = Duration::from_secs(5);

impl Runtime {
    pub(crate) async fn pick_up_effects(self) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.effects.bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.lease_and_start().await {
                Ok(pause) => pause,
                Err(fault) => {
                    tracing::warn!(error = %fault, "cannot read the outbox");
                    Duration::from_secs(1)
                }
            };
        }
    }

    async fn lease_and_start(&self) -> Result<Duration, Fault> {
        let effects = &self.inner.effects;
        let now = self.clock().now();
        if effects.permits.available_permits() == 0 {
            // A finished effect rings.
            return Ok(IDLE_LOOK);
        }
        // Asking for entries is a write; first see whether any is due.
        match self.store().next_due().await? {
            Some(due) if due <= now => {}
            Some(due) => return Ok(IDLE_LOOK.min(Duration::from_millis(due.ms_since(now)))),
            None => return Ok(IDLE_LOOK),
        }
        // Workers first: an entry that waited for one after it was leased could be dropped by its
        // run meanwhile, and would be performed all the same.
        let mut workers: Vec<OwnedSemaphorePermit> =
            std::iter::from_fn(|| Arc::clone(&effects.permits).try_acquire_owned().ok()).collect();
        let request = LeaseRequest {
            owner: self.inner.config.owner.clone(),
            now,
            until: now.plus_ms(LEASE_MS * 11),
            limit: workers.len(),
        };
        let entries = self.store().lease(request).await?;
        let full = entries.len() == workers.len();
        for entry in entries {
            let Some(worker) = workers.pop() else {
                break;
            };
            if entry.kind == webhooks::KIND {
                self.start_deliveries(entry, worker).await;
                continue;
            }
            let effect: Effect = match serde_json::from_str(&entry.body) {
                Ok(effect) => effect,
                Err(error) => {
                    tracing::error!(effect = %entry.effect, %error, "an outbox entry is unreadable");
                    continue;
                }
            };
            self.spawn_effect(effect, worker);
        }
        Ok(if full { Duration::ZERO } else { IDLE_LOOK })
    }
}
