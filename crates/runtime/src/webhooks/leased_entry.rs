//! Work on one outbox entry of webhooks while it is leased to this process: retries while the store
//! fails, commits that require the lease, and the release of the entry.

use crate::runtime::Runtime;
use std::time::Duration;
use tandem_record::{EffectId, TenantId};
use tandem_store::{Commit, CommitGuard, Error, Fault, LeaseId};

const MAX_BACKOFF: Duration = Duration::from_secs(30);

pub(super) struct LeasedEntry {
    pub(super) runtime: Runtime,
    pub(super) tenant: TenantId,
    pub(super) effect: EffectId,
    pub(super) lease: LeaseId,
    pub(super) kind: &'static str,
    /// Earlier failures of the entry.
    pub(super) failures: u32,
}

impl LeasedEntry {
    /// Repeats the work until it succeeds, fails for good, or the process stops.
    pub(super) async fn retry_until_done<F: Future<Output = Result<(), Fault>>>(
        &self,
        work: impl Fn() -> F,
    ) {
        let mut backoff = Backoff::default();
        loop {
            let fault = match work().await {
                Ok(()) => return,
                Err(fault) => fault,
            };
            tracing::warn!(entry = %self.effect, error = %fault, "deliveries are delayed");
            if !fault.retryable || self.runtime.is_stopping() {
                let (effect, lease) = (&self.effect, &self.lease);
                return self
                    .runtime
                    .record_effect_failure(effect, lease, self.kind, self.failures, &fault)
                    .await;
            }
            backoff.pause().await;
        }
    }

    /// Makes the entry due again after a pause.
    pub(super) async fn release(&self, ms: u64) {
        let at = self.runtime.clock().now().plus_ms(ms);
        let store = self.runtime.store();
        let released = store.release(&self.effect, &self.lease, at).await;
        if let Err(fault) = released {
            tracing::warn!(entry = %self.effect, error = %fault, "cannot reschedule deliveries; they wait until the lease ends");
        }
    }

    /// Commits in the turn of the tenant, if the entry is still leased to this process. `false` when
    /// it is not, or another guard failed.
    pub(super) async fn commit(&self, mut commit: Commit) -> Result<bool, Fault> {
        commit.tenant = Some(self.tenant.clone());
        commit.guards.push(CommitGuard::HoldsLease {
            effect: self.effect.clone(),
            lease: self.lease.clone(),
        });
        match self.runtime.store().commit(commit).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict(_)) => Ok(false),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }
}

/// Growing pauses while the store fails.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Duration::from_millis(50))
    }
}

impl Backoff {
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_BACKOFF);
    }
}
