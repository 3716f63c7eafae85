//! The session as a machine: what a decision of the engine becomes for the driver.

use super::programs::ResumedPrograms;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::machine::{Decision, Machine, timer_changes};
use tandem_engine::session::{
    self, ChatSession, SessionContext, SessionDecision, SessionNeed, SessionRefusal,
    SessionUndecided,
};
use tandem_record::conversation::{
    FlowRecord, SessionCommand, SessionEvent, SessionEventBody, SessionReply, SessionTimer,
    SessionWork,
};
use tandem_record::{Effect, Recorded, RunId, Seq, SessionId, StreamId, TenantId, Timestamp};

/// A session, or nothing before its first event.
#[derive(Clone, Debug)]
pub struct SessionMachine {
    id: SessionId,
    /// Shared with readers and with the machines of decisions.
    session: Option<Arc<ChatSession>>,
    nobody: TenantId,
}

/// What a command to a session led to.
#[derive(Clone, Debug)]
pub struct SessionAnswer {
    pub result: Result<SessionReply, SessionRefusal>,
    /// Records for the journals of flow runs, committed with the decision.
    pub(super) journal: BTreeMap<RunId, Arc<[FlowRecord]>>,
    pub(super) programs: ResumedPrograms,
}

impl SessionMachine {
    pub(super) fn unstarted(stream: &StreamId) -> Self {
        let id = stream.as_str().trim_start_matches("conv:");
        Self {
            id: SessionId::new(id),
            session: None,
            nobody: TenantId::new(""),
        }
    }

    pub(super) fn restored(stream: &StreamId, session: Arc<ChatSession>) -> Self {
        Self {
            session: Some(session),
            ..Self::unstarted(stream)
        }
    }

    /// The session; `None` before its first event.
    pub fn session(&self) -> Option<&ChatSession> {
        self.session.as_deref()
    }

    /// The same to keep; `None` before its first event.
    pub(super) fn shared_session(&self) -> Option<Arc<ChatSession>> {
        self.session.clone()
    }

    /// The run of the active flow, and the number of effects it has produced.
    pub(super) fn active_program(&self) -> Option<(&RunId, u32)> {
        let flow = self.session.as_ref()?.flow()?;
        Some((flow.run_id(), flow.steps()))
    }

    fn of_decision(&self, made: SessionDecision) -> Decision<Self> {
        let none = BTreeMap::new();
        let before = self.session().map(ChatSession::required_timers);
        let before = before.as_ref().unwrap_or(&none);
        let after = made.after.required_timers();
        Decision {
            timers: timer_changes(before, &after),
            effects: made
                .work
                .into_iter()
                .map(|(id, kind)| Effect { id, kind })
                .collect(),
            dropped: made.dropped,
            children: Vec::new(),
            events: made.events,
            reply: SessionAnswer {
                result: Ok(made.reply),
                journal: by_run(made.journal),
                programs: ResumedPrograms::default(),
            },
            after: Self {
                session: Some(Arc::new(made.after)),
                id: self.id.clone(),
                nobody: self.nobody.clone(),
            },
        }
    }

    /// A refusal changes nothing.
    fn refused(&self, refusal: SessionRefusal) -> Decision<Self> {
        Decision {
            events: Vec::new(),
            timers: Vec::new(),
            effects: Vec::new(),
            dropped: Vec::new(),
            children: Vec::new(),
            reply: SessionAnswer {
                result: Err(refusal),
                journal: BTreeMap::new(),
                programs: ResumedPrograms::default(),
            },
            after: self.clone(),
        }
    }
}

impl Machine for SessionMachine {
    type Event = SessionEvent;
    type Command = SessionCommand;
    type Reply = SessionAnswer;
    type TimerKey = SessionTimer;
    type EffectKind = SessionWork;
    type Undecided = SessionNeed;
    type Context<'a> = SessionContext<'a>;
    type Limits = ();
    type Snapshot = Option<Arc<ChatSession>>;

    fn stream(&self) -> StreamId {
        StreamId::of_session(&self.id)
    }

    fn tenant(&self) -> &TenantId {
        let session = self.session.as_ref();
        session.map_or(&self.nobody, |session| &session.start().owner.tenant)
    }

    fn head(&self) -> Option<Seq> {
        self.session().map(ChatSession::head)
    }

    fn is_ended(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.ended().is_some() && !session.has_deliveries())
    }

    fn memory_bytes(&self) -> usize {
        self.session().map_or(256, ChatSession::memory_bytes)
    }

    fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match (&mut self.session, &recorded.event.body) {
            (Some(session), _) => Arc::make_mut(session).evolve(recorded),
            (none, SessionEventBody::SessionStarted(start)) => {
                let session = ChatSession::started((**start).clone(), recorded.at);
                *none = Some(Arc::new(session));
            }
            // The first event of a session is its start.
            (None, _) => {}
        }
    }

    fn decide(
        &self,
        command: &SessionCommand,
        context: &SessionContext<'_>,
    ) -> Result<Decision<Self>, SessionNeed> {
        let decided = match (&self.session, command) {
            (Some(session), command) => session::decide(session, command, context),
            (None, SessionCommand::Start { start, message }) => {
                session::start((**start).clone(), (**message).clone(), context)
            }
            (None, SessionCommand::Open { start }) => session::open((**start).clone(), context),
            (None, _) => Err(SessionUndecided::Refused(SessionRefusal::Unknown)),
        };
        match decided {
            Ok(made) => Ok(self.of_decision(made)),
            Err(SessionUndecided::Refused(refusal)) => Ok(self.refused(refusal)),
            Err(SessionUndecided::Needs(need)) => Err(need),
        }
    }

    fn required_timers(&self, (): &()) -> BTreeMap<SessionTimer, Timestamp> {
        let session = self.session();
        session
            .map(ChatSession::required_timers)
            .unwrap_or_default()
    }

    fn snapshot(&self) -> &Option<Arc<ChatSession>> {
        &self.session
    }
}

/// The records of each run, in their order.
fn by_run(records: Vec<(RunId, FlowRecord)>) -> BTreeMap<RunId, Arc<[FlowRecord]>> {
    let mut runs: BTreeMap<RunId, Vec<FlowRecord>> = BTreeMap::new();
    for (run, record) in records {
        runs.entry(run).or_default().push(record);
    }
    let shared = runs.into_iter().map(|(run, records)| (run, records.into()));
    shared.collect()
}
