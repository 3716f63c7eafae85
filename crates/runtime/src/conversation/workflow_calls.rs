//! Workflows that conversations start: creating the run once, cancelling it, and telling the conversation how it
//! ended.

use super::agent_host::CallContext;
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use crate::submit::{CommandOutcome, IdempotencyRequest, NewRun, SubmitError};
use std::sync::Arc;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, SessionCommand, WaitingSession, WorkflowResult, WorkflowStart,
};
use tandem_record::{
    Command, Object, Partition, RunId, RunOptions, RunRequest, StreamId, Transport,
};
use tandem_store::{Fault, IdempotencyKey, StoredResponse};

impl Runtime {
    /// Creates the run of a workflow, or finds it when an earlier attempt created it.
    pub(super) async fn start_workflow(
        &self,
        session: &ChatSession,
        start: &WorkflowStart,
        context: &CallContext,
    ) -> Result<Result<RunId, CodeError>, Fault> {
        if start.surface_interrupts {
            let message = "questions of a workflow cannot be put into the conversation";
            return Ok(Err(refused("unsupported", message)));
        }
        let inputs = match &start.input {
            None | Some(serde_json::Value::Null) => Object::new(),
            Some(serde_json::Value::Object(inputs)) => inputs.clone(),
            Some(_) => return Ok(Err(refused("invalid_args", "the input is not an object"))),
        };
        let waiting = start.interrupt_id.clone().map(|interrupt_id| {
            Box::new(WaitingSession {
                session_id: session.id().clone(),
                interrupt_id,
            })
        });
        let new = NewRun {
            workflow_id: start.workflow_id.clone(),
            request: RunRequest {
                owner: session.start().owner.clone(),
                inputs,
                erased_defaults: Vec::new(),
                untrusted_inputs: Vec::new(),
                sensitive_inputs: Vec::new(),
                options: RunOptions::default(),
                scope_id: None,
                callback_url: None,
                callback_may_answer: false,
                parent: None,
                claimed_parent: None,
                waiting_session: waiting,
                conformance_role: false,
                execution_model: None,
                isolated_memory: false,
                transport: Transport::Rest,
                trace: None,
                memory: None,
                forked_from: None,
                forked_by: Vec::new(),
            },
            exclusive_scope: false,
        };
        let key = IdempotencyKey::of_effect(&context.tenant, &context.key);
        let once = IdempotencyRequest {
            key: key.clone(),
            digest: String::new(),
            render: Arc::new(|outcome| match outcome {
                CommandOutcome::Created(run) => Some(StoredResponse {
                    status: 201,
                    body: run.to_string(),
                }),
                _ => None,
            }),
        };
        match Box::pin(self.create_run(new, Some(once))).await {
            Ok(run) => Ok(Ok(run)),
            Err(SubmitError::IdempotencyKeyUsed) => {
                let stored = self.store().idempotency_record(&key).await?;
                let stored = stored.map(|stored| RunId::from(stored.response.body));
                stored.map(Ok).ok_or_else(|| {
                    Fault::retryable("contended", format!("the run of {} is gone", context.key))
                })
            }
            Err(SubmitError::WorkflowNotFound) => {
                let message = format!("there is no workflow {}", start.workflow_id);
                Ok(Err(refused("not_found", &message)))
            }
            Err(SubmitError::Fault(fault)) => Err(fault),
            Err(other) => Ok(Err(refused("failed", &other.to_string()))),
        }
    }

    /// Cancels a run that nobody waits for any more. One that has ended stays as it is.
    pub(super) async fn cancel_workflow(
        &self,
        session: &ChatSession,
        run: &RunId,
    ) -> Result<(), Fault> {
        let command = Command::Cancel {
            reason: Some("the conversation that started it does not wait any more".to_owned()),
            by: None,
            by_parent: None,
        };
        let caller = Partition::from(&session.start().owner);
        match self.submit(&caller, run, command, None).await {
            Err(SubmitError::Fault(fault)) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Tells a conversation how a workflow ended that its flow waits for.
    pub(crate) async fn report_workflow(
        &self,
        work: &LeasedEffect,
        to: &WaitingSession,
        result: &WorkflowResult,
    ) -> Result<(), Fault> {
        let Some(conversations) = self.conversations() else {
            return self.remove_outbox_entry(work).await;
        };
        let stream = StreamId::of_session(&to.session_id);
        let command = SessionCommand::WorkflowFinished {
            interrupt: to.interrupt_id.clone(),
            result: Box::new(result.clone()),
        };
        self.submit_effect_result(work, &conversations.sessions, &stream, command)
            .await
    }
}

fn refused(code: &str, message: &str) -> CodeError {
    CodeError {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}
