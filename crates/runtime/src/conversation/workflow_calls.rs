//! Workflows that conversations start: creating the run once, cancelling it, and telling the conversation how it
//! ended.

use super::agent_host::CallContext;
use crate::decide::{AccessCheck, ProposedAnswer};
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use crate::submit::{CommandOutcome, IdempotencyRequest, NewRun, SubmitError};
use std::sync::Arc;
use tandem_engine::run::Refusal;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, SessionCommand, WaitingSession, WorkflowAnswer, WorkflowQuestion, WorkflowResult,
    WorkflowStart,
};
use tandem_record::{
    Command, DeciderSnapshot, DecisionAuthorization, Denial, Object, Partition, RunId, RunOptions,
    RunRequest, StreamId, Transport,
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
        if start.surface_interrupts && start.interrupt_id.is_none() {
            let message = "questions of a workflow are shown only to a flow that waits for it";
            return Ok(Err(refused("unsupported", message)));
        }
        let inputs = match &start.input {
            None | Some(serde_json::Value::Null) => Object::new(),
            Some(serde_json::Value::Object(inputs)) => inputs.clone(),
            Some(_) => return Ok(Err(refused("invalid_args", "the input is not an object"))),
        };
        let levels_above = self.levels_above(session).await?;
        let max_depth = self.limits().max_depth;
        if levels_above as usize >= max_depth {
            let message =
                format!("workflows and flows start each other at most {max_depth} levels deep");
            return Ok(Err(refused("subworkflow_depth_exceeded", &message)));
        }
        let waiting = start.interrupt_id.clone().map(|interrupt_id| {
            Box::new(WaitingSession {
                session_id: session.id().clone(),
                interrupt_id,
                surfaces_questions: start.surface_interrupts,
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
                trace: context.trace.clone(),
                memory: None,
                forked_from: None,
                forked_by: Vec::new(),
                levels_above,
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

    /// Levels of workflows above one that this session's flow starts.
    async fn levels_above(&self, session: &ChatSession) -> Result<u32, Fault> {
        let Some(parent) = session.flow().and_then(|flow| flow.parent()) else {
            return Ok(0);
        };
        let stream = StreamId::of_run(&parent.run_id);
        let run = self.read_machine(&self.inner.runs, &stream).await?;
        Ok(run.map_or(0, |run| run.request().depth().saturating_add(1)))
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
        let command = SessionCommand::WorkflowFinished {
            interrupt: to.interrupt_id.clone(),
            result: Box::new(result.clone()),
        };
        self.submit_for_workflow(work, to, command).await
    }

    /// Shows a conversation a question of a workflow, while it is open.
    pub(crate) async fn ask_session(
        &self,
        work: &LeasedEffect,
        to: &WaitingSession,
        question: &WorkflowQuestion,
    ) -> Result<(), Fault> {
        let run = self.read_machine(&self.inner.runs, &work.stream).await?;
        let id = &question.interrupt_id;
        if run.is_none_or(|run| !run.surfaced_questions().contains_key(id)) {
            return self.remove_outbox_entry(work).await;
        }
        let command = SessionCommand::WorkflowAsked {
            interrupt: to.interrupt_id.clone(),
            question: Box::new(question.clone()),
        };
        self.submit_for_workflow(work, to, command).await
    }

    /// Answers a question of a workflow as it was answered in a conversation. Why the workflow did not take it; one
    /// that was answered elsewhere meanwhile needs no answer.
    pub(super) async fn answer_workflow(
        &self,
        session: &ChatSession,
        answer: &WorkflowAnswer,
    ) -> Result<Option<CodeError>, Fault> {
        let caller = Partition::from(&session.start().owner);
        for by in &answer.by {
            let proposal = ProposedAnswer {
                node: answer.node_id.clone(),
                interrupt: Some(answer.interrupt_id.clone()),
                value: answer.value.clone(),
                digest: None,
                by: Some(by.clone()),
            };
            // Whom the conversation asked was decided when it was shown: never one that only some may decide.
            let check: AccessCheck = Arc::new(|policy, _| match policy.requires_identity() {
                false => DecisionAuthorization::Granted(DeciderSnapshot::default()),
                true => DecisionAuthorization::Denied(Denial::NotEligible),
            });
            let decided = self.decide(&caller, &answer.run_id, proposal, check, None);
            match Box::pin(decided).await {
                Ok(_) => {}
                Err(SubmitError::Fault(fault)) => return Err(fault),
                Err(SubmitError::Refused(Refusal::AlreadyResolved(_)) | SubmitError::NotFound) => {
                    return Ok(None);
                }
                Err(refusal) => return Ok(Some(refused("refused", &refusal.to_string()))),
            }
        }
        Ok(None)
    }

    /// Submits what a workflow has to tell a conversation. Its outbox entry is removed in the same commit.
    pub(crate) async fn submit_for_workflow(
        &self,
        work: &LeasedEffect,
        to: &WaitingSession,
        command: SessionCommand,
    ) -> Result<(), Fault> {
        let Some(conversations) = self.conversations() else {
            return self.remove_outbox_entry(work).await;
        };
        let stream = StreamId::of_session(&to.session_id);
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
