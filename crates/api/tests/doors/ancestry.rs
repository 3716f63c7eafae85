//! Where a run comes from, and what discovery promises about it.

use crate::crew::started;
use crate::stage::{Stage, hour, noop};
use serde_json::{Value, json};

async fn ancestry(stage: &Stage, run: &str) -> Value {
    stage.get(&format!("/v1/runs/{run}/ancestry")).await.ok(200)
}

async fn child(stage: &Stage, run: &str) -> String {
    let shown = stage.get(&format!("/v1/runs/{run}")).await.json();
    let child = shown["childRuns"][0]["runId"].as_str();
    child.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

fn calls(workflow: &str) -> Value {
    json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": workflow}})
}

#[tokio::test]
async fn a_run_names_its_immediate_parent_and_how_it_was_started() {
    // R-0040-7, R-0040-8, R-0040-9, R-0040-11, R-0040-12
    let stage = Stage::new().await;
    let plan = json!([{"kind": "next-worker", "nextWorkerIds": ["worker"]}]);
    let lead = started(&stage, plan).await;
    let worker = child(&stage, &lead).await;
    stage.register("leaf", &[hour("nap")]).await;
    stage.register("middle", &[calls("leaf")]).await;
    let top = stage.start("top", &[calls("middle")]).await;
    stage.advance(1).await;
    let middle = child(&stage, &top).await;
    let leaf = child(&stage, &middle).await;

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
        assert_eq!(ancestry(&stage, run).await, expected);
    }
}

#[tokio::test]
async fn causation_across_hosts_is_advertised_whole_and_served() {
    // R-0040-13 (half: what is advertised), R-0040-15 (half: served where it is advertised)
    // R-0040-16 (half: told from version three on), R-0040-18
    let stage = Stage::new().await;
    let told = stage
        .call_as("", "GET", "/.well-known/openwop", &[], "")
        .await;
    let model = told.ok(200)["multiAgent"]["executionModel"].clone();
    assert!(model["version"].as_u64() >= Some(3), "{model}");
    let across = json!({"supported": true, "hostId": "tandem", "ancestryEndpointSupported": true});
    assert_eq!(model["crossHostCausation"], across);
    let run = stage.start("w", &[noop("a")]).await;
    assert_eq!(ancestry(&stage, &run).await["hostId"], across["hostId"]);
    stage
        .get("/v1/runs/run-nobody/ancestry")
        .await
        .refused(404, "not_found");
}
