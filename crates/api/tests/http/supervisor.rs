//! Supervised runs over HTTP: discovery, the run page, and a held decision in the inbox.

use crate::console::{page, sign_in};
use crate::test_server::{TestServer, chain, hour};
use serde_json::{Value, json};

pub(crate) fn supervised(plan: Value) -> Value {
    let lead = json!({"id": "lead", "typeId": "core.orchestrator.supervisor", "name": "lead",
        "position": {"x": 0, "y": 0}, "config": {"mockDispatchPlan": plan}, "inputs": {}});
    let send = json!({"id": "send", "typeId": "core.dispatch", "name": "send",
        "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
    let mut document = chain("conformance-supervised", &[lead, send]);
    let back = json!({"id": "back", "sourceNodeId": "send", "targetNodeId": "lead"});
    document["edges"].as_array_mut().unwrap().push(back);
    document
}

pub(crate) async fn started(server: &TestServer, plan: Value) -> String {
    server.register("worker", &[hour("nap")]).await;
    let path = "/v1/host/tandem/workflows/conformance-supervised";
    server.put(path, supervised(plan)).await.ok(201);
    server.create("conformance-supervised").await
}

#[tokio::test]
async fn run_page_shows_decisions_handoffs_and_run_tree() {
    let server = TestServer::new().await;
    let decision = json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.8});
    let run = started(&server, json!([decision])).await;
    let child = server.get(&format!("/v1/runs/{run}")).await.json();
    let child = child["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    let cookie = sign_in(&server).await;
    let shown = page(&server, &cookie, &format!("/console/runs/{run}"))
        .await
        .text;
    for text in [
        "Turn 1",
        "next-worker",
        "at or above",
        "dispatch.began",
        "dispatch.succeeded",
    ] {
        assert!(shown.contains(text), "{text} is missing");
    }
    assert!(shown.contains(&child));
    let below = page(&server, &cookie, &format!("/console/runs/{child}"))
        .await
        .text;
    assert!(below.contains("Related runs") && below.contains("conformance-supervised"));
    assert!(!below.contains("Decisions"), "a worker supervises nobody");
}

#[tokio::test]
async fn run_page_shows_verifier_and_verdict() {
    let server = TestServer::new().await;
    let end = json!({"kind": "terminate", "reason": "done"});
    let mut document = supervised(json!([end, end, end]));
    document["nodes"][0]["config"]["verifier"] = json!({
        "agentId": "core.critic", "criteria": ["short"],
        "mockVerdicts": [{"verdict": "revise", "criteria": ["short"], "feedback": "Shorter."}, "fail"],
    });
    let path = "/v1/host/tandem/workflows/conformance-supervised";
    server.put(path, document).await.ok(201);
    let run = server.create("conformance-supervised").await;
    let ended = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(ended["status"], "failed");
    assert_eq!(ended["error"]["code"], "verification_failed");
    let cookie = sign_in(&server).await;
    let shown = page(&server, &cookie, &format!("/console/runs/{run}"))
        .await
        .text;
    for text in [
        "Turn 2",
        "Checked: <strong>revise</strong>",
        "Checked: <strong>fail</strong>",
        "core.critic",
        ", for short",
    ] {
        assert!(shown.contains(text), "{text} is missing");
    }
    let log = server.log(&run).await;
    let verdicts = log["events"].as_array().unwrap().iter();
    let verdicts: Vec<&Value> = verdicts.filter(|e| e["type"] == "agent.verified").collect();
    assert_eq!(verdicts.len(), 2);
    assert!(!verdicts[0].to_string().contains("Shorter"), "{verdicts:?}");
}

#[tokio::test]
async fn held_decision_is_in_inbox_with_workers_it_would_start() {
    let server = TestServer::new().await;
    let decision = json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2});
    let run = started(&server, json!([decision])).await;
    let inbox = server
        .get("/v1/host/tandem/interrupts?status=open")
        .await
        .json();
    let item = &inbox["interrupts"][0];
    assert_eq!(item["runId"], run.as_str());
    assert_eq!(item["data"]["workers"], json!(["worker"]));
    assert_eq!(item["data"]["confidence"], 0.2);
    assert_eq!(item["actions"], json!(["accept", "reject", "edit-accept"]));
    let cookie = sign_in(&server).await;
    let path = format!("/console/inbox/{}", item["interruptId"].as_str().unwrap());
    let card = page(&server, &cookie, &path).await.text;
    for text in ["Start worker?", "below the floor of 0.5"] {
        assert!(card.contains(text), "{text} is missing");
    }
    let resolve = format!("/v1/runs/{run}/interrupts/send");
    let accept = json!({"resumeValue": {"action": "accept"}});
    server.post(&resolve, accept).await.ok(200);
    let run = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(run["childRuns"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn discovery_advertises_agent_capabilities() {
    // R-0023-21 (half: advertised where it is registered), R-0039-6 (half: the field is left out)
    let server = TestServer::new().await;
    let document = server.get("/.well-known/openwop").await.json();
    let model = &document["multiAgent"]["executionModel"];
    assert_eq!(model["supported"], true);
    assert_eq!(model["version"], 6);
    assert_eq!(model["statefulResume"], true);
    assert_eq!(
        model["verifier"],
        json!({"supported": true, "gating": true})
    );
    assert_eq!(model["confidenceEscalationInterruptKind"], "approval");
    assert_eq!(model.get("confidenceEscalationFloor"), None);
    assert_eq!(document["agents"]["supported"], true);
    assert_eq!(document["conformance"]["mockAgent"], true);
    assert_eq!(document["implementation"].get("vendorExtensionsUrl"), None);
    let kinds = server
        .call_as("", "GET", "/v1/host/tandem/vendor-kinds", &[], "")
        .await;
    assert_eq!(kinds.ok(200), json!([]), "nothing of our own to explain");
}

#[tokio::test]
async fn agent_events_are_logged_where_agents_are_supported() {
    // R-0023-8 (half: with agents, the events are emitted)
    let server = TestServer::new().await;
    let mock = json!({"id": "act", "typeId": "core.conformance.mock-agent",
        "config": {"mockReasoning": true, "mockDecision": {"decision": 1}}});
    let run = server.start("conformance-agent", &[mock]).await;
    let log = server.log(&run).await;
    let agent_events: Vec<&str> = log["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["type"].as_str().filter(|t| t.starts_with("agent.")))
        .collect();
    assert_eq!(agent_events, ["agent.reasoned", "agent.decided"]);
    let document = server.get("/.well-known/openwop").await.json();
    assert_eq!(document["agents"]["supported"], true);
}

#[tokio::test]
async fn agent_pin_of_an_identity_node_is_shown_by_the_snapshot() {
    // R-0023-27 (half: the snapshot shows the pin)
    let server = TestServer::new().await;
    let pin = json!({"agentId": "core.pinned", "modelClass": "chat"});
    let mut document = chain(
        "conformance-pin",
        &[json!({"id": "n", "typeId": "core.identity", "config": {}})],
    );
    document["nodes"][0]["agent"] = pin.clone();
    let path = "/v1/host/tandem/workflows/conformance-pin";
    server.put(path, document).await.ok(201);
    let run = server.create("conformance-pin").await;
    let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(shown["agent"], pin);
}

#[tokio::test]
async fn low_confidence_interrupt_has_protocol_shape() {
    // R-0023-14 (half: what a reader sees)
    let server = TestServer::new().await;
    let config = json!({"mockConfidence": 0.2});
    let agent = json!({"id": "ask", "typeId": "core.conformance.mock-agent", "config": config});
    let data = json!({"agentId": "core.unsure", "threshold": 0.7, "observed": 0.3});
    let config = json!({"kind": "low-confidence", "data": data});
    let asking = json!({"id": "ask", "typeId": "core.interrupt", "config": config});
    for node in [agent, asking] {
        let run = server.start("conformance-unsure", &[node]).await;
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
        assert_eq!(snapshot["status"], "waiting-approval");
        let link = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
        let looked = server.call_as("", "GET", link, &[], "").await.ok(200);
        let log = server.log(&run).await;
        let of_type = |name: &str| {
            let mut events = log["events"].as_array().unwrap().iter();
            let found = events.find(|event| event["type"] == name);
            found.unwrap_or_else(|| panic!("no {name} in {log}"))["payload"].clone()
        };
        let document = of_type("interrupt.requested");
        for data in [
            &snapshot["interrupt"]["data"],
            &looked["data"],
            &document["data"],
        ] {
            for name in data.as_object().unwrap().keys() {
                let known = ["agentId", "threshold", "observed", "decision"];
                assert!(known.contains(&name.as_str()), "{name} in {data}");
            }
        }
        let suspended = of_type("node.suspended");
        assert_eq!(suspended["reason"], "low-confidence");
        for name in ["agentId", "threshold", "observed"] {
            assert!(!suspended[name].is_null(), "{name} in {suspended}");
            assert_eq!(suspended[name], document["data"][name], "{name}");
        }
    }
}

#[tokio::test]
async fn parent_run_shows_interrupt_of_its_worker() {
    let server = TestServer::new().await;
    let gate =
        json!({"id": "gate", "typeId": "core.approvalGate", "config": {"title": "Ship it?"}});
    server.register("asks", &[gate]).await;
    let call = |flow: &str| json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": flow}});
    server.register("middle", &[call("asks")]).await;
    let run = server.start("outer", &[call("middle")]).await;
    server.advance(0).await;
    let inbox = server.get("/v1/host/tandem/interrupts?status=open").await;
    let asker = inbox.json()["interrupts"][0]["runId"].clone();
    let own = server
        .get(&format!("/v1/runs/{}", asker.as_str().unwrap()))
        .await
        .ok(200);
    let mirrored = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(mirrored["interrupt"]["childRunId"], asker);
    for name in ["interruptId", "kind", "key", "data"] {
        assert_eq!(
            mirrored["interrupt"][name], own["interrupt"][name],
            "{name}"
        );
    }
    assert_eq!(mirrored["interrupt"]["data"]["title"], "Ship it?");
    let bundle = server.get(&format!("/v1/runs/{run}/debug-bundle")).await;
    assert_eq!(
        bundle.ok(200)["run"]["interrupt"]["data"]["title"],
        "[REDACTED]"
    );
    assert!(!bundle.text.contains("Ship it?"), "another run's words");
    let log = server.log(&run).await;
    let mut events = log["events"].as_array().unwrap().iter();
    let suspended = events.find(|e| e["type"] == "node.suspended").unwrap();
    assert_eq!(suspended["payload"]["key"], own["interrupt"]["key"]);
}

#[tokio::test]
async fn null_setting_is_refused_with_its_path() {
    let server = TestServer::new().await;
    let path = "/v1/host/tandem/workflows/conformance-supervised";
    let end = json!([{"kind": "terminate", "reason": "done"}]);
    let mut document = supervised(end);
    document["nodes"][1]["config"]["iterationCap"] = Value::Null;
    let refused = server.put(path, document).await;
    let details = refused.refused(400, "validation_error");
    assert_eq!(details["errors"][0]["path"], "/nodes/1/config/iterationCap");
}

#[tokio::test]
async fn low_confidence_decision_is_accepted_by_bare_value() {
    let server = TestServer::new().await;
    let decision = json!({"decision": {"go": true}, "confidence": 0.2});
    let act = json!({"id": "act", "typeId": "core.conformance.mock-agent",
        "config": {"mockDecision": decision}});
    let run = server.start("conformance-bare", &[act]).await;
    let path = format!("/v1/runs/{run}/interrupts/act");
    let nothing = server.post(&path, json!({"resumeValue": {}})).await;
    nothing.refused(400, "validation_error");
    let bare = json!({"resumeValue": {"go": true}});
    server.post(&path, bare).await.ok(200);
    let ended = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "completed");
}

/// A workflow outside the conformance tests whose supervisor gets its decision at a port.
fn workflow_with_decision(decision: &Value) -> Value {
    let lead = json!({"id": "lead", "typeId": "core.orchestrator.supervisor", "config": {}});
    let send = json!({"id": "send", "typeId": "core.dispatch", "config": {}});
    let mut document = chain("supervised", &[lead, send]);
    document["nodes"][0]["inputs"] = json!({"decision": {"type": "static", "value": decision}});
    document
}

#[tokio::test]
async fn production_supervisor_executes_only_given_decisions() {
    // R-0039-3 (half: the decision is not executed)
    let unsure = json!({"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.1});
    let table = [
        (json!({"kind": "terminate", "reason": "mine"}), "completed"),
        (unsure, "waiting-approval"),
        (json!({"kind": "zzz"}), "failed"),
    ];
    for (decision, status) in table {
        let server = TestServer::new().await;
        server.register("worker", &[hour("nap")]).await;
        let path = "/v1/host/tandem/workflows/supervised";
        server
            .put(path, workflow_with_decision(&decision))
            .await
            .ok(201);
        let run = server.create("supervised").await;
        let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
        assert_eq!(shown["status"], status, "{decision}");
        assert!(shown["childRuns"].is_null(), "{decision}");
    }
}
