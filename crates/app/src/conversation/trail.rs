//! The trail of decisions about rights: of a session, of an agent, or of all agents.

use super::rights::{AdminCall, PrivilegedAction};
use crate::app::App;
use crate::error::AppError;
use crate::follow::PAGE;
use std::collections::BTreeMap;
use tandem_access::Scope;
use tandem_record::conversation::{
    AgentLevelEventBody, AuthorizationDecision, SessionEventBody as Body,
};
use tandem_record::{AgentId, Seq, SessionId, Timestamp};
use tandem_runtime::conversation::AgentEventPage;

const VIEW_AUDIT: &str = "audit.view";
/// Entries of one page.
pub const MAX_ENTRIES: usize = 500;
/// Events that are read for one page.
const MAX_READ: usize = 100_000;

/// Which entries are wanted.
#[derive(Default)]
pub struct AuditQuery {
    pub session: Option<SessionId>,
    pub agent: Option<AgentId>,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub after: Option<AuditCursor>,
    /// Entries of this page, at most [`MAX_ENTRIES`].
    pub limit: usize,
}

/// Where a page of the trail starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditCursor {
    /// The agent whose entries come next, where those of all are read.
    pub agent: Option<AgentId>,
    /// The last event that was read, of the session or of the agent.
    pub after: u64,
}

impl AuditCursor {
    pub fn to_text(&self) -> String {
        let agent = self.agent.as_ref().map_or("", AgentId::as_str);
        format!("{agent}:{}", self.after)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (agent, after) = text.rsplit_once(':')?;
        Some(Self {
            agent: Some(agent).filter(|id| !id.is_empty()).map(AgentId::from),
            after: after.parse().ok()?,
        })
    }
}

pub struct AuthorizationEntry {
    pub decision: AuthorizationDecision,
    /// `None` for a decision without a session.
    pub session: Option<SessionId>,
    pub at: Timestamp,
}

/// Entries of the trail, oldest first within a session or an agent.
#[derive(Default)]
pub struct AuditPage {
    pub entries: Vec<AuthorizationEntry>,
    /// Where the next page starts, if there is more.
    pub next: Option<AuditCursor>,
}

impl AuditQuery {
    fn wants(&self, decision: &AuthorizationDecision) -> bool {
        let actor = decision.actor.as_ref().map(|actor| &actor.id);
        self.actor.as_ref().is_none_or(|id| actor == Some(id))
            && self.action.as_ref().is_none_or(|of| decision.action == *of)
    }

    fn after(&self) -> u64 {
        self.after.as_ref().map_or(0, |cursor| cursor.after)
    }
}

impl App {
    /// Decisions about rights: of a session, of an agent, or of every agent whose rules let the caller view
    /// them.
    pub async fn read_authorizations(
        &self,
        call: &AdminCall<'_>,
        query: AuditQuery,
    ) -> Result<AuditPage, AppError> {
        call.caller.require_scope(Scope::AuditRead)?;
        match (&query.session, &query.agent) {
            (Some(session), _) => self.authorizations_of_session(call, session, &query).await,
            (None, Some(agent)) => {
                self.find_agent_for(call.caller, agent)?;
                self.authorize_audit(call, agent).await?;
                let mut page = AuditPage::default();
                self.read_audit_of_agent(call, agent, query.after(), &query, &mut page)
                    .await?;
                Ok(page)
            }
            (None, None) => self.authorizations_of_all(call, &query).await,
        }
    }

    async fn authorizations_of_session(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        query: &AuditQuery,
    ) -> Result<AuditPage, AppError> {
        self.authorize_for_session(call, VIEW_AUDIT, session, None)
            .await?;
        let mut page = AuditPage::default();
        let mut after = query.after.as_ref().map(|cursor| Seq(cursor.after));
        let mut read = 0;
        loop {
            let events = self.runtime().session_events(session, after, PAGE).await?;
            for event in &events.events {
                after = Some(event.seq);
                read += 1;
                if let Body::AuthorizationDecided(decision) = &event.event.body
                    && query.wants(decision)
                {
                    page.entries.push(AuthorizationEntry {
                        decision: (**decision).clone(),
                        session: Some(session.clone()),
                        at: event.at,
                    });
                }
                if page.entries.len() >= query.limit || read >= MAX_READ {
                    page.next = after.map(|seq| AuditCursor {
                        agent: None,
                        after: seq.0,
                    });
                    return Ok(page);
                }
            }
            if events.events.is_empty() {
                return Ok(page);
            }
        }
    }

    /// One agent after the other, in the order of their ids.
    async fn authorizations_of_all(
        &self,
        call: &AdminCall<'_>,
        query: &AuditQuery,
    ) -> Result<AuditPage, AppError> {
        let conversations = self.runtime().conversations();
        let agents = conversations.map(|conversations| conversations.agents().summaries());
        let first = query.after.as_ref().and_then(|cursor| cursor.agent.clone());
        let agents = agents.unwrap_or_default().into_iter();
        let agents = agents.map(|agent| AgentId::from(agent.id));
        let agents = agents.filter(|agent| call.caller.reaches_agent(agent));
        let agents = agents.filter(|agent| first.as_ref().is_none_or(|first| agent >= first));
        let (mut page, mut denial) = (AuditPage::default(), None);
        let mut is_allowed = false;
        for agent in agents {
            match self.authorize_audit(call, &agent).await {
                Ok(()) => is_allowed = true,
                Err(AppError::AdminDenied(why)) => {
                    denial = Some(why);
                    continue;
                }
                Err(error) => return Err(error),
            }
            let after = match &first {
                Some(first) if *first == agent => query.after(),
                _ => 0,
            };
            self.read_audit_of_agent(call, &agent, after, query, &mut page)
                .await?;
            if page.next.is_some() {
                break;
            }
        }
        match denial {
            Some(why) if !is_allowed => Err(AppError::AdminDenied(why)),
            _ => Ok(page),
        }
    }

    async fn authorize_audit(&self, call: &AdminCall<'_>, agent: &AgentId) -> Result<(), AppError> {
        let asked = PrivilegedAction {
            action: VIEW_AUDIT,
            agent,
            session: None,
            escalation: None,
        };
        self.authorize_admin(call, &asked).await?;
        Ok(())
    }

    /// Adds the entries of an agent to a page, until it is full.
    async fn read_audit_of_agent(
        &self,
        call: &AdminCall<'_>,
        agent: &AgentId,
        mut after: u64,
        query: &AuditQuery,
        page: &mut AuditPage,
    ) -> Result<(), AppError> {
        let mut visible: BTreeMap<SessionId, bool> = BTreeMap::new();
        let mut read = 0;
        loop {
            let tenant = &call.caller.tenant;
            let runtime = self.runtime();
            let found = runtime.agent_events(tenant, agent, after, PAGE).await?;
            if found.last == after {
                return Ok(());
            }
            read += found.events.len() + found.own.len();
            for (position, entry) in decisions(call, &found) {
                let is_visible = match &entry.session {
                    None => true,
                    Some(session) => match visible.get(session) {
                        Some(is_visible) => *is_visible,
                        None => {
                            let is_visible = self.is_visible(call, session).await?;
                            visible.insert(session.clone(), is_visible);
                            is_visible
                        }
                    },
                };
                if is_visible && query.wants(&entry.decision) {
                    page.entries.push(entry);
                }
                if page.entries.len() >= query.limit {
                    page.next = Some(AuditCursor {
                        agent: Some(agent.clone()),
                        after: position,
                    });
                    return Ok(());
                }
            }
            after = found.last;
            if read >= MAX_READ {
                page.next = Some(AuditCursor {
                    agent: Some(agent.clone()),
                    after,
                });
                return Ok(());
            }
        }
    }

    /// Whether a session is the caller's: not of another workspace, and not purged meanwhile.
    async fn is_visible(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
    ) -> Result<bool, AppError> {
        match self.find_session(call.caller, session).await {
            Ok(_) => Ok(true),
            Err(AppError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The decisions among the events of an agent, in the order of their positions.
fn decisions(call: &AdminCall<'_>, found: &AgentEventPage) -> Vec<(u64, AuthorizationEntry)> {
    let of_sessions = found.events.iter().filter_map(|logged| {
        let Body::AuthorizationDecided(decision) = &logged.event.event.body else {
            return None;
        };
        let entry = AuthorizationEntry {
            decision: (**decision).clone(),
            session: Some(logged.session.clone()),
            at: logged.event.at,
        };
        Some((logged.position, entry))
    });
    let partition = call.caller.partition();
    let own = found.own.iter().filter_map(|logged| {
        let event = &logged.event.event;
        let AgentLevelEventBody::AuthorizationDecided(decision) = &event.body else {
            return None;
        };
        if !partition.covers_parts(&call.caller.tenant, event.workspace.as_ref()) {
            return None;
        }
        let entry = AuthorizationEntry {
            decision: (**decision).clone(),
            session: None,
            at: logged.event.at,
        };
        Some((logged.position, entry))
    });
    let mut all: Vec<_> = of_sessions.chain(own).collect();
    all.sort_by_key(|(position, _)| *position);
    all
}
