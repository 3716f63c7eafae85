//! Building blocks of commits for the checks.

use crate::{
    Append, ChatUserFilter, ChatUserRow, Commit, Conflict, ConversationChange, Error,
    EscalationAssignee, EscalationFilter, Lane, LaneQuery, Lease, LeaseId, ListingPage, Log,
    NewEvent, OutboxChange, OutboxEntry, PageLimit, ProxyFilter, RunRow, SessionFilter, SessionRow,
    Store, StoredEvent, WorkClass,
};
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::conversation::ProxyStatus;
use tandem_record::{
    AgentId, DefinitionHash, EffectId, Partition, RunId, RunStatus, Seq, SessionId, StreamId,
    TenantId, Timestamp, WorkflowId,
};

/// An arbitrary time; checks count from here.
pub const NOW: Timestamp = Timestamp(1_700_000_000_000);

pub fn later(ms: u64) -> Timestamp {
    NOW.plus_ms(ms)
}

/// A body names its stream and sequence, so that a misplaced event is detected.
pub fn body(stream: &StreamId, seq: u64) -> String {
    format!(r#"{{"stream":"{stream}","seq":{seq}}}"#)
}

/// `count` events after `after`.
pub fn append(stream: &StreamId, after: Option<u64>, count: u64) -> Append {
    let first = after.map_or(0, |seq| seq + 1);
    Append {
        stream: stream.clone(),
        after: after.map(Seq),
        events: (first..first + count)
            .map(|seq| NewEvent {
                at: later(seq),
                body: body(stream, seq),
            })
            .collect(),
        run: None,
        snapshot: None,
    }
}

pub fn commit(appends: impl IntoIterator<Item = Append>) -> Commit {
    Commit {
        appends: appends.into_iter().collect(),
        ..Commit::default()
    }
}

/// `tenant`, or `tenant/workspace`.
pub fn partition(text: &str) -> Partition {
    let (tenant, workspace) = match text.split_once('/') {
        Some((tenant, workspace)) => (tenant, Some(workspace.into())),
        None => (text, None),
    };
    Partition {
        tenant: tenant.into(),
        workspace,
    }
}

pub fn row(tenant: &str, run: &str) -> RunRow {
    RunRow {
        run_id: RunId::new(run),
        tenant: TenantId::new(tenant),
        workspace: None,
        workflow_id: WorkflowId::new("flow"),
        definition: DefinitionHash::new("d0"),
        status: RunStatus::Running,
        parent: None,
        scope: None,
        created_at: NOW,
        ended_at: None,
        error_code: None,
    }
}

/// The commit that creates a run with one event.
pub fn started(row: RunRow) -> Commit {
    moved(row, None)
}

/// One more event on a run's stream, with the given row.
pub fn moved(row: RunRow, after: Option<u64>) -> Commit {
    let mut one = append(&StreamId::of_run(&row.run_id), after, 1);
    one.run = Some(row);
    commit([one])
}

pub fn entry(effect: &str, available_at: Timestamp) -> OutboxEntry {
    OutboxEntry {
        effect: EffectId::new(effect),
        stream: StreamId::new("run:r1"),
        kind: "http".into(),
        body: format!(r#"{{"effect":"{effect}"}}"#),
        available_at,
        lane: lane(),
        order_key: None,
        attempts: 0,
        failures: 0,
        lease: None,
    }
}

/// The lane of [`entry`].
pub fn lane() -> Lane {
    Lane {
        class: WorkClass::Call,
        tenant: TenantId::new("acme"),
        target: "api.example.com".into(),
    }
}

/// A query for every lane of a class.
pub fn lanes_due(class: WorkClass, now: Timestamp) -> LaneQuery {
    LaneQuery {
        class,
        now,
        after_tenant: None,
        after_target: HashMap::new(),
        tenants: usize::MAX,
        targets: usize::MAX,
        count_up_to: usize::MAX,
    }
}

pub fn put(entries: impl IntoIterator<Item = OutboxEntry>) -> Commit {
    Commit {
        outbox: entries.into_iter().map(OutboxChange::Put).collect(),
        ..Commit::default()
    }
}

/// Commits; fails the check on any error.
pub async fn must(store: &Arc<dyn Store>, commit: Commit) {
    Log::commit(store.as_ref(), commit)
        .await
        .expect("the commit is valid");
}

/// Commits; fails the check unless it conflicts.
pub async fn conflict(store: &Arc<dyn Store>, commit: Commit) -> Conflict {
    match Log::commit(store.as_ref(), commit).await {
        Err(Error::Conflict(conflict)) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// The first lease of a process.
pub fn held(owner: &str, until: Timestamp) -> Lease {
    Lease {
        id: LeaseId::new(owner, 1),
        until,
    }
}

/// The last sequence of a stream as a reader sees it.
pub async fn head(store: &Arc<dyn Store>, stream: &StreamId) -> Option<u64> {
    let slice = store.events(stream, None, 1).await.expect("reads work");
    slice.head.map(|seq| seq.0)
}

/// Reads the whole stream and checks that it is gapless and in order.
pub async fn whole(store: &Arc<dyn Store>, stream: &StreamId) -> Vec<StoredEvent> {
    let slice = store
        .events(stream, None, usize::MAX)
        .await
        .expect("reads work");
    for (place, event) in (0..).zip(&slice.events) {
        assert_eq!(event.seq, Seq(place), "{stream} has a gap at {place}");
        assert_eq!(event.body, body(stream, place), "{stream} is out of place");
    }
    let last = slice.events.last().map(|event| event.seq);
    assert_eq!(slice.head, last, "the head of {stream} is its last event");
    slice.events
}

/// An active session of the agent `desk` with the user `ana`.
pub fn session_row(tenant: &str, session: &str) -> SessionRow {
    SessionRow {
        session_id: SessionId::new(session),
        tenant: TenantId::new(tenant),
        workspace: None,
        agent: "desk".into(),
        user_id: "usr-ana".into(),
        user_external_id: "ana".into(),
        started_at: NOW,
        last_active_at: later(1),
        ended_at: None,
        body: format!(r#"{{"id":"{session}"}}"#),
    }
}

pub fn conversation_changes(changes: impl IntoIterator<Item = ConversationChange>) -> Commit {
    Commit {
        conversations: changes.into_iter().collect(),
        ..Commit::default()
    }
}

/// Starts a session with two events: the user `ana`, an escalation, and the log of the agent `desk`.
pub fn conversation_started(tenant: &str, session: &str) -> Commit {
    let stream = StreamId::of_session(&SessionId::new(session));
    let row = session_row(tenant, session);
    let user = ChatUserRow {
        user_id: row.user_id.clone(),
        tenant: row.tenant.clone(),
        agent: row.agent.clone(),
        external_user_id: row.user_external_id.clone(),
        created_at: NOW,
        last_active_at: later(1),
        tags: vec!["vip".into()],
        body: r#"{"displayName":"Ana"}"#.into(),
    };
    let log = ConversationChange::LogEvents {
        tenant: row.tenant.clone(),
        agent: row.agent.clone(),
        stream: stream.clone(),
    };
    let escalation = super::escalations::escalation_row(tenant, session, &format!("e-{session}"));
    let bridge = super::proxies::proxy_row(tenant, session, &format!("pxy-{session}"));
    let sent = ConversationChange::AddProxyMessage {
        proxy: bridge.proxy_id.clone(),
        message: format!("sent-{session}"),
    };
    Commit {
        appends: vec![append(&stream, None, 2)],
        conversations: vec![
            ConversationChange::PutUser(user),
            ConversationChange::PutSession(row),
            ConversationChange::PutEscalation(escalation),
            ConversationChange::PutProxy(bridge),
            sent,
            log,
        ],
        ..Commit::default()
    }
}

/// Everything that lists show of conversations of a tenant with the agent `desk`, as text.
pub async fn conversations_as_text(store: &Arc<dyn Store>, tenant: &str) -> String {
    let (tenant, agent) = (TenantId::new(tenant), AgentId::new("desk"));
    let vip = ChatUserFilter {
        tag: Some("vip".into()),
        ..ChatUserFilter::default()
    };
    let users = store
        .list_chat_users(&tenant, &agent, &vip, &first_page())
        .await;
    let users = users.expect("reads work");
    let active = SessionFilter {
        active: Some(true),
        user_external_id: Some("ana".into()),
        ..SessionFilter::default()
    };
    let sessions = store.list_sessions(&tenant, &active, &first_page()).await;
    let sessions = sessions.expect("reads work");
    let unclaimed = EscalationFilter {
        assignee: Some(EscalationAssignee::Nobody),
        ..EscalationFilter::default()
    };
    let escalations = store
        .list_escalations(&tenant, &unclaimed, &first_page())
        .await;
    let escalations = escalations.expect("reads work");
    let log = store.agent_log(&tenant, &agent, 0, PageLimit::of_events(100));
    let log = log.await.expect("reads work");
    let active = ProxyFilter {
        status: Some(ProxyStatus::Active),
        ..ProxyFilter::default()
    };
    let bridges = store.list_proxies(&tenant, &active, &first_page()).await;
    let bridges = bridges.expect("reads work");
    format!("{users:?}\n{sessions:?}\n{escalations:?}\n{bridges:?}\n{log:?}")
}

fn first_page<I>() -> ListingPage<I> {
    ListingPage {
        after: None,
        limit: 100,
    }
}
