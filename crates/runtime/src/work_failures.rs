//! Failed work: retried with growing pauses, parked when it keeps failing, and retried again on
//! request. Never in a hot loop, and never delaying other work.

use crate::offload::DEADLINE_MISSED;
use crate::runtime::Runtime;
use crate::webhooks::feed_stream;
use std::sync::Arc;
use tandem_record::{EffectId, Object, StreamId, TenantId, Timestamp, WebhookId};
use tandem_store::{DueTimer, Fault, LeaseId, ParkedWork, WorkFailure};

/// The pause after the first failure; each further failure doubles it.
const FIRST_PAUSE_MS: u64 = 1_000;
/// Longest pause.
const MAX_PAUSE_MS: u64 = 5 * 60_000;
/// The pause after a fault of the store, which does not count as a failure of the work.
const STORE_PAUSE_MS: u64 = 5_000;
/// Longest stored error text.
const MAX_ERROR_CHARS: usize = 500;
/// Limit of parked work in one listing.
const MAX_SHOWN: usize = 500;

/// What is recorded after a failure.
pub(crate) fn after_failure(
    failures: u32,
    fault: &Fault,
    now: Timestamp,
    park_after: u32,
) -> WorkFailure {
    // A machine that is too busy says nothing about the work either.
    let store_wide = fault.is_store_wide() || fault.code == DEADLINE_MISSED;
    let failures = match store_wide {
        true => failures,
        false => failures.saturating_add(1),
    };
    let pause = match store_wide {
        true => STORE_PAUSE_MS,
        false => {
            let doubled = FIRST_PAUSE_MS << failures.saturating_sub(1).min(20);
            doubled.min(MAX_PAUSE_MS)
        }
    };
    let parks = !store_wide && failures >= park_after;
    let error = format!("{}: {}", fault.code, fault.message);
    WorkFailure {
        failures,
        error: error.chars().take(MAX_ERROR_CHARS).collect(),
        failed_at: now,
        retry_at: (!parks).then(|| now.plus_ms(pause)),
    }
}

impl Runtime {
    /// An error means that the failure could not be recorded: the store itself fails.
    pub(crate) async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        fault: &Fault,
    ) -> Result<(), Fault> {
        let failure = self.failure_record(timer.failures, fault);
        self.report_failure("timer", timer.stream.as_str(), &failure);
        self.store().record_timer_failure(timer, failure).await
    }

    /// Parks a timer that no retry of this process can help.
    pub(crate) async fn park_timer(&self, timer: &DueTimer, fault: &Fault) -> Result<(), Fault> {
        let failure = WorkFailure {
            retry_at: None,
            ..self.failure_record(timer.failures, fault)
        };
        self.report_failure("timer", timer.stream.as_str(), &failure);
        self.store().record_timer_failure(timer, failure).await
    }

    /// Releases an outbox entry that is leased to this process.
    pub(crate) async fn record_effect_failure(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        kind: &'static str,
        failures: u32,
        fault: &Fault,
    ) {
        let failure = self.failure_record(failures, fault);
        self.return_to_outbox(effect, lease, kind, failure).await;
    }

    /// Parks an entry that no retry can help, such as one that cannot be read.
    pub(crate) async fn park_effect(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        kind: &'static str,
        fault: &Fault,
    ) {
        let failure = WorkFailure {
            retry_at: None,
            ..self.failure_record(0, fault)
        };
        self.return_to_outbox(effect, lease, kind, failure).await;
    }

    async fn return_to_outbox(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        kind: &'static str,
        failure: WorkFailure,
    ) {
        self.report_failure(kind, effect.as_str(), &failure);
        let put_off = self
            .store()
            .record_effect_failure(effect, lease, failure)
            .await;
        if let Err(fault) = put_off {
            tracing::warn!(%effect, error = %fault, "cannot record a failure; the entry waits until its lease ends");
        }
    }

    fn failure_record(&self, failures: u32, fault: &Fault) -> WorkFailure {
        let park_after = self.inner.config.park_after;
        after_failure(failures, fault, self.clock().now(), park_after)
    }

    fn report_failure(&self, kind: &'static str, work: &str, failure: &WorkFailure) {
        let (failures, error) = (failure.failures, failure.error.as_str());
        let parked = failure.retry_at.is_none();
        self.inner.metrics.work_put_off(kind, parked);
        if parked {
            tracing::error!(
                kind,
                work,
                failures,
                error,
                "work keeps failing and is parked; see GET /v1/host/tandem/parked"
            );
        } else {
            tracing::warn!(
                kind,
                work,
                failures,
                error,
                "work failed and will be retried"
            );
        }
    }

    /// Parked work of a tenant.
    pub async fn parked_work(&self, tenant: &TenantId) -> Result<Vec<ParkedWork>, Fault> {
        self.store().list_parked(Some(tenant), MAX_SHOWN).await
    }

    /// Retries the parked work of a stream. Returns how many there were; `None` when the tenant has
    /// no such stream.
    pub async fn retry_parked(
        &self,
        tenant: &TenantId,
        stream: &StreamId,
    ) -> Result<Option<u64>, Fault> {
        if !self.owns(tenant, stream).await? {
            return Ok(None);
        }
        let now = self.clock().now();
        let retried = self.store().retry_parked(stream, now).await?;
        if retried > 0 {
            let count = Object::from_iter([("retried".to_owned(), retried.into())]);
            self.record_audit_entry(Some(tenant), "work.retry", stream.as_str(), count)
                .await?;
            self.inner.timer_bell.ring();
            self.inner.effects.bell.notify_one();
        }
        Ok(Some(retried))
    }

    async fn owns(&self, tenant: &TenantId, stream: &StreamId) -> Result<bool, Fault> {
        if let Some(driver) = self.inner.machines.driver_of(stream) {
            let owner = Arc::clone(driver).tenant_of(self, stream).await?;
            return Ok(owner.as_ref() == Some(tenant));
        }
        if *stream == feed_stream(tenant) {
            return Ok(true);
        }
        let Some(webhook) = stream.as_str().strip_prefix("webhook:") else {
            return Ok(false);
        };
        let webhook = self.store().webhook(&WebhookId::new(webhook)).await?;
        Ok(webhook.is_some_and(|webhook| webhook.tenant == *tenant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn pause(failures: u32, fault: &Fault) -> Option<u64> {
        let retry_at = after_failure(failures, fault, NOW, 10).retry_at;
        retry_at.map(|at| at.ms_since(NOW))
    }

    #[test]
    fn backoff_doubles_up_to_a_limit_and_then_parks() {
        let fault = Fault::permanent("io", "string or blob too big");
        let pauses: Vec<_> = (0..10).map(|failures| pause(failures, &fault)).collect();
        let seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256];
        let expected = seconds.map(|s| Some(s * 1_000));
        assert_eq!(pauses[..9], expected);
        assert_eq!(pauses[9], None, "the tenth failure parks it");
        let far = after_failure(40, &fault, NOW, 100).retry_at;
        assert_eq!(far, Some(NOW.plus_ms(MAX_PAUSE_MS)));
    }

    #[test]
    fn store_faults_do_not_park_work() {
        let full = Fault::retryable("disk_full", "no room");
        let failure = after_failure(9, &full, NOW, 10);
        assert_eq!(failure.failures, 9, "the work is not to blame");
        assert_eq!(failure.retry_at, Some(NOW.plus_ms(STORE_PAUSE_MS)));
    }

    #[test]
    fn panic_counts_as_a_failure_although_it_is_retryable() {
        let panicked = Fault::retryable("bug", "a task panicked");
        assert_eq!(after_failure(0, &panicked, NOW, 10).failures, 1);
        assert_eq!(after_failure(9, &panicked, NOW, 10).retry_at, None);
    }
}
