//! The only entry point for commands. Loads the run, lets the engine decide, commits the decision,
//! and announces it only afterwards.

use crate::audit_actions::AuditAction;
use crate::decision_input::DecisionInput;
use crate::definitions::DecisionLookups;
use crate::driven_machine::CommandMeta;
use crate::fork::Unforkable;
use crate::runtime::Runtime;
use crate::start_run::RunStart;
use crate::stream_cache::StreamSlot;
use crate::transaction::Transaction;
use std::borrow::Cow;
use std::sync::Arc;
use tandem_engine::run::{self, Refusal, Run, WorkMeter};
use tandem_record::{
    Cause, Command, Denial, ErrorInfo, Partition, Principal, Reply, RunId, RunRequest, StreamId,
    TenantId, WorkflowId,
};
use tandem_store::{
    Commit, CommitGuard, Conflict, Error, Fault, IdempotencyKey, IdempotencyRecord, StoredResponse,
};

/// Conflicts with other processes tolerated before the caller gets an error.
pub(crate) const MAX_CONFLICTS: usize = 16;

/// A run to create.
pub struct NewRun {
    pub workflow_id: WorkflowId,
    pub request: RunRequest,
    /// Refuse when another live run with the same scope exists in the same workspace, or in the
    /// tenant if the run has no workspace.
    pub exclusive_scope: bool,
}

/// What a command led to; the input of [`RenderResponse`].
pub enum CommandOutcome<'a> {
    Created(&'a RunId),
    Replied(&'a RunId, &'a Reply),
    Refused(&'a Refusal),
}

/// The caller's idempotency key: the response is stored in the commit of the request.
#[derive(Clone)]
pub struct IdempotencyRequest {
    pub key: IdempotencyKey,
    pub digest: String,
    pub render: RenderResponse,
}

/// Renders a response for storage; `None` for responses that must not be repeated.
pub type RenderResponse = Arc<dyn Fn(&CommandOutcome<'_>) -> Option<StoredResponse> + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error("there is no such run")]
    NotFound,
    #[error("there is no such workflow")]
    WorkflowNotFound,
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The key was used in the meantime; the stored response is the response.
    #[error("the request was answered before")]
    IdempotencyKeyUsed,
    /// The fork cannot be made.
    #[error(transparent)]
    Unforkable(#[from] Unforkable),
    /// Another live run holds the scope.
    #[error("run {0:?} is active in this scope")]
    ScopeBusy(Option<RunId>),
    /// The caller may not decide this question; the attempt is recorded.
    #[error("not allowed to decide: {}", .why.as_str())]
    Denied { by: Option<Principal>, why: Denial },
    /// The question shows something else than what its decider saw.
    #[error("the question has changed since it was shown")]
    ArtifactChanged { digest: String },
    /// Another process performs the effect whose result was submitted.
    #[error("the lease of the effect is lost")]
    LeaseLost,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What is asked of a run, given how it stands.
pub(crate) type CommandFn<'a> = dyn Fn(&Run) -> Result<Command, SubmitError> + Send + Sync + 'a;

pub(crate) fn contended(run: &RunId) -> Fault {
    let message = format!("run {run} is changed too often by others");
    Fault::retryable("contended", message)
}

/// The event that caused a run, if its caller named one.
fn claimed_cause(request: &RunRequest) -> Option<Cause> {
    let claimed = request.claimed_parent.as_ref()?;
    let event = claimed.event_id.clone()?;
    Some(match claimed.well_known_url {
        Some(_) => Cause::Foreign {
            event,
            host: claimed.host_id.clone(),
        },
        None => Cause::External(event),
    })
}

impl Runtime {
    /// Creates a run for a caller. The run is durable when this returns.
    pub async fn create_run(
        &self,
        mut new: NewRun,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<RunId, SubmitError> {
        let owner = Partition::from(&new.request.owner);
        let definition = Box::pin(self.current_definition(&owner, &new.workflow_id))
            .await?
            .ok_or(SubmitError::WorkflowNotFound)?;
        let run_id = self.inner.config.ids.run_id();
        let start = self.store().memory_position().await?;
        // The scope name is used outside events too: in the guard, the listing and the memory.
        if let Some(scope) = &mut new.request.scope_id
            && let Some(clean) = self.inner.config.redactor.redact_text(scope)
        {
            *scope = clean;
        }
        new.request.memory = Some(new.request.new_memory(start));
        let guard = match (&new.request.scope_id, new.exclusive_scope) {
            (Some(scope), true) => Some(CommitGuard::ScopeFree {
                owner: owner.clone(),
                scope: scope.clone(),
            }),
            _ => None,
        };
        let scope = new.request.scope_id.clone();
        let cause = claimed_cause(&new.request);
        let run_start = RunStart {
            run: &run_id,
            owner: &owner,
            audit_action: AuditAction::creation(&self.actor),
            idempotency,
            guard,
        };
        let input = DecisionInput::Creation {
            definition,
            run_id: run_id.clone(),
            request: Cow::Owned(new.request),
            cause,
        };
        match Box::pin(self.commit_new_run(run_start, &input)).await {
            Ok(()) => Ok(run_id),
            Err(SubmitError::ScopeBusy(_)) => {
                let scope = scope.unwrap_or_default();
                let holder = self.store().live_run_in_scope(&owner, &scope).await?;
                Err(SubmitError::ScopeBusy(holder))
            }
            Err(other) => Err(other),
        }
    }

    /// Submits a command to a run, if it is in the caller's tenant and workspace.
    pub async fn submit(
        &self,
        caller: &Partition,
        run: &RunId,
        command: Command,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<Reply, SubmitError> {
        let make_command = |_: &Run| Ok(command.clone());
        self.submit_to_run(
            run,
            Some(caller),
            &make_command,
            idempotency,
            CommandMeta::default(),
        )
        .await
    }

    /// Submits a command that depends on the state of the run. The command is made from the state
    /// it is decided on, and made again after each sequence conflict.
    pub(crate) async fn submit_with(
        &self,
        caller: &Partition,
        run: &RunId,
        make_command: &CommandFn<'_>,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<Reply, SubmitError> {
        self.submit_to_run(
            run,
            Some(caller),
            make_command,
            idempotency,
            CommandMeta::default(),
        )
        .await
    }

    /// Submits a command of the runtime itself.
    pub(crate) async fn submit_internal(
        &self,
        run: &RunId,
        command: Command,
        idempotency: Option<IdempotencyRequest>,
        meta: CommandMeta,
    ) -> Result<Reply, SubmitError> {
        let make_command = |_: &Run| Ok(command.clone());
        self.submit_to_run(run, None, &make_command, idempotency, meta)
            .await
    }

    async fn submit_to_run(
        &self,
        run: &RunId,
        caller: Option<&Partition>,
        make_command: &CommandFn<'_>,
        idempotency: Option<IdempotencyRequest>,
        meta: CommandMeta,
    ) -> Result<Reply, SubmitError> {
        let stream = StreamId::of_run(run);
        for _ in 0..MAX_CONFLICTS {
            let mut slot = self.inner.run_cache.lock(&stream).await;
            let current = self.load_run(run, &mut slot).await?;
            let owner = Partition::from(&current.request().owner);
            if caller.is_some_and(|caller| !caller.covers(&owner)) {
                slot.machine = Some(current);
                return Err(SubmitError::NotFound);
            }
            let command = match make_command(&current) {
                Ok(command) => command,
                Err(_) if self.is_behind(&current).await? => continue,
                Err(refused) => {
                    slot.machine = Some(current);
                    return Err(refused);
                }
            };
            let mut meta = meta.clone();
            if caller.is_some() {
                meta.audit_action = AuditAction::from_command(&command, &self.actor);
            }
            let input = DecisionInput::Command {
                run: Cow::Borrowed(&current),
                command: Cow::Borrowed(&command),
            };
            let mut decision = match self.decide_with_lookups(&owner, &input).await {
                Ok(decision) => decision,
                Err(SubmitError::Refused(_)) if self.is_behind(&current).await? => continue,
                Err(SubmitError::Refused(refusal)) => {
                    slot.machine = Some(current);
                    drop(slot);
                    return Box::pin(self.record_refusal(
                        &owner.tenant,
                        refusal,
                        idempotency.as_ref(),
                    ))
                    .await;
                }
                Err(other) => return Err(other),
            };
            let reply = self.redacted_reply(decision.reply);
            // The audit entry of the decision is written from its reply.
            decision.reply = reply.clone();
            let stored = idempotency
                .as_ref()
                .and_then(|a| self.idempotency_record(a, &CommandOutcome::Replied(run, &reply)));
            let mut transaction = Transaction::begin(self, &owner.tenant).await?;
            stored
                .into_iter()
                .for_each(|r| transaction.store_response(r));
            transaction
                .add(slot, Some(current), decision, meta.clone())
                .await;
            match transaction.commit().await {
                Ok(()) => return Ok(reply),
                Err(Error::Fault(fault)) if fault.code == "too_large" => {
                    self.fail_unstorable(run, meta, &fault).await?;
                    // A caller gets the error; the runtime itself need not retry.
                    return match caller {
                        Some(_) => Err(fault.into()),
                        None => Ok(reply),
                    };
                }
                Err(Error::Fault(fault)) => return Err(fault.into()),
                Err(Error::Conflict(Conflict::KeyUsed)) => {
                    return Err(SubmitError::IdempotencyKeyUsed);
                }
                Err(Error::Conflict(Conflict::LeaseLost(_))) => return Err(SubmitError::LeaseLost),
                Err(Error::Conflict(conflict)) => {
                    self.inner.metrics.conflicts.inc();
                    tracing::debug!(run = %run, %conflict, "sequence conflict: reload and retry");
                }
            }
        }
        Err(contended(run).into())
    }

    /// The decision can never be stored, and a retry would decide the same. The run fails instead,
    /// in a small commit.
    async fn fail_unstorable(
        &self,
        run: &RunId,
        meta: CommandMeta,
        why: &Fault,
    ) -> Result<(), SubmitError> {
        tracing::error!(run = %run, error = %why, "a run fails: its decision cannot be stored");
        let mut slot = self.inner.run_cache.lock(&StreamId::of_run(run)).await;
        let current = self.load_run(run, &mut slot).await?;
        let error = ErrorInfo::new("run_too_large_to_store", why.message.clone());
        let (nothing, work) = (DecisionLookups::default(), WorkMeter::unlimited());
        let context = self.context(self.clock().now(), &nothing, &work);
        let decision = run::abandon(&current, error, &context);
        let tenant = current.request().owner.tenant.clone();
        let mut transaction = Box::pin(Transaction::begin(self, &tenant)).await?;
        transaction.add(slot, Some(current), decision, meta).await;
        match Box::pin(transaction.commit()).await {
            Ok(()) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault.into()),
            Err(Error::Conflict(_)) => Err(contended(run).into()),
        }
    }

    /// The run as of its last event: from the cache, else from snapshot and log.
    pub(crate) async fn load_run(
        &self,
        run: &RunId,
        slot: &mut StreamSlot<Run>,
    ) -> Result<Run, SubmitError> {
        if let Some(cached) = slot.machine.take() {
            return Ok(cached);
        }
        let folded = Box::pin(self.fold(run)).await?;
        let folded = folded.ok_or(SubmitError::NotFound)?;
        slot.snapshot_at = folded.snapshot_at;
        let bytes = folded.machine.size().memory;
        let stream = StreamId::of_run(run);
        self.inner.run_cache.set_size(&stream, bytes);
        Ok(folded.machine)
    }

    pub(crate) fn idempotency_record(
        &self,
        idempotency: &IdempotencyRequest,
        outcome: &CommandOutcome<'_>,
    ) -> Option<IdempotencyRecord> {
        Some(IdempotencyRecord {
            key: idempotency.key.clone(),
            digest: idempotency.digest.clone(),
            response: (idempotency.render)(outcome)?,
            recorded_at: self.clock().now(),
        })
    }

    /// Stores the idempotency record of a refusal in its own commit.
    pub(crate) async fn record_refusal<T>(
        &self,
        tenant: &TenantId,
        refusal: Refusal,
        idempotency: Option<&IdempotencyRequest>,
    ) -> Result<T, SubmitError> {
        let refusal = self.redacted_refusal(refusal);
        let record = idempotency
            .and_then(|a| self.idempotency_record(a, &CommandOutcome::Refused(&refusal)));
        if let Some(record) = record {
            let commit = Commit {
                tenant: Some(tenant.clone()),
                idempotency: vec![record],
                ..Commit::default()
            };
            match self.store().commit(commit).await {
                Ok(()) => {}
                Err(Error::Conflict(_)) => return Err(SubmitError::IdempotencyKeyUsed),
                Err(Error::Fault(fault)) => return Err(fault.into()),
            }
        }
        Err(refusal.into())
    }
}
