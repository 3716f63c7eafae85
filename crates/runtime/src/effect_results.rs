//! Performs an effect and records its result. The result goes back as a command, and the outbox entry is
//! removed in the commit that records it, under the lease the effect was performed under.

use crate::driven_machine::DrivenMachine;
use crate::effects::{EntryPlace, entry};
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::Submission;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{Effect, StreamId, Timestamp};
use tandem_store::{Commit, Error, Fault, OutboxChange};

/// Longest pause between two attempts to record a result while the store fails.
const MAX_BACKOFF_MS: u64 = 30_000;
/// Attempts to record a result that fails for its own reason, before the effect is rescheduled.
const QUICK_TRIES: u32 = 5;

impl Runtime {
    /// Performs one effect and records its result. While the store as a whole fails, it retries
    /// until the result is recorded. An effect that fails for its own reason is rescheduled.
    pub(crate) async fn run_effect<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: LeasedEffect<M::EffectKind>,
    ) {
        self.inner.crash.reach("effect.before");
        let started = tokio::time::Instant::now();
        let effect = &work.effect;
        let name = M::effect_name(&effect.kind);
        let mut cached_outcome = None;
        let mut delivered = self.attempt(driver, &work, &mut cached_outcome).await;
        self.inner.crash.reach("effect.after");
        let (mut backoff, mut tries) = (50, 0);
        while let Err(fault) = delivered {
            tracing::warn!(effect = %effect.id, kind = name, error = %fault, "cannot record the result of an effect");
            tries += 1;
            let hopeless = !fault.retryable || (!fault.is_store_wide() && tries >= QUICK_TRIES);
            if hopeless || self.is_stopping() {
                return self
                    .record_effect_failure(
                        &effect.id,
                        &work.lease,
                        name,
                        work.past.failures,
                        &fault,
                    )
                    .await;
            }
            tokio::time::sleep(Duration::from_millis(backoff)).await;
            backoff = (backoff * 2).min(MAX_BACKOFF_MS);
            delivered = self.attempt(driver, &work, &mut cached_outcome).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        self.inner.metrics.effect_done(name, seconds);
    }

    /// `cached_outcome` holds the outcome: the effect is performed once, however often recording its
    /// outcome fails.
    async fn attempt<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: &LeasedEffect<M::EffectKind>,
        cached_outcome: &mut Option<M::Outcome>,
    ) -> Result<(), Fault> {
        let outcome = match cached_outcome {
            Some(outcome) => outcome,
            None => {
                if M::checks_dispatch(&work.effect.kind) && self.is_refused(driver, work).await? {
                    return Ok(());
                }
                cached_outcome.insert(M::perform(self, driver, work).await?)
            }
        };
        M::record_outcome(self, driver, work, outcome).await
    }

    /// Asks the machine, on its newest state, whether the effect is still to be performed. If it is
    /// not, the commit that records this has removed the entry.
    async fn is_refused<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: &LeasedEffect<M::EffectKind>,
    ) -> Result<bool, Fault> {
        let submission = Submission::internal(&work.stream, work.completion());
        let make_command = |machine: &M| Ok(machine.refuse_dispatch(&work.effect));
        match self
            .submit_to_stream(driver, submission, &make_command)
            .await
        {
            Ok(recorded) => Ok(recorded.is_some()),
            Err(error) => self.unrecorded(work, error).await.map(|()| true),
        }
    }

    /// Submits the result of an effect to a stream, which may be another than that of the effect. The
    /// same commit removes the effect from the outbox. A result that is no longer accepted only removes
    /// it. If the lease is lost, the work is another's and the result is dropped.
    pub async fn submit_effect_result<K: Sync, M: DrivenMachine>(
        &self,
        work: &LeasedEffect<K>,
        driver: &Arc<MachineDriver<M>>,
        to: &StreamId,
        command: M::Command,
    ) -> Result<(), Fault> {
        self.inner
            .effects
            .start_recording(&work.effect.id, &work.lease);
        let submission = Submission::internal(to, work.completion());
        let make_command = |_: &M| Ok(Some(command.clone()));
        match self
            .submit_to_stream(driver, submission, &make_command)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => self.unrecorded(work, error).await,
        }
    }

    pub(crate) async fn unrecorded<K: Sync>(
        &self,
        work: &LeasedEffect<K>,
        error: SubmitError,
    ) -> Result<(), Fault> {
        let effect = &work.effect.id;
        match error {
            SubmitError::LeaseLost => {
                self.inner.metrics.leases_lost.inc();
                tracing::warn!(%effect, "a result is dropped: its lease is lost");
                Ok(())
            }
            SubmitError::Fault(fault) => Err(fault),
            error => {
                tracing::debug!(%effect, %error, "the result of an effect is no longer accepted");
                self.remove_outbox_entry(work).await
            }
        }
    }

    /// Replaces the entry by `again`, which has the same id, to be performed at a later time. An entry
    /// removed in the meantime stays removed.
    pub async fn reschedule_effect<M: DrivenMachine>(
        &self,
        work: &LeasedEffect<M::EffectKind>,
        again: M::EffectKind,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let again = Effect {
            id: work.effect.id.clone(),
            kind: again,
        };
        let place = EntryPlace {
            stream: &work.stream,
            lane: work.lane.clone(),
            // A replaced entry keeps its order.
            order_key: None,
        };
        let commit = Commit {
            tenant: Some(work.lane.tenant.clone()),
            outbox: vec![OutboxChange::Put(entry::<M>(place, &again, at, None))],
            guards: vec![work.lease_guard()],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) | Err(Error::Conflict(_)) => {}
            Err(Error::Fault(fault)) => return Err(fault),
        }
        // It may be due again before this task has ended.
        self.inner.effects.mark_finished(&again.id);
        Ok(())
    }

    /// Removes the entry, unless another process works on it.
    pub async fn remove_outbox_entry<K: Sync>(&self, work: &LeasedEffect<K>) -> Result<(), Fault> {
        let effect = work.effect.id.clone();
        let commit = Commit {
            guards: vec![work.lease_guard()],
            outbox: vec![OutboxChange::Remove(effect)],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) | Err(Error::Conflict(_)) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }
}
