//! Sessions of users with agents.

use super::{Listing, ListingPage};
use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::{AgentId, ChatUserId, SessionId, TenantId, Timestamp, WorkspaceId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub session_id: SessionId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub agent: AgentId,
    pub user_id: ChatUserId,
    pub user_external_id: String,
    pub started_at: Timestamp,
    pub last_active_at: Timestamp,
    /// `None` while it is active.
    pub ended_at: Option<Timestamp>,
    /// What lists show, as JSON, opaque to the store.
    pub body: String,
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub workspace: Option<WorkspaceId>,
    pub agent: Option<AgentId>,
    pub user_external_id: Option<String>,
    /// Whether it has not ended.
    pub active: Option<bool>,
}

impl SessionFilter {
    pub fn matches(&self, row: &SessionRow) -> bool {
        let user = self.user_external_id.as_ref();
        (self.workspace.is_none() || self.workspace == row.workspace)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && user.is_none_or(|user| row.user_external_id == *user)
            && self.active.is_none_or(|is| row.ended_at.is_none() == is)
    }
}

/// A session that has ended, for retention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSession {
    pub session_id: SessionId,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub ended_at: Timestamp,
}

impl EndedSession {
    /// Its place in the order of ends.
    pub fn place(&self) -> (Timestamp, SessionId) {
        (self.ended_at, self.session_id.clone())
    }
}

#[async_trait]
pub trait ReadSessions: Send + Sync {
    /// One session of a tenant; a session of another tenant is `None`.
    async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionRow>, Fault> {
        let found = self.session_of_any_tenant(session).await?;
        Ok(found.filter(|row| row.tenant == *tenant))
    }

    /// The same without a tenant, for the host's own work.
    async fn session_of_any_tenant(&self, session: &SessionId)
    -> Result<Option<SessionRow>, Fault>;

    /// Newest first, by creation. Every page but the last one is full, unless its bodies are long.
    /// `None` when the page starts after a session that the tenant, or the workspace of the filter,
    /// does not have or not any more.
    async fn list_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: &ListingPage<SessionId>,
    ) -> Result<Option<Listing<SessionId, SessionRow>>, Fault>;
}
