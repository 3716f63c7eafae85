//! Requests for a person's decision.

use super::{Listing, ListingPage};
use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::conversation::EscalationStatus;
use tandem_record::{AgentId, EscalationId, SessionId, TenantId, Timestamp, WorkspaceId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscalationRow {
    pub escalation_id: EscalationId,
    pub session_id: SessionId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub agent: AgentId,
    pub user_external_id: String,
    pub status: EscalationStatus,
    /// Higher is more urgent.
    pub priority: i32,
    /// The desk it belongs to.
    pub queue: Option<String>,
    /// Who works on it; `None` while nobody does.
    pub assignee: Option<String>,
    pub created_at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// As JSON, opaque to the store.
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscalationAssignee {
    Nobody,
    Actor(String),
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EscalationFilter {
    pub workspace: Option<WorkspaceId>,
    pub status: Option<EscalationStatus>,
    pub priority: Option<i32>,
    pub agent: Option<AgentId>,
    pub session: Option<SessionId>,
    pub queue: Option<String>,
    pub assignee: Option<EscalationAssignee>,
}

impl EscalationFilter {
    pub fn matches(&self, row: &EscalationRow) -> bool {
        let is_assigned = match &self.assignee {
            None => true,
            Some(EscalationAssignee::Nobody) => row.assignee.is_none(),
            Some(EscalationAssignee::Actor(actor)) => row.assignee.as_ref() == Some(actor),
        };
        is_assigned
            && (self.workspace.is_none() || self.workspace == row.workspace)
            && self.status.is_none_or(|status| row.status == status)
            && self
                .priority
                .is_none_or(|priority| row.priority == priority)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && (self.session.as_ref()).is_none_or(|session| row.session_id == *session)
            && (self.queue.is_none() || self.queue == row.queue)
    }
}

#[async_trait]
pub trait ReadEscalations: Send + Sync {
    /// One escalation of a tenant, whatever its status.
    async fn escalation(
        &self,
        tenant: &TenantId,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationRow>, Fault>;

    /// Newest first, by creation. `None` when the page starts after an escalation
    /// that the tenant, or the workspace of the filter, does not have or not any more.
    async fn list_escalations(
        &self,
        tenant: &TenantId,
        filter: &EscalationFilter,
        page: &ListingPage<EscalationId>,
    ) -> Result<Option<Listing<EscalationId, EscalationRow>>, Fault>;
}
