//! Accepted values can be read back: they nest no deeper than the log can store.

use crate::test_server::{TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_record::MAX_NESTING;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

/// Reads every view of a run.
async fn read_everything(server: &TestServer, run: &str) {
    for path in [
        "",
        "/events",
        "/events/poll?timeout=1",
        "/debug-bundle",
        "/ancestry",
    ] {
        let accept = [("accept", "application/json")];
        let path = format!("/v1/runs/{run}{path}");
        let reply = server.call_as(&server.key, "GET", &path, &accept, "").await;
        assert_eq!(reply.status.as_u16(), 200, "{path}: {reply:?}");
    }
    let fork = json!({"mode": "replay"});
    server
        .post(&format!("/v1/runs/{run}:fork"), fork)
        .await
        .ok(201);
}

#[tokio::test]
async fn inputs_at_nesting_limit_pass_through_a_run() {
    let server = TestServer::new().await;
    let set = json!({"id": "set", "typeId": "core.setVariable", "config": {"name": "v"}});
    let mut document = chain("w", &[set, noop("b")]);
    document["variables"] = json!([{"name": "v", "type": "object"}]);
    document["nodes"][0]["inputs"] = json!({"value": {"type": "variable", "variableName": "x"}});
    let put = server.put("/v1/host/tandem/workflows/w", document).await;
    assert!(put.status.is_success(), "{put:?}");
    // The body and `inputs` are two levels themselves.
    let deepest = json!({"workflowId": "w", "inputs": {"x": nested(MAX_NESTING - 2)}});
    let made = server.post("/v1/runs", deepest).await.ok(201);
    let run = made["runId"].as_str().unwrap();
    read_everything(&server, run).await;
    let too_deep = json!({"workflowId": "w", "inputs": {"x": nested(MAX_NESTING - 1)}});
    let details = server.post("/v1/runs", too_deep).await;
    let details = details.refused(400, "validation_error");
    let message = details["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("64 levels"), "{message}");
}

#[tokio::test]
async fn answer_at_nesting_limit_is_stored_and_deeper_refused() {
    let server = TestServer::new().await;
    let ask = json!({"id": "ask", "typeId": "core.interrupt", "config": {"kind": "custom", "data": {"customKind": "x"}}});
    let run = server.start("q", &[ask]).await;
    let path = format!("/v1/runs/{run}/interrupts/ask");
    let answer = |levels| json!({"resumeValue": {"x": nested(levels)}});
    let refused = server.post(&path, answer(MAX_NESTING - 1)).await;
    refused.refused(400, "validation_error");
    server.post(&path, answer(MAX_NESTING - 2)).await.ok(200);
    read_everything(&server, &run).await;
}

#[tokio::test]
async fn nesting_limit_applies_to_documents_events_and_overlays() {
    let server = TestServer::new().await;
    let mut document = chain("w", &[noop("a")]);
    document["metadata"] = json!({"x": nested(MAX_NESTING)});
    let path = "/v1/host/tandem/workflows/w";
    server
        .put(path, document)
        .await
        .refused(400, "validation_error");
    let run = server.start("n", &[noop("a")]).await;
    let event = json!({"eventId": "e", "eventType": "t", "payload": {"x": nested(MAX_NESTING)}});
    let reply = server
        .post(&format!("/v1/host/tandem/runs/{run}/events"), event)
        .await;
    reply.refused(400, "validation_error");
    let overlay = json!({"configurable": {"x": nested(MAX_NESTING)}});
    let fork = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": overlay});
    let reply = server.post(&format!("/v1/runs/{run}:fork"), fork).await;
    reply.refused(400, "validation_error");
}
