//! Performs the work that sessions request, and records how it ended.

use super::agent_host::{AgentHost, CallContext, ChatModelRequest, SendError};
use super::network::{LifeSign, LifeSignKind};
use super::send_retry::pause_before_retry;
use super::session_machine::SessionMachine;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::sync::Arc;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    AgentLevelEvent, AgentLevelEventBody, CodeError, CodeOutcome, EscalationRecord,
    EscalationStatus, NoticeRequest, OpenEscalation, ScheduleCommand, SendRequest, SessionCommand,
    SessionWork, WorkOutcome,
};
use tandem_record::{AgentId, Command, EffectId, MediaId, StreamId};
use tandem_store::{EscalationFilter, Fault, ListingPage};

/// Escalations that `/escalations` is told of.
const MAX_LISTED_ESCALATIONS: usize = 50;
/// Functions that decide about a turn.
const HOOKS: [&str; 3] = ["beforeLLM", "beforeResponse", "onResponse"];

/// What performing a piece of work gave.
pub enum SessionOutcome {
    Done(WorkOutcome),
    /// The transport could not take the text now.
    SendAgain(SendError),
    /// The transport took a part of the text; the next one follows.
    SendNext(Option<String>),
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
        if let SessionWork::Model { .. } | SessionWork::Tool { .. } = work.effect.kind {
            let sign = LifeSign::to_user(session, LifeSignKind::Typing { active: true });
            agents.show_life_sign(&context.agent, sign);
        }
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
                let started = tokio::time::Instant::now();
                let done = agents.call_tool(name, args, &context).await;
                let seconds = started.elapsed().as_secs_f64();
                let metrics = &self.inner.metrics.conversations;
                metrics.tool_called(done.error.is_none(), seconds);
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
                let writer = self.inner.pieces.open(&work.stream, &work.effect.id);
                let text = Mutex::new(self.inner.config.redactor.stream());
                let pieces = |piece: &str| {
                    let clean = text.lock().push(piece);
                    writer.publish(&clean);
                };
                let started = tokio::time::Instant::now();
                let answer = agents.call_model(&request, &context, &pieces).await;
                let seconds = started.elapsed().as_secs_f64();
                let held_back = text.into_inner().finish();
                if answer.is_ok() {
                    writer.publish(&held_back);
                }
                let metrics = &self.inner.metrics.conversations;
                metrics.model_called(purpose.as_str(), answer.is_ok(), seconds);
                self.note_circuits(session, &**agents, &context).await?;
                WorkOutcome::Model(answer)
            }
            SessionWork::Transcribe { media, timeout_ms } => {
                let id = media["id"].as_str().map(MediaId::new);
                let recording = match &id {
                    Some(id) => self.read_media(session.id(), id).await?,
                    None => None,
                };
                let heard = match recording {
                    Some(recording) => agents.transcribe(&recording, *timeout_ms, &context).await,
                    None => Err(failed("the recording is not stored".to_owned())),
                };
                self.note_circuits(session, &**agents, &context).await?;
                WorkOutcome::Transcript(heard)
            }
            SessionWork::ListEscalations => {
                let open = self.open_escalations(session, &context.agent).await;
                WorkOutcome::Escalations(open.map_err(|fault| failed(fault.to_string())))
            }
            SessionWork::StartWorkflow(start) => {
                WorkOutcome::Workflow(self.start_workflow(session, start, &context).await?)
            }
            SessionWork::CancelWorkflow { run_id } => {
                self.cancel_workflow(session, run_id).await?;
                WorkOutcome::Reported
            }
            SessionWork::AnswerWorkflow(answer) => WorkOutcome::WorkflowAnswered {
                interrupt: answer.interrupt_id.clone(),
                error: self.answer_workflow(session, answer).await?,
            },
            // Recording it is telling the workflow.
            SessionWork::ReportFlow(_) | SessionWork::ReportSchedule(_) => WorkOutcome::Reported,
            SessionWork::ManageSchedule(call) => {
                let Some(conversations) = self.conversations() else {
                    let message = "this host has no agents";
                    return Err(Fault::permanent("not_found", message));
                };
                let key = &work.effect.id;
                let done = self.manage_schedule(conversations, session, key, call);
                WorkOutcome::Schedule(done.await?)
            }
            SessionWork::Notify(request) => {
                return Ok(self
                    .notify(session, &**agents, request, &context, work)
                    .await);
            }
            SessionWork::Send(request) => {
                let may_be_repeated = work.past.leases > 0;
                let sent = self.send(session, &**agents, request, &context, may_be_repeated);
                return sent.await;
            }
        };
        Ok(SessionOutcome::Done(self.without_secrets(outcome)))
    }

    /// Records changes of the circuits of providers, where readers of the agent see them (Z-249).
    pub(super) async fn note_circuits(
        &self,
        session: &ChatSession,
        agents: &dyn AgentHost,
        context: &CallContext,
    ) -> Result<(), Fault> {
        for change in agents.circuit_changes(&context.key) {
            self.inner.metrics.conversations.circuit_changed(change.to);
            let event = AgentLevelEvent {
                workspace: session.start().owner.workspace.clone(),
                actor: None,
                body: AgentLevelEventBody::CircuitChanged(change),
            };
            self.note_agent_event(&context.tenant, &context.agent, event)
                .await?;
        }
        Ok(())
    }

    /// The first open escalations of an agent that somebody who talks in this session may see, newest first.
    async fn open_escalations(
        &self,
        session: &ChatSession,
        agent: &AgentId,
    ) -> Result<Vec<OpenEscalation>, Fault> {
        let owner = &session.start().owner;
        let filter = EscalationFilter {
            workspace: owner.workspace.clone(),
            status: Some(EscalationStatus::Open),
            agent: Some(agent.clone()),
            ..EscalationFilter::default()
        };
        let page = ListingPage {
            limit: MAX_LISTED_ESCALATIONS,
            after: None,
        };
        let found = self.store().list_escalations(&owner.tenant, &filter, &page);
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
            (_, SessionWork::ReportFlow(report)) => {
                let run = StreamId::of_run(&report.parent.run_id);
                let command = Command::ReportFlow(report.clone());
                return self
                    .submit_effect_result(work, &self.inner.runs, &run, command)
                    .await;
            }
            (_, SessionWork::ReportSchedule(report)) => {
                let schedules = &driver.settings.schedules;
                let to = StreamId::of_schedule(&report.schedule_id);
                let command = ScheduleCommand::NoteOutcome(report.clone());
                return self
                    .submit_effect_result(work, schedules, &to, command)
                    .await;
            }
            (SessionOutcome::Done(outcome), _) => outcome.clone(),
            (SessionOutcome::SendAgain(error), SessionWork::Send(request)) => {
                let (pause, attempts) =
                    pause_before_retry(error, &work.effect.id, request.attempts);
                let again = SessionWork::Send(SendRequest {
                    attempts,
                    ..request.clone()
                });
                let at = self.clock().now().plus_ms(pause);
                return self
                    .reschedule_effect::<SessionMachine>(work, again, at)
                    .await;
            }
            (SessionOutcome::SendAgain(error), SessionWork::Notify(request)) => {
                let (pause, attempts) =
                    pause_before_retry(error, &work.effect.id, request.attempts);
                let again = SessionWork::Notify(NoticeRequest {
                    attempts,
                    ..request.clone()
                });
                let at = self.clock().now().plus_ms(pause);
                return self
                    .reschedule_effect::<SessionMachine>(work, again, at)
                    .await;
            }
            // What was taken is durable before the next part is sent: a crash repeats one part at most.
            (SessionOutcome::SendNext(id), SessionWork::Send(request)) => {
                let mut next = request.clone();
                next.sent_parts.push(id.clone());
                next.attempts = 0;
                let (next, at) = (SessionWork::Send(next), self.clock().now());
                return self
                    .reschedule_effect::<SessionMachine>(work, next, at)
                    .await;
            }
            (SessionOutcome::SendAgain(_) | SessionOutcome::SendNext(_), _) => {
                return self.remove_outbox_entry(work).await;
            }
        };
        let command = SessionCommand::FinishWork {
            effect: work.effect.id.clone(),
            outcome: Box::new(outcome),
        };
        self.submit_effect_result(work, driver, &work.stream, command)
            .await?;
        self.check_driven_flows(driver).await
    }

    /// What a call for the session knows of it.
    pub(super) fn call_context(&self, session: &ChatSession, key: &EffectId) -> CallContext {
        let start = session.start();
        CallContext {
            tenant: start.owner.tenant.clone(),
            agent: start.agent_id.clone(),
            session: Some(start.session_id.clone()),
            key: key.clone(),
            data: session.work_context(key),
            kv: session.all_keys(),
            messages: session.memory().cloned().collect(),
            actor: session.work_actor(key).cloned(),
            trace: Some(session.trace()),
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
            | WorkOutcome::NoticeFailed(error)
            | WorkOutcome::Schedule(Err(error))
            | WorkOutcome::Escalations(Err(error)) => {
                self.redact_in_place(&mut error.message);
            }
            WorkOutcome::WorkflowAnswered { error, .. } => {
                if let Some(error) = error {
                    self.redact_in_place(&mut error.message);
                }
            }
            // Of this host.
            WorkOutcome::Sent(Ok(_))
            | WorkOutcome::Workflow(Ok(_))
            | WorkOutcome::Escalations(Ok(_))
            | WorkOutcome::Schedule(Ok(_))
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

pub(super) fn failed(message: String) -> CodeError {
    CodeError {
        code: "failed".to_owned(),
        message,
    }
}
