//! Users, sessions, escalations, and the logs of agents.

use super::MemoryStore;
use super::by_creation::ByCreation;
use super::schedules::Schedules;
use super::state::State;
use crate::audit::AuditDraft;
use crate::commit::Commit;
use crate::conversations::{
    AgentLogEvent, AgentLogPage, ChatUserFilter, ChatUserRow, ConversationChange, Desk,
    DeskSelection, EndedSession, EscalationFilter, EscalationRow, Listing, ListingPage,
    ProxyFilter, ProxyRow, ReadAgentLog, ReadChatUsers, ReadEscalations, ReadProxies, ReadSessions,
    SessionFilter, SessionRow, listing,
};
use crate::fault::Fault;
use crate::read::{PageLimit, StoredEvent};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::convert::Infallible;
use tandem_record::conversation::ProxyStatus;
use tandem_record::{
    AgentId, ChatUserId, EscalationId, Partition, ProxyId, Seq, SessionId, StreamId, TenantId,
    Timestamp,
};

#[derive(Default)]
pub(super) struct Conversations {
    users: BTreeMap<ChatUserId, ChatUserRow>,
    sessions: ByCreation<SessionId, SessionRow>,
    escalations: ByCreation<EscalationId, EscalationRow>,
    proxies: ByCreation<ProxyId, ProxyRow>,
    /// The messages that bridges sent to their desks.
    proxy_messages: Vec<(ProxyId, String)>,
    pub(super) schedules: Schedules,
    agent_logs: BTreeMap<(TenantId, AgentId), AgentLog>,
}

/// Ranges of events by the position of their last event.
#[derive(Default)]
struct AgentLog {
    ranges: BTreeMap<u64, (StreamId, Seq, u64)>,
    head: u64,
}

impl Conversations {
    /// Call before the appends are applied.
    pub(super) fn apply(&mut self, commit: &Commit) {
        for change in &commit.conversations {
            match change {
                ConversationChange::PutUser(row) => self.put_user(row),
                ConversationChange::TouchUser { user, at } => {
                    if let Some(stored) = self.users.get_mut(user) {
                        stored.last_active_at = stored.last_active_at.max(*at);
                    }
                }
                ConversationChange::PutSession(row) => self.put_session(row),
                ConversationChange::PutEscalation(row) => self.put_escalation(row),
                ConversationChange::PutProxy(row) => self.put_proxy(row),
                ConversationChange::AddProxyMessage { proxy, message } => {
                    self.proxy_messages.push((proxy.clone(), message.clone()));
                }
                ConversationChange::PutSchedule(row) => self.schedules.put_schedule(row),
                ConversationChange::PutScheduleRun(row) => self.schedules.put_run(row),
                ConversationChange::PutScheduleRecipient(row) => self.schedules.put_recipient(row),
                ConversationChange::LogEvents {
                    tenant,
                    agent,
                    stream,
                } => {
                    let place = (tenant.clone(), agent.clone());
                    let log = self.agent_logs.entry(place).or_default();
                    for append in commit.appended(stream) {
                        let count = append.events.len() as u64;
                        let last = append.end().expect("it has events");
                        log.head += count;
                        log.ranges.insert(log.head, (stream.clone(), last, count));
                    }
                }
            }
        }
    }

    fn put_user(&mut self, row: &ChatUserRow) {
        match self.users.get_mut(&row.user_id) {
            Some(stored) => {
                stored.tags.clone_from(&row.tags);
                stored.body.clone_from(&row.body);
                stored.last_active_at = stored.last_active_at.max(row.last_active_at);
            }
            None => {
                self.users.insert(row.user_id.clone(), row.clone());
            }
        }
    }

    fn put_session(&mut self, row: &SessionRow) {
        match self.sessions.get_mut(&row.session_id) {
            Some(stored) => {
                stored.last_active_at = row.last_active_at;
                stored.ended_at = row.ended_at;
                stored.body.clone_from(&row.body);
            }
            None => self.sessions.add(row.session_id.clone(), row.clone()),
        }
    }

    fn put_escalation(&mut self, row: &EscalationRow) {
        match self.escalations.get_mut(&row.escalation_id) {
            Some(stored) => {
                stored.status = row.status;
                stored.priority = row.priority;
                stored.queue.clone_from(&row.queue);
                stored.assignee.clone_from(&row.assignee);
                stored.deadline = row.deadline;
                stored.body.clone_from(&row.body);
            }
            None => self.escalations.add(row.escalation_id.clone(), row.clone()),
        }
    }

    fn put_proxy(&mut self, row: &ProxyRow) {
        match self.proxies.get_mut(&row.proxy_id) {
            Some(stored) => {
                stored.status = row.status;
                stored.body.clone_from(&row.body);
            }
            None => self.proxies.add(row.proxy_id.clone(), row.clone()),
        }
    }

    fn sent_to_desk(&self, row: &ProxyRow, message: &str) -> bool {
        let sent = self.proxy_messages.iter();
        let mut sent = sent.filter(|(_, of)| of == message);
        sent.any(|(proxy, _)| *proxy == row.proxy_id)
    }
}

impl State {
    pub(super) fn ended_sessions(
        &self,
        after: Option<(Timestamp, SessionId)>,
        before: Timestamp,
        limit: usize,
    ) -> Vec<EndedSession> {
        let mut ended: Vec<EndedSession> = self
            .conversations
            .sessions
            .older(None)
            .filter_map(|row| {
                Some(EndedSession {
                    session_id: row.session_id.clone(),
                    tenant: row.tenant.clone(),
                    agent: row.agent.clone(),
                    ended_at: row.ended_at?,
                })
            })
            .filter(|session| session.ended_at < before)
            .filter(|session| after.as_ref().is_none_or(|after| session.place() > *after))
            .collect();
        ended.sort_by_key(EndedSession::place);
        ended.truncate(limit);
        ended
    }

    pub(super) fn purge_session(&mut self, session: &SessionId, audit: Option<&AuditDraft>) {
        let conversations = &mut self.conversations;
        let stored = conversations.sessions.get(session);
        if stored.is_none_or(|row| row.ended_at.is_none()) {
            return;
        }
        conversations
            .sessions
            .retain(|row| row.session_id != *session);
        let of_session = |row: &EscalationRow| row.session_id == *session;
        conversations.escalations.retain(|row| !of_session(row));
        conversations
            .proxies
            .retain(|row| row.session_id != *session);
        let proxies = &conversations.proxies;
        conversations
            .proxy_messages
            .retain(|(proxy, _)| proxies.get(proxy).is_some());
        let stream = StreamId::of_session(session);
        for log in conversations.agent_logs.values_mut() {
            log.ranges.retain(|_, (of, _, _)| *of != stream);
        }
        self.interrupts.retain(|row| row.stream != stream);
        self.idempotency
            .retain(|_, record| record.session.as_ref() != Some(session));
        let media = StreamId::media_prefix(session);
        let logs = self.streams.iter_mut();
        logs.filter(|(of, _)| **of == stream || of.as_str().starts_with(&media))
            .for_each(|(_, log)| log.purge());
        if let Some(audit) = audit {
            self.append_audit_entry(audit);
        }
    }
}

fn infallible<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

#[async_trait]
impl ReadChatUsers for MemoryStore {
    async fn chat_user(
        &self,
        tenant: &TenantId,
        user: &ChatUserId,
    ) -> Result<Option<ChatUserRow>, Fault> {
        let state = self.state()?;
        let found = state.conversations.users.get(user);
        Ok(found.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn list_chat_users(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        filter: &ChatUserFilter,
        page: &ListingPage<ChatUserId>,
    ) -> Result<Listing<ChatUserId, ChatUserRow>, Fault> {
        let state = self.state()?;
        let users = state.conversations.users.values();
        let users = users.filter(|row| row.tenant == *tenant && row.agent == *agent);
        let users = users.filter(|row| page.after.as_ref().is_none_or(|at| row.user_id > *at));
        Ok(infallible(listing(
            users.map(|row| Ok(row.clone())),
            page.limit,
            |row| row.user_id.clone(),
            |row| row.body.len(),
            |row| filter.matches(row),
        )))
    }
}

#[async_trait]
impl ReadSessions for MemoryStore {
    async fn session_of_any_tenant(
        &self,
        session: &SessionId,
    ) -> Result<Option<SessionRow>, Fault> {
        Ok(self.state()?.conversations.sessions.get(session).cloned())
    }

    async fn list_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: &ListingPage<SessionId>,
    ) -> Result<Option<Listing<SessionId, SessionRow>>, Fault> {
        let state = self.state()?;
        let sessions = &state.conversations.sessions;
        if let Some(after) = &page.after
            && !sessions.get(after).is_some_and(|row| {
                let caller = Partition {
                    tenant: tenant.clone(),
                    workspace: filter.workspace.clone(),
                };
                caller.covers_parts(&row.tenant, row.workspace.as_ref())
            })
        {
            return Ok(None);
        }
        let older = sessions.older(page.after.as_ref());
        let matching = older.filter(|row| row.tenant == *tenant && filter.matches(row));
        Ok(Some(infallible(listing(
            matching.map(|row| Ok(row.clone())),
            page.limit,
            |row| row.session_id.clone(),
            |row| row.body.len(),
            |_| true,
        ))))
    }
}

#[async_trait]
impl ReadEscalations for MemoryStore {
    async fn escalation(
        &self,
        tenant: &TenantId,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationRow>, Fault> {
        let state = self.state()?;
        let found = state.conversations.escalations.get(escalation);
        Ok(found.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn list_escalations(
        &self,
        tenant: &TenantId,
        filter: &EscalationFilter,
        page: &ListingPage<EscalationId>,
    ) -> Result<Option<Listing<EscalationId, EscalationRow>>, Fault> {
        let state = self.state()?;
        let escalations = &state.conversations.escalations;
        if let Some(after) = &page.after
            && !escalations.get(after).is_some_and(|row| {
                let caller = Partition {
                    tenant: tenant.clone(),
                    workspace: filter.workspace.clone(),
                };
                caller.covers_parts(&row.tenant, row.workspace.as_ref())
            })
        {
            return Ok(None);
        }
        Ok(Some(infallible(listing(
            escalations
                .older(page.after.as_ref())
                .map(|row| Ok(row.clone())),
            page.limit,
            |row| row.escalation_id.clone(),
            |row| row.body.len(),
            |row| row.tenant == *tenant && filter.matches(row),
        ))))
    }
}

#[async_trait]
impl ReadProxies for MemoryStore {
    async fn proxy(&self, tenant: &TenantId, proxy: &ProxyId) -> Result<Option<ProxyRow>, Fault> {
        let state = self.state()?;
        let found = state.conversations.proxies.get(proxy);
        Ok(found.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn list_proxies(
        &self,
        tenant: &TenantId,
        filter: &ProxyFilter,
        page: &ListingPage<ProxyId>,
    ) -> Result<Option<Listing<ProxyId, ProxyRow>>, Fault> {
        let state = self.state()?;
        let proxies = &state.conversations.proxies;
        if let Some(after) = &page.after
            && !proxies.get(after).is_some_and(|row| {
                let caller = Partition {
                    tenant: tenant.clone(),
                    workspace: filter.workspace.clone(),
                };
                caller.covers_parts(&row.tenant, row.workspace.as_ref())
            })
        {
            return Ok(None);
        }
        Ok(Some(infallible(listing(
            proxies
                .older(page.after.as_ref())
                .map(|row| Ok(row.clone())),
            page.limit,
            |row| row.proxy_id.clone(),
            |row| row.body.len(),
            |row| row.tenant == *tenant && filter.matches(row),
        ))))
    }

    async fn proxies_of_desk(
        &self,
        desk: &Desk,
        selection: &DeskSelection,
        limit: usize,
    ) -> Result<Vec<ProxyRow>, Fault> {
        let state = self.state()?;
        let conversations = &state.conversations;
        let of_desk = conversations.proxies.older(None).filter(|row| {
            let is_selected = match selection {
                DeskSelection::Active => row.status == ProxyStatus::Active,
                DeskSelection::Short(short) => row.proxy_id.short() == short,
                DeskSelection::Message(message) => conversations.sent_to_desk(row, message),
            };
            is_selected
                && row.tenant == desk.tenant
                && row.agent == desk.agent
                && row.transport == desk.transport
                && row.address == desk.address
                && (desk.workspace.is_none() || desk.workspace == row.workspace)
        });
        Ok(of_desk.take(limit).cloned().collect())
    }
}

#[async_trait]
impl ReadAgentLog for MemoryStore {
    async fn agent_log(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentLogPage, Fault> {
        let state = self.state()?;
        let place = (tenant.clone(), agent.clone());
        let Some(log) = state.conversations.agent_logs.get(&place) else {
            return Ok(AgentLogPage::default());
        };
        let mut page = AgentLogPage {
            events: Vec::new(),
            head: log.head,
        };
        let mut bytes = 0;
        for (end, (stream, last, count)) in log.ranges.range(after.saturating_add(1)..) {
            let events = &state.streams[stream].events;
            for back in (0..*count).rev() {
                let (position, seq) = (end - back, Seq(last.0 - back));
                let event = &events[seq.0 as usize];
                if position <= after {
                    continue;
                }
                if !limit.admits(page.events.len(), bytes, event.body.len()) {
                    return Ok(page);
                }
                bytes += event.body.len();
                page.events.push(AgentLogEvent {
                    position,
                    stream: stream.clone(),
                    event: StoredEvent {
                        seq,
                        at: event.at,
                        body: event.body.clone(),
                    },
                });
            }
        }
        Ok(page)
    }
}
