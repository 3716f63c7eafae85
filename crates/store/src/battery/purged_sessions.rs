//! Sessions past their retention: listed by their end, and purged with everything that is theirs.

use super::escalations::escalation_row;
use super::interrupts::interrupt_row;
use super::sample::{
    NOW, append, commit, conversation_changes, conversation_started, later, must, session_row,
};
use super::sessions::ids;
use super::{agent_log, idempotency, proxies};
use crate::{
    AuditDraft, ConversationChange, DeskSelection, EndedSession, Error, EscalationFilter,
    IdempotencyKey, IdempotencyRecord, InboxQuery, ListingPage, PageLimit, SessionFilter,
    SnapshotRecord, Store,
};
use std::sync::Arc;
use tandem_record::{Actor, Object, Seq, SessionId, StreamId, TenantId};

use ConversationChange::PutSession;

pub async fn ended_sessions_are_listed_by_their_end(store: Arc<dyn Store>) {
    let ends = [("s1", 10), ("s3", 20), ("s2", 20), ("s4", 5), ("s5", 40)];
    for (id, end) in ends {
        let mut row = session_row("t1", id);
        must(&store, conversation_changes([PutSession(row.clone())])).await;
        row.ended_at = Some(later(end));
        must(&store, conversation_changes([PutSession(row)])).await;
    }
    must(
        &store,
        conversation_changes([PutSession(session_row("t1", "active"))]),
    )
    .await;
    for limit in [1, 2, 10] {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = store.ended_sessions(after.clone(), later(40), limit).await;
            let page = page.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.place());
            ids.extend(page.into_iter().map(|ended| ended.session_id.to_string()));
        }
        assert_eq!(ids, ["s4", "s1", "s2", "s3"], "{limit}");
    }
    let first = store.ended_sessions(None, later(40), 1).await.unwrap();
    let expected = EndedSession {
        session_id: "s4".into(),
        tenant: "t1".into(),
        agent: "desk".into(),
        ended_at: later(5),
    };
    assert_eq!(first, [expected], "every field");
}

/// A session with events, an escalation, a question and the id of a message.
async fn start_session(store: &Arc<dyn Store>, session: &str) -> IdempotencyRecord {
    let stream = StreamId::of_session(&SessionId::new(session));
    let mut begin = conversation_started("t1", session);
    begin.appends[0].snapshot = Some(SnapshotRecord {
        seq: Seq(1),
        format: 1,
        body: "{}".into(),
    });
    let mut question = interrupt_row("t1", &format!("i-{session}"), "", "confirm");
    question.stream = stream;
    begin.interrupts = vec![question];
    let key = IdempotencyKey(format!("message of {session}"));
    // The bytes of a recording.
    let media = StreamId::of_media(&SessionId::new(session), &"in-1".into());
    begin.appends.push(append(&media, None, 1));
    let received = IdempotencyRecord {
        key,
        session: Some(session.into()),
        ..idempotency::record("", NOW)
    };
    begin.idempotency = vec![received.clone()];
    must(store, begin).await;
    received
}

pub async fn purged_session_leaves_nothing(store: Arc<dyn Store>) {
    let first = start_session(&store, "s1").await;
    let second = start_session(&store, "s2").await;
    let (tenant, id) = (TenantId::new("t1"), SessionId::new("s1"));
    let audit = AuditDraft::new(
        NOW,
        None,
        &Actor::host(),
        "session.purge",
        "s1",
        Object::new(),
    );
    store.purge_session(&id, Some(audit.clone())).await.unwrap();
    let active = store.session(&tenant, &id).await.unwrap();
    assert!(active.is_some(), "an active session is not purged");
    assert_eq!(store.audit_head().await.unwrap(), None);
    let mut ended = session_row("t1", "s1");
    ended.ended_at = Some(later(5));
    must(&store, conversation_changes([PutSession(ended)])).await;
    for _ in 0..2 {
        store.purge_session(&id, Some(audit.clone())).await.unwrap();
        let head = store.audit_head().await.unwrap();
        assert_eq!(head.unwrap().seq, 1, "one entry, however often");
    }

    assert_eq!(store.session_of_any_tenant(&id).await.unwrap(), None);
    let all = SessionFilter::default();
    assert_eq!(ids(&store, "t1", &all, 10).await, ["s2"]);
    let ended = store.ended_sessions(None, later(99), 10).await.unwrap();
    assert_eq!(ended, []);
    let stream = StreamId::of_session(&id);
    let slice = store.events(&stream, None, 10).await.unwrap();
    assert_eq!((slice.events.len(), slice.head), (0, Some(Seq(1))));
    assert_eq!(store.snapshot(&stream).await.unwrap(), None);
    for (session, kept) in [("s1", 0), ("s2", 1)] {
        let media = StreamId::of_media(&SessionId::new(session), &"in-1".into());
        let slice = store.events(&media, None, 10).await.unwrap();
        assert_eq!(slice.events.len(), kept, "the recording of {session}");
    }
    let page = ListingPage {
        after: None,
        limit: 10,
    };
    let escalations = EscalationFilter::default();
    let escalations = store.list_escalations(&tenant, &escalations, &page).await;
    let escalations = escalations.unwrap().unwrap();
    assert_eq!(escalations.rows, [escalation_row("t1", "s2", "e-s2")]);
    let gone = store.escalation(&tenant, &"e-s1".into()).await.unwrap();
    assert_eq!(gone, None);
    let gone = store.proxy(&tenant, &"pxy-s1".into()).await.unwrap();
    assert_eq!(gone, None);
    for (session, kept) in [("s1", 0), ("s2", 1)] {
        let selection = DeskSelection::Message(format!("sent-{session}"));
        let desk = proxies::desk("t1");
        let found = store.proxies_of_desk(&desk, &selection, 10).await;
        assert_eq!(found.unwrap().len(), kept, "the bridge of {session}");
    }
    let gone = store.interrupt(&tenant, &"i-s1".into()).await.unwrap();
    assert_eq!(gone, None);
    let query = InboxQuery {
        limit: 10,
        ..InboxQuery::default()
    };
    let inbox = store.inbox(&tenant, &query).await.unwrap();
    let open: Vec<_> = inbox
        .rows
        .iter()
        .map(|(_, row)| row.interrupt.as_str())
        .collect();
    assert_eq!(open, ["i-s2"]);
    let gone = store.idempotency_record(&first.key).await.unwrap();
    assert_eq!(gone, None);
    let kept = store.idempotency_record(&second.key).await.unwrap();
    assert_eq!(kept, Some(second));

    let log = agent_log::read(&store, "desk", 0, PageLimit::of_events(10)).await;
    let expected = [(3, "conv:s2".to_owned(), 0), (4, "conv:s2".to_owned(), 1)];
    assert_eq!(log, expected, "positions stay");
    match store.commit(commit([append(&stream, Some(1), 1)])).await {
        Err(Error::Fault(fault)) => assert_eq!(fault.code, "purged"),
        other => panic!("expected a fault, got {other:?}"),
    }
}

/// The last positions of an agent's log are not given to later events.
pub async fn purge_does_not_release_positions_of_an_agent_log(store: Arc<dyn Store>) {
    start_session(&store, "s1").await;
    let mut ended = session_row("t1", "s1");
    ended.ended_at = Some(later(5));
    must(&store, conversation_changes([PutSession(ended)])).await;
    store.purge_session(&"s1".into(), None).await.unwrap();
    start_session(&store, "s2").await;
    let log = agent_log::read(&store, "desk", 2, PageLimit::of_events(10)).await;
    assert_eq!(log.len(), 2, "a reader that had read the purged events");
}
