//! What an author marked as sensitive is masked in everything a reader gets.

use crate::stage::{Stage, chain};
use serde_json::{Value, json};

const SECRET: &str = "the patient's own words";

fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
        "config": config, "inputs": {}})
}

#[tokio::test]
async fn a_sensitive_variable_is_shown_by_nobody_who_passes_it_on() {
    let stage = Stage::new().await;
    let gets = |id: &str| node(id, "core.getVariable", json!({"name": "note"}));
    let sets = node("sets", "core.setVariable", json!({"name": "note"}));
    // Put out by one last node as it is, and by two under their names.
    for (workflow, nodes, edges) in [
        ("one", vec![gets("gets"), sets.clone()], true),
        ("two", vec![gets("left"), gets("right")], false),
    ] {
        let mut document = chain(workflow, &nodes);
        document["variables"] = json!([{"name": "note", "type": "string", "sensitive": true}]);
        if !edges {
            document["edges"] = json!([]);
        }
        let path = format!("/v1/host/tandem/workflows/{workflow}");
        stage.put(&path, document).await.ok(201);
        let asked = json!({"workflowId": workflow, "inputs": {"note": SECRET}});
        let run = stage.post("/v1/runs", asked).await.ok(201);
        let run = run["runId"].as_str().expect("an id").to_owned();
        let log = stage.log(&run).await.to_string();
        assert!(log.contains("run.completed"), "{log}");
        assert!(log.contains("[REDACTED]"), "{log}");
        assert!(!log.contains(SECRET), "{log}");
        let shown = stage.get(&format!("/v1/runs/{run}")).await.text;
        assert!(!shown.contains(SECRET), "{shown}");
    }
}
