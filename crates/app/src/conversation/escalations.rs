//! Reading escalations. Each is shown to admins whom the rules of its agent allow to view it.

use super::rights::AdminCall;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{EscalationPriority, EscalationRecord, EscalationStatus};
use tandem_record::{AgentId, EscalationId, SessionId};
use tandem_runtime::{EscalationAssignee, EscalationFilter, EscalationRow, ListingPage};

pub(super) const VIEW: &str = "hitl.escalation.view";

/// An escalation with the conversation it belongs to.
pub struct EscalationFound {
    pub record: EscalationRecord,
    pub session: SessionId,
    pub agent: AgentId,
    pub user_external_id: String,
}

/// Which escalations are listed.
#[derive(Default)]
pub struct EscalationQuery {
    pub status: Option<EscalationStatus>,
    pub priority: Option<EscalationPriority>,
    pub agent: Option<AgentId>,
    pub session: Option<SessionId>,
    /// The desk they belong to.
    pub queue: Option<String>,
    /// Whose work they are.
    pub assignee: Option<EscalationAssignee>,
}

impl EscalationFound {
    fn from_row(row: EscalationRow) -> Option<Self> {
        Some(Self {
            record: serde_json::from_str(&row.body).ok()?,
            session: row.session_id,
            agent: row.agent,
            user_external_id: row.user_external_id,
        })
    }
}

impl App {
    /// Escalations the admin may view, newest first, and where the next page starts.
    pub async fn list_escalations(
        &self,
        call: &AdminCall<'_>,
        query: EscalationQuery,
        page: &ListingPage<EscalationId>,
    ) -> Result<(Vec<EscalationFound>, Option<EscalationId>), AppError> {
        let caller = call.caller;
        caller.require_scope(Scope::RunsRead)?;
        let named = query.agent.clone();
        let (found, next) = self.select_escalations(caller, query, page).await?;
        let visible = self.rows_with_right(call, VIEW, named, found, |found| &found.agent);
        Ok((visible.await?, next))
    }

    /// A page of those the caller's key may see, whatever the rules of their agents say.
    async fn select_escalations(
        &self,
        caller: &Identity,
        query: EscalationQuery,
        page: &ListingPage<EscalationId>,
    ) -> Result<(Vec<EscalationFound>, Option<EscalationId>), AppError> {
        let named = query.agent.as_ref();
        if named.is_some_and(|agent| !caller.reaches_agent(agent)) {
            return Err(AppError::NotFound(ResourceKind::Agent));
        }
        let filter = EscalationFilter {
            workspace: caller.workspace.clone(),
            status: query.status,
            agent: query.agent.or_else(|| caller.agent.clone()),
            session: query.session,
            queue: query.queue,
            assignee: query.assignee,
            ..EscalationFilter::default()
        };
        let store = self.runtime().store();
        let listing = store
            .list_escalations(&caller.tenant, &filter, page)
            .await?;
        let listing = listing.ok_or_else(|| AppError::invalid("cursor", "is not known"))?;
        let found = listing
            .rows
            .into_iter()
            .filter_map(EscalationFound::from_row);
        let wanted = |found: &EscalationFound| {
            let priority = query.priority;
            priority.is_none_or(|priority| found.record.priority == priority)
        };
        Ok((found.filter(wanted).collect(), listing.next))
    }

    /// Open escalations as the console lists them, newest first: what the inbox shows of them to the same key, with
    /// whose work they are.
    pub async fn list_desk(
        &self,
        caller: &Identity,
        query: EscalationQuery,
        page: &ListingPage<EscalationId>,
    ) -> Result<(Vec<EscalationFound>, Option<EscalationId>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let query = EscalationQuery {
            status: Some(EscalationStatus::Open),
            ..query
        };
        self.select_escalations(caller, query, page).await
    }

    /// One escalation as the console shows it, open or closed.
    pub async fn read_desk_escalation(
        &self,
        caller: &Identity,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationFound>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.escalation_of(caller, escalation).await
    }

    pub async fn read_escalation(
        &self,
        call: &AdminCall<'_>,
        escalation: &EscalationId,
    ) -> Result<EscalationFound, AppError> {
        call.caller.require_scope(Scope::RunsRead)?;
        let found = self.find_escalation(call, escalation).await?;
        self.authorize_for_session(call, VIEW, &found.session, Some(escalation))
            .await?;
        Ok(found)
    }

    /// An escalation of a session the caller may see.
    pub(super) async fn find_escalation(
        &self,
        call: &AdminCall<'_>,
        escalation: &EscalationId,
    ) -> Result<EscalationFound, AppError> {
        let found = self.escalation_of(call.caller, escalation).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Escalation))
    }

    pub(crate) async fn escalation_of(
        &self,
        caller: &Identity,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationFound>, AppError> {
        let store = self.runtime().store();
        let row = store.escalation(&caller.tenant, escalation).await?;
        let partition = caller.partition();
        let row = row.filter(|row| {
            partition.covers_parts(&row.tenant, row.workspace.as_ref())
                && caller.reaches_agent(&row.agent)
        });
        Ok(row.and_then(EscalationFound::from_row))
    }
}
