//! What use cases ask of conversations: commands to sessions and users, reading flow runs, the log of an agent.

use super::session_driver::AGENT_UNAVAILABLE;
use super::settings::Conversations;
use crate::codec;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::chat_user::AgentUser;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{
    AgentLevelEvent, ChatUserCommand, ChatUserReply, ProfileChange, ScheduleEvent, ScheduleRecord,
    ScheduleRunRecord, SessionCommand, SessionEvent, SessionReply,
};
use tandem_record::{
    AgentId, ChatUserId, Recorded, RunId, ScheduleId, ScheduleRunId, Seq, SessionId, StreamId,
    TenantId,
};
use tandem_store::{AgentLogEvent, Fault, PageLimit};

/// One event of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedSessionEvent {
    /// Its place among the events of the agent, from 1.
    pub position: u64,
    pub session: SessionId,
    pub event: Recorded<SessionEvent>,
}

/// One event of an agent that belongs to no session.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedAgentEvent {
    pub position: u64,
    pub event: Recorded<AgentLevelEvent>,
}

/// One event of a schedule of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedScheduleEvent {
    pub position: u64,
    /// The schedule as it is now.
    pub schedule: Arc<ScheduleRecord>,
    /// The occurrence the event is about, as it is now.
    pub run: Option<Arc<ScheduleRunRecord>>,
    pub event: Recorded<ScheduleEvent>,
}

/// Events of an agent, and where a reader goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventPage {
    pub events: Vec<LoggedSessionEvent>,
    /// Those of the agent itself, in the same order of positions.
    pub own: Vec<LoggedAgentEvent>,
    /// Those of its schedules, likewise.
    pub schedules: Vec<LoggedScheduleEvent>,
    /// The last position that was read, shown or not.
    pub last: u64,
}

impl Runtime {
    fn served_conversations(&self) -> Result<Conversations, SubmitError> {
        let conversations = self.conversations().cloned();
        conversations.ok_or(SubmitError::NotFound)
    }

    /// Puts a command to a session.
    pub async fn submit_to_session(
        &self,
        session: &SessionId,
        mut command: SessionCommand,
    ) -> Result<Result<SessionReply, SessionRefusal>, SubmitError> {
        let conversations = self.served_conversations()?;
        self.redact_admin_command(&mut command);
        let stream = StreamId::of_session(session);
        let sessions = &conversations.sessions;
        let answer = self.submit_command(sessions, &stream, command, None);
        Ok(answer.await?.result)
    }

    pub(super) fn redact_profile(&self, change: &mut ProfileChange) {
        let texts = change.tags.iter_mut().flatten();
        for text in texts.chain(&mut change.display_name) {
            self.redact_in_place(text);
        }
        if let Some(preferences) = &mut change.preferences {
            self.inner.config.redactor.redact_value(preferences);
        }
    }

    /// Changes the profile of a user, in the active session too: what runs there sees it.
    pub async fn change_chat_user(
        &self,
        user: &ChatUserId,
        mut change: ProfileChange,
    ) -> Result<ChatUserReply, SubmitError> {
        let conversations = self.served_conversations()?;
        self.redact_profile(&mut change);
        let stream = StreamId::of_chat_user(user);
        let known = self.read_machine(&conversations.users, &stream).await?;
        if let Some(session) = known.as_ref().and_then(AgentUser::active_session) {
            let command = SessionCommand::ChangeProfile(Box::new(change.clone()));
            match self.submit_to_session(session, command).await {
                // The commit of the session changes the user as well.
                Ok(Ok(_)) => return Ok(ChatUserReply::Done),
                // It ended meanwhile.
                Ok(Err(_)) => {}
                // No turn can run there before the agent is mended.
                Err(SubmitError::Fault(fault)) if fault.code == AGENT_UNAVAILABLE => {}
                Err(error) => return Err(error),
            }
        }
        let command = ChatUserCommand::ChangeProfile(Box::new(change));
        self.submit_command(&conversations.users, &stream, command, None)
            .await
    }

    /// A flow run as of its newest event.
    pub async fn read_flow_run(&self, run: &RunId) -> Result<Option<FlowRun>, Fault> {
        let Some(conversations) = self.conversations() else {
            return Ok(None);
        };
        let flow_runs = &conversations.sessions.settings.flow_runs;
        self.read_machine(flow_runs, &StreamId::of_run(run)).await
    }

    /// Events of an agent and of all its sessions after a position, in order of their commits.
    pub async fn agent_events(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentEventPage, Fault> {
        let page = self.store().agent_log(tenant, agent, after, limit).await?;
        let last = page.events.last().map_or(page.head, |event| event.position);
        let (mut events, mut own) = (Vec::new(), Vec::new());
        let mut schedules = LoggedSchedules::new(self, tenant);
        for logged in page.events {
            if logged.stream.is_of_agent() {
                own.push(LoggedAgentEvent {
                    position: logged.position,
                    event: codec::decode(&logged.event)?,
                });
            }
            if let Some(schedule) = logged.stream.schedule() {
                schedules.add(schedule, &logged).await?;
            }
            if let Some(session) = logged.stream.session() {
                events.push(LoggedSessionEvent {
                    position: logged.position,
                    session,
                    event: codec::decode(&logged.event)?,
                });
            }
        }
        Ok(AgentEventPage {
            events,
            own,
            schedules: schedules.events,
            last: last.max(after),
        })
    }

    /// Events of a session that end with its newest one: from the one that `is_first` accepts, or all.
    pub async fn newest_session_events(
        &self,
        session: &SessionId,
        is_first: impl Fn(&Recorded<SessionEvent>) -> bool,
    ) -> Result<Vec<Recorded<SessionEvent>>, Fault> {
        /// A turn that answers at once has about ten events. Reading more of them takes longer than the turn.
        const FIRST_STEP: u64 = 16;
        let Some(current) = self.read_session(session).await? else {
            return Ok(Vec::new());
        };
        let mut step = FIRST_STEP;
        let mut from = current.head().0.saturating_sub(step);
        loop {
            let events = self.session_events_from(session, Seq(from)).await?;
            if let Some(first) = events.iter().position(&is_first) {
                return Ok(events.into_iter().skip(first).collect());
            }
            if from == 0 {
                return Ok(events);
            }
            step *= 8;
            from = from.saturating_sub(step);
        }
    }

    /// All events of a session from a sequence on.
    pub async fn session_events_from(
        &self,
        session: &SessionId,
        from: Seq,
    ) -> Result<Vec<Recorded<SessionEvent>>, Fault> {
        const PAGE: PageLimit = PageLimit {
            events: 512,
            bytes: 1024 * 1024,
        };
        let mut after = from.0.checked_sub(1).map(Seq);
        let mut all = Vec::new();
        loop {
            let page = self.session_events(session, after, PAGE).await?;
            let Some(last) = page.events.last() else {
                return Ok(all);
            };
            after = Some(last.seq);
            all.extend(page.events);
            if after >= page.head {
                return Ok(all);
            }
        }
    }
}

/// Events of schedules with what their readers need of the schedules.
struct LoggedSchedules<'a> {
    runtime: &'a Runtime,
    tenant: &'a TenantId,
    known: BTreeMap<ScheduleId, Option<Arc<ScheduleRecord>>>,
    runs: BTreeMap<ScheduleRunId, Option<Arc<ScheduleRunRecord>>>,
    events: Vec<LoggedScheduleEvent>,
}

impl<'a> LoggedSchedules<'a> {
    fn new(runtime: &'a Runtime, tenant: &'a TenantId) -> Self {
        Self {
            runtime,
            tenant,
            known: BTreeMap::new(),
            runs: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    async fn add(&mut self, id: ScheduleId, logged: &AgentLogEvent) -> Result<(), Fault> {
        let event: Recorded<ScheduleEvent> = codec::decode(&logged.event)?;
        let Some(schedule) = self.schedule(id).await? else {
            return Ok(());
        };
        let run = match event.event.body.run_id() {
            Some(run) => self.run(run).await?,
            None => None,
        };
        self.events.push(LoggedScheduleEvent {
            position: logged.position,
            schedule,
            run,
            event,
        });
        Ok(())
    }

    async fn schedule(&mut self, id: ScheduleId) -> Result<Option<Arc<ScheduleRecord>>, Fault> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let found = self.runtime.read_schedule(&id).await?.map(Arc::new);
        self.known.insert(id, found.clone());
        Ok(found)
    }

    async fn run(&mut self, id: &ScheduleRunId) -> Result<Option<Arc<ScheduleRunRecord>>, Fault> {
        if let Some(known) = self.runs.get(id) {
            return Ok(known.clone());
        }
        let row = self.runtime.store().schedule_run(self.tenant, id).await?;
        let found = row.and_then(|row| serde_json::from_str(&row.body).ok());
        let found = found.map(Arc::new);
        self.runs.insert(id.clone(), found.clone());
        Ok(found)
    }
}
