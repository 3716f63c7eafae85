//! Signed links: a credential that works once, for one question, and is told to nobody else.

use crate::stage::Stage;
use serde_json::{Value, json};

fn gate() -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": {"timeoutMs": 60_000}})
}

fn accept() -> Value {
    json!({"resumeValue": {"action": "accept"}})
}

/// A run that waits, and the path of the link to its question.
async fn waiting(stage: &Stage) -> (String, String) {
    let run = stage.start("gated", &[gate()]).await;
    let snapshot = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    let path = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
    (run, path.to_owned())
}

async fn follow(
    stage: &Stage,
    path: &str,
    body: Value,
    headers: &[(&str, &str)],
) -> crate::stage::Reply {
    stage
        .call_as("", "POST", path, headers, body.to_string())
        .await
}

#[tokio::test]
async fn a_link_is_not_in_the_bundle_of_a_run_that_waits() {
    let stage = Stage::new().await;
    let (run, path) = waiting(&stage).await;
    let token = path.rsplit('/').next().unwrap();
    let bundle = stage.get(&format!("/v1/runs/{run}/debug-bundle")).await;
    assert_eq!(bundle.ok(200)["run"]["interrupt"]["nodeId"], "gate");
    assert!(!bundle.text.contains(token));
    assert!(!bundle.text.contains("interruptToken"));
    assert!(!bundle.text.contains("/v1/interrupts/"));
}

#[tokio::test]
async fn a_bundle_masks_inputs_of_every_type_where_they_come_back() {
    let stage = Stage::new().await;
    let noop = json!({"id": "a", "typeId": "core.noop", "config": {}});
    let mut document = crate::stage::chain("echo", &[noop]);
    let names = ["n", "b", "s"];
    for name in names {
        document["nodes"][0]["inputs"][name] = json!({"type": "variable", "variableName": name});
    }
    let put = stage.put("/v1/host/tandem/workflows/echo", document).await;
    assert!(put.status.is_success(), "{put:?}");
    let inputs = json!({"n": 4711, "b": true, "s": "abc"});
    let body = json!({"workflowId": "echo", "inputs": inputs});
    let made = stage.post("/v1/runs", body).await.ok(201);
    let path = format!("/v1/runs/{}/debug-bundle", made["runId"].as_str().unwrap());
    let bundle = stage.get(&path).await;
    let events = bundle.ok(200)["events"].clone();
    let of_node = events.as_array().unwrap().iter();
    let outputs = of_node
        .filter(|event| event["type"] == "node.completed")
        .map(|event| event["payload"]["outputs"].clone())
        .next()
        .unwrap();
    for name in names {
        assert_eq!(outputs[name], "[REDACTED]", "{outputs}");
    }
    assert!(!bundle.text.contains("4711"));
}

#[tokio::test]
async fn an_answer_by_link_is_repeated_under_its_key() {
    let stage = Stage::new().await;
    let (_, path) = waiting(&stage).await;
    let key = [("idempotency-key", "one-answer")];
    let first = follow(&stage, &path, accept(), &key).await;
    first.ok(200);
    let again = follow(&stage, &path, accept(), &key).await;
    assert_eq!(again.ok(200), first.json());
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    let other = json!({"resumeValue": {"action": "reject"}});
    let mismatch = follow(&stage, &path, other, &key).await;
    mismatch.refused(409, "idempotency_key_mismatch");
    let without = follow(&stage, &path, accept(), &[]).await;
    let details = without.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], "link");
}

#[tokio::test]
async fn a_link_of_a_run_that_was_cancelled_is_used_up() {
    let stage = Stage::new().await;
    let (run, path) = waiting(&stage).await;
    stage
        .post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .ok(200);
    let dead = follow(&stage, &path, accept(), &[]).await;
    let details = dead.refused(409, "interrupt_already_resolved");
    assert_eq!(details["outcome"], "cancelled");
    assert_eq!(details["decidedBy"], Value::Null);
    let looked = stage.call_as("", "GET", &path, &[], "").await;
    looked.refused(409, "interrupt_already_resolved");
    let by_node = stage
        .post(&format!("/v1/runs/{run}/interrupts/gate"), accept())
        .await;
    by_node.refused(410, "interrupt_gone");
}

#[tokio::test]
async fn where_time_decided_nobody_is_said_to_have() {
    let stage = Stage::new().await;
    let (run, path) = waiting(&stage).await;
    stage.advance(120).await;
    let late = follow(&stage, &path, accept(), &[]).await;
    let details = late.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], Value::Null);
    let by_node = stage
        .post(&format!("/v1/runs/{run}/interrupts/gate"), accept())
        .await;
    let details = by_node.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], Value::Null);
}
