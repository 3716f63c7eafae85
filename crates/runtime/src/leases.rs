//! The leases of the outbox entries this process works on: numbered, and renewed while the work goes
//! on. A lease is short, so that the work of a process that ended is soon taken over. Work whose lease
//! was lost is aborted, and a result is accepted only under the lease it was made under.

use crate::driven_machine::CommandMeta;
use crate::effects::Effects;
use crate::runtime::Runtime;
use std::time::Duration;
use tandem_record::{Effect, EffectId, EffectKind, StreamId, Timestamp};
use tandem_store::{CommitGuard, Fault, Lane, Lease, LeaseId, LeaseRenewal};
use tokio::task::AbortHandle;

/// Length of a lease. After it, another process may take the entry.
pub(crate) const LEASE_MS: u64 = 30_000;
/// A lease that ends within this time is renewed: short work costs no renewal, and there is time for
/// several attempts.
const RENEW_WITHIN_MS: u64 = 20_000;
/// How often leases are checked.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait for the store; the next attempt follows.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Work on an outbox entry that this process does now.
pub(crate) struct Running {
    pub(crate) task: u64,
    /// `None` until the task of the entry is spawned.
    pub(crate) handle: Option<AbortHandle>,
    pub(crate) lease_number: u64,
    pub(crate) leased_until: Timestamp,
    /// Its result is being committed.
    pub(crate) is_recording: bool,
}

impl Running {
    pub(crate) fn abort(self) {
        if let Some(handle) = self.handle {
            handle.abort();
        }
    }
}

/// An effect that this process performs.
pub struct LeasedEffect<K = EffectKind> {
    /// The stream whose machine decided it.
    pub stream: StreamId,
    pub effect: Effect<K>,
    pub(crate) lane: Lane,
    pub(crate) lease: LeaseId,
    pub(crate) past: PastAttempts,
}

/// What is known of earlier attempts at an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PastAttempts {
    /// Earlier leases. Whoever had one may have begun, and not come to record the result.
    pub(crate) leases: u32,
    pub(crate) failures: u32,
}

impl<K> LeasedEffect<K> {
    /// For the command that records the result of the effect.
    pub(crate) fn completion<T>(&self) -> CommandMeta<T> {
        CommandMeta {
            completes: Some((self.effect.id.clone(), self.lease.clone())),
            ..CommandMeta::default()
        }
    }

    /// Nothing is written unless this process still holds the lease.
    pub(crate) fn lease_guard(&self) -> CommitGuard {
        CommitGuard::HoldsLease {
            effect: self.effect.id.clone(),
            lease: self.lease.clone(),
        }
    }
}

impl Effects {
    /// A lease that no earlier one of this process equals.
    pub(crate) fn new_lease(&self, owner: &str, now: Timestamp) -> Lease {
        Lease {
            id: LeaseId::new(owner, self.next_number()),
            until: now.plus_ms(LEASE_MS),
        }
    }

    /// Leases that end at or before `by`, as far as this process knows. Their number is bounded by
    /// the worker slots.
    fn leases_ending(&self, by: Timestamp) -> Vec<(EffectId, u64)> {
        let running = self.running.lock();
        let ending = running.iter().filter(|(_, work)| work.leased_until <= by);
        ending
            .map(|(effect, work)| (effect.clone(), work.lease_number))
            .collect()
    }

    fn extend_lease(&self, effect: &EffectId, number: u64, until: Timestamp) {
        let mut running = self.running.lock();
        if let Some(work) = running.get_mut(effect)
            && work.lease_number == number
        {
            work.leased_until = until;
        }
    }

    /// Aborts work whose lease is lost. Work that is recording its result goes on: its commit is
    /// refused, or it was the one that removed the entry. Returns whether work was aborted.
    fn abort_lost(&self, effect: &EffectId, number: u64) -> bool {
        let mut running = self.running.lock();
        let lost = running
            .get(effect)
            .is_some_and(|work| work.lease_number == number && !work.is_recording);
        if lost && let Some(work) = running.remove(effect) {
            work.abort();
        }
        lost
    }

    /// The result of the work is being recorded.
    pub(crate) fn start_recording(&self, effect: &EffectId, lease: &LeaseId) {
        let mut running = self.running.lock();
        if let Some(work) = running.get_mut(effect)
            && work.lease_number == lease.number
        {
            work.is_recording = true;
        }
    }
}

impl Runtime {
    pub(crate) async fn keep_leases_until_stopped(self) {
        tokio::select! {
            biased;
            () = self.stopped() => {}
            () = self.keep_leases() => {}
        }
    }

    /// Renews leases until its task is dropped.
    pub(crate) async fn keep_leases(&self) {
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            let now = self.clock().now();
            let renewal = self.renew_leases(now, now.plus_ms(RENEW_WITHIN_MS));
            let renewed = match tokio::time::timeout(RENEWAL_TIMEOUT, renewal).await {
                Ok(renewed) => renewed,
                Err(_) => Err(Fault::retryable("busy", "the store does not answer")),
            };
            if let Err(fault) = renewed {
                tracing::warn!(error = %fault, "cannot renew leases; another process may repeat work");
            }
        }
    }

    /// Renews the leases of this process that end at or before `by`, in one write.
    pub(crate) async fn renew_leases(&self, now: Timestamp, by: Timestamp) -> Result<(), Fault> {
        let effects = &self.inner.effects;
        let leases = effects.leases_ending(by);
        if leases.is_empty() {
            return Ok(());
        }
        let until = now.plus_ms(LEASE_MS);
        let renewal = LeaseRenewal {
            owner: self.inner.config.owner.clone(),
            until,
            leases: leases.clone(),
        };
        let lost = self.store().renew_leases(renewal).await?;
        for (effect, number) in leases {
            if !lost.contains(&effect) {
                effects.extend_lease(&effect, number, until);
            } else if effects.abort_lost(&effect, number) {
                self.inner.metrics.leases_lost.inc();
                tracing::warn!(%effect, "a lease is lost; its work is aborted");
            }
        }
        Ok(())
    }
}
