//! What is taken in can be read back: values nest no deeper than the log can hold.

use crate::stage::{Stage, chain, noop};
use serde_json::{Value, json};
use tandem_record::MAX_NESTING;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

/// Everything there is to read about a run.
async fn read_everything(stage: &Stage, run: &str) {
    for path in [
        "",
        "/events",
        "/events/poll?timeout=1",
        "/debug-bundle",
        "/ancestry",
    ] {
        let accept = [("accept", "application/json")];
        let path = format!("/v1/runs/{run}{path}");
        let reply = stage.call_as(&stage.key, "GET", &path, &accept, "").await;
        assert_eq!(reply.status.as_u16(), 200, "{path}: {reply:?}");
    }
    let fork = json!({"mode": "replay"});
    stage
        .post(&format!("/v1/runs/{run}:fork"), fork)
        .await
        .ok(201);
}

#[tokio::test]
async fn the_deepest_inputs_travel_through_a_run_and_are_read_back() {
    let stage = Stage::new().await;
    let set = json!({"id": "set", "typeId": "core.setVariable", "config": {"name": "v"}});
    let mut document = chain("w", &[set, noop("b")]);
    document["variables"] = json!([{"name": "v", "type": "object"}]);
    document["nodes"][0]["inputs"] = json!({"value": {"type": "variable", "variableName": "x"}});
    let put = stage.put("/v1/host/tandem/workflows/w", document).await;
    assert!(put.status.is_success(), "{put:?}");
    // The body and `inputs` are two levels themselves.
    let deepest = json!({"workflowId": "w", "inputs": {"x": nested(MAX_NESTING - 2)}});
    let made = stage.post("/v1/runs", deepest).await.ok(201);
    let run = made["runId"].as_str().unwrap();
    read_everything(&stage, run).await;
    let too_deep = json!({"workflowId": "w", "inputs": {"x": nested(MAX_NESTING - 1)}});
    let details = stage.post("/v1/runs", too_deep).await;
    let details = details.refused(400, "validation_error");
    let message = details["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("64 levels"), "{message}");
}

#[tokio::test]
async fn the_deepest_answer_is_kept_and_a_deeper_one_refused() {
    let stage = Stage::new().await;
    let ask = json!({"id": "ask", "typeId": "core.interrupt", "config": {"kind": "custom", "data": {"customKind": "x"}}});
    let run = stage.start("q", &[ask]).await;
    let path = format!("/v1/runs/{run}/interrupts/ask");
    let answer = |levels| json!({"resumeValue": {"x": nested(levels)}});
    let refused = stage.post(&path, answer(MAX_NESTING - 1)).await;
    refused.refused(400, "validation_error");
    stage.post(&path, answer(MAX_NESTING - 2)).await.ok(200);
    read_everything(&stage, &run).await;
}

#[tokio::test]
async fn documents_events_and_overlays_are_held_to_it_too() {
    let stage = Stage::new().await;
    let mut document = chain("w", &[noop("a")]);
    document["metadata"] = json!({"x": nested(MAX_NESTING)});
    let path = "/v1/host/tandem/workflows/w";
    stage
        .put(path, document)
        .await
        .refused(400, "validation_error");
    let run = stage.start("n", &[noop("a")]).await;
    let event = json!({"eventId": "e", "eventType": "t", "payload": {"x": nested(MAX_NESTING)}});
    let reply = stage
        .post(&format!("/v1/host/tandem/runs/{run}/events"), event)
        .await;
    reply.refused(400, "validation_error");
    let overlay = json!({"configurable": {"x": nested(MAX_NESTING)}});
    let fork = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": overlay});
    let reply = stage.post(&format!("/v1/runs/{run}:fork"), fork).await;
    reply.refused(400, "validation_error");
}
