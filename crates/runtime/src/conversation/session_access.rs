//! What use cases ask of conversations: commands to sessions and users, reading flow runs, the log of an agent.

use super::settings::Conversations;
use crate::codec;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{
    ChatUserCommand, ChatUserReply, ProfileChange, SessionCommand, SessionEvent, SessionReply,
};
use tandem_record::{AgentId, ChatUserId, Recorded, RunId, Seq, SessionId, StreamId, TenantId};
use tandem_store::{Fault, PageLimit};

/// One event of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedSessionEvent {
    /// Its place among the events of the agent, from 1.
    pub position: u64,
    pub session: SessionId,
    pub event: Recorded<SessionEvent>,
}

/// Events of an agent, and where a reader goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventPage {
    pub events: Vec<LoggedSessionEvent>,
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
        command: SessionCommand,
    ) -> Result<Result<SessionReply, SessionRefusal>, SubmitError> {
        let conversations = self.served_conversations()?;
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

    /// Changes the profile of a user.
    pub async fn change_chat_user(
        &self,
        user: &ChatUserId,
        mut change: ProfileChange,
    ) -> Result<ChatUserReply, SubmitError> {
        let conversations = self.served_conversations()?;
        self.redact_profile(&mut change);
        let stream = StreamId::of_chat_user(user);
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

    /// Events of all sessions of an agent after a position, in order of their commits.
    pub async fn agent_events(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentEventPage, Fault> {
        let page = self.store().agent_log(tenant, agent, after, limit).await?;
        let last = page.events.last().map_or(page.head, |event| event.position);
        let mut events = Vec::new();
        for logged in page.events {
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
            last: last.max(after),
        })
    }

    /// Events of a session that end with its newest one: from the one that `is_first` accepts, or all.
    pub async fn newest_session_events(
        &self,
        session: &SessionId,
        is_first: impl Fn(&Recorded<SessionEvent>) -> bool,
    ) -> Result<Vec<Recorded<SessionEvent>>, Fault> {
        const STEP: u64 = 128;
        let Some(current) = self.read_session(session).await? else {
            return Ok(Vec::new());
        };
        let mut from = current.head().0.saturating_sub(STEP);
        loop {
            let events = self.session_events_from(session, Seq(from)).await?;
            if let Some(first) = events.iter().position(&is_first) {
                return Ok(events.into_iter().skip(first).collect());
            }
            if from == 0 {
                return Ok(events);
            }
            from = from.saturating_sub(STEP * 8);
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
        }
    }
}
