//! Reading escalations. Each is shown to admins whom the rules of its agent allow to view it.

use super::rights::{AdminCall, PrivilegedAction};
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use std::collections::BTreeMap;
use tandem_access::Scope;
use tandem_record::conversation::{EscalationPriority, EscalationRecord, EscalationStatus};
use tandem_record::{AgentId, EscalationId, SessionId};
use tandem_runtime::{EscalationFilter, EscalationRow, ListingPage};

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
        let filter = EscalationFilter {
            workspace: caller.workspace.clone(),
            status: query.status,
            agent: query.agent.clone(),
            session: query.session,
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
        let found: Vec<EscalationFound> = found.filter(wanted).collect();
        let mut rights: BTreeMap<AgentId, Result<(), AppError>> = BTreeMap::new();
        // Somebody who asks for an agent is told that they may not, also when nothing is open.
        let named = query.agent.into_iter();
        for agent in named.chain(found.iter().map(|found| found.agent.clone())) {
            if !rights.contains_key(&agent) {
                let asked = PrivilegedAction {
                    action: VIEW,
                    agent: &agent,
                    session: None,
                    escalation: None,
                };
                let right = self.authorize_admin(call, &asked).await.map(|_| ());
                rights.insert(agent, right);
            }
        }
        let is_allowed =
            |found: &EscalationFound| rights.get(&found.agent).is_some_and(Result::is_ok);
        let visible: Vec<_> = found.into_iter().filter(is_allowed).collect();
        let denial = rights.into_values().find_map(Result::err);
        match denial.filter(|_| visible.is_empty()) {
            Some(denial) => Err(denial),
            None => Ok((visible, listing.next)),
        }
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
        let store = self.runtime().store();
        let row = store.escalation(&call.caller.tenant, escalation).await?;
        let partition = call.caller.partition();
        let row = row.filter(|row| partition.covers_parts(&row.tenant, row.workspace.as_ref()));
        let found = row.and_then(EscalationFound::from_row);
        found.ok_or(AppError::NotFound(ResourceKind::Escalation))
    }
}
