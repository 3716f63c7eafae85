//! The callback of a run: a notification is enough to show and answer an interrupt, and reaches
//! nobody else.

use crate::test_server::{Reply, TestServer};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const URL: &str = "https://example.com/asked";

fn gate(config: Value) -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": config})
}

async fn start_as(server: &TestServer, key: &str, workflow: &str) -> String {
    let body = json!({"workflowId": workflow, "callbackUrl": URL}).to_string();
    let made = server.call_as(key, "POST", "/v1/runs", &[], body).await;
    server.advance(0).await;
    made.ok(201)["runId"].as_str().unwrap().to_owned()
}

/// The notifications sent so far.
fn announced(server: &TestServer) -> Vec<Value> {
    let announced = server.webhook_sender.announced.lock();
    assert!(announced.iter().all(|(url, _)| url == URL));
    announced.iter().map(|(_, body)| body.clone()).collect()
}

async fn follow(server: &TestServer, notification: &Value, answer: Value) -> Reply {
    let path = notification["interrupt"]["callbackUrl"].as_str().unwrap();
    let body = json!({"resumeValue": answer}).to_string();
    server.call_as("", "POST", path, &[], body).await
}

#[tokio::test]
async fn announced_link_reads_and_resolves_without_a_key() {
    let server = TestServer::new().await;
    let config = json!({"title": "Refund", "timeoutMs": 60_000});
    server.register("gated", &[gate(config)]).await;
    let run = start_as(&server, &server.key, "gated").await;
    let announcements = announced(&server);
    assert_eq!(announcements.len(), 1);
    let notification = &announcements[0];
    assert_eq!(notification["type"], "interrupt.requested");
    assert_eq!(notification["runId"], run);
    assert_eq!(notification["workflowId"], "gated");
    assert_eq!(notification["parentRunId"], Value::Null);
    let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(
        notification["interrupt"], shown["interrupt"],
        "as the snapshot shows it, with the link a reader gets at the same time"
    );
    assert_eq!(notification["interrupt"]["data"]["title"], "Refund");
    let path = notification["interrupt"]["callbackUrl"].as_str().unwrap();
    let token = notification["interrupt"]["interruptToken"]
        .as_str()
        .unwrap();
    assert_eq!(path, format!("/v1/interrupts/{token}"));
    let inspected = server.call_as("", "GET", path, &[], "").await.ok(200);
    assert_eq!(inspected["data"], notification["interrupt"]["data"]);
    for place in ["events?streamMode=debug", "debug-bundle"] {
        let accept = [("accept", "application/json")];
        let path = format!("/v1/runs/{run}/{place}");
        let read = server.call_as(&server.key, "GET", &path, &accept, "").await;
        read.ok(200);
        assert!(!read.text.contains(token), "{place}");
    }
    let accept = json!({"action": "accept"});
    follow(&server, notification, accept.clone()).await.ok(200);
    let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "completed");
    let again = follow(&server, notification, accept).await;
    again.refused(409, "interrupt_already_resolved");
    assert_eq!(announced(&server).len(), 1);
}

#[tokio::test]
async fn every_interrupt_kind_is_announced() {
    let server = TestServer::new().await;
    let clarification = json!({"questions": [{"id": "q1", "question": "Which colour?"}]});
    let event = json!({"kind": "external-event",
        "data": {"eventType": "paid", "correlation": {"order": 7}}});
    let custom = json!({"kind": "custom", "data": {"customKind": "x", "payload": 1},
        "resumeSchema": {"type": "object"}});
    let kinds = [
        ("core.approvalGate", json!({}), "approval"),
        ("core.clarificationGate", clarification, "clarification"),
        ("core.interrupt", event, "external-event"),
        ("core.interrupt", custom, "custom"),
        ("core.conversationGate", json!({}), "conversation"),
    ];
    for (place, (type_id, config, kind)) in kinds.into_iter().enumerate() {
        let id = format!("asks-{place}");
        let node = json!({"id": "ask", "typeId": type_id, "config": config});
        server.register(&id, &[node]).await;
        let run = start_as(&server, &server.key, &id).await;
        let announcements = announced(&server);
        assert_eq!(announcements.len(), place + 1, "{kind}");
        let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
        assert_eq!(announcements[place]["interrupt"], shown["interrupt"]);
        let announced_kind = announcements[place]["interrupt"]["kind"].as_str().unwrap();
        assert!(announced_kind.starts_with(kind), "{announced_kind}");
    }
}

#[tokio::test]
async fn caller_without_respond_scope_gets_a_read_only_link() {
    let server = TestServer::new().await;
    server.register("gated", &[gate(json!({}))]).await;
    let creator = server
        .new_key("default", &[Scope::RunsCreate, Scope::RunsRead])
        .await;
    let run = start_as(&server, &creator, "gated").await;
    let announcements = announced(&server);
    let path = announcements[0]["interrupt"]["callbackUrl"]
        .as_str()
        .unwrap();
    server.call_as("", "GET", path, &[], "").await.ok(200);
    let refused = follow(&server, &announcements[0], json!({"action": "accept"})).await;
    refused.refused(403, "forbidden");
    let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "waiting-approval");
}

/// A workflow that asks after a second.
async fn register_delayed(server: &TestServer) {
    let delay = json!({"id": "wait", "typeId": "core.delay", "config": {"delayMs": 1000}});
    server.register("delayed", &[delay, gate(json!({}))]).await;
}

async fn assert_not_announced(server: &TestServer, run: &str) {
    assert_eq!(announced(server), Vec::<Value>::new());
    let log = server
        .get(&format!("/v1/runs/{run}/events/poll?lastSequence=0"))
        .await;
    assert!(log.text.contains("callback_undelivered"), "{}", log.text);
    let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "waiting-approval");
}

#[tokio::test]
async fn question_is_not_announced_to_a_starter_who_may_not_read_runs() {
    let server = TestServer::new().await;
    server.register("gated", &[gate(json!({}))]).await;
    let scopes = [Scope::RunsCreate, Scope::ApprovalsRespond];
    let creator = server.new_key("default", &scopes).await;
    let run = start_as(&server, &creator, "gated").await;
    assert_not_announced(&server, &run).await;
}

#[tokio::test]
async fn question_is_not_announced_after_the_key_of_the_starter_ended() {
    let scopes = [Scope::RunsCreate, Scope::RunsRead, Scope::ApprovalsRespond];
    for expires in [true, false] {
        let server = TestServer::new().await;
        register_delayed(&server).await;
        let mut new = NewKey::new("creator", "default".into(), scopes);
        new.expires_at = expires.then(|| server.runtime.clock().now().plus_ms(500));
        let creator = server.mint(new).await;
        let run = start_as(&server, &creator, "delayed").await;
        if !expires {
            server.revoke(&creator).await;
        }
        server.advance(2).await;
        assert_not_announced(&server, &run).await;
    }
}

#[tokio::test]
async fn announced_link_ends_with_the_key_of_the_starter() {
    let server = TestServer::new().await;
    server.register("gated", &[gate(json!({}))]).await;
    let scopes = [Scope::RunsCreate, Scope::RunsRead, Scope::ApprovalsRespond];
    let creator = server.new_key("default", &scopes).await;
    let run = start_as(&server, &creator, "gated").await;
    let asked = announced(&server).remove(0);
    server.revoke(&creator).await;
    let refused = follow(&server, &asked, json!({"action": "accept"})).await;
    refused.refused(403, "forbidden");
    let path = asked["interrupt"]["callbackUrl"].as_str().unwrap();
    let looked = server.call_as("", "GET", path, &[], "").await;
    looked.refused(403, "forbidden");
    let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "waiting-approval");
}

#[tokio::test]
async fn interrupt_of_a_descendant_is_announced_to_the_root_callback() {
    let server = TestServer::new().await;
    server.register("leaf", &[gate(json!({}))]).await;
    let call =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "leaf"}});
    server.register("top", &[call]).await;
    let top = start_as(&server, &server.key, "top").await;
    server.advance(0).await;
    let announcements = announced(&server);
    assert_eq!(announcements.len(), 1, "{announcements:?}");
    assert_eq!(announcements[0]["parentRunId"], top);
    assert_eq!(announcements[0]["rootRunId"], top);
    assert_ne!(announcements[0]["runId"], top);
    let answered = follow(&server, &announcements[0], json!({"action": "accept"})).await;
    answered.ok(200);
    server.advance(0).await;
    let after = server.get(&format!("/v1/runs/{top}")).await.ok(200);
    assert_eq!(after["status"], "completed");
}

#[tokio::test]
async fn callback_url_with_secret_is_refused() {
    let server = TestServer::new().await;
    server.register("gated", &[gate(json!({}))]).await;
    let url = format!("https://example.com/in?key=sk-{}", "a".repeat(32));
    let body = json!({"workflowId": "gated", "callbackUrl": url});
    let refused = server.post("/v1/runs", body).await;
    assert!(!refused.text.contains("sk-"));
    let details = refused.refused(400, "validation_error");
    assert_eq!(details["errors"][0]["path"], "/callbackUrl");
}
