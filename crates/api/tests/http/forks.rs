//! Forks, and how long they are possible.

use crate::test_server::{Reply, TestServer, chain, noop};
use serde_json::{Value, json};

const DAY: u64 = 24 * 3600;

async fn replay(server: &TestServer, run: &str) -> Reply {
    let body = json!({"mode": "replay", "fromSeq": 1});
    server.post(&format!("/v1/runs/{run}:fork"), body).await
}

async fn runs(server: &TestServer) -> usize {
    let listed = server.get("/v1/host/tandem/runs?limit=100").await.ok(200);
    listed["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn fork_works_during_retention_and_gets_422_afterwards() {
    // R-0039-22, R-0039-23, R-0039-24 (half: after retention), R-0039-27
    // R-0039-25 (half: a refused fork creates nothing)
    let server = TestServer::new().await;
    let put = json!({"action": "put", "key": "k", "value": "then"});
    let note = json!({"id": "w", "typeId": "vendor.tandem.memory", "config": put});
    let run = server.start("w", &[note]).await;

    server.advance(29 * DAY).await;
    let fork = replay(&server, &run).await.ok(201);
    let path = format!(
        "/v1/host/tandem/runs/{}/memory",
        fork["runId"].as_str().unwrap()
    );
    let known = server.get(&path).await.ok(200);
    assert_eq!(known["entries"][0]["value"], "then");

    server.advance(2 * DAY).await;
    let before = runs(&server).await;
    let details = replay(&server, &run)
        .await
        .refused(422, "replay_memory_snapshot_unavailable");
    let expected = json!({
        "fromSeq": 1, "sourceRunId": run, "reason": "retention_expired",
        "oldestAvailableIdx": Value::Null,
    });
    assert_eq!(details, expected);
    assert_eq!(runs(&server).await, before, "nothing was made");
}

#[tokio::test]
async fn fork_uses_pinned_document_after_deletion() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let path = "/v1/host/tandem/workflows/w";
    let gone = server.call_as(&server.key, "DELETE", path, &[], "").await;
    assert!(gone.status.is_success(), "{gone:?}");
    server.get(path).await.refused(404, "workflow_not_found");
    let fork = replay(&server, &run).await.ok(201);
    let fork = fork["runId"].as_str().unwrap();
    let shown = server.get(&format!("/v1/runs/{fork}")).await.ok(200);
    assert_eq!(shown["status"], "completed");
}

#[tokio::test]
async fn invalid_memory_ttl_is_refused() {
    let server = TestServer::new().await;
    for ttl in [json!(0), json!(-1), json!(1e300), json!("soon")] {
        let put = json!({"action": "put", "key": "k", "value": 1, "ttlSeconds": ttl});
        let note = json!({"id": "w", "typeId": "vendor.tandem.memory", "config": put});
        let sent = server
            .put("/v1/host/tandem/workflows/w", chain("w", &[note]))
            .await;
        let details = sent.refused(400, "validation_error");
        assert!(details.to_string().contains("ttlSeconds"), "{details}");
    }
}

#[tokio::test]
async fn fork_beyond_end_gets_422_and_invalid_overlay_is_refused_with_its_path() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let path = format!("/v1/runs/{run}:fork");
    let headers = [("content-type", "application/json")];
    let fork = |body: String| {
        let (server, path) = (&server, &path);
        async move {
            server
                .call_as(&server.key, "POST", path, &headers, body)
                .await
        }
    };
    for far in ["99", "18446744073709551616", "100000000000000000000"] {
        let body = format!(r#"{{"mode":"branch","fromSeq":{far}}}"#);
        fork(body).await.refused(422, "invalid_from_seq");
    }
    for (overlay, place) in [
        (
            r#"{"configurable":{"recursionLimit":0}}"#,
            "/configurable/recursionLimit",
        ),
        (r#"{"tags":[""]}"#, "/tags/0"),
    ] {
        let body = format!(r#"{{"mode":"branch","fromSeq":0,"runOptionsOverlay":{overlay}}}"#);
        let details = fork(body).await.refused(400, "validation_error");
        let found = details["errors"][0]["path"].clone();
        assert_eq!(found, format!("/runOptionsOverlay{place}"));
    }
}
