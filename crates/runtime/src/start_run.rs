//! Starts a requested run, new or forked: decides and commits it. Decides again when another run
//! changed the memory it reads.

use crate::audit_actions::AuditAction;
use crate::decision_input::DecisionInput;
use crate::driven_machine::CommandMeta;
use crate::runtime::Runtime;
use crate::submit::{CommandOutcome, IdempotencyRequest, MAX_CONFLICTS, SubmitError};
use crate::submit_stream::contended;
use crate::transaction::Transaction;
use tandem_record::{Partition, RunId, StreamId};
use tandem_store::{CommitGuard, Conflict, Error, Fault};

/// A run about to be committed.
pub(crate) struct RunStart<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) owner: &'a Partition,
    pub(crate) audit_action: AuditAction,
    pub(crate) idempotency: Option<IdempotencyRequest>,
    pub(crate) guard: Option<CommitGuard>,
}

impl Runtime {
    /// Commits the first events of a run.
    pub(crate) async fn commit_new_run(
        &self,
        run_start: RunStart<'_>,
        input: &DecisionInput<'_>,
    ) -> Result<(), SubmitError> {
        let RunStart {
            run,
            owner,
            audit_action,
            idempotency,
            guard,
        } = run_start;
        for _ in 0..MAX_CONFLICTS {
            let decision = match self.decide_with_lookups(owner, input).await {
                Ok(decision) => decision,
                Err(SubmitError::Refused(refusal)) => {
                    return Box::pin(self.record_refusal(
                        &owner.tenant,
                        refusal,
                        idempotency.as_ref(),
                    ))
                    .await;
                }
                Err(other) => return Err(other),
            };
            let meta = CommandMeta {
                audit_action: Some(audit_action.clone()),
                ..CommandMeta::default()
            };
            let stored = idempotency
                .as_ref()
                .and_then(|a| self.idempotency_record(a, &CommandOutcome::Created(run)));
            let slot = self.inner.runs.cache.lock(&StreamId::of_run(run)).await;
            let mut transaction = Transaction::begin(self, &owner.tenant).await?;
            stored
                .into_iter()
                .for_each(|r| transaction.store_response(r));
            guard.iter().for_each(|g| transaction.require(g.clone()));
            transaction
                .add(&self.inner.runs, slot, None, decision, meta)
                .await?;
            match transaction.commit().await {
                Ok(()) => return Ok(()),
                Err(Error::Fault(fault)) => return Err(fault.into()),
                Err(Error::Conflict(Conflict::KeyUsed)) => {
                    return Err(SubmitError::IdempotencyKeyUsed);
                }
                Err(Error::Conflict(Conflict::Guard(_))) => {
                    return Err(SubmitError::ScopeBusy(None));
                }
                // A creation completes no effect, so it cannot lose a lease.
                Err(Error::Conflict(
                    conflict @ (Conflict::Position { .. } | Conflict::LeaseLost(_)),
                )) => {
                    let message = format!("the id of a new run was taken: {conflict}");
                    return Err(Fault::retryable("contended", message).into());
                }
                Err(Error::Conflict(Conflict::MemoryKeysMissing)) => {
                    self.inner.metrics.conflicts.inc();
                }
            }
        }
        Err(contended(&StreamId::of_run(run)).into())
    }
}
