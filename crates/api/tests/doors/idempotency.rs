//! One key, one deed.

use crate::stage::{Stage, hour, noop};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::HashSet;
use tandem_access::Scope;

fn key(text: &str) -> [(&str, &str); 1] {
    [("idempotency-key", text)]
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer() {
    let stage = Stage::new().await;
    stage.register("w", &[noop("a")]).await;
    let body = json!({"workflowId": "w", "inputs": {"a": 1, "b": 2}});
    let first = stage.post_with("/v1/runs", body, &key("k")).await;
    assert!(!first.headers.contains_key("openwop-idempotent-replay"));
    let made = first.ok(201);
    // The same JSON, spelled differently.
    let spelled = r#"{ "inputs": {"b":2,"a":1}, "workflowId":"w" }"#;
    for _ in 0..5 {
        let again = stage
            .call_as(&stage.key, "POST", "/v1/runs", &key("k"), spelled)
            .await;
        assert_eq!(again.header("openwop-idempotent-replay"), "true");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.ok(201), made);
    }
    let other = stage.create("w").await;
    assert_ne!(made["runId"], other);
}

#[tokio::test]
async fn another_request_under_the_key_is_a_mismatch() {
    let stage = Stage::new().await;
    stage.register("w", &[noop("a")]).await;
    let first = stage
        .post_with("/v1/runs", json!({"workflowId": "w"}), &key("k"))
        .await
        .ok(201);
    // Looked up before it is judged: even a bad body is first of all another one.
    for other in [
        json!({"workflowId": "w", "inputs": {"x": 1}}),
        json!({"bogus": 1}),
    ] {
        let reply = stage.post_with("/v1/runs", other, &key("k")).await;
        reply.refused(409, "idempotency_key_mismatch");
        assert!(!reply.text.contains(first["runId"].as_str().unwrap()));
    }
    // A key belongs to one operation, but the run in its path is part of the request.
    let (a, b) = (
        stage.start("x", &[hour("n")]).await,
        stage.create("x").await,
    );
    let cancel = |run: &str| format!("/v1/runs/{run}/cancel");
    stage
        .post_with(&cancel(&a), json!({}), &key("k"))
        .await
        .ok(200);
    stage
        .post_with(&cancel(&b), json!({}), &key("k"))
        .await
        .refused(409, "idempotency_key_mismatch");
}

#[tokio::test]
async fn refusals_a_retry_may_change_are_not_kept() {
    let stage = Stage::new().await;
    stage
        .post_with("/v1/runs", json!({"inputs": {}}), &key("k"))
        .await
        .refused(400, "validation_error");
    let reader = stage.new_key("default", &[Scope::RunsRead]).await;
    let body = json!({"workflowId": "w"}).to_string();
    stage
        .call_as(&reader, "POST", "/v1/runs", &key("k"), body)
        .await
        .refused(403, "forbidden");
    stage.register("w", &[noop("a")]).await;
    stage
        .post_with("/v1/runs", json!({"workflowId": "w"}), &key("k"))
        .await
        .ok(201);
    for bad in ["", &"k".repeat(256)] {
        stage
            .post_with("/v1/runs", json!({"workflowId": "w"}), &key(bad))
            .await
            .refused(400, "validation_error");
    }
}

#[tokio::test]
async fn a_refusal_that_is_final_is_repeated_word_for_word() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("a")]).await;
    let pause = format!("/v1/runs/{run}:pause");
    let first = stage.post_with(&pause, json!({}), &key("k")).await;
    first.refused(409, "run_terminal");
    let again = stage.post_with(&pause, json!({}), &key("k")).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.text, first.text);
}

#[tokio::test]
async fn what_is_refused_before_there_is_a_deed_is_repeated_too() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("a")]).await;
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
        stage.call_as(&stage.key, method, path, &[("idempotency-key", "k")], body)
    };
    let mut first = Vec::new();
    for (method, path, body, status) in &table {
        let reply = ask(method, path, body).await;
        assert_eq!(reply.status.as_u16(), *status, "{path}: {reply:?}");
        assert_eq!(reply.header("openwop-idempotent-replay"), "");
        first.push(reply.text);
    }
    // Whatever changes meanwhile: a key stands for one answer.
    stage.register("later", &[noop("a")]).await;
    for ((method, path, body, status), text) in table.iter().zip(first) {
        let again = ask(method, path, body).await;
        assert_eq!(again.header("openwop-idempotent-replay"), "true", "{path}");
        assert_eq!((again.status.as_u16(), again.text), (*status, text));
    }
    let body = json!({"workflowId": "later"});
    let fresh = stage.post_with("/v1/runs", body, &key("another")).await;
    fresh.ok(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_one_is_carried_out() {
    let stage = Stage::new().await;
    stage.register("w", &[noop("a")]).await;
    let body = json!({"workflowId": "w"});
    let calls =
        (0..24).map(|_| stage.post_with("/v1/runs", body.clone(), &[("idempotency-key", "k")]));
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
    let listed = stage.get("/v1/runs?workflowId=w").await.ok(200);
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn keys_of_two_tenants_do_not_meet() {
    let stage = Stage::new().await;
    let other = stage.new_key("tenant2", Scope::all()).await;
    let document = crate::stage::chain("w", &[noop("a")]).to_string();
    let put = "/v1/host/tandem/workflows/w";
    let mut runs: Vec<Value> = Vec::new();
    for secret in [stage.key.as_str(), other.as_str()] {
        let reply = stage
            .call_as(secret, "PUT", put, &[], document.clone())
            .await;
        assert_eq!(reply.status.as_u16(), 201);
        let body = json!({"workflowId": "w"}).to_string();
        let made = stage
            .call_as(secret, "POST", "/v1/runs", &key("k"), body)
            .await;
        runs.push(made.ok(201)["runId"].clone());
    }
    assert_ne!(runs[0], runs[1]);
}

#[tokio::test]
async fn an_occupied_scope_is_refused_by_its_holder() {
    let stage = Stage::new().await;
    stage.register("w", &[hour("a")]).await;
    let body = json!({"workflowId": "w", "scopeId": "s"});
    let enforce = [("x-dedup", "enforce")];
    let first = stage
        .post_with("/v1/runs", body.clone(), &enforce)
        .await
        .ok(201);
    let reply = stage.post_with("/v1/runs", body.clone(), &enforce).await;
    let details = reply.refused(409, "run_already_active");
    assert_eq!(details["activeRunId"], first["runId"]);
    assert_eq!(details["activeHost"], "tandem");
    assert_eq!(
        reply.header("retry-after"),
        details["retryAfter"].to_string()
    );
    let run = first["runId"].as_str().unwrap();
    stage
        .post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .ok(200);
    stage.post_with("/v1/runs", body, &enforce).await.ok(201);
    stage
        .post_with("/v1/runs", json!({"workflowId": "w"}), &enforce)
        .await
        .refused(400, "validation_error");
}

#[tokio::test]
async fn the_registry_repeats_its_answers_too() {
    let stage = Stage::new().await;
    let document = crate::stage::chain("w", &[noop("a")]).to_string();
    let put = || {
        stage.call_as(
            &stage.key,
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
