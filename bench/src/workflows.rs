//! The workflows under load.

use crate::client::Failure;
use serde_json::{Value, json};
use std::path::Path;

/// Before the busy part of `bench-stream`, time for all subscribers to arrive.
pub(crate) const QUIET_MS: u64 = 4_000;
/// Each gives four events.
const ROUNDS: u64 = 50;
/// Longer than any measurement.
const A_MONTH_MS: u64 = 30 * 24 * 3600 * 1000;

pub(crate) fn write(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    for document in documents() {
        let name = format!(
            "{}.json",
            document["id"].as_str().expect("documents have ids")
        );
        std::fs::write(directory.join(name), document.to_string())?;
    }
    Ok(())
}

fn documents() -> Vec<Value> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    vec![
        document("bench-noop", &[noop("a")], &[]),
        document(
            "bench-three",
            &[noop("a"), noop("b"), noop("c")],
            &[("a", "b"), ("b", "c")],
        ),
        document(
            "bench-stream",
            &[
                node("quiet", "core.delay", json!({"delayMs": QUIET_MS})),
                node("rounds", "core.loop", json!({"times": ROUNDS})),
                node("step", "core.delay", json!({"delayMs": 10})),
                noop("end"),
            ],
            &[
                ("quiet", "rounds"),
                ("rounds", "step"),
                ("step", "rounds"),
                ("rounds", "end"),
            ],
        ),
        document(
            "bench-wait",
            &[node("sleep", "core.delay", json!({"delayMs": A_MONTH_MS}))],
            &[],
        ),
    ]
}

fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({
        "id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
        "config": config, "inputs": {},
    })
}

fn document(id: &str, nodes: &[Value], edges: &[(&str, &str)]) -> Value {
    let edges: Vec<Value> = edges
        .iter()
        .enumerate()
        .map(|(i, (source, target))| {
            json!({"id": format!("e{i}"), "sourceNodeId": source, "targetNodeId": target})
        })
        .collect();
    json!({
        "id": id, "name": id, "version": "1.0", "nodes": nodes, "edges": edges,
        "triggers": [{"id": "manual", "type": "manual"}], "variables": [],
        "metadata": {}, "settings": {"timeout": 0},
    })
}
