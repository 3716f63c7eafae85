//! Events of sessions and agents, as pages; see `session_follower.rs` for events as they arrive.

use super::session_follower::SessionFollower;
use crate::app::App;
use crate::error::AppError;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::SessionStart;
use tandem_record::{AgentId, Masking, Seq, SessionId};
use tandem_runtime::PageLimit;
use tandem_runtime::conversation::{AgentEventPage, SessionEventPage};
use tokio::sync::watch;

/// The size of one JSON page of events.
const EVENTS_PAGE: PageLimit = PageLimit {
    events: 5_000,
    bytes: 4 * 1024 * 1024,
};

impl App {
    /// A page of a session's events after a sequence.
    pub async fn read_session_events(
        &self,
        caller: &Identity,
        session: &SessionId,
        after: Option<Seq>,
    ) -> Result<(SessionStart, SessionEventPage), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let page = self
            .runtime()
            .session_events(session, after, EVENTS_PAGE)
            .await?;
        Ok((found.start().clone(), page))
    }

    /// Follows a session the caller may see.
    pub async fn follow_session(
        &self,
        caller: &Identity,
        session: &SessionId,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Result<(SessionStart, SessionFollower), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let follower =
            SessionFollower::new(self, found.start(), cursor, cursor.is_none(), stopping);
        Ok((found.start().clone(), follower))
    }

    /// A page of an agent's events after a position.
    pub async fn read_agent_events(
        &self,
        caller: &Identity,
        agent: &AgentId,
        after: u64,
    ) -> Result<AgentEventPage, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_agent_for(caller, agent)?;
        let runtime = self.runtime();
        let mut page = runtime
            .agent_events(&caller.tenant, agent, after, EVENTS_PAGE)
            .await?;
        let partition = caller.partition();
        page.own.retain(|own| {
            let workspace = own.event.event.workspace.as_ref();
            partition.covers_parts(&caller.tenant, workspace)
        });
        page.schedules.retain(|logged| {
            let owner = &logged.schedule.owner;
            partition.covers_parts(&owner.tenant, owner.workspace.as_ref())
        });
        Ok(page)
    }

    /// What a session began with.
    pub async fn session_start(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<SessionStart, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.find_session(caller, session).await?.start().clone())
    }

    /// How texts in events of an agent are shown.
    pub fn text_masking(&self, agent: &AgentId) -> Masking {
        let agent = self.agent_spec(agent);
        agent.map_or(Masking::Passthrough, |agent| agent.redaction.masking())
    }
}
