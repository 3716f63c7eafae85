//! The entry point for commands to runs: creates them, and submits commands for callers, with their
//! idempotency keys (`submit_stream.rs` does the rest).

use crate::audit_actions::AuditAction;
use crate::decision_input::DecisionInput;
use crate::driven_machine::CommandMeta;
use crate::fork::Unforkable;
use crate::runtime::Runtime;
use crate::start_run::RunStart;
use crate::submit_stream::{CommitRecord, Submission};
use std::borrow::Cow;
use std::sync::Arc;
use tandem_engine::run::{Refusal, Run};
use tandem_record::{
    Cause, Command, Denial, Partition, Principal, Reply, RunId, RunRequest, StreamId, TenantId,
    WorkflowId,
};
use tandem_store::{
    Commit, CommitGuard, Error, Fault, IdempotencyKey, IdempotencyRecord, StoredResponse,
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
    /// The run is that of a flow: only its conversation changes it.
    #[error("the run belongs to a conversation")]
    FlowRun,
    /// Another process performs the effect whose result was submitted.
    #[error("the lease of the effect is lost")]
    LeaseLost,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What is asked of a run, given how it stands.
pub(crate) type CommandFn<'a> = dyn Fn(&Run) -> Result<Command, SubmitError> + Send + Sync + 'a;

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
        self.submit_to_run(run, caller, &make_command, idempotency)
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
        self.submit_to_run(run, caller, make_command, idempotency)
            .await
    }

    async fn submit_to_run(
        &self,
        run: &RunId,
        caller: &Partition,
        make_command: &CommandFn<'_>,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<Reply, SubmitError> {
        if run.is_flow_run() {
            return Err(SubmitError::FlowRun);
        }
        let stream = StreamId::of_run(run);
        let visible_command = |current: &Run| {
            let owner = Partition::from(&current.request().owner);
            match caller.covers(&owner) {
                true => make_command(current).map(Some),
                false => Err(SubmitError::NotFound),
            }
        };
        let records = |reply: &Reply| {
            let request = idempotency.as_ref();
            let outcome = CommandOutcome::Replied(run, reply);
            let record = request.and_then(|request| self.idempotency_record(request, &outcome));
            record.into_iter().map(CommitRecord::Response).collect()
        };
        let submission = Submission {
            stream: &stream,
            meta: CommandMeta::default(),
            records: Some(&records),
            is_requested: true,
        };
        let runs = &self.inner.runs;
        match self
            .submit_to_stream(runs, submission, &visible_command)
            .await
        {
            Ok(reply) => reply.ok_or(SubmitError::NotFound),
            Err(SubmitError::Refused(refusal)) => {
                Box::pin(self.record_refusal(&caller.tenant, refusal, idempotency.as_ref())).await
            }
            Err(other) => Err(other),
        }
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
            session: None,
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
                Ok(_) => {}
                Err(Error::Conflict(_)) => return Err(SubmitError::IdempotencyKeyUsed),
                Err(Error::Fault(fault)) => return Err(fault.into()),
            }
        }
        Err(refusal.into())
    }
}
