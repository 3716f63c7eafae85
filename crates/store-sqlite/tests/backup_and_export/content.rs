//! The content of the store that is copied, and how it is compared.

use std::sync::Arc;
use tandem_record::{Actor, InterruptId, MessageId, Object, RunId, Seq, StreamId, TenantId};
use tandem_store::audit::{AuditKey, AuditSigner};
use tandem_store::battery::sample::{
    NOW, conversation_started, conversations_as_text, must, row, started,
};
use tandem_store::{
    Audit, AuditDraft, IdempotencyKey, IdempotencyRecord, InboxQuery, InterruptRow, MemoryRow,
    Store, StoredResponse, TestRecord, TestRecordQuery, TimerChange,
};

pub(crate) fn audit_signer(store: &Arc<dyn Store>) -> AuditSigner {
    let store: Arc<dyn Audit> = Arc::<dyn Store>::clone(store);
    AuditSigner::new(store, AuditKey::from_seed(&[7; 32]))
}

pub(crate) fn question(run: &str) -> InterruptRow {
    InterruptRow {
        interrupt: InterruptId::new(format!("q-{run}")),
        stream: StreamId::of_run(&RunId::new(run)),
        step: "gate".into(),
        tenant: "t1".into(),
        workspace: None,
        kind: "approval".into(),
        created_at: NOW,
        deadline: None,
        closed: None,
        body: "{}".into(),
        priority: 0,
        groups: vec!["finance".into()],
    }
}

/// The id of a message that a session took.
fn message(session: &str) -> IdempotencyRecord {
    let message = MessageId::new("m1");
    IdempotencyRecord {
        key: IdempotencyKey::of_message(
            &TenantId::new("t1").into(),
            &"desk".into(),
            "loopback",
            &message,
        ),
        digest: String::new(),
        response: StoredResponse {
            status: 200,
            body: "{}".into(),
        },
        recorded_at: NOW,
        session: Some(session.into()),
    }
}

fn sent_text() -> TestRecord {
    TestRecord {
        kind: "outbound".into(),
        agent: "desk".into(),
        address: "ana".into(),
        key: Some("k1".into()),
        body: "{}".into(),
    }
}

/// Three runs, one of them a child of another, with questions, a timer, memory and an audit log;
/// one is purged. And one conversation.
pub(crate) async fn fill(store: &Arc<dyn Store>) {
    for name in ["r1", "r2", "r3"] {
        let mut run = row("t1", name);
        run.parent = (name == "r2").then(|| "r1".into());
        let mut begin = started(run);
        begin.interrupts = vec![question(name)];
        begin.timers = vec![TimerChange::Set {
            stream: StreamId::new(format!("run:{name}")),
            name: "deadline".into(),
            due: NOW,
            tenant: "t1".into(),
        }];
        begin.memory = vec![MemoryRow {
            tenant: "t1".into(),
            scope: "tenant".into(),
            memory_ref: "notes".into(),
            key: name.to_owned(),
            run: RunId::new(name),
            seq: Seq(0),
            body: Some("1".into()),
        }];
        begin.audit = vec![AuditDraft::new(
            NOW,
            Some(&TenantId::new("t1")),
            &Actor::host(),
            "run.create",
            name,
            Object::new(),
        )];
        must(store, begin).await;
    }
    store
        .purge_run(&"r3".into(), "{\"left\":1}", None)
        .await
        .unwrap();
    let mut begin = conversation_started("t1", "s1");
    begin.idempotency = vec![message("s1")];
    must(store, begin).await;
    store.add_test_record(sent_text()).await.unwrap();
    store.set("link.secret", "s3cret").await.unwrap();
    audit_signer(store).seal_all().await.unwrap();
}

/// All data of `t1`, as text.
pub(crate) async fn dump_as_text(store: &Arc<dyn Store>) -> String {
    let tenant = TenantId::new("t1");
    let mut text = String::new();
    for run in ["r1", "r2", "r3"] {
        let stream = StreamId::new(format!("run:{run}"));
        let log = store.events(&stream, None, 100).await.unwrap();
        let row = store.run(&tenant, &run.into()).await.unwrap();
        text.push_str(&format!("{row:?}\n{log:?}\n"));
    }
    let query = InboxQuery {
        group: Some("finance".into()),
        limit: 10,
        ..Default::default()
    };
    let inbox = store.inbox(&tenant, &query).await.unwrap();
    let timers = store.due_timers(NOW, 10).await.unwrap();
    let position = store.memory_position().await.unwrap();
    let head = store.audit_head().await.unwrap();
    let secret = store.get("link.secret").await.unwrap();
    let conversations = conversations_as_text(store, "t1").await;
    let message = store.idempotency_record(&message("s1").key).await.unwrap();
    let sent = TestRecordQuery {
        kind: "outbound".into(),
        agent: None,
        address: None,
        after: 0,
        limit: 10,
    };
    let sent = store.test_records(&sent).await.unwrap();
    assert!(!sent.is_empty() && message.is_some() && conversations.contains("e-s1"));
    text + &format!(
        "{inbox:?}\n{timers:?}\n{position}\n{head:?}\n{secret:?}\n{conversations}\n{message:?}\n{sent:?}"
    )
}
