//! Questions in the inbox that no workflow run of this release wrote.

use crate::test_server::{HostOptions, TestServer};
use serde_json::{Value, json};
use std::borrow::Cow;
use tandem_record::{
    InterruptId, QuestionBody, RunId, SessionId, StepId, StreamId, TenantId, Timestamp,
};
use tandem_runtime::InterruptRow;
use tandem_store::memory::MemoryStore;
use tandem_store::{Commit, Log as _};

/// A host whose store has one open question with this content.
async fn server_with_question(stream: StreamId, step: &str, body: String) -> TestServer {
    let store = MemoryStore::new();
    let row = InterruptRow {
        interrupt: InterruptId::new("q-1"),
        stream,
        step: StepId::new(step),
        tenant: TenantId::new("default"),
        workspace: None,
        kind: "approval".to_owned(),
        created_at: Timestamp(0),
        deadline: None,
        priority: 0,
        groups: Vec::new(),
        closed: None,
        body,
    };
    let commit = Commit {
        interrupts: vec![row],
        ..Commit::default()
    };
    store.commit(commit).await.expect("a commit");
    TestServer::with_options(HostOptions {
        shared_store: Some(store.reopen()),
        ..HostOptions::default()
    })
    .await
}

async fn listed(server: &TestServer) -> Value {
    let path = "/v1/host/tandem/interrupts";
    let page = server.get(path).await.ok(200);
    let read = server.get(&format!("{path}/q-1")).await.ok(200);
    assert_eq!(page, json!({"interrupts": [read]}));
    read
}

#[tokio::test]
async fn question_stored_by_the_first_release_is_listed_as_before() {
    let stored = json!({
        "key": "w:gate:0", "data": {"title": "Refund?", "actions": ["accept"]}, "digest": "ab",
        "votes": [{"voter": "ada", "action": "accept", "at": 7}],
    });
    let stream = StreamId::of_run(&RunId::new("r-1"));
    let server = server_with_question(stream, "gate", stored.to_string()).await;
    assert_eq!(
        listed(&server).await,
        json!({
            "interruptId": "q-1", "kind": "approval", "runId": "r-1", "nodeId": "gate",
            "status": "open", "title": "Refund?", "key": "w:gate:0", "digest": "ab",
            "data": {"title": "Refund?", "actions": ["accept"]}, "actions": ["accept"],
            "createdAt": "1970-01-01T00:00:00.000Z",
            "votes": [{"voter": "ada", "action": "accept", "at": 7}],
        })
    );
}

#[tokio::test]
async fn question_of_a_conversation_is_listed_with_its_session_and_run() {
    let session = SessionId::new("s-1");
    let body = QuestionBody {
        key: "run-1:1".into(),
        data: Cow::Owned(json!({"title": "Cancel the order?"})),
        digest: "ab".into(),
        session_id: Some(Cow::Borrowed(&session)),
        run_id: Some(Cow::Owned(RunId::new("run-1"))),
        ..QuestionBody::default()
    };
    let stream = StreamId::of_session(&session);
    let server = server_with_question(stream, "confirm", body.to_json()).await;
    assert_eq!(
        listed(&server).await,
        json!({
            "interruptId": "q-1", "kind": "approval", "runId": "run-1", "nodeId": "confirm",
            "sessionId": "s-1", "status": "open", "title": "Cancel the order?", "key": "run-1:1",
            "digest": "ab", "data": {"title": "Cancel the order?"}, "actions": ["resolve"],
            "createdAt": "1970-01-01T00:00:00.000Z",
        })
    );
}

#[tokio::test]
async fn unreadable_question_is_a_fault_of_the_host() {
    let stream = StreamId::of_run(&RunId::new("r-1"));
    let server = server_with_question(stream, "gate", "{".to_owned()).await;
    let reply = server.get("/v1/host/tandem/interrupts/q-1").await;
    assert_eq!(reply.status.as_u16(), 500, "{reply:?}");
}
