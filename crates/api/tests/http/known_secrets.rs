//! Secrets the host was configured with: no refusal repeats them, and no name or document is stored with
//! them.

use crate::test_server::{HostOptions, Reply, TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_runtime::Redactor;

const SECRET: &str = "Zq7XvT9mLp2RwK4c";

async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        redactor: Redactor::new([("billing", SECRET)].into_iter()),
        ..HostOptions::default()
    })
    .await
}

async fn call(server: &TestServer, method: &str, path: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json")];
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    server
        .call_as(&server.key, method, path, &headers, body)
        .await
}

#[tokio::test]
async fn refusals_do_not_repeat_a_secret() {
    let server = server().await;
    server.register("w", &[noop("a")]).await;
    let unknown_type = json!({"id": "a", "typeId": format!("core.{SECRET}"), "name": "a",
        "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
    let group = "/v1/host/tandem/groups/g".to_owned();
    for (method, path, body) in [
        (
            "POST",
            "/v1/runs".to_owned(),
            json!({"workflowId": "w", SECRET: 1}),
        ),
        (
            "POST",
            "/v1/runs".to_owned(),
            json!({"workflowId": "w", "tags": SECRET}),
        ),
        (
            "POST",
            "/v1/host/tandem/keys".to_owned(),
            json!({"name": "x", "scopes": [], SECRET: 1}),
        ),
        ("PUT", group, json!({"members": SECRET})),
        (
            "PUT",
            format!("/v1/host/tandem/workflows/{SECRET}"),
            chain("other", &[noop("a")]),
        ),
        (
            "PUT",
            "/v1/host/tandem/workflows/x".to_owned(),
            chain("x", &[unknown_type]),
        ),
        (
            "POST",
            "/v1/webhooks".to_owned(),
            json!({"url": "https://h.test/", "events": [SECRET]}),
        ),
        ("GET", format!("/v1/runs?status={SECRET}"), Value::Null),
        ("GET", format!("/{SECRET}"), Value::Null),
        ("GET", format!("/console/{SECRET}"), Value::Null),
    ] {
        let reply = call(&server, method, &path, &body).await;
        assert!(reply.status.is_client_error(), "{path}: {reply:?}");
        assert!(!reply.text.contains(SECRET), "{path}: {reply:?}");
    }
    let body = json!({"workflowId": "w", SECRET: 1});
    let details = server.post("/v1/runs", body).await;
    assert!(details.text.contains("[REDACTED:billing]"), "{details:?}");
    details.refused(400, "validation_error");
}

#[tokio::test]
async fn names_and_documents_with_a_secret_are_refused() {
    let server = server().await;
    let held = format!("x{SECRET}");
    let mut document = chain("w", &[noop("a")]);
    document["nodes"][0]["name"] = json!(held);
    let mut named = chain("w", &[noop("a")]);
    named["metadata"] = json!({ SECRET: 1 });
    let keys = "/v1/host/tandem/keys";
    let key = |name: &str, value: Value| {
        let mut key = json!({"name": "k", "scopes": ["runs:read"]});
        key[name] = value;
        key
    };
    let hook =
        |url: &str, tags: &[&str]| json!({"url": url, "events": ["run.completed"], "tags": tags});
    let workflow = "/v1/host/tandem/workflows/w";
    let inbound = "/v1/host/tandem/agents/desk/inbound";
    for (method, path, body, place) in [
        (
            "PUT",
            format!("/v1/host/tandem/groups/{held}"),
            json!({"members": []}),
            "name",
        ),
        (
            "PUT",
            "/v1/host/tandem/groups/g".to_owned(),
            json!({"members": ["a", held]}),
            "/members/1",
        ),
        ("POST", keys.to_owned(), key("name", json!(held)), "/name"),
        (
            "POST",
            keys.to_owned(),
            key("principal", json!(held)),
            "/principal",
        ),
        (
            "POST",
            keys.to_owned(),
            key("workspace", json!(held)),
            "/workspace",
        ),
        (
            "POST",
            keys.to_owned(),
            key("roles", json!(["a", held])),
            "/roles/1",
        ),
        (
            "POST",
            "/v1/host/tandem/delegations".to_owned(),
            json!({"to": held, "endsAt": "2027-01-01T00:00:00Z"}),
            "/to",
        ),
        (
            "POST",
            "/v1/webhooks".to_owned(),
            hook(&format!("https://h.test/?t={SECRET}"), &[]),
            "/url",
        ),
        (
            "POST",
            "/v1/webhooks".to_owned(),
            hook("https://h.test/", &["a", &held]),
            "/tags/1",
        ),
        (
            "POST",
            inbound.to_owned(),
            json!({"from": held, "body": "hello"}),
            "/from",
        ),
        (
            "POST",
            inbound.to_owned(),
            json!({"from": "ann", "messageId": held, "body": "hello"}),
            "/messageId",
        ),
        ("PUT", workflow.to_owned(), document, "/nodes/0/name"),
        ("PUT", workflow.to_owned(), named, "/metadata"),
        (
            "PUT",
            format!("{workflow}?workspace={held}"),
            chain("w", &[noop("a")]),
            "workspace",
        ),
    ] {
        let reply = call(&server, method, &path, &body).await;
        let details = reply.refused(400, "validation_error");
        assert_eq!(details["errors"][0]["path"], place, "{details}");
        assert!(!reply.text.contains(SECRET), "{reply:?}");
    }
    for path in [
        "groups",
        "keys",
        "delegations",
        "webhooks",
        "workflows",
        "audit/export",
    ] {
        let shown = server.get(&format!("/v1/host/tandem/{path}")).await;
        assert!(!shown.text.contains(SECRET), "{path}: {shown:?}");
    }
    // A header carries the credential of its call.
    let mut document = chain("w", &[noop("a")]);
    document["nodes"][0]["typeId"] = json!("vendor.tandem.http");
    document["nodes"][0]["config"] =
        json!({"method": "GET", "url": "https://example.com/", "headers": {"authorization": held}});
    server.put(workflow, document).await.ok(201);
    // What only looks like a credential may be part of a document.
    let mut document = chain("w", &[noop("a")]);
    document["nodes"][0]["name"] = json!("sk-abcdefghijklmnopqrstuv");
    server.put(workflow, document).await.ok(200);
}

#[tokio::test]
async fn deciding_vote_with_a_secret_leaves_none_in_audit_log_and_receipt() {
    let server = server().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let run = server.start("asks", &[gate]).await;
    let path = format!("/v1/host/tandem/interrupts?runId={run}");
    let open = server.get(&path).await.ok(200);
    let question = open["interrupts"][0]["interruptId"].as_str().unwrap();
    let accept = json!({"resumeValue": {"action": "accept", "voter": SECRET}});
    let resolve = format!("/v1/runs/{run}/interrupts/gate");
    server.post(&resolve, accept).await.ok(200);
    let receipt = format!("receipts/{question}");
    for path in [receipt.as_str(), "audit/export"] {
        let shown = server.get(&format!("/v1/host/tandem/{path}")).await;
        assert!(
            shown.text.contains("[REDACTED:billing]"),
            "{path}: {shown:?}"
        );
        assert!(!shown.text.contains(SECRET), "{path}: {shown:?}");
    }
}

#[tokio::test]
async fn stored_refusal_repeats_no_secret() {
    let server = server().await;
    let run = server.start("w", &[noop("a")]).await;
    let path = format!("/v1/runs/{run}/interrupts/{SECRET}");
    let key = [
        ("idempotency-key", "k"),
        ("content-type", "application/json"),
    ];
    for _ in 0..2 {
        let body = json!({"resumeValue": 1}).to_string();
        let refused = server.call_as(&server.key, "POST", &path, &key, body).await;
        assert!(refused.status.is_client_error(), "{refused:?}");
        assert!(!refused.text.contains(SECRET), "{refused:?}");
    }
}

#[tokio::test]
async fn stored_answer_to_a_bulk_cancel_holds_no_secret() {
    let server = server().await;
    let body = json!({"runIds": [format!("run-{SECRET}")]});
    let key = [("idempotency-key", "b1")];
    let path = "/v1/runs:bulk-cancel";
    server.post_with(path, body.clone(), &key).await.ok(200);
    let again = server.post_with(path, body, &key).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert!(!again.text.contains(SECRET), "{again:?}");
    let results = &again.ok(200)["results"];
    assert_eq!(results[0]["runId"], "run-[REDACTED:billing]");
    assert_eq!(results[0]["error"]["code"], "not_found");
}
