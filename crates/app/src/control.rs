//! Commands to one run: cancel, pause, resume, and the delivery of an external event.

use crate::app::App;
use crate::error::AppError;
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::{
    Command, DrainPolicy, ExternalEventOutcome, Object, Reply, RunId, RunStatus, Timestamp,
};

/// A cancelled run, or one that had ended before.
pub struct CancelledRun {
    pub run: RunId,
    pub status: RunStatus,
    pub already_terminal: bool,
}

pub struct PausedRun {
    pub run: RunId,
    pub at: Timestamp,
}

pub struct ResumedRun {
    pub run: RunId,
    pub at: Timestamp,
}

/// Something that happened outside and that a run may wait for.
pub struct ExternalEvent {
    /// The sender's id of the event. Repeating a delivery with the same id changes nothing.
    pub event_id: String,
    /// The event type that the node waits for.
    pub event_type: String,
    /// Contains the values the wait correlates by.
    pub payload: Object,
}

/// What a delivered event led to.
pub struct DeliveredEvent {
    pub run: RunId,
    pub outcome: ExternalEventOutcome,
    pub status: RunStatus,
}

impl App {
    pub async fn cancel_run(
        &self,
        caller: &Identity,
        run: RunId,
        reason: Option<String>,
        idempotency: Idempotency<CancelledRun>,
    ) -> Result<Completion<CancelledRun>, AppError> {
        caller.require_scope(Scope::RunsCancel)?;
        let command = Command::Cancel {
            reason,
            by: Some(caller.principal.clone()),
            by_parent: None,
        };
        let convert = |run: &RunId, reply: &Reply| match reply {
            Reply::Cancel {
                status,
                already_terminal,
            } => CancelledRun {
                run: run.clone(),
                status: *status,
                already_terminal: *already_terminal,
            },
            reply => unreachable!("unexpected reply to a cancel: {reply:?}"),
        };
        self.submit(caller, run, command, convert, idempotency)
            .await
    }

    pub async fn pause_run(
        &self,
        caller: &Identity,
        run: RunId,
        reason: Option<String>,
        policy: DrainPolicy,
        idempotency: Idempotency<PausedRun>,
    ) -> Result<Completion<PausedRun>, AppError> {
        caller.require_scope(Scope::RunsCancel)?;
        let command = Command::Pause { reason, policy };
        let convert = |run: &RunId, reply: &Reply| match reply {
            Reply::Paused { at } => PausedRun {
                run: run.clone(),
                at: *at,
            },
            reply => unreachable!("unexpected reply to a pause: {reply:?}"),
        };
        self.submit(caller, run, command, convert, idempotency)
            .await
    }

    pub async fn resume_run(
        &self,
        caller: &Identity,
        run: RunId,
        reason: Option<String>,
        idempotency: Idempotency<ResumedRun>,
    ) -> Result<Completion<ResumedRun>, AppError> {
        caller.require_scope(Scope::RunsCancel)?;
        let command = Command::Resume { reason };
        let convert = |run: &RunId, reply: &Reply| match reply {
            Reply::Resumed { at } => ResumedRun {
                run: run.clone(),
                at: *at,
            },
            reply => unreachable!("unexpected reply to a resume: {reply:?}"),
        };
        self.submit(caller, run, command, convert, idempotency)
            .await
    }

    /// Delivers an external event. A node that waits for it resumes; an earlier event is stored for a
    /// matching wait.
    pub async fn deliver_event(
        &self,
        caller: &Identity,
        run: RunId,
        event: ExternalEvent,
        idempotency: Idempotency<DeliveredEvent>,
    ) -> Result<Completion<DeliveredEvent>, AppError> {
        caller.require_scope(Scope::ApprovalsRespond)?;
        let command = Command::DeliverEvent {
            event_id: event.event_id,
            event_type: event.event_type,
            payload: event.payload,
            by: Some(caller.principal.clone()),
        };
        let convert = |run: &RunId, reply: &Reply| match reply {
            Reply::ExternalEventAccepted { outcome, status } => DeliveredEvent {
                run: run.clone(),
                outcome: outcome.clone(),
                status: *status,
            },
            reply => unreachable!("unexpected reply to an external event: {reply:?}"),
        };
        self.submit(caller, run, command, convert, idempotency)
            .await
    }

    /// Submits a command to a run the caller may see. A run past retention is reported as such, like
    /// to its readers.
    async fn submit<T: Send + 'static>(
        &self,
        caller: &Identity,
        run: RunId,
        command: Command,
        convert: fn(&RunId, &Reply) -> T,
        idempotency: Idempotency<T>,
    ) -> Result<Completion<T>, AppError> {
        self.find_run(caller, &run).await?;
        let stored = idempotency.for_reply(convert);
        let (runtime, partition) = (self.runtime_for(caller), caller.partition());
        let submitted = Box::pin(async move {
            let reply = runtime.submit(&partition, &run, command, stored).await?;
            Ok(convert(&run, &reply))
        });
        self.execute(idempotency, submitted).await
    }
}
