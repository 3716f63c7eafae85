//! A session that goes on in memory: its turns are decided and performed here, and nothing of them is stored, sent or
//! counted.
//!
//! The code of an active flow is run again from its journal, as far as the journal goes at this place of the log, and goes
//! on from there. What it does now is added to a copy of the journal, so that it can be run again from it. Programs of the
//! real session are not used.

use super::AgentAnswer;
use crate::conversation::agent_host::{CallContext, ChatModelRequest};
use crate::conversation::programs::DecisionPrograms;
use crate::conversation::recorded_tools::RecordedTools;
use crate::conversation::session_driver::decide;
use crate::conversation::session_machine::SessionMachine;
use crate::conversation::session_work::failed;
use crate::conversation::settings::SessionSettings;
use crate::conversation::stored_program::rebuild_from;
use crate::runtime::Runtime;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::{ChatSession, SessionNeed};
use tandem_record::conversation::{
    FlowRecord, InboundMessage, SentMessage, SessionCommand, SessionEvent,
    SessionEventBody as Body, SessionWork, WorkOutcome,
};
use tandem_record::{Effect, EffectId, Recorded, RunId, Seq, StreamId};
use tandem_store::Fault;

/// Pieces of work of one answer, and bytes of its texts.
const MAX_WORK: usize = 100;
const MAX_ANSWER_BYTES: usize = 256 * 1024;

pub(super) struct DetachedSession<'a> {
    runtime: &'a Runtime,
    settings: &'a SessionSettings,
    agent: Arc<AgentSpec>,
    tools: &'a RecordedTools,
    stream: StreamId,
    machine: SessionMachine,
    /// Journals of the flow runs whose code was needed, with what the detached session added.
    journals: BTreeMap<RunId, Vec<Recorded<FlowRecord>>>,
    /// Where the code of the flows is after the last decision.
    programs: DecisionPrograms,
    waiting: VecDeque<Effect<SessionWork>>,
    answer: AgentAnswer,
}

impl<'a> DetachedSession<'a> {
    pub(super) fn new(
        runtime: &'a Runtime,
        settings: &'a SessionSettings,
        agent: Arc<AgentSpec>,
        tools: &'a RecordedTools,
        (stream, session): (&StreamId, &ChatSession),
    ) -> Self {
        Self {
            runtime,
            settings,
            agent,
            tools,
            stream: stream.clone(),
            machine: SessionMachine::restored(stream, Arc::new(session.clone())),
            journals: BTreeMap::new(),
            programs: DecisionPrograms::new(settings, None),
            waiting: VecDeque::new(),
            answer: AgentAnswer::default(),
        }
    }

    /// Lets the agent answer a message. Nobody has taken over, and nothing else is under way.
    pub(super) async fn answer(&mut self, message: InboundMessage) -> Result<(), Fault> {
        self.answer = AgentAnswer::default();
        self.waiting.clear();
        if let Some(session) = self.machine.session() {
            let session = session.without_takeover();
            self.machine = SessionMachine::restored(&self.stream, Arc::new(session));
        }
        let message = Box::new(message);
        self.submit(SessionCommand::ReceiveAndBegin { message })
            .await?;
        self.work().await
    }

    /// What the agent said to the last message, also when it was interrupted.
    pub(super) fn take_answer(&mut self) -> AgentAnswer {
        std::mem::take(&mut self.answer)
    }

    async fn submit(&mut self, command: SessionCommand) -> Result<(), Fault> {
        let mut rebuilt: Vec<RunId> = Vec::new();
        let decision = loop {
            let fresh = DecisionPrograms::new(self.settings, None);
            let programs = std::mem::replace(&mut self.programs, fresh);
            let (runtime, agent) = (self.runtime, &self.agent);
            let (decided, used) = decide(runtime, &self.machine, &command, agent, programs).await;
            match decided {
                Ok(decision) => {
                    self.programs = used;
                    break decision;
                }
                Err(SessionNeed::Program(run)) if rebuilt.contains(&run) => {
                    let message = format!("a comparison needs the program of {run} again");
                    return Err(Fault::permanent("corrupt", message));
                }
                Err(SessionNeed::Program(run)) => rebuilt.push(run),
            }
            // Programs that the attempt resumed are not where the state is.
            for run in &rebuilt {
                let journal = self.journal(run).await?;
                let programs = &mut self.programs;
                rebuild_from(self.runtime, self.settings, run, journal, programs).await?;
            }
        };
        for event in &decision.events {
            self.note(&event.event);
        }
        self.append(&decision.reply.journal);
        self.waiting.extend(decision.effects);
        self.machine = decision.after;
        Ok(())
    }

    /// The journal of a run up to the effect at which its code waits.
    async fn journal(&mut self, run: &RunId) -> Result<Vec<Recorded<FlowRecord>>, Fault> {
        if let Some(journal) = self.journals.get(run) {
            return Ok(journal.clone());
        }
        let mut journal = self.runtime.flow_journal(run).await?;
        let active = self.machine.active_program();
        if let Some((_, steps)) = active.filter(|(active, _)| *active == run) {
            let last = steps.saturating_sub(1);
            let waits_at = |record: &Recorded<FlowRecord>| matches!(record.event, FlowRecord::Effect { step, .. } if step == last);
            if let Some(at) = journal.iter().position(waits_at) {
                journal.truncate(at + 1);
            }
        }
        self.journals.insert(run.clone(), journal.clone());
        Ok(journal)
    }

    /// Keeps what a decision adds to journals.
    fn append(&mut self, added: &BTreeMap<RunId, Arc<[FlowRecord]>>) {
        let now = self.runtime.clock().now();
        for (run, records) in added {
            let begins = matches!(records.first(), Some(FlowRecord::Started(_)));
            let journal = match begins {
                true => self.journals.entry(run.clone()).or_default(),
                // What was not needed before this decision has ended with it.
                false => match self.journals.get_mut(run) {
                    Some(journal) => journal,
                    None => continue,
                },
            };
            let next = journal.last().map_or(0, |last| last.seq.0 + 1);
            for (seq, record) in (next..).zip(records.iter()) {
                journal.push(Recorded {
                    seq: Seq(seq),
                    at: now,
                    cause: None,
                    event: record.clone(),
                });
            }
        }
    }

    /// What an event says that the agent does, besides texts.
    fn note(&mut self, event: &SessionEvent) {
        let flow = event.flow.as_ref();
        let flow = flow.map_or("", |flow| flow.flow_id.as_str());
        let action = match &event.body {
            Body::FlowStarted { .. } => format!("starts the flow {flow}"),
            Body::FlowPaused { pause } => format!("the flow {flow} waits: {}", pause.name()),
            Body::FlowEnded { .. } => format!("the flow {flow} ends"),
            Body::FlowFailed { error } => {
                self.fail(&format!("the flow {flow} failed: {}", error.message));
                return;
            }
            Body::FlowDiverged { .. } => {
                self.fail(&format!(
                    "the code of the flow {flow} does not fit its journal"
                ));
                return;
            }
            Body::EscalationCreated(_) => "asks for a person".to_owned(),
            Body::ProxyStarted { bridge, .. } => format!("opens a bridge to {}", bridge.target),
            Body::PendingMessage { .. } => {
                "holds the message until a person has decided".to_owned()
            }
            Body::DraftHeld { candidate, .. } => {
                self.say(candidate.text.clone());
                return;
            }
            _ => return,
        };
        self.answer.actions.push(action);
    }

    fn say(&mut self, text: String) {
        let bytes: usize = self.answer.texts.iter().map(String::len).sum();
        match bytes + text.len() <= MAX_ANSWER_BYTES {
            true => self.answer.texts.push(text),
            false => self.fail(&format!("more than {MAX_ANSWER_BYTES} bytes")),
        }
    }

    fn fail(&mut self, why: &str) {
        self.answer.error.get_or_insert_with(|| why.to_owned());
    }

    async fn work(&mut self) -> Result<(), Fault> {
        for _ in 0..MAX_WORK {
            let Some(effect) = self.waiting.pop_front() else {
                return Ok(());
            };
            let outcome = Box::new(self.perform(&effect).await);
            let finish = SessionCommand::FinishWork {
                effect: effect.id,
                outcome,
            };
            self.submit(finish).await?;
        }
        self.fail(&format!("no end after {MAX_WORK} pieces of work"));
        Ok(())
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
                    self.say(request.text.clone());
                } else {
                    self.answer
                        .actions
                        .push("writes to somebody else".to_owned());
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
