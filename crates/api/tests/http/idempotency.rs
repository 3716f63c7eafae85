//! Idempotency keys: one key, one mutation.

use crate::test_server::{TestServer, hour, noop};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::HashSet;
use tandem_access::Scope;

fn key(text: &str) -> [(&str, &str); 1] {
    [("idempotency-key", text)]
}

#[tokio::test]
async fn repeated_request_gets_the_stored_response() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let body = json!({"workflowId": "w", "inputs": {"a": 1, "b": 2}});
    let first = server.post_with("/v1/runs", body, &key("k")).await;
    assert!(!first.headers.contains_key("openwop-idempotent-replay"));
    let made = first.ok(201);
    // The same JSON, formatted differently.
    let spelled = r#"{ "inputs": {"b":2,"a":1}, "workflowId":"w" }"#;
    for _ in 0..5 {
        let again = server
            .call_as(&server.key, "POST", "/v1/runs", &key("k"), spelled)
            .await;
        assert_eq!(again.header("openwop-idempotent-replay"), "true");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.ok(201), made);
    }
    let other = server.create("w").await;
    assert_ne!(made["runId"], other);
}

#[tokio::test]
async fn different_request_under_the_same_key_gets_409() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let first = server
        .post_with("/v1/runs", json!({"workflowId": "w"}), &key("k"))
        .await
        .ok(201);
    // The key is checked before the body is validated: an invalid body is first of all a different
    // request.
    for other in [
        json!({"workflowId": "w", "inputs": {"x": 1}}),
        json!({"bogus": 1}),
    ] {
        let reply = server.post_with("/v1/runs", other, &key("k")).await;
        reply.refused(409, "idempotency_key_mismatch");
        assert!(!reply.text.contains(first["runId"].as_str().unwrap()));
    }
    // A key belongs to one operation, but the run id in the path is part of the request.
    let (a, b) = (
        server.start("x", &[hour("n")]).await,
        server.create("x").await,
    );
    let cancel = |run: &str| format!("/v1/runs/{run}/cancel");
    server
        .post_with(&cancel(&a), json!({}), &key("k"))
        .await
        .ok(200);
    server
        .post_with(&cancel(&b), json!({}), &key("k"))
        .await
        .refused(409, "idempotency_key_mismatch");
}

#[tokio::test]
async fn retryable_refusals_are_not_stored() {
    let server = TestServer::new().await;
    server
        .post_with("/v1/runs", json!({"inputs": {}}), &key("k"))
        .await
        .refused(400, "validation_error");
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let body = json!({"workflowId": "w"}).to_string();
    server
        .call_as(&reader, "POST", "/v1/runs", &key("k"), body)
        .await
        .refused(403, "forbidden");
    server.register("w", &[noop("a")]).await;
    server
        .post_with("/v1/runs", json!({"workflowId": "w"}), &key("k"))
        .await
        .ok(201);
    for bad in ["", &"k".repeat(256)] {
        server
            .post_with("/v1/runs", json!({"workflowId": "w"}), &key(bad))
            .await
            .refused(400, "validation_error");
    }
}

#[tokio::test]
async fn final_refusal_is_replayed_verbatim() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let pause = format!("/v1/runs/{run}:pause");
    let first = server.post_with(&pause, json!({}), &key("k")).await;
    first.refused(409, "run_terminal");
    let again = server.post_with(&pause, json!({}), &key("k")).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.text, first.text);
}

#[tokio::test]
async fn refusal_before_commit_is_replayed() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let fork = format!("/v1/runs/{run}:fork");
    let table = [
        ("POST", "/v1/runs", json!({"workflowId": "later"}), 404),
        ("POST", "/v1/runs/run-none/cancel", json!({}), 404),
        ("POST", "/v1/runs/run-none:pause", json!({}), 404),
        ("POST", &fork, json!({"mode": "branch", "fromSeq": 99}), 422),
        ("DELETE", "/v1/webhooks/wh-none", json!({}), 404),
        ("DELETE", "/v1/host/tandem/workflows/later", json!({}), 404),
    ];
    let ask = |method, path, body: &Value| {
        let body = body.to_string();
        server.call_as(&server.key, method, path, &[("idempotency-key", "k")], body)
    };
    let mut first = Vec::new();
    for (method, path, body, status) in &table {
        let reply = ask(method, path, body).await;
        assert_eq!(reply.status.as_u16(), *status, "{path}: {reply:?}");
        assert_eq!(reply.header("openwop-idempotent-replay"), "");
        first.push(reply.text);
    }
    // The stored response does not change, whatever changes in the meantime.
    server.register("later", &[noop("a")]).await;
    for ((method, path, body, status), text) in table.iter().zip(first) {
        let again = ask(method, path, body).await;
        assert_eq!(again.header("openwop-idempotent-replay"), "true", "{path}");
        assert_eq!((again.status.as_u16(), again.text), (*status, text));
    }
    let body = json!({"workflowId": "later"});
    let fresh = server.post_with("/v1/runs", body, &key("another")).await;
    fresh.ok(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_with_one_key_execute_once() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let body = json!({"workflowId": "w"});
    let calls =
        (0..24).map(|_| server.post_with("/v1/runs", body.clone(), &[("idempotency-key", "k")]));
    let replies = join_all(calls).await;
    let runs: HashSet<String> = replies
        .iter()
        .map(|r| r.ok(201)["runId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(runs.len(), 1);
    let first_answers = replies
        .iter()
        .filter(|r| !r.headers.contains_key("openwop-idempotent-replay"));
    assert_eq!(first_answers.count(), 1);
    let listed = server.get("/v1/runs?workflowId=w").await.ok(200);
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn request_that_waits_for_another_under_its_key_holds_no_permit() {
    let settings = tandem_api::HttpSettings {
        max_mutations: 2,
        ..Default::default()
    };
    let server = TestServer::with_settings(settings).await;
    server.register("w", &[noop("a")]).await;
    // Large requests are executed on another thread, so that they overlap.
    let body = json!({"workflowId": "w", "inputs": {"text": "x".repeat(200_000)}});
    let same_key = key("k");
    let calls = (0..24).map(|_| server.post_with("/v1/runs", body.clone(), &same_key));
    for reply in join_all(calls).await {
        reply.ok(201);
    }
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_tenant() {
    let server = TestServer::new().await;
    let other = server.new_key("tenant2", Scope::all()).await;
    let document = crate::test_server::chain("w", &[noop("a")]).to_string();
    let put = "/v1/host/tandem/workflows/w";
    let mut runs: Vec<Value> = Vec::new();
    for secret in [server.key.as_str(), other.as_str()] {
        let reply = server
            .call_as(secret, "PUT", put, &[], document.clone())
            .await;
        assert_eq!(reply.status.as_u16(), 201);
        let body = json!({"workflowId": "w"}).to_string();
        let made = server
            .call_as(secret, "POST", "/v1/runs", &key("k"), body)
            .await;
        runs.push(made.ok(201)["runId"].clone());
    }
    assert_ne!(runs[0], runs[1]);
}

#[tokio::test]
async fn busy_scope_gets_409_with_active_run() {
    let server = TestServer::new().await;
    server.register("w", &[hour("a")]).await;
    let body = json!({"workflowId": "w", "scopeId": "s"});
    let enforce = [("x-dedup", "enforce")];
    let first = server
        .post_with("/v1/runs", body.clone(), &enforce)
        .await
        .ok(201);
    let reply = server.post_with("/v1/runs", body.clone(), &enforce).await;
    let details = reply.refused(409, "run_already_active");
    assert_eq!(details["activeRunId"], first["runId"]);
    assert_eq!(details["activeHost"], "tandem");
    assert_eq!(
        reply.header("retry-after"),
        details["retryAfter"].to_string()
    );
    let run = first["runId"].as_str().unwrap();
    server
        .post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .ok(200);
    server.post_with("/v1/runs", body, &enforce).await.ok(201);
    server
        .post_with("/v1/runs", json!({"workflowId": "w"}), &enforce)
        .await
        .refused(400, "validation_error");
}

#[tokio::test]
async fn workflow_registration_is_idempotent() {
    let server = TestServer::new().await;
    let document = crate::test_server::chain("w", &[noop("a")]).to_string();
    let put = || {
        server.call_as(
            &server.key,
            "PUT",
            "/v1/host/tandem/workflows/w",
            &[("idempotency-key", "k")],
            document.clone(),
        )
    };
    put().await.ok(201);
    let again = put().await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    again.ok(201);
}

#[tokio::test]
async fn vote_of_another_principal_under_the_same_key_is_not_swallowed() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate",
        "config": {"requiredApprovals": 2}});
    let run = server.start("pair", &[gate]).await;
    let scopes = [Scope::ApprovalsRespond];
    let (ana, ben) = (
        server.new_key("default", &scopes).await,
        server.new_key("default", &scopes).await,
    );
    let listed = format!("/v1/host/tandem/interrupts?runId={run}");
    let listed = server.get(&listed).await.ok(200);
    let interrupt = listed["interrupts"][0]["interruptId"].as_str().unwrap();
    let body = json!({"resumeValue": {"action": "accept"}}).to_string();
    let vote = async |by: &str, path: &str, key: &str| {
        let key = [("idempotency-key", key)];
        server.call_as(by, "POST", path, &key, body.clone()).await
    };
    let by_node = format!("/v1/runs/{run}/interrupts/gate");
    let by_id = format!("/v1/host/tandem/interrupts/{interrupt}:resolve");
    let first = vote(&ana, &by_node, "approve").await.ok(200);
    let again = vote(&ana, &by_node, "approve").await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.ok(200), first);
    let refused = vote(&ben, &by_node, "approve").await;
    refused.refused(409, "idempotency_key_mismatch");
    let decided = vote(&ben, &by_id, "approve").await.ok(200);
    assert_eq!(decided["status"], "completed");
    let refused = vote(&ana, &by_id, "approve").await;
    refused.refused(409, "idempotency_key_mismatch");
}
