//! A decision below the floor from outside: what is told of it, under which name it is asked about,
//! and where that name is explained.

use crate::crew::started;
use crate::stage::Stage;
use serde_json::{Value, json};
use tandem_runtime::AgentPolicy;

const OWN: &str = "x-host-tandem-doubt";

fn doubted() -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2})
}

/// A host that asks under this name, and a run it holds.
async fn holding(kind: &str) -> (Stage, String) {
    let policy = AgentPolicy::new(None, Some(kind)).unwrap();
    let stage = Stage::advised(policy).await;
    let run = started(&stage, json!([doubted()])).await;
    (stage, run)
}

async fn model(stage: &Stage) -> Value {
    let told = stage.get("/.well-known/openwop").await.json();
    told["multiAgent"]["executionModel"].clone()
}

async fn events(stage: &Stage, run: &str) -> Vec<Value> {
    stage.log(run).await["events"].as_array().unwrap().clone()
}

fn only<'a>(events: &'a [Value], kind: &str) -> (usize, &'a Value) {
    let found: Vec<_> = events
        .iter()
        .enumerate()
        .filter(|(_, event)| event["type"] == kind)
        .collect();
    match found.as_slice() {
        [one] => *one,
        other => panic!("{kind}: {other:?}"),
    }
}

#[tokio::test]
async fn it_is_told_whole_before_the_question_and_names_its_decision() {
    // R-0039-9, R-0039-10 (half: a decision to start workers)
    let (stage, run) = holding("approval").await;
    let log = events(&stage, &run).await;
    let (decided_at, decided) = only(&log, "runOrchestrator.decided");
    let (escalated_at, escalated) = only(&log, "core.workflowChain.confidence-escalated");
    let (asked_at, _) = only(&log, "interrupt.requested");
    assert!(decided_at < escalated_at && escalated_at < asked_at);
    assert_eq!(escalated["causationId"], decided["eventId"]);
    let expected = json!({
        "confidence": 0.2, "floor": 0.5, "escalationKind": "escalate", "parentRunId": run,
        "workerId": "worker", "originalDecision": doubted(),
    });
    assert_eq!(escalated["payload"], expected);
    let handed = log.iter().any(|e| e["type"] == "core.workflowChain.event");
    assert!(!handed, "nobody works on it yet");
    let version = model(&stage).await["version"].as_u64();
    assert!(version >= Some(2), "{version:?}");
}

#[tokio::test]
async fn a_kind_of_our_own_is_advertised_explained_and_used() {
    // R-0044-3 (half: a kind of our own), R-0044-4 (half: a kind of our own)
    // R-0044-6 (half: a kind of our own), R-0044-7, R-0044-8
    let (stage, run) = holding(OWN).await;
    let told = stage.get("/.well-known/openwop").await.json();
    let model = &told["multiAgent"]["executionModel"];
    assert_eq!(model["confidenceEscalationInterruptKind"], OWN);
    let url = told["implementation"]["vendorExtensionsUrl"]
        .as_str()
        .unwrap();
    assert_eq!(told["extensions"]["vendorExtensionsUrl"], url);

    let explained = stage.call_as("", "GET", url, &[], "").await.ok(200);
    let [own] = explained.as_array().unwrap().as_slice() else {
        panic!("{explained}");
    };
    assert_eq!(
        (&own["kind"], &own["correspondsTo"]),
        (&json!(OWN), &json!("escalate"))
    );
    for consumer in own["consumers"].as_array().unwrap() {
        assert!(consumer["name"].is_string() && consumer["matches"].is_string());
    }

    let shown = stage.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(shown["status"], own["runStatus"]);
    assert!(shown["status"].as_str().unwrap().starts_with("waiting-"));
    let inbox = stage.get("/v1/host/tandem/interrupts?status=open").await;
    assert_eq!(inbox.json()["interrupts"][0]["kind"], OWN);
    let log = events(&stage, &run).await;
    assert_eq!(only(&log, "interrupt.requested").1["payload"]["kind"], OWN);
    let escalated = only(&log, "core.workflowChain.confidence-escalated").1;
    assert_eq!(escalated["payload"]["escalationKind"], own["correspondsTo"]);
}

#[tokio::test]
async fn a_host_that_names_no_kind_asks_all_the_same() {
    // R-0044-5, R-0044-10
    let (stage, run) = holding("none").await;
    let model = model(&stage).await;
    assert_eq!(model.get("confidenceEscalationInterruptKind"), None);
    let shown = stage.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(shown["status"], "waiting-approval");
    let log = events(&stage, &run).await;
    only(&log, "core.workflowChain.confidence-escalated");
}

#[tokio::test]
async fn a_stricter_floor_is_advertised_and_kept_to() {
    // R-0039-4, R-0039-5
    let policy = AgentPolicy::new(Some(0.9), None).unwrap();
    let stage = Stage::advised(policy).await;
    assert_eq!(model(&stage).await["confidenceEscalationFloor"], 0.9);
    let mut decision = doubted();
    decision["confidence"] = json!(0.8);
    let run = started(&stage, json!([decision])).await;
    let log = events(&stage, &run).await;
    let escalated = only(&log, "core.workflowChain.confidence-escalated").1;
    assert_eq!(escalated["payload"]["floor"], 0.9);
}
