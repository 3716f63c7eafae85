//! Schedules, their occurrences that were claimed, and the recipients of campaigns.

use super::{Listing, ListingPage};
use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::conversation::ScheduleStatus;
use tandem_record::{
    AgentId, FlowId, ScheduleId, ScheduleRunId, TenantId, Timestamp, WorkflowId, WorkspaceId,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    pub schedule_id: ScheduleId,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    /// The agent and its flow, or the workflow that starts.
    pub agent: Option<AgentId>,
    pub flow: Option<FlowId>,
    pub workflow: Option<WorkflowId>,
    pub status: ScheduleStatus,
    /// `user`, `segment` or `workflow`.
    pub target_kind: String,
    pub user_external_id: Option<String>,
    pub campaign: Option<String>,
    /// As JSON, opaque to the store.
    pub body: String,
}

/// All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    pub workspace: Option<WorkspaceId>,
    pub agent: Option<AgentId>,
    pub flow: Option<FlowId>,
    pub workflow: Option<WorkflowId>,
    pub status: Option<ScheduleStatus>,
    pub target_kind: Option<String>,
    pub user_external_id: Option<String>,
    pub campaign: Option<String>,
    /// Only those of agents' files, whose ids begin with [`CONFIGURED`].
    pub is_configured: bool,
}

/// The beginning of the ids of schedules of agents' files.
pub(super) const CONFIGURED: &str = "cfg:";

impl ScheduleFilter {
    pub fn matches(&self, row: &ScheduleRow) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, stored: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == stored)
        }
        (self.workspace.is_none() || self.workspace == row.workspace)
            && (self.agent.is_none() || self.agent == row.agent)
            && (self.flow.is_none() || self.flow == row.flow)
            && (self.workflow.is_none() || self.workflow == row.workflow)
            && is(self.status.as_ref(), &row.status)
            && is(self.target_kind.as_ref(), &row.target_kind)
            && (self.user_external_id.is_none() || self.user_external_id == row.user_external_id)
            && (!self.is_configured || row.schedule_id.as_str().starts_with(CONFIGURED))
            && (self.campaign.is_none() || self.campaign == row.campaign)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRunRow {
    pub run_id: ScheduleRunId,
    pub schedule_id: ScheduleId,
    pub tenant: TenantId,
    pub scheduled_for: Timestamp,
    /// As JSON, opaque to the store.
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRecipientRow {
    pub run_id: ScheduleRunId,
    /// Its place in the list, from 0.
    pub ordinal: u32,
    /// As JSON, opaque to the store.
    pub body: String,
}

#[async_trait]
pub trait ReadSchedules: Send + Sync {
    /// One schedule of a tenant; a schedule of another tenant is `None`.
    async fn schedule(
        &self,
        tenant: &TenantId,
        schedule: &ScheduleId,
    ) -> Result<Option<ScheduleRow>, Fault>;

    /// Newest first, by creation. `None` when the page starts after a schedule that the tenant, or
    /// the workspace of the filter, does not have.
    async fn list_schedules(
        &self,
        tenant: &TenantId,
        filter: &ScheduleFilter,
        page: &ListingPage<ScheduleId>,
    ) -> Result<Option<Listing<ScheduleId, ScheduleRow>>, Fault>;

    /// One occurrence of a schedule of a tenant.
    async fn schedule_run(
        &self,
        tenant: &TenantId,
        run: &ScheduleRunId,
    ) -> Result<Option<ScheduleRunRow>, Fault>;

    /// The latest occurrence first. `None` when the page starts after an occurrence that the schedule
    /// does not have.
    async fn list_schedule_runs(
        &self,
        schedule: &ScheduleId,
        page: &ListingPage<ScheduleRunId>,
    ) -> Result<Option<Listing<ScheduleRunId, ScheduleRunRow>>, Fault>;

    /// Recipients of an occurrence with an ordinal above that of the page, in order.
    async fn list_schedule_recipients(
        &self,
        run: &ScheduleRunId,
        page: &ListingPage<u32>,
    ) -> Result<Listing<u32, ScheduleRecipientRow>, Fault>;
}
