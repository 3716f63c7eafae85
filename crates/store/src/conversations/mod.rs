//! Conversations as lists show them: users, sessions, escalations, bridges, schedules, and the events
//! of an agent over all its streams. Written by commits ([`ConversationChange`]); read here.
//!
//! These rows are projections of the streams `user:<userId>`, `conv:<sessionId>` and
//! `when:<scheduleId>`; their bodies are opaque to the store. The identity of a row is fixed by the first commit that names it. The
//! cost of every page follows its limit, whatever the filter and however many rows are stored.

mod agent_log;
mod escalations;
mod proxies;
mod schedules;
mod sessions;
mod users;

pub use agent_log::{AgentLogEvent, AgentLogPage, ReadAgentLog};
pub use escalations::{EscalationAssignee, EscalationFilter, EscalationRow, ReadEscalations};
pub use proxies::{Desk, DeskSelection, ProxyFilter, ProxyRow, ReadProxies};
pub use schedules::{
    ReadSchedules, ScheduleFilter, ScheduleRecipientRow, ScheduleRow, ScheduleRunRow,
};
pub use sessions::{EndedSession, ReadSessions, SessionFilter, SessionRow};
pub use users::{ChatUserFilter, ChatUserRow, ReadChatUsers};

use tandem_record::{AgentId, ChatUserId, ProxyId, StreamId, TenantId, Timestamp};

/// Applied in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationChange {
    /// Adds a user or changes their `tags` and `body`. `last_active_at` never moves back.
    PutUser(ChatUserRow),
    /// Moves `last_active_at` alone. No effect when there is no such user, or when they were active
    /// later.
    TouchUser { user: ChatUserId, at: Timestamp },
    /// Adds a session or changes its `last_active_at`, `ended_at` and `body`.
    PutSession(SessionRow),
    /// Adds an escalation or changes its `status`, `priority`, `queue`, `assignee`, `deadline` and
    /// `body`.
    PutEscalation(EscalationRow),
    /// Adds a bridge or changes its `status` and `body`.
    PutProxy(ProxyRow),
    /// A bridge sent a message to its desk, by the id that the network gave it. No effect when it is known.
    AddProxyMessage { proxy: ProxyId, message: String },
    /// Adds a schedule or changes its `flow`, `status`, `target_kind`, `user_external_id`, `campaign`
    /// and `body`.
    PutSchedule(ScheduleRow),
    /// Adds an occurrence of a schedule or changes its `body`.
    PutScheduleRun(ScheduleRunRow),
    /// Adds a recipient of an occurrence or changes its `body`.
    PutScheduleRecipient(ScheduleRecipientRow),
    /// Adds the events that this commit appends to the stream to the agent's log. Refused as
    /// `invalid` when it appends none.
    LogEvents {
        tenant: TenantId,
        agent: AgentId,
        stream: StreamId,
    },
}

impl ConversationChange {
    /// About how many bytes of text it writes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::PutUser(row) => row.body.len(),
            Self::PutSession(row) => row.body.len(),
            Self::PutEscalation(row) => row.body.len(),
            Self::PutProxy(row) => row.body.len(),
            Self::AddProxyMessage { message, .. } => message.len(),
            Self::PutSchedule(row) => row.body.len(),
            Self::PutScheduleRun(row) => row.body.len(),
            Self::PutScheduleRecipient(row) => row.body.len(),
            Self::TouchUser { .. } | Self::LogEvents { .. } => 0,
        }
    }
}

/// Where a page of a listing starts, and how many rows it has at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingPage<I> {
    /// The `next` of the page before; `None` for the first page.
    pub after: Option<I>,
    pub limit: usize,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<I, T> {
    pub rows: Vec<T>,
    /// Where the next page starts, if rows follow. A page may have fewer rows than its limit, or
    /// none, although more follow: it ends after [`SCANNED_ROWS`] rows that do not match.
    pub next: Option<I>,
}

/// Limit of rows that are read for one page without being in it.
pub const SCANNED_ROWS: usize = 1000;

/// Limit of the bodies in one page. The first row is returned whatever its length.
pub const LISTING_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Takes a page from rows in their order. Rows beyond it are not read.
pub fn listing<I, T, E>(
    rows: impl Iterator<Item = Result<T, E>>,
    limit: usize,
    id: impl Fn(&T) -> I,
    body_bytes: impl Fn(&T) -> usize,
    matches: impl Fn(&T) -> bool,
) -> Result<Listing<I, T>, E> {
    let mut page = Listing {
        rows: Vec::new(),
        next: None,
    };
    let (mut bytes, mut scanned, mut last) = (0, 0, None);
    for row in rows {
        let row = row?;
        bytes += body_bytes(&row);
        let is_full = !page.rows.is_empty() && bytes > LISTING_PAGE_BYTES;
        if page.rows.len() == limit || is_full || scanned == SCANNED_ROWS {
            page.next = last;
            return Ok(page);
        }
        last = Some(id(&row));
        if matches(&row) {
            page.rows.push(row);
        } else {
            scanned += 1;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests;
