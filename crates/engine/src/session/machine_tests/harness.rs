//! A session with its agent, its clock and programs written as Rust closures. Every decision is
//! checked: folding its events over the state before gives the state after.

pub(super) use super::programs::{Code, code, done, effect, failed, text_of, value};
use super::programs::{Function, TestPrograms};
use crate::agent::{AgentSpec, LoadedFlow};
use crate::flow_run::{FlowRun, FlowRunCommand, FlowRunContext};
use crate::machine::Machine as _;
use crate::session::{
    ChatSession, ProgramStep, SessionContext, SessionDecision, SessionRefusal, SessionUndecided,
    decide, start,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use tandem_record::conversation::{
    ChatAnswer, ChatUser, CodeCall, CodeError, CodeOutcome, FlowRecord, FlowReport, InboundMessage,
    ScheduleToolCall, ScheduledTurnReport, SentMessage, SessionCommand, SessionEvent,
    SessionEventBody as Body, SessionReply, SessionStart, SessionTimer, SessionWork, WorkOutcome,
    WorkflowAnswer, WorkflowStart,
};
use tandem_record::{EffectId, Owner, Recorded, RunId, TenantId, Timestamp};
use tandem_schema::{MAX_WORK, Meter};

pub(super) struct TestSession {
    pub(super) agent: AgentSpec,
    pub(super) programs: RefCell<TestPrograms>,
    pub(super) session: Option<ChatSession>,
    pub(super) now: Timestamp,
    pub(super) events: Vec<Body>,
    pub(super) log: Vec<Recorded<SessionEvent>>,
    pub(super) flow_runs: BTreeMap<RunId, FlowRun>,
    pub(super) journal: Vec<(RunId, FlowRecord)>,
    outbox: VecDeque<(EffectId, SessionWork)>,
    pub(super) sent: Vec<String>,
    /// Answers of functions of the agent, by path.
    pub(super) functions: BTreeMap<String, Function>,
    pub(super) answers: VecDeque<Result<ChatAnswer, CodeError>>,
    pub(super) model_calls: Vec<SessionWork>,
    pub(super) tool_calls: Vec<(EffectId, String, Value)>,
    /// Where texts went: transport, address, text.
    pub(super) routes: Vec<(String, String, String)>,
    pub(super) transcripts: VecDeque<Result<String, CodeError>>,
    /// What transports answer, in order; nothing in particular beyond them.
    pub(super) sent_messages: VecDeque<SentMessage>,
    pub(super) workflows: Vec<WorkflowStart>,
    pub(super) reports: Vec<FlowReport>,
    pub(super) workflow_answers: Vec<WorkflowAnswer>,
    /// Why workflows do not take answers, in order; beyond them they take all.
    pub(super) refused_answers: VecDeque<CodeError>,
    /// What schedules were told.
    pub(super) scheduled: Vec<ScheduledTurnReport>,
    pub(super) schedule_calls: Vec<ScheduleToolCall>,
    pub(super) schedule_answers: VecDeque<Result<Value, CodeError>>,
    pub(super) other_work: Vec<SessionWork>,
    pub(super) dropped: Vec<EffectId>,
    /// Stop before performing work of these names.
    pub(super) held: Vec<&'static str>,
    messages: u32,
    /// Messages are accepted and begin their turns in one decision.
    pub(super) begins_at_once: bool,
    /// The text that greets a new user.
    pub(super) welcome: Option<String>,
}

impl TestSession {
    pub(super) fn new(config: Value, flows: &[(&str, Code)]) -> Self {
        let mut fields = json!({"prompt": "You are the desk.", "adminAuth": {
            "tokens": [], "chat": [], "roles": {}}});
        let given = config.as_object().expect("an object").clone();
        fields.as_object_mut().expect("an object").extend(given);
        let loaded: Vec<LoadedFlow> = flows
            .iter()
            .map(|(id, _)| LoadedFlow {
                flow_id: (*id).to_owned(),
                version: "v1".to_owned(),
                ..LoadedFlow::default()
            })
            .collect();
        let agent = AgentSpec::compile("demo", &fields, &loaded).expect("a valid agent");
        let mut programs = TestPrograms::default();
        for (id, code) in flows {
            programs.code.insert((*id).to_owned(), code.clone());
        }
        Self {
            agent,
            programs: RefCell::new(programs),
            session: None,
            now: Timestamp(1_800_000_000_000),
            events: Vec::new(),
            log: Vec::new(),
            flow_runs: BTreeMap::new(),
            journal: Vec::new(),
            outbox: VecDeque::new(),
            sent: Vec::new(),
            functions: BTreeMap::new(),
            answers: VecDeque::new(),
            model_calls: Vec::new(),
            tool_calls: Vec::new(),
            routes: Vec::new(),
            transcripts: VecDeque::new(),
            sent_messages: VecDeque::new(),
            workflows: Vec::new(),
            reports: Vec::new(),
            workflow_answers: Vec::new(),
            refused_answers: VecDeque::new(),
            scheduled: Vec::new(),
            schedule_calls: Vec::new(),
            schedule_answers: VecDeque::new(),
            other_work: Vec::new(),
            dropped: Vec::new(),
            held: Vec::new(),
            messages: 0,
            begins_at_once: false,
            welcome: None,
        }
    }

    /// An agent whose only flow is offered to the model.
    pub(super) fn with_tool_flow(id: &str, code: Code) -> Self {
        let mut desk = Self::new(json!({}), &[(id, code)]);
        let flow = desk.agent.flows.get_mut(id).expect("a flow");
        flow.tool = Some(crate::agent::FlowTool {
            alias: id.to_owned(),
        });
        desk
    }

    /// The work that is held back.
    pub(super) fn held_effect(&self) -> EffectId {
        self.outbox.front().expect("work").0.clone()
    }

    /// Sends a message and performs all work. Returns the texts that were sent for it.
    pub(super) fn say(&mut self, text: &str) -> Vec<String> {
        let before = self.sent.len();
        self.receive(text);
        self.perform_all();
        self.sent[before..].to_vec()
    }

    /// Accepts a message without processing it.
    pub(super) fn receive(&mut self, text: &str) {
        let message = self.message("u1", text);
        self.deliver(message);
    }

    /// A message as a transport delivers it.
    pub(super) fn message(&mut self, from: &str, text: &str) -> InboundMessage {
        self.messages += 1;
        InboundMessage {
            message_id: format!("m-{}", self.messages).into(),
            from: from.to_owned(),
            body: text.to_owned(),
            kind: None,
            sender_profile: None,
            media: None,
            client_id: None,
            quoted_id: None,
            relayed: false,
            received_at: self.now,
            sent_at: None,
        }
    }

    /// Accepts a message of the user.
    pub(super) fn deliver(&mut self, message: InboundMessage) {
        let message = Box::new(message);
        if self.session.is_some() {
            let command = match self.begins_at_once {
                true => SessionCommand::ReceiveAndBegin { message },
                false => SessionCommand::Receive { message },
            };
            self.command(command).expect("accepted");
            return;
        }
        let decision = {
            let (meter, programs) = (Meter::with_limit(MAX_WORK), &self.programs);
            let context = SessionContext {
                now: self.now,
                agent: &self.agent,
                programs,
                work: &meter,
            };
            let first = SessionStart {
                welcome: self.welcome.clone(),
                ..first()
            };
            start(first, *message, &context).expect("a session starts")
        };
        self.take(None, decision);
    }

    pub(super) fn command(
        &mut self,
        command: SessionCommand,
    ) -> Result<SessionReply, SessionRefusal> {
        let before = self.session.clone().expect("a session");
        let decision = {
            let (meter, programs) = (Meter::with_limit(MAX_WORK), &self.programs);
            let context = SessionContext {
                now: self.now,
                agent: &self.agent,
                programs,
                work: &meter,
            };
            decide(&before, &command, &context)
        };
        match decision {
            Ok(decision) => Ok(self.take(Some(before), decision)),
            Err(SessionUndecided::Refused(refusal)) => Err(refusal),
            Err(SessionUndecided::Needs(need)) => panic!("unexpected need {need:?}"),
        }
    }

    /// Outcomes and timers may come twice. The second time changes nothing (Z-190).
    fn command_twice(&mut self, command: SessionCommand) {
        self.command(command.clone()).expect("never refused");
        let (events, work) = (self.events.len(), self.outbox.len());
        self.command(command).expect("never refused");
        assert_eq!(self.events.len(), events, "a repetition changes nothing");
        // A turn that waits is offered again under the same id.
        let ids: Vec<_> = self.outbox.iter().skip(work).map(|(id, _)| id).collect();
        let known = |id: &EffectId| self.outbox.iter().take(work).any(|(of, _)| of == id);
        assert!(
            ids.into_iter().all(known),
            "a repetition requests nothing new"
        );
        self.outbox.truncate(work);
    }

    fn take(&mut self, before: Option<ChatSession>, decision: SessionDecision) -> SessionReply {
        let mut folded = before;
        for event in &decision.events {
            match &mut folded {
                Some(session) => session.evolve(event),
                None => {
                    let Body::SessionStarted(start) = &event.event.body else {
                        panic!("the first event starts the session");
                    };
                    folded = Some(ChatSession::new((**start).clone(), event.at));
                }
            }
        }
        assert_eq!(
            folded.as_ref(),
            Some(&decision.after),
            "fold and decision agree"
        );
        self.log.extend(decision.events.iter().cloned());
        self.events
            .extend(decision.events.into_iter().map(|e| e.event.body));
        for (run, record) in &decision.journal {
            self.append_to_run(run, record);
        }
        self.journal.extend(decision.journal);
        self.outbox.extend(decision.work);
        self.outbox.retain(|(id, _)| !decision.dropped.contains(id));
        self.dropped.extend(decision.dropped);
        self.session = Some(decision.after);
        decision.reply
    }

    /// The run of the flow takes every record that the session makes.
    fn append_to_run(&mut self, run: &RunId, record: &FlowRecord) {
        let unstarted = || FlowRun::unstarted(run.clone());
        let before = self.flow_runs.entry(run.clone()).or_insert_with(unstarted);
        let context = FlowRunContext { cause: None };
        let command = FlowRunCommand::Append {
            at: self.now,
            records: [record.clone()].into(),
        };
        let decision = before.decide(&command, &context).expect("it fits");
        for event in &decision.events {
            before.evolve(event);
        }
        assert_eq!(*before, decision.after, "fold and decision agree");
    }

    pub(super) fn perform_all(&mut self) {
        while let Some(at) = self
            .outbox
            .iter()
            .position(|(_, work)| !self.held.contains(&work.name()))
        {
            let (effect, work) = self.outbox.remove(at).expect("it is there");
            let is_text = matches!(work, SessionWork::Send(_));
            if is_text && self.state().may_not_be_sent(&effect) {
                self.command_twice(SessionCommand::WithholdText { effect });
                continue;
            }
            let outcome = Box::new(self.perform(&effect, work));
            self.command_twice(SessionCommand::FinishWork { effect, outcome });
        }
    }

    fn perform(&mut self, effect: &EffectId, work: SessionWork) -> WorkOutcome {
        match work {
            SessionWork::Continue => WorkOutcome::Continue,
            SessionWork::Code(call) => WorkOutcome::Code(match self.functions.get(&call.path) {
                Some(function) => function(&call),
                None => CodeOutcome::default(),
            }),
            work @ SessionWork::Model { .. } => {
                self.model_calls.push(work);
                let answer = self.answers.pop_front();
                let default = ChatAnswer {
                    text: Some("model speaks".to_owned()),
                    ..ChatAnswer::default()
                };
                WorkOutcome::Model(answer.unwrap_or(Ok(default)))
            }
            SessionWork::Tool { name, args } => {
                let path = format!("tools.{name}");
                let call = CodeCall {
                    path: path.clone(),
                    args: vec![args.clone()],
                    timeout_ms: 0,
                };
                self.tool_calls.push((effect.clone(), name, args));
                WorkOutcome::Tool(match self.functions.get(&path) {
                    Some(function) => function(&call),
                    None => value(json!({"ok": true})),
                })
            }
            SessionWork::Send(request) => {
                self.routes
                    .push((request.transport, request.to, request.text.clone()));
                self.sent.push(request.text);
                WorkOutcome::Sent(Ok(self.sent_messages.pop_front().unwrap_or_default()))
            }
            SessionWork::Transcribe { .. } => {
                let heard = self.transcripts.pop_front();
                WorkOutcome::Transcript(heard.unwrap_or_else(|| Ok("heard".to_owned())))
            }
            SessionWork::StartWorkflow(start) => {
                self.workflows.push(start);
                WorkOutcome::Workflow(Ok(RunId::from("run-1")))
            }
            SessionWork::ReportFlow(report) => {
                self.reports.push(*report);
                WorkOutcome::Reported
            }
            SessionWork::AnswerWorkflow(answer) => {
                let interrupt = answer.interrupt_id.clone();
                self.workflow_answers.push(*answer);
                let error = self.refused_answers.pop_front();
                WorkOutcome::WorkflowAnswered { interrupt, error }
            }
            work @ (SessionWork::CancelWorkflow { .. } | SessionWork::Notify(_)) => {
                self.other_work.push(work);
                WorkOutcome::Reported
            }
            SessionWork::ListEscalations => WorkOutcome::Escalations(Ok(Vec::new())),
            SessionWork::ReportSchedule(report) => {
                self.scheduled.push(*report);
                WorkOutcome::Reported
            }
            SessionWork::ManageSchedule(call) => {
                self.schedule_calls.push(call);
                let answer = self.schedule_answers.pop_front();
                WorkOutcome::Schedule(answer.unwrap_or_else(|| Ok(json!({"id": "s-1"}))))
            }
        }
    }

    /// Moves the clock and fires what is due, in order of time.
    pub(super) fn wait_seconds(&mut self, seconds: u64) {
        self.now = self.now.plus_ms(seconds * 1_000);
        loop {
            let session = self.session.as_ref().expect("a session");
            let timers = session.required_timers();
            let due = timers.into_iter().filter(|(_, due)| *due <= self.now);
            let Some((timer, _)) = due.min_by_key(|(_, due)| *due) else {
                return;
            };
            self.fire(timer);
            self.perform_all();
        }
    }

    pub(super) fn fire(&mut self, timer: SessionTimer) {
        self.command_twice(SessionCommand::FireTimer(timer));
    }

    /// The code of the active run was changed: it yields something else than its journal says.
    pub(super) fn change_code(&mut self) -> RunId {
        let run = self.state().flow().expect("a flow").run_id().clone();
        let step = ProgramStep::Diverged {
            step: 1,
            expected: json!("a"),
            actual: json!("b"),
        };
        self.programs
            .borrow_mut()
            .diverges
            .insert(run.clone(), step);
        run
    }

    pub(super) fn restore_code(&mut self) {
        self.programs.borrow_mut().diverges.clear();
    }

    /// What the code was last told with a result.
    pub(super) fn last_context(&self) -> Value {
        let programs = self.programs.borrow();
        programs.contexts.last().map_or(Value::Null, |c| json!(c))
    }

    /// Events of one kind.
    pub(super) fn count(&self, is_it: impl Fn(&Body) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }

    pub(super) fn state(&self) -> &ChatSession {
        self.session.as_ref().expect("a session")
    }

    pub(super) fn paused_on(&self) -> Option<&'static str> {
        Some(self.state().flow()?.pause()?.name())
    }

    /// Reasons of ended flows, in order.
    pub(super) fn flow_ends(&self) -> Vec<Option<String>> {
        let ends = self.events.iter().filter_map(|event| match event {
            Body::FlowEnded { reason } => Some(reason.clone()),
            _ => None,
        });
        ends.collect()
    }

    pub(super) fn failures(&self, stage: &str) -> Vec<String> {
        let failures = self.events.iter().filter_map(|event| match event {
            Body::ResponseFailed {
                stage: at, reason, ..
            } if at == stage => Some(reason.clone()),
            _ => None,
        });
        failures.collect()
    }
}

fn first() -> SessionStart {
    SessionStart {
        session_id: "s-1".into(),
        agent_id: "demo".into(),
        owner: Owner {
            tenant: TenantId::from("default"),
            workspace: None,
            principal: None,
        },
        user: ChatUser {
            id: "usr-1".into(),
            external_user_id: "u1".to_owned(),
            display_name: "Ada".to_owned(),
            name_is_chosen: false,
            tags: Vec::new(),
            preferences: Value::Null,
            consent: None,
        },
        transport: "loopback".to_owned(),
        address: "u1".to_owned(),
        welcome: None,
        idle_timeout_ms: 15 * 60_000,
        earlier: Vec::new(),
        last_received_at: None,
    }
}
