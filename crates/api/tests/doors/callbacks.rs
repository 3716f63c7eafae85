//! The callback of a run: what it hears of a question is enough to show and answer it, and reaches nobody
//! else.

use crate::stage::{Reply, Stage};
use serde_json::{Value, json};
use tandem_access::Scope;

const URL: &str = "https://example.com/asked";

fn gate(config: Value) -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": config})
}

async fn start_as(stage: &Stage, key: &str, workflow: &str) -> String {
    let body = json!({"workflowId": workflow, "callbackUrl": URL}).to_string();
    let made = stage.call_as(key, "POST", "/v1/runs", &[], body).await;
    stage.advance(0).await;
    made.ok(201)["runId"].as_str().unwrap().to_owned()
}

/// What was announced so far.
fn announced(stage: &Stage) -> Vec<Value> {
    let announced = stage.postman.announced.lock();
    assert!(announced.iter().all(|(url, _)| url == URL));
    announced.iter().map(|(_, body)| body.clone()).collect()
}

async fn follow(stage: &Stage, asked: &Value, answer: Value) -> Reply {
    let path = asked["interrupt"]["callbackUrl"].as_str().unwrap();
    let body = json!({"resumeValue": answer}).to_string();
    stage.call_as("", "POST", path, &[], body).await
}

#[tokio::test]
async fn what_is_announced_shows_and_answers_the_question_without_a_key() {
    let stage = Stage::new().await;
    let config = json!({"title": "Refund", "timeoutMs": 60_000});
    stage.register("gated", &[gate(config)]).await;
    let run = start_as(&stage, &stage.key, "gated").await;
    let told = announced(&stage);
    assert_eq!(told.len(), 1);
    let asked = &told[0];
    assert_eq!(asked["type"], "interrupt.requested");
    assert_eq!(asked["runId"], run);
    assert_eq!(asked["workflowId"], "gated");
    assert_eq!(asked["parentRunId"], Value::Null);
    let shown = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(
        asked["interrupt"], shown["interrupt"],
        "as the snapshot shows it, with the link a reader gets at the same time"
    );
    assert_eq!(asked["interrupt"]["data"]["title"], "Refund");
    let path = asked["interrupt"]["callbackUrl"].as_str().unwrap();
    let token = asked["interrupt"]["interruptToken"].as_str().unwrap();
    assert_eq!(path, format!("/v1/interrupts/{token}"));
    let inspected = stage.call_as("", "GET", path, &[], "").await.ok(200);
    assert_eq!(inspected["data"], asked["interrupt"]["data"]);
    for place in ["events?streamMode=debug", "debug-bundle"] {
        let accept = [("accept", "application/json")];
        let path = format!("/v1/runs/{run}/{place}");
        let read = stage.call_as(&stage.key, "GET", &path, &accept, "").await;
        read.ok(200);
        assert!(!read.text.contains(token), "{place}");
    }
    let accept = json!({"action": "accept"});
    follow(&stage, asked, accept.clone()).await.ok(200);
    let after = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "completed");
    let again = follow(&stage, asked, accept).await;
    again.refused(409, "interrupt_already_resolved");
    assert_eq!(announced(&stage).len(), 1);
}

#[tokio::test]
async fn every_kind_of_question_is_announced() {
    let stage = Stage::new().await;
    let clarification = json!({"questions": [{"id": "q1", "question": "Which colour?"}]});
    let event = json!({"kind": "external-event",
        "data": {"eventType": "paid", "correlation": {"order": 7}}});
    let custom = json!({"kind": "custom", "data": {"customKind": "x", "payload": 1},
        "resumeSchema": {"type": "object"}});
    let kinds = [
        ("core.approvalGate", json!({}), "approval"),
        ("core.clarificationGate", clarification, "clarification"),
        ("core.interrupt", event, "external-event"),
        ("core.interrupt", custom, "custom"),
        ("core.conversationGate", json!({}), "conversation"),
    ];
    for (place, (type_id, config, kind)) in kinds.into_iter().enumerate() {
        let id = format!("asks-{place}");
        let node = json!({"id": "ask", "typeId": type_id, "config": config});
        stage.register(&id, &[node]).await;
        let run = start_as(&stage, &stage.key, &id).await;
        let told = announced(&stage);
        assert_eq!(told.len(), place + 1, "{kind}");
        let shown = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
        assert_eq!(told[place]["interrupt"], shown["interrupt"]);
        let said = told[place]["interrupt"]["kind"].as_str().unwrap();
        assert!(said.starts_with(kind), "{said}");
    }
}

#[tokio::test]
async fn who_may_not_answer_is_announced_a_link_that_only_shows() {
    let stage = Stage::new().await;
    stage.register("gated", &[gate(json!({}))]).await;
    let creator = stage.new_key("default", &[Scope::RunsCreate]).await;
    let run = start_as(&stage, &creator, "gated").await;
    let told = announced(&stage);
    let path = told[0]["interrupt"]["callbackUrl"].as_str().unwrap();
    stage.call_as("", "GET", path, &[], "").await.ok(200);
    let refused = follow(&stage, &told[0], json!({"action": "accept"})).await;
    refused.refused(403, "forbidden");
    let after = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "waiting-approval");
}

#[tokio::test]
async fn a_question_further_down_is_announced_to_whoever_started_the_family() {
    let stage = Stage::new().await;
    stage.register("leaf", &[gate(json!({}))]).await;
    let call =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "leaf"}});
    stage.register("top", &[call]).await;
    let top = start_as(&stage, &stage.key, "top").await;
    stage.advance(0).await;
    let told = announced(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["parentRunId"], top);
    assert_eq!(told[0]["rootRunId"], top);
    assert_ne!(told[0]["runId"], top);
    let answered = follow(&stage, &told[0], json!({"action": "accept"})).await;
    answered.ok(200);
    stage.advance(0).await;
    let after = stage.get(&format!("/v1/runs/{top}")).await.ok(200);
    assert_eq!(after["status"], "completed");
}

#[tokio::test]
async fn a_callback_that_could_not_be_kept_is_refused() {
    let stage = Stage::new().await;
    stage.register("gated", &[gate(json!({}))]).await;
    let url = format!("https://example.com/in?key=sk-{}", "a".repeat(32));
    let body = json!({"workflowId": "gated", "callbackUrl": url});
    let refused = stage.post("/v1/runs", body).await;
    assert!(!refused.text.contains("sk-"));
    let details = refused.refused(400, "validation_error");
    assert_eq!(details["errors"][0]["path"], "/callbackUrl");
}
