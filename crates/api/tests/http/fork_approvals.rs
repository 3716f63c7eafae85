//! Who forks a run has started it, and may not approve it where its starter may not.

use crate::approvers::{accept, by_node, gate, person, send};
use crate::test_server::{Reply, TestServer, chain};
use serde_json::{Value, json};
use tandem_record::{Event, Principal, RunId};
use tandem_store::PageLimit;

async fn fork(server: &TestServer, key: &str, run: &str, body: Value) -> String {
    let path = format!("/v1/runs/{run}:fork");
    let forked = send(server, key, "POST", &path, body).await.ok(201);
    forked["runId"].as_str().unwrap().to_owned()
}

/// A run of `ina` that waits for an approval which its starter may not give.
async fn waiting(server: &TestServer, ina: &str) -> String {
    let asks = gate(json!({"tandem": {"noSelfApproval": true}}));
    server.register("asks", &[asks]).await;
    let body = json!({"workflowId": "asks"});
    let started = send(server, ina, "POST", "/v1/runs", body).await.ok(201);
    started["runId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn denied(reply: &Reply) {
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["reason"], "self-approval");
}

#[tokio::test]
async fn neither_owner_nor_forker_approves_a_branch() {
    let server = TestServer::new().await;
    let [ina, fay, ana] = ["ina", "fay", "ana"].map(|name| person(&server, name, &[]));
    let (ina, fay, ana) = (ina.await, fay.await, ana.await);
    let run = waiting(&server, &ina).await;
    for from in [0, 1] {
        let body = json!({"mode": "branch", "fromSeq": from});
        let branch = fork(&server, &fay, &run, body).await;
        denied(&by_node(&server, &fay, &branch, accept()).await);
        denied(&by_node(&server, &ina, &branch, accept()).await);
        // Through the inbox too.
        let listed = format!("/v1/host/tandem/interrupts?runId={branch}");
        let id = server.get(&listed).await.ok(200)["interrupts"][0]["interruptId"].clone();
        let path = format!(
            "/v1/host/tandem/interrupts/{}:resolve",
            id.as_str().unwrap()
        );
        denied(&send(&server, &fay, "POST", &path, accept()).await);
        // A fork of the fork was started by all three.
        let body = json!({"mode": "branch", "fromSeq": 0});
        let again = fork(&server, &ana, &branch, body).await;
        for key in [&ina, &fay, &ana] {
            denied(&by_node(&server, key, &again, accept()).await);
        }
        by_node(&server, &ana, &branch, accept()).await.ok(200);
    }
    // The source is as before.
    by_node(&server, &fay, &run, accept()).await.ok(200);
}

#[tokio::test]
async fn forker_does_not_approve_a_child_of_the_branch() {
    let server = TestServer::new().await;
    let (ina, fay) = (
        person(&server, "ina", &[]).await,
        person(&server, "fay", &[]).await,
    );
    let asks = gate(json!({"tandem": {"noSelfApproval": true}}));
    server.register("asks", &[asks]).await;
    let below =
        json!({"id": "below", "typeId": "core.subWorkflow", "config": {"workflowId": "asks"}});
    server
        .put("/v1/host/tandem/workflows/outer", chain("outer", &[below]))
        .await
        .ok(201);
    let body = json!({"workflowId": "outer"});
    let started = send(&server, &ina, "POST", "/v1/runs", body).await.ok(201);
    let run = started["runId"].as_str().unwrap();
    let body = json!({"mode": "branch", "fromSeq": 0});
    let branch = fork(&server, &fay, run, body).await;
    server.advance(0).await;
    let listed = server.get(&format!("/v1/runs?parentRunId={branch}")).await;
    let child = listed.ok(200)["runs"][0]["runId"].clone();
    let child = child.as_str().expect("the branch has a child");
    denied(&by_node(&server, &fay, child, accept()).await);
}

#[tokio::test]
async fn replay_of_a_waiting_run_cannot_be_approved_and_names_its_forker() {
    let server = TestServer::new().await;
    let (ina, fay) = (
        person(&server, "ina", &[]).await,
        person(&server, "fay", &[]).await,
    );
    let run = waiting(&server, &ina).await;
    let replay = fork(&server, &fay, &run, json!({"mode": "replay"})).await;
    let answered = by_node(&server, &fay, &replay, accept()).await;
    assert!(answered.status.is_client_error(), "{answered:?}");
    let limit = PageLimit {
        events: 1,
        bytes: 1024 * 1024,
    };
    let replay = RunId::from(replay);
    let log = server.runtime.event_page(&replay, None, limit);
    let log = log.await.unwrap().expect("the run has a log");
    let Event::RunStarted { request, .. } = &log.events[0].event else {
        panic!("a log begins with its start: {:?}", log.events[0]);
    };
    assert_eq!(request.owner.principal, Some(Principal::new("ina")));
    assert_eq!(request.forked_by, [Principal::new("fay")]);
}
