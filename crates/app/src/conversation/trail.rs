//! The trail of decisions about rights.

use super::rights::AdminCall;
use crate::app::App;
use crate::error::AppError;
use crate::follow::PAGE;
use std::collections::BTreeMap;
use tandem_access::Scope;
use tandem_record::conversation::{AuthorizationDecision, SessionEvent, SessionEventBody as Body};
use tandem_record::{AgentId, Recorded, Seq, SessionId, Timestamp};

const VIEW_AUDIT: &str = "audit.view";
/// Entries of one answer.
const MAX_ENTRIES: usize = 500;
/// Events that are read for one answer.
const MAX_READ: usize = 100_000;

/// Which entries are wanted.
#[derive(Default)]
pub struct AuditQuery {
    pub session: Option<SessionId>,
    pub agent: Option<AgentId>,
    pub actor: Option<String>,
    pub action: Option<String>,
}

pub struct AuthorizationEntry {
    pub decision: AuthorizationDecision,
    pub session: SessionId,
    pub at: Timestamp,
}

impl AuditQuery {
    fn entry(
        &self,
        session: &SessionId,
        event: &Recorded<SessionEvent>,
    ) -> Option<AuthorizationEntry> {
        let Body::AuthorizationDecided(decision) = &event.event.body else {
            return None;
        };
        let actor = decision.actor.as_ref().map(|actor| &actor.id);
        let is_wanted = self.actor.as_ref().is_none_or(|id| actor == Some(id))
            && self.action.as_ref().is_none_or(|of| decision.action == *of);
        is_wanted.then(|| AuthorizationEntry {
            decision: (**decision).clone(),
            session: session.clone(),
            at: event.at,
        })
    }
}

impl App {
    /// Decisions about rights, oldest first: of a session, or of an agent.
    pub async fn read_authorizations(
        &self,
        call: &AdminCall<'_>,
        query: AuditQuery,
    ) -> Result<Vec<AuthorizationEntry>, AppError> {
        call.caller.require_scope(Scope::AuditRead)?;
        match (&query.session, &query.agent) {
            (Some(session), _) => {
                self.authorize_for_session(call, VIEW_AUDIT, session, None)
                    .await?;
                let events = self.runtime().session_events_from(session, Seq(0)).await?;
                let entries = events
                    .iter()
                    .filter_map(|event| query.entry(session, event));
                Ok(entries.take(MAX_ENTRIES).collect())
            }
            (None, Some(agent)) => self.authorizations_of_agent(call, agent, &query).await,
            (None, None) => Err(AppError::invalid("sessionId", "or agentId is needed")),
        }
    }

    async fn authorizations_of_agent(
        &self,
        call: &AdminCall<'_>,
        agent: &AgentId,
        query: &AuditQuery,
    ) -> Result<Vec<AuthorizationEntry>, AppError> {
        self.find_agent(agent)?;
        let asked = super::rights::PrivilegedAction {
            action: VIEW_AUDIT,
            agent,
            session: None,
            escalation: None,
        };
        self.authorize_admin(call, &asked).await?;
        let (mut entries, mut after, mut read) = (Vec::new(), 0, 0);
        let mut visible: BTreeMap<SessionId, bool> = BTreeMap::new();
        while read < MAX_READ && entries.len() < MAX_ENTRIES {
            let tenant = &call.caller.tenant;
            let page = self
                .runtime()
                .agent_events(tenant, agent, after, PAGE)
                .await?;
            if page.last == after {
                break;
            }
            after = page.last;
            read += page.events.len();
            for logged in &page.events {
                let Some(entry) = query.entry(&logged.session, &logged.event) else {
                    continue;
                };
                let is_visible = match visible.get(&logged.session) {
                    Some(is_visible) => *is_visible,
                    None => {
                        let found = self.find_session(call.caller, &logged.session).await;
                        // Of another workspace, or purged meanwhile.
                        let is_visible = match found {
                            Ok(_) => true,
                            Err(AppError::NotFound(_)) => false,
                            Err(error) => return Err(error),
                        };
                        visible.insert(logged.session.clone(), is_visible);
                        is_visible
                    }
                };
                entries.extend(is_visible.then_some(entry));
            }
        }
        entries.truncate(MAX_ENTRIES);
        Ok(entries)
    }
}
