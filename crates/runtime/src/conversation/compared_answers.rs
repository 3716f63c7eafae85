//! What an agent would have said where a person spoke in its place.
//!
//! Each text of a person during a takeover answers messages of the user. The log up to these messages is folded again,
//! as if nobody had taken over, and a turn for them is decided on that state: in memory, so nothing of it is stored,
//! sent or counted. The agent's model and functions are called; tools answer with what they answered in this session,
//! and fail where they were not asked the same.

use super::agent_host::{CallContext, ChatModelRequest};
use super::programs::DecisionPrograms;
use super::recorded_tools::RecordedTools;
use super::session_driver::decide;
use super::session_machine::SessionMachine;
use super::session_work::failed;
use super::settings::SessionSettings;
use crate::fold_stream::FoldedStream;
use crate::runtime::Runtime;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CandidateOrigin, InboundMessage, LedgerMessage, SentMessage, SessionCommand, SessionEvent,
    SessionEventBody as Body, SessionWork, WorkOutcome,
};
use tandem_record::{
    Effect, EffectId, EscalationId, MessageId, Recorded, Seq, SessionId, StreamId,
};
use tandem_store::{Fault, PageLimit};

/// The last ones of a session are compared.
pub const MAX_COMPARED: usize = 20;
/// Pieces of work of one answer, and how long they may take together.
const MAX_WORK: usize = 100;
const DEADLINE: Duration = Duration::from_secs(60);
const PAGE: PageLimit = PageLimit {
    events: 1024,
    bytes: 1024 * 1024,
};

/// What a person said, beside what the agent would have said.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedAnswer {
    pub escalation: EscalationId,
    /// Messages of the user that are answered.
    pub messages: Vec<InboundMessage>,
    /// Texts of the person, in order.
    pub human: Vec<LedgerMessage>,
    pub agent: AgentAnswer,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentAnswer {
    pub texts: Vec<String>,
    /// What it would have done besides, in order: flows it would have started, tools it would have called.
    pub actions: Vec<String>,
    /// Why there is no whole answer.
    pub error: Option<String>,
}

/// Messages of the user and what a person answered to them.
#[derive(Default)]
struct Exchange {
    escalation: Option<EscalationId>,
    /// The event before the first message.
    before: Option<Seq>,
    messages: Vec<InboundMessage>,
    human: Vec<LedgerMessage>,
}

impl Runtime {
    /// `None` for a session without events.
    pub async fn compare_answers(
        &self,
        session: &SessionId,
    ) -> Result<Option<Vec<ComparedAnswer>>, Fault> {
        let Some(conversations) = self.conversations() else {
            return Ok(None);
        };
        let settings = &conversations.sessions.settings;
        let (mut exchanges, mut tools) = (Exchanges::default(), RecordedTools::default());
        let mut after = None;
        loop {
            let page = self.session_events(session, after, PAGE).await?;
            let Some(last) = page.events.last() else {
                break;
            };
            after = Some(last.seq);
            for event in &page.events {
                exchanges.evolve(event);
                tools.evolve(event);
            }
        }
        let mut compared = Vec::new();
        for exchange in exchanges.finish() {
            let (Some(escalation), Some(before)) = (exchange.escalation.clone(), exchange.before)
            else {
                continue;
            };
            let answer = self.answer_of_agent(settings, session, before, &exchange, &tools);
            let agent = match tokio::time::timeout(DEADLINE, answer).await {
                Ok(answer) => answer?,
                Err(_) => AgentAnswer {
                    error: Some(format!("no answer within {} s", DEADLINE.as_secs())),
                    ..AgentAnswer::default()
                },
            };
            compared.push(ComparedAnswer {
                escalation,
                messages: exchange.messages,
                human: exchange.human,
                agent,
            });
        }
        Ok(Some(compared))
    }

    async fn answer_of_agent(
        &self,
        settings: &SessionSettings,
        session: &SessionId,
        before: Seq,
        exchange: &Exchange,
        tools: &RecordedTools,
    ) -> Result<AgentAnswer, Fault> {
        let stream = StreamId::of_session(session);
        let fresh = SessionMachine::unstarted(&stream);
        let FoldedStream { machine, .. } = self
            .fold_stream(&stream, fresh, |_| None, Some(before))
            .await?;
        let folded = machine.session().map(ChatSession::with_agent_on_floor);
        let (Some(folded), Some(message)) = (folded, exchange.message()) else {
            return Ok(AgentAnswer::failed("the session had not begun"));
        };
        let agent_id = folded.start().agent_id.clone();
        let Some(agent) = settings.agents.agent(&agent_id) else {
            return Ok(AgentAnswer::failed("the agent is not loaded"));
        };
        let machine = SessionMachine::restored(&stream, Arc::new(folded));
        let mut turn = ComparedTurn {
            runtime: self,
            settings,
            agent,
            tools,
            machine,
            waiting: VecDeque::new(),
            answer: AgentAnswer::default(),
        };
        let message = Box::new(message);
        if turn
            .submit(SessionCommand::ReceiveAndBegin { message })
            .await
        {
            turn.work().await;
        }
        let mut answer = turn.answer;
        let texts = answer.texts.iter_mut().chain(&mut answer.error);
        texts.for_each(|text| self.redact_in_place(text));
        Ok(answer)
    }
}

impl Exchange {
    /// The messages as one, as if they had come in one burst.
    fn message(&self) -> Option<InboundMessage> {
        let last = self.messages.last()?;
        let texts: Vec<&str> = self.messages.iter().map(|m| m.body.as_str()).collect();
        Some(InboundMessage {
            message_id: MessageId::from(format!("compared:{}", last.message_id)),
            body: texts.join("\n"),
            ..last.clone()
        })
    }
}

impl AgentAnswer {
    fn failed(why: &str) -> Self {
        Self {
            error: Some(why.to_owned()),
            ..Self::default()
        }
    }
}

/// Exchanges of a log, found event by event.
#[derive(Default)]
struct Exchanges {
    takeover: Option<EscalationId>,
    open: Exchange,
    last: Option<Seq>,
    found: VecDeque<Exchange>,
}

impl Exchanges {
    fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match &recorded.event.body {
            Body::MessageReceived { message, .. } => {
                if !self.open.human.is_empty() {
                    self.close();
                }
                if self.open.messages.is_empty() {
                    self.open.before = self.last;
                }
                self.open.messages.push((**message).clone());
            }
            Body::LiveTakeoverStarted { escalation_id, .. } => {
                self.takeover = Some(escalation_id.clone());
            }
            Body::LiveTakeoverEnded { .. } => {
                self.close();
                self.takeover = None;
            }
            Body::ResponseQueued {
                message, candidate, ..
            } => {
                self.answered(message, candidate.origin == CandidateOrigin::Human);
            }
            Body::ExternalReplyRecorded { message, .. } => self.answered(message, true),
            _ => {}
        }
        self.last = Some(recorded.seq);
    }

    fn answered(&mut self, message: &LedgerMessage, by_person: bool) {
        match (&self.takeover, by_person) {
            (Some(escalation), true) => {
                self.open.escalation = Some(escalation.clone());
                self.open.human.push(message.clone());
            }
            // The agent has answered, or greets the user on behalf of the person who will come.
            (None, _) => self.open = Exchange::default(),
            (Some(_), false) => {}
        }
    }

    fn close(&mut self) {
        let exchange = std::mem::take(&mut self.open);
        if !exchange.human.is_empty() && !exchange.messages.is_empty() {
            self.found.push_back(exchange);
            if self.found.len() > MAX_COMPARED {
                self.found.pop_front();
            }
        }
    }

    fn finish(mut self) -> VecDeque<Exchange> {
        self.close();
        self.found
    }
}

/// A turn that is decided and performed in memory.
struct ComparedTurn<'a> {
    runtime: &'a Runtime,
    settings: &'a SessionSettings,
    agent: Arc<AgentSpec>,
    tools: &'a RecordedTools,
    machine: SessionMachine,
    waiting: VecDeque<Effect<SessionWork>>,
    answer: AgentAnswer,
}

impl ComparedTurn<'_> {
    /// False when the turn cannot go on.
    async fn submit(&mut self, command: SessionCommand) -> bool {
        // Programs of the real session are not used.
        let programs = DecisionPrograms::new(self.settings, None);
        let (runtime, agent) = (self.runtime, &self.agent);
        let (decided, _) = decide(runtime, &self.machine, &command, agent, programs).await;
        let Ok(decision) = decided else {
            self.answer.actions.push("goes on with its flow".to_owned());
            return false;
        };
        for event in &decision.events {
            match &event.event.body {
                Body::FlowStarted { .. } => {
                    let flow = event.event.flow.as_ref();
                    let flow = flow.map_or("", |flow| flow.flow_id.as_str());
                    self.answer.actions.push(format!("starts the flow {flow}"));
                }
                Body::EscalationCreated(_) => {
                    self.answer.actions.push("asks for a person".to_owned());
                }
                Body::DraftHeld { candidate, .. } => {
                    self.answer.texts.push(candidate.text.clone());
                }
                _ => {}
            }
        }
        self.waiting.extend(decision.effects);
        self.machine = decision.after;
        true
    }

    async fn work(&mut self) {
        for _ in 0..MAX_WORK {
            let Some(effect) = self.waiting.pop_front() else {
                return;
            };
            let outcome = Box::new(self.perform(&effect).await);
            let finish = SessionCommand::FinishWork {
                effect: effect.id,
                outcome,
            };
            if !self.submit(finish).await {
                return;
            }
        }
        self.answer.error = Some(format!("no end after {MAX_WORK} pieces of work"));
    }

    async fn perform(&mut self, effect: &Effect<SessionWork>) -> WorkOutcome {
        const NOT_HERE: &str = "is not done for an answer that is only compared";
        let Some(context) = self.context(&effect.id) else {
            return WorkOutcome::Reported;
        };
        let agents = Arc::clone(&self.settings.agents);
        match &effect.kind {
            SessionWork::Continue => WorkOutcome::Continue,
            SessionWork::Code(call) => WorkOutcome::Code(agents.call_code(call, &context).await),
            SessionWork::Model {
                purpose,
                messages,
                tools,
                ..
            } => {
                let request = ChatModelRequest {
                    purpose: *purpose,
                    messages: messages.clone(),
                    tools: tools.clone(),
                    streams: false,
                };
                let answer = agents.call_model(&request, &context, &|_: &str| {}).await;
                if let Err(error) = &answer {
                    self.answer.error = Some(format!("the model failed: {}", error.message));
                }
                WorkOutcome::Model(answer)
            }
            SessionWork::Tool { name, args } => {
                let recorded = self.tools.answer(name, args);
                self.answer.actions.push(match recorded.error {
                    None => format!("calls the tool {name}, which answers as recorded"),
                    Some(_) => format!("calls the tool {name}, of which nothing is recorded"),
                });
                WorkOutcome::Tool(recorded)
            }
            SessionWork::Send(request) => {
                if self
                    .machine
                    .session()
                    .is_some_and(|session| session.start().address == request.to)
                {
                    self.answer.texts.push(request.text.clone());
                }
                WorkOutcome::Sent(Ok(SentMessage::default()))
            }
            SessionWork::Transcribe { .. } => {
                WorkOutcome::Transcript(Err(failed(format!("speech {NOT_HERE}"))))
            }
            SessionWork::StartWorkflow(start) => {
                let action = format!("starts the workflow {}", start.workflow_id);
                self.answer.actions.push(action);
                WorkOutcome::Workflow(Err(failed(format!("a workflow {NOT_HERE}"))))
            }
            SessionWork::AnswerWorkflow(answer) => WorkOutcome::WorkflowAnswered {
                interrupt: answer.interrupt_id.clone(),
                error: Some(failed(format!("a workflow's question {NOT_HERE}"))),
            },
            SessionWork::Notify(_) => {
                WorkOutcome::NoticeFailed(failed(format!("a notice {NOT_HERE}")))
            }
            SessionWork::ListEscalations => WorkOutcome::Escalations(Ok(Vec::new())),
            SessionWork::ManageSchedule(_) => {
                WorkOutcome::Schedule(Err(failed(format!("work on schedules {NOT_HERE}"))))
            }
            SessionWork::CancelWorkflow { .. }
            | SessionWork::ReportFlow(_)
            | SessionWork::ReportSchedule(_) => WorkOutcome::Reported,
        }
    }

    /// The keys of calls are not those of the session's own calls.
    fn context(&self, effect: &EffectId) -> Option<CallContext> {
        let context = self.runtime.call_context(self.machine.session()?, effect);
        let unique = self.runtime.inner.config.ids.run_id();
        Some(CallContext {
            key: EffectId::from(format!("compared:{unique}:{effect}")),
            ..context
        })
    }
}
