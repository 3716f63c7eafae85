//! Bridges between sessions and desks. A desk is an address at which admins write to the bridges of one agent.

use super::{Listing, ListingPage};
use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::conversation::ProxyStatus;
use tandem_record::{AgentId, ProxyId, SessionId, TenantId, Timestamp, WorkspaceId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRow {
    pub proxy_id: ProxyId,
    pub session_id: SessionId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub agent: AgentId,
    pub user_external_id: String,
    /// Where the desk is.
    pub transport: String,
    pub address: String,
    pub status: ProxyStatus,
    pub started_at: Timestamp,
    /// As JSON, opaque to the store.
    pub body: String,
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyFilter {
    pub workspace: Option<WorkspaceId>,
    pub status: Option<ProxyStatus>,
    pub agent: Option<AgentId>,
    pub session: Option<SessionId>,
}

impl ProxyFilter {
    pub fn matches(&self, row: &ProxyRow) -> bool {
        (self.workspace.is_none() || self.workspace == row.workspace)
            && self.status.is_none_or(|status| row.status == status)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && (self.session.as_ref()).is_none_or(|session| row.session_id == *session)
    }
}

/// Where admins write to the bridges of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desk {
    pub tenant: TenantId,
    /// `None` means any.
    pub workspace: Option<WorkspaceId>,
    pub agent: AgentId,
    pub transport: String,
    pub address: String,
}

/// Which bridges of a desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskSelection {
    Active,
    /// With this short number, active or not.
    Short(String),
    /// The one that sent this message to the desk, by the id that the network gave it.
    Message(String),
}

#[async_trait]
pub trait ReadProxies: Send + Sync {
    /// One bridge of a tenant, active or not.
    async fn proxy(&self, tenant: &TenantId, proxy: &ProxyId) -> Result<Option<ProxyRow>, Fault>;

    /// Newest first, by their start. `None` when the page starts after a bridge that the tenant, or the workspace of
    /// the filter, does not have or not any more.
    async fn list_proxies(
        &self,
        tenant: &TenantId,
        filter: &ProxyFilter,
        page: &ListingPage<ProxyId>,
    ) -> Result<Option<Listing<ProxyId, ProxyRow>>, Fault>;

    /// Bridges of a desk, newest first, at most `limit`. The cost follows the limit, not the number of bridges.
    async fn proxies_of_desk(
        &self,
        desk: &Desk,
        selection: &DeskSelection,
        limit: usize,
    ) -> Result<Vec<ProxyRow>, Fault>;
}
