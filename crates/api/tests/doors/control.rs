//! Cancel, pause, resume, bulk cancel, and the verbs in paths.

use crate::stage::{Stage, hour, noop};
use serde_json::json;

#[tokio::test]
async fn cancel_ends_a_run_and_repeats_harmlessly() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a")]).await;
    let path = format!("/v1/runs/{run}/cancel");
    let body = stage.post(&path, json!({"reason": "no"})).await.ok(200);
    assert_eq!(
        (&body["runId"], &body["status"]),
        (&json!(run), &json!("cancelled"))
    );
    let again = stage
        .call_as(&stage.key, "POST", &path, &[], "")
        .await
        .ok(200);
    assert_eq!(again["status"], "cancelled");
    stage
        .post(&path, json!({"why": 1}))
        .await
        .refused(400, "validation_error");
    stage
        .post("/v1/runs/run-nobody/cancel", json!({}))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn pause_and_resume_travel_in_the_last_segment() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[hour("a"), noop("b")]).await;
    let pause = format!("/v1/runs/{run}:pause");
    let now = json!({"drainPolicy": "immediate"});
    stage
        .post(&pause, json!({"drainPolicy": "whenever"}))
        .await
        .refused(400, "validation_error");
    let key = [("idempotency-key", "lunch")];
    let paused = stage.post_with(&pause, now.clone(), &key).await.ok(202);
    assert_eq!(paused["status"], "paused");
    let details = stage.post(&pause, json!({})).await.refused(409, "conflict");
    assert_eq!(details["runStatus"], "paused");
    assert!(details["pausedAt"].is_string());
    let replayed = stage.post_with(&pause, now, &key).await;
    assert_eq!(replayed.header("openwop-idempotent-replay"), "true");
    assert_eq!(replayed.ok(202), paused);
    // The colon may be encoded.
    let resume = format!("/v1/runs/{run}%3Aresume");
    let resumed = stage
        .call_as(&stage.key, "POST", &resume, &[], "")
        .await
        .ok(202);
    assert_eq!(resumed["status"], "running");
    stage.advance(2 * 3600).await;
    let ended = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "completed");
    let details = stage
        .post(&resume, json!({}))
        .await
        .refused(409, "run_terminal");
    assert_eq!(details["runStatus"], "completed");
}

#[tokio::test]
async fn unknown_verbs_and_wrong_methods_are_told_apart() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("a")]).await;
    let explode = format!("/v1/runs/{run}:explode");
    stage
        .post(&explode, json!({}))
        .await
        .refused(404, "not_found");
    stage
        .get(&format!("/v1/runs/{run}:pause"))
        .await
        .refused(405, "method_not_allowed");
    stage
        .call_as("", "POST", &format!("/v1/runs/{run}:pause"), &[], "")
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn bulk_cancel_answers_for_each_id_in_order() {
    let stage = Stage::new().await;
    let live = stage.start("w", &[hour("a")]).await;
    let ended = stage.start("x", &[noop("a")]).await;
    let path = "/v1/runs:bulk-cancel";
    let body = json!({"runIds": [live, "run-nobody", ended], "reason": "done"});
    let key = [("idempotency-key", "b1")];
    let first = stage.post_with(path, body.clone(), &key).await.ok(200);
    let rows = first["results"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|r| r["runId"].as_str().unwrap()).collect();
    assert_eq!(ids, [live.as_str(), "run-nobody", ended.as_str()]);
    assert_eq!(rows[0]["ok"], true);
    assert_eq!(rows[1]["error"]["code"], "not_found");
    assert_eq!(rows[2]["error"]["code"], "run_terminal");
    let again = stage.post_with(path, body, &key).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.json(), first);
    for bad in [
        json!({"runIds": []}),
        json!({"runIds": vec!["r"; 101]}),
        json!({"runIds": [7]}),
        json!({}),
        json!({"runIds": ["r"], "reason": "r".repeat(513)}),
    ] {
        stage.post(path, bad).await.refused(400, "validation_error");
    }
    let over = stage.post(path, json!({"runIds": vec!["r"; 101]})).await;
    assert_eq!(over.json()["details"]["maxRunIds"], 100);
}

#[tokio::test]
async fn a_busy_host_asks_for_patience() {
    let settings = tandem_api::Settings {
        max_mutations: 0,
        ..Default::default()
    };
    let stage = Stage::with(settings).await;
    let reply = stage.post("/v1/runs", json!({"workflowId": "w"})).await;
    let details = reply.refused(503, "service_unavailable");
    assert_eq!(reply.header("retry-after"), "1");
    assert_eq!(details["retryAfter"], 1);
    assert!(details["correlationId"].is_string());
    assert_eq!(stage.get("/.well-known/openwop").await.status.as_u16(), 200);
}
