//! Performs the work that sessions request, and records how it ended.

use super::agent_host::{AgentHost, CallContext, ChatModelRequest, SendError};
use super::session_machine::SessionMachine;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use std::sync::Arc;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, CodeOutcome, EscalationRecord, EscalationStatus, OpenEscalation, SendRequest,
    SessionCommand, SessionWork, WorkOutcome,
};
use tandem_record::{AgentId, EffectId};
use tandem_store::{EscalationFilter, Fault, ListingPage};

/// Attempts to send a text before it is given up (Z-199).
const MAX_SEND_ATTEMPTS: u32 = 8;
/// Pause after the first failed attempt; it doubles with each further one.
const SEND_RETRY_MS: u64 = 500;
/// Escalations that `/escalations` is told of.
const MAX_LISTED_ESCALATIONS: usize = 50;
/// Functions that decide about a turn.
const HOOKS: [&str; 3] = ["beforeLLM", "beforeResponse", "onResponse"];

/// What performing a piece of work gave.
pub enum SessionOutcome {
    Done(WorkOutcome),
    /// The transport could not take the text now.
    SendAgain(SendError),
}

impl Runtime {
    pub(super) async fn perform_session_work(
        &self,
        driver: &MachineDriver<SessionMachine>,
        work: &LeasedEffect<SessionWork>,
    ) -> Result<SessionOutcome, Fault> {
        if let SessionWork::Continue = work.effect.kind {
            return Ok(SessionOutcome::Done(WorkOutcome::Continue));
        }
        let machine = self.read_machine(driver, &work.stream).await?;
        let session = machine.as_ref().and_then(SessionMachine::session);
        let Some(session) = session else {
            let message = format!("{} is gone", work.stream);
            return Err(Fault::permanent("not_found", message));
        };
        let context = self.call_context(session, &work.effect.id);
        let agents = &driver.settings.agents;
        let crash = &self.inner.crash;
        let outcome = match &work.effect.kind {
            SessionWork::Continue => WorkOutcome::Continue,
            SessionWork::Code(call) => {
                let done = agents.call_code(call, &context).await;
                if HOOKS.contains(&call.path.as_str()) {
                    crash.reach("after_hook");
                }
                WorkOutcome::Code(done)
            }
            SessionWork::Tool { name, .. }
                if work.past.leases > 0 && !is_repeatable(&**agents, &context.agent, name) =>
            {
                WorkOutcome::Tool(CodeOutcome {
                    error: Some(unknown_outcome(name)),
                    ..CodeOutcome::default()
                })
            }
            SessionWork::Tool { name, args } => {
                let done = agents.call_tool(name, args, &context).await;
                crash.reach("after_tool_call");
                WorkOutcome::Tool(done)
            }
            SessionWork::Model {
                purpose,
                messages,
                tools,
                streams,
            } => {
                let request = ChatModelRequest {
                    purpose: *purpose,
                    messages: messages.clone(),
                    tools: tools.clone(),
                    streams: *streams,
                };
                let (stream, id) = (&work.stream, &work.effect.id);
                let pieces = |piece: &str| self.inner.pieces.publish(stream, id, piece);
                WorkOutcome::Model(agents.call_model(&request, &context, &pieces).await)
            }
            SessionWork::Transcribe { media, timeout_ms } => {
                let heard = agents.transcribe(media, *timeout_ms, &context).await;
                WorkOutcome::Transcript(heard)
            }
            SessionWork::ListEscalations => {
                let open = self.open_escalations(&context).await;
                WorkOutcome::Escalations(open.map_err(|fault| failed(fault.to_string())))
            }
            SessionWork::StartWorkflow(start) => {
                WorkOutcome::Workflow(self.start_workflow(session, start, &context).await?)
            }
            SessionWork::CancelWorkflow { run_id } => {
                self.cancel_workflow(session, run_id).await?;
                WorkOutcome::Reported
            }
            // No node of a workflow starts flows.
            SessionWork::ReportFlow(_) => WorkOutcome::Reported,
            SessionWork::Send(request) => return Ok(self.send(&**agents, request, &context).await),
        };
        Ok(SessionOutcome::Done(self.without_secrets(outcome)))
    }

    async fn send(
        &self,
        agents: &dyn AgentHost,
        request: &SendRequest,
        context: &CallContext,
    ) -> SessionOutcome {
        self.inner.crash.reach("before_send");
        let sent = agents.send(request, &context.key, context).await;
        match sent {
            Ok(id) => {
                self.inner.crash.reach("after_send");
                SessionOutcome::Done(WorkOutcome::Sent(Ok(id)))
            }
            Err(error) if error.is_transient && request.attempts + 1 < MAX_SEND_ATTEMPTS => {
                SessionOutcome::SendAgain(error)
            }
            Err(error) => SessionOutcome::Done(WorkOutcome::Sent(Err(failed(error.message)))),
        }
    }

    /// The first open escalations of an agent, newest first.
    async fn open_escalations(&self, context: &CallContext) -> Result<Vec<OpenEscalation>, Fault> {
        let filter = EscalationFilter {
            status: Some(EscalationStatus::Open),
            agent: Some(context.agent.clone()),
            ..EscalationFilter::default()
        };
        let page = ListingPage {
            limit: MAX_LISTED_ESCALATIONS,
            after: None,
        };
        let found = self
            .store()
            .list_escalations(&context.tenant, &filter, &page);
        let rows = found.await?.map(|listing| listing.rows).unwrap_or_default();
        let open = rows.into_iter().map(|row| {
            let record: EscalationRecord = serde_json::from_str(&row.body).map_err(|error| {
                let message = format!("escalation {} cannot be read: {error}", row.escalation_id);
                Fault::permanent("corrupt", message)
            })?;
            Ok(OpenEscalation {
                id: record.id,
                user_external_id: row.user_external_id,
                reason: record.reason,
                priority: record.priority,
            })
        });
        open.collect()
    }

    pub(super) async fn record_session_work(
        &self,
        driver: &Arc<MachineDriver<SessionMachine>>,
        work: &LeasedEffect<SessionWork>,
        outcome: &SessionOutcome,
    ) -> Result<(), Fault> {
        let outcome = match (outcome, &work.effect.kind) {
            (SessionOutcome::Done(outcome), _) => outcome.clone(),
            (SessionOutcome::SendAgain(_), SessionWork::Send(request)) => {
                let pause = SEND_RETRY_MS << request.attempts.min(10);
                let again = SessionWork::Send(SendRequest {
                    attempts: request.attempts + 1,
                    ..request.clone()
                });
                let at = self.clock().now().plus_ms(pause);
                return self
                    .reschedule_effect::<SessionMachine>(work, again, at)
                    .await;
            }
            (SessionOutcome::SendAgain(_), _) => return self.remove_outbox_entry(work).await,
        };
        let command = SessionCommand::FinishWork {
            effect: work.effect.id.clone(),
            outcome: Box::new(outcome),
        };
        self.submit_effect_result(work, driver, &work.stream, command)
            .await
    }

    /// What a call for the session knows of it.
    pub(super) fn call_context(&self, session: &ChatSession, key: &EffectId) -> CallContext {
        let start = session.start();
        CallContext {
            tenant: start.owner.tenant.clone(),
            agent: start.agent_id.clone(),
            session: Some(start.session_id.clone()),
            key: key.clone(),
            data: session.turn_context(),
            kv: session.all_keys(),
            actor: session.acting_admin().cloned(),
            now: self.clock().now(),
        }
    }

    /// Results of the outside go through the redactor before anything is decided on them: a flow and its
    /// journal see the same.
    fn without_secrets(&self, mut outcome: WorkOutcome) -> WorkOutcome {
        let redactor = &self.inner.config.redactor;
        match &mut outcome {
            WorkOutcome::Code(done) | WorkOutcome::Tool(done) => {
                let keys = done.kv.iter_mut().flat_map(|(_, value)| value);
                for value in done.value.iter_mut().chain(keys) {
                    redactor.redact_value(value);
                }
                if let Some(change) = &mut done.profile {
                    self.redact_profile(change);
                }
                let texts = done.side_messages.iter_mut().map(|m| &mut m.text);
                for text in texts.chain(done.error.iter_mut().map(|e| &mut e.message)) {
                    self.redact_in_place(text);
                }
            }
            WorkOutcome::Model(Ok(answer)) => {
                answer
                    .text
                    .iter_mut()
                    .for_each(|text| self.redact_in_place(text));
                let args = answer.tool_calls.iter_mut().map(|call| &mut call.args);
                for value in answer.structured.iter_mut().chain(args) {
                    redactor.redact_value(value);
                }
            }
            WorkOutcome::Transcript(Ok(text)) => self.redact_in_place(text),
            WorkOutcome::Model(Err(error))
            | WorkOutcome::Sent(Err(error))
            | WorkOutcome::Transcript(Err(error))
            | WorkOutcome::Workflow(Err(error))
            | WorkOutcome::Escalations(Err(error)) => {
                self.redact_in_place(&mut error.message);
            }
            // Of this host.
            WorkOutcome::Sent(Ok(_))
            | WorkOutcome::Workflow(Ok(_))
            | WorkOutcome::Escalations(Ok(_))
            | WorkOutcome::Reported
            | WorkOutcome::Continue => {}
        }
        outcome
    }

    pub(super) fn redact_in_place(&self, text: &mut String) {
        if let Some(redacted) = self.inner.config.redactor.redact_text(text) {
            *text = redacted;
        }
    }
}

/// Whether a tool may be called again with the same key.
fn is_repeatable(agents: &dyn AgentHost, agent: &AgentId, tool: &str) -> bool {
    let agent = agents.agent(agent);
    let tool = agent.as_ref().and_then(|agent| agent.tool(tool));
    tool.is_none_or(|tool| tool.idempotent)
}

/// An earlier attempt may have reached the tool (Z-59).
fn unknown_outcome(tool: &str) -> CodeError {
    CodeError {
        code: "outcome_unknown".to_owned(),
        message: format!("the call of {tool} was interrupted and must not be repeated"),
    }
}

fn failed(message: String) -> CodeError {
    CodeError {
        code: "failed".to_owned(),
        message,
    }
}
