//! A supervisor's decision that was made from sensitive values: no response shows what it says.

use crate::console::{page, sign_in};
use crate::sensitive::{SECRET, node, shown};
use crate::test_server::{TestServer, chain};
use serde_json::{Value, json};

/// A supervisor that is given its decision in a sensitive input.
fn supervised(id: &str, mode: &str, routing: &str) -> Value {
    let lead = node("lead", "core.orchestrator.supervisor", json!({}));
    let send = node("send", "core.dispatch", json!({"askUserRouting": routing}));
    let mut document = chain(id, &[lead, send]);
    document["nodes"][0]["inputs"] =
        json!({"decision": {"type": "variable", "variableName": "decision"}});
    document["variables"] = json!([{"name": "decision", "type": "object", "sensitive": true}]);
    document["metadata"] = json!({"complianceConfig": {"maskingMode": mode}});
    document
}

#[tokio::test]
async fn every_response_masks_a_decision_from_sensitive_values() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    let says = json!({"kind": "terminate", "reason": SECRET});
    let held = json!({"kind": "terminate", "reason": SECRET, "confidence": 0.1});
    let asks = json!({"kind": "ask-user", "prompt": SECRET});
    let cases = [
        ("ends", "auto", says.clone(), "completed"),
        (
            "reasons",
            "auto",
            json!({"decision": says, "confidence": 0.9, "reasoning": SECRET}),
            "completed",
        ),
        (
            "unsure",
            "auto",
            json!({"decision": says, "confidence": 0.2, "reasoning": SECRET}),
            "waiting-approval",
        ),
        (
            "held",
            "auto",
            json!({"decision": held, "reasoning": SECRET}),
            "waiting-approval",
        ),
        ("talks", "conversation", asks.clone(), "waiting-approval"),
        ("asks", "clarification", asks, "waiting-input"),
        (
            "escalates",
            "auto",
            json!({"kind": "escalate", "prompt": SECRET}),
            "waiting-approval",
        ),
        (
            "criteria",
            "auto",
            json!({"kind": "terminate", "successCriteria": [{"key": SECRET, "met": true}]}),
            "completed",
        ),
    ];
    for (id, routing, decision, status) in cases {
        for mode in ["mask", "hash", "omit"] {
            let workflow = format!("{id}-{mode}");
            let path = format!("/v1/host/tandem/workflows/{workflow}");
            let document = supervised(&workflow, mode, routing);
            server.put(&path, document).await.ok(201);
            let request = json!({"workflowId": workflow, "inputs": {"decision": decision}});
            let run = server.post("/v1/runs", request).await.ok(201)["runId"].clone();
            let run = run.as_str().expect("an id");
            let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
            assert_eq!(snapshot["status"], status, "{id}: {snapshot}");
            let mut texts = shown(&server, run).await;
            let listed = format!("/v1/host/tandem/interrupts?runId={run}");
            texts.push(server.get(&listed).await.text);
            for path in [
                format!("/console/runs/{run}"),
                format!("/console/runs/{run}/at/9"),
                "/console/inbox".to_owned(),
            ] {
                texts.push(page(&server, &cookie, &path).await.text);
            }
            for text in texts {
                // Pages write the apostrophe in another way.
                assert!(!text.contains("own words"), "{id}, {mode}: {text}");
            }
            let log = server.log(run).await;
            let mut events = log["events"].as_array().expect("events").iter();
            if let Some(decided) = events.find(|e| e["type"] == "runOrchestrator.decided") {
                let kind = &decided["payload"]["decision"]["kind"];
                assert!(kind.is_string(), "the form of a decision stays: {decided}");
            }
        }
    }
}
