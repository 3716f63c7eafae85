//! Cancel, pause, resume, bulk cancel, and the verbs in paths.

use crate::console::{csrf, page, sign_in};
use crate::test_server::{TestServer, chain, hour, noop};
use serde_json::json;

#[tokio::test]
async fn cancel_ends_a_run_and_is_idempotent() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let path = format!("/v1/runs/{run}/cancel");
    let body = server.post(&path, json!({"reason": "no"})).await.ok(200);
    assert_eq!(
        (&body["runId"], &body["status"]),
        (&json!(run), &json!("cancelled"))
    );
    let again = server
        .call_as(&server.key, "POST", &path, &[], "")
        .await
        .ok(200);
    assert_eq!(again["status"], "cancelled");
    server
        .post(&path, json!({"why": 1}))
        .await
        .refused(400, "validation_error");
    server
        .post("/v1/runs/run-nobody/cancel", json!({}))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn pause_and_resume_are_verbs_in_the_last_path_segment() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a"), noop("b")]).await;
    let pause = format!("/v1/runs/{run}:pause");
    let now = json!({"drainPolicy": "immediate"});
    server
        .post(&pause, json!({"drainPolicy": "whenever"}))
        .await
        .refused(400, "validation_error");
    let key = [("idempotency-key", "lunch")];
    let paused = server.post_with(&pause, now.clone(), &key).await.ok(202);
    assert_eq!(paused["status"], "paused");
    let details = server
        .post(&pause, json!({}))
        .await
        .refused(409, "conflict");
    assert_eq!(details["runStatus"], "paused");
    assert!(details["pausedAt"].is_string());
    let replayed = server.post_with(&pause, now, &key).await;
    assert_eq!(replayed.header("openwop-idempotent-replay"), "true");
    assert_eq!(replayed.ok(202), paused);
    // The colon may be encoded.
    let resume = format!("/v1/runs/{run}%3Aresume");
    let resumed = server
        .call_as(&server.key, "POST", &resume, &[], "")
        .await
        .ok(202);
    assert_eq!(resumed["status"], "running");
    server.advance(2 * 3600).await;
    let ended = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "completed");
    let details = server
        .post(&resume, json!({}))
        .await
        .refused(409, "run_terminal");
    assert_eq!(details["runStatus"], "completed");
}

#[tokio::test]
async fn unknown_verb_gets_404_and_wrong_method_405() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let explode = format!("/v1/runs/{run}:explode");
    server
        .post(&explode, json!({}))
        .await
        .refused(404, "not_found");
    server
        .get(&format!("/v1/runs/{run}:pause"))
        .await
        .refused(405, "method_not_allowed");
    server
        .call_as("", "POST", &format!("/v1/runs/{run}:pause"), &[], "")
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn bulk_cancel_answers_for_each_id_in_order() {
    let server = TestServer::new().await;
    let live = server.start("w", &[hour("a")]).await;
    let ended = server.start("x", &[noop("a")]).await;
    let path = "/v1/runs:bulk-cancel";
    let body = json!({"runIds": [live, "run-nobody", ended], "reason": "done"});
    let key = [("idempotency-key", "b1")];
    let first = server.post_with(path, body.clone(), &key).await.ok(200);
    let rows = first["results"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|r| r["runId"].as_str().unwrap()).collect();
    assert_eq!(ids, [live.as_str(), "run-nobody", ended.as_str()]);
    assert_eq!(rows[0]["ok"], true);
    assert_eq!(rows[1]["error"]["code"], "not_found");
    assert_eq!(rows[2]["error"]["code"], "run_terminal");
    let again = server.post_with(path, body, &key).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.json(), first);
    for bad in [
        json!({"runIds": []}),
        json!({"runIds": vec!["r"; 101]}),
        json!({"runIds": [7]}),
        json!({}),
        json!({"runIds": ["r"], "reason": "r".repeat(513)}),
    ] {
        server
            .post(path, bad)
            .await
            .refused(400, "validation_error");
    }
    let over = server.post(path, json!({"runIds": vec!["r"; 101]})).await;
    assert_eq!(over.json()["details"]["maxRunIds"], 100);
}

#[tokio::test]
async fn purged_run_is_reported_as_expired_to_every_command() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let run = server.start("asks", &[gate]).await;
    let listed = format!("/v1/host/tandem/interrupts?runId={run}");
    let id = server.get(&listed).await.ok(200)["interrupts"][0]["interruptId"].clone();
    let cancel = format!("/v1/runs/{run}/cancel");
    server.post(&cancel, json!({})).await.ok(200);
    // Past retention, then purged.
    for days in [31, 1] {
        server.advance(days * 24 * 3600).await;
        server
            .get(&format!("/v1/runs/{run}"))
            .await
            .refused(410, "run_expired");
        let resolve = format!(
            "/v1/host/tandem/interrupts/{}:resolve",
            id.as_str().unwrap()
        );
        let answer = json!({"resumeValue": {"action": "accept"}});
        for (path, body) in [
            (cancel.clone(), json!({})),
            (format!("/v1/runs/{run}:pause"), json!({})),
            (format!("/v1/runs/{run}:resume"), json!({})),
            (format!("/v1/runs/{run}/interrupts/gate"), answer.clone()),
            (resolve, answer),
        ] {
            let reply = server.post(&path, body).await;
            assert_eq!(reply.status.as_u16(), 410, "{path}: {reply:?}");
            reply.refused(410, "run_expired");
        }
        let bulk = server.post("/v1/runs:bulk-cancel", json!({"runIds": [run]}));
        let bulk = bulk.await.ok(200);
        assert_eq!(bulk["results"][0]["error"]["code"], "run_expired");
        let cookie = sign_in(&server).await;
        let shown = page(&server, &cookie, "/console/runs").await;
        let form = format!("csrf={}", csrf(&shown.text));
        for verb in ["cancel", "pause", "resume"] {
            let path = format!("/console/runs/{run}/{verb}");
            let headers = [
                ("cookie", cookie.as_str()),
                ("host", "t"),
                ("origin", "http://t"),
            ];
            let reply = server.call_as("", "POST", &path, &headers, form.clone());
            assert_eq!(reply.await.status.as_u16(), 410, "{path}");
        }
    }
}

#[tokio::test]
async fn busy_host_gets_503_with_retry_after() {
    let settings = tandem_api::HttpSettings {
        max_mutations: 0,
        ..Default::default()
    };
    let server = TestServer::with_settings(settings).await;
    let reply = server.post("/v1/runs", json!({"workflowId": "w"})).await;
    let details = reply.refused(503, "service_unavailable");
    assert_eq!(reply.header("retry-after"), "1");
    assert_eq!(details["retryAfter"], 1);
    assert!(details["correlationId"].is_string());
    assert_eq!(
        server.get("/.well-known/openwop").await.status.as_u16(),
        200
    );
}

/// A child is a run of its own: neither its status nor its time limits depend on a pause of its parent.
#[tokio::test]
async fn pause_of_a_parent_does_not_reach_its_children() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "name": "gate",
        "position": {"x": 0, "y": 0}, "config": {"timeoutMs": 600_000}, "inputs": {}});
    server.register("asks", &[gate]).await;
    let call = json!({"id": "call", "typeId": "core.subWorkflow", "name": "call",
        "position": {"x": 0, "y": 0}, "config": {"workflowId": "asks"}, "inputs": {}});
    let mut parent = chain("parent", &[call, hour("beside")]);
    parent["edges"] = json!([]);
    let path = "/v1/host/tandem/workflows/parent";
    server.put(path, parent).await.ok(201);
    let run = server.create("parent").await;
    server.advance(1).await;
    let immediate = json!({"drainPolicy": "immediate"});
    let pause = format!("/v1/runs/{run}:pause");
    server.post(&pause, immediate).await.ok(202);
    let open = server.get("/v1/host/tandem/interrupts").await.ok(200);
    let question = &open["interrupts"][0];
    assert!(question["deadline"].is_string(), "{question}");
    let child = question["runId"].as_str().unwrap();
    assert_ne!(child, run);
    server.advance(700).await;
    let child = server.get(&format!("/v1/runs/{child}")).await.ok(200);
    assert_eq!(child["status"], "failed");
    assert_eq!(child["error"]["code"], "interrupt_rejected");
    let paused = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(paused["status"], "paused");
    let resume = format!("/v1/runs/{run}:resume");
    server.post(&resume, json!({})).await.ok(202);
    let ended = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["error"]["code"], "child_failed");
}
