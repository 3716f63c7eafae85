//! A decision below the confidence floor: its events, the interrupt kind used for it, and where
//! that kind is documented.

use crate::supervisor::started;
use crate::test_server::TestServer;
use serde_json::{Value, json};
use tandem_runtime::AgentPolicy;

const OWN: &str = "x-host-tandem-doubt";

fn low_confidence_decision() -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2})
}

/// A host with this escalation kind, and a run with a held decision.
async fn start_held_run(kind: &str) -> (TestServer, String) {
    let policy = AgentPolicy::new(None, Some(kind)).unwrap();
    let server = TestServer::with_agent_policy(policy).await;
    let run = started(&server, json!([low_confidence_decision()])).await;
    (server, run)
}

async fn model(server: &TestServer) -> Value {
    let discovery = server.get("/.well-known/openwop").await.json();
    discovery["multiAgent"]["executionModel"].clone()
}

async fn events(server: &TestServer, run: &str) -> Vec<Value> {
    server.log(run).await["events"].as_array().unwrap().clone()
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
async fn escalation_event_precedes_interrupt_and_names_its_decision() {
    // R-0039-9, R-0039-10 (half: a decision to start workers)
    let (server, run) = start_held_run("approval").await;
    let log = events(&server, &run).await;
    let (decided_at, decided) = only(&log, "runOrchestrator.decided");
    let (escalated_at, escalated) = only(&log, "core.workflowChain.confidence-escalated");
    let (asked_at, _) = only(&log, "interrupt.requested");
    assert!(decided_at < escalated_at && escalated_at < asked_at);
    assert_eq!(escalated["causationId"], decided["eventId"]);
    let expected = json!({
        "confidence": 0.2, "floor": 0.5, "escalationKind": "escalate", "parentRunId": run,
        "workerId": "worker", "originalDecision": low_confidence_decision(),
    });
    assert_eq!(escalated["payload"], expected);
    let handed = log.iter().any(|e| e["type"] == "core.workflowChain.event");
    assert!(!handed, "nobody works on it yet");
    let version = model(&server).await["version"].as_u64();
    assert!(version >= Some(2), "{version:?}");

    let accept = json!({"resumeValue": {"action": "accept"}});
    let path = format!("/v1/runs/{run}/interrupts/send");
    server.post(&path, accept).await.ok(200);
    let log = events(&server, &run).await;
    let (again_at, _) = only(&log, "core.workflowChain.confidence-escalated");
    assert_eq!(
        again_at, escalated_at,
        "one for the decision, confirmed or not"
    );
    let begun = log
        .iter()
        .position(|e| e["payload"]["phase"] == "dispatch.began");
    assert!(begun > Some(escalated_at), "{begun:?}");
}

#[tokio::test]
async fn vendor_interrupt_kind_is_advertised_documented_and_used() {
    // R-0044-1 (half: it is advertised), R-0044-3 (half: a vendor kind), R-0044-4 (half: a vendor kind)
    // R-0044-6 (half: a vendor kind), R-0044-7, R-0044-8
    let (server, run) = start_held_run(OWN).await;
    let discovery = server.get("/.well-known/openwop").await.json();
    let model = &discovery["multiAgent"]["executionModel"];
    assert_eq!(model["confidenceEscalationInterruptKind"], OWN);
    let url = discovery["implementation"]["vendorExtensionsUrl"]
        .as_str()
        .unwrap();
    assert_eq!(discovery["extensions"]["vendorExtensionsUrl"], url);

    let explained = server.call_as("", "GET", url, &[], "").await.ok(200);
    let [own] = explained.as_array().unwrap().as_slice() else {
        panic!("{explained}");
    };
    assert_eq!(
        (&own["kind"], &own["correspondsTo"]),
        (&json!(OWN), &json!("escalate"))
    );
    let consumers = own["consumers"].as_array().unwrap();
    for known in ["console", "audit", "webhooks"] {
        let names = |consumer: &Value| consumer["name"].as_str().unwrap().contains(known);
        assert!(consumers.iter().any(names), "{known} is missing");
    }
    assert!(
        consumers
            .iter()
            .all(|consumer| consumer["matches"].is_string())
    );

    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(shown["status"], own["runStatus"]);
    assert!(shown["status"].as_str().unwrap().starts_with("waiting-"));
    let inbox = server.get("/v1/host/tandem/interrupts?status=open").await;
    assert_eq!(inbox.json()["interrupts"][0]["kind"], OWN);
    let log = events(&server, &run).await;
    assert_eq!(only(&log, "interrupt.requested").1["payload"]["kind"], OWN);
    let escalated = only(&log, "core.workflowChain.confidence-escalated").1;
    assert_eq!(escalated["payload"]["escalationKind"], own["correspondsTo"]);
}

#[tokio::test]
async fn host_without_advertised_kind_still_escalates() {
    // R-0044-1 (half: it may be left out), R-0044-5, R-0044-10
    let (server, run) = start_held_run("none").await;
    let model = model(&server).await;
    assert_eq!(model.get("confidenceEscalationInterruptKind"), None);
    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(shown["status"], "waiting-approval");
    let log = events(&server, &run).await;
    only(&log, "core.workflowChain.confidence-escalated");
}

#[tokio::test]
async fn raised_confidence_floor_is_advertised_and_enforced() {
    // R-0039-4, R-0039-5
    let policy = AgentPolicy::new(Some(0.9), None).unwrap();
    let server = TestServer::with_agent_policy(policy).await;
    assert_eq!(model(&server).await["confidenceEscalationFloor"], 0.9);
    let mut decision = low_confidence_decision();
    decision["confidence"] = json!(0.8);
    let run = started(&server, json!([decision])).await;
    let log = events(&server, &run).await;
    let escalated = only(&log, "core.workflowChain.confidence-escalated").1;
    assert_eq!(escalated["payload"]["floor"], 0.9);
}
