//! Ancestry of a run, and its advertisement in discovery.

use crate::supervisor::started;
use crate::test_server::{TestServer, hour, noop};
use serde_json::{Value, json};

async fn ancestry(server: &TestServer, run: &str) -> Value {
    server
        .get(&format!("/v1/runs/{run}/ancestry"))
        .await
        .ok(200)
}

async fn child(server: &TestServer, run: &str) -> String {
    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    let child = shown["childRuns"][0]["runId"].as_str();
    child.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

fn calls(workflow: &str) -> Value {
    json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": workflow}})
}

#[tokio::test]
async fn ancestry_names_immediate_parent_and_start_kind() {
    // R-0040-7 (half: no parent, and one here), R-0040-8, R-0040-9
    // R-0040-11 (half: runs that this host started), R-0040-12
    let server = TestServer::new().await;
    let plan = json!([{"kind": "next-worker", "nextWorkerIds": ["worker"]}]);
    let lead = started(&server, plan).await;
    let worker = child(&server, &lead).await;
    server.register("leaf", &[hour("nap")]).await;
    server.register("middle", &[calls("leaf")]).await;
    let top = server.start("top", &[calls("middle")]).await;
    server.advance(1).await;
    let middle = child(&server, &top).await;
    let leaf = child(&server, &middle).await;

    let none = Value::Null;
    let by = |run: &str, cause: &str| json!({"runId": run, "hostId": "tandem", "cause": cause});
    for (run, parent) in [
        (&lead, none.clone()),
        (&worker, by(&lead, "core.dispatch")),
        (&top, none),
        (&middle, by(&top, "core.subWorkflow")),
        (&leaf, by(&middle, "core.subWorkflow")),
    ] {
        let expected = json!({"runId": run, "hostId": "tandem", "parent": parent});
        assert_eq!(ancestry(&server, run).await, expected);
    }
}

#[tokio::test]
async fn cross_host_causation_is_advertised_and_served() {
    // R-0040-13 (half: what is advertised), R-0040-15 (half: served where it is advertised)
    // R-0040-16 (half: advertised from version 3 on), R-0040-18
    let server = TestServer::new().await;
    let discovery = server
        .call_as("", "GET", "/.well-known/openwop", &[], "")
        .await;
    let model = discovery.ok(200)["multiAgent"]["executionModel"].clone();
    assert!(model["version"].as_u64() >= Some(3), "{model}");
    let across = json!({"supported": true, "hostId": "tandem", "ancestryEndpointSupported": true});
    assert_eq!(model["crossHostCausation"], across);
    let run = server.start("w", &[noop("a")]).await;
    assert_eq!(ancestry(&server, &run).await["hostId"], across["hostId"]);
    server
        .get("/v1/runs/run-nobody/ancestry")
        .await
        .refused(404, "not_found");
}
