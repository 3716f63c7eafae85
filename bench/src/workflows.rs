//! The workflows under load.

use crate::client::Failure;
use serde_json::{Value, json};
use std::path::Path;

/// Delay before the busy part of `bench-stream`, so that all subscribers can connect.
pub(crate) const QUIET_MS: u64 = 4_000;
/// Each round gives four events.
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

/// Iterations of the two compared supervised loops.
pub(crate) const SHORT_ITERATIONS: u64 = 250;
pub(crate) const LONG_ITERATIONS: u64 = 1_000;

/// A run of ten thousand events that writes to memory.
pub(crate) const HISTORY: &str = "bench-history";
/// Each iteration gives five events.
const HISTORY_ITERATIONS: u64 = 2_000;

/// Calls the given address, and waits.
pub(crate) const HANGING: &str = "bench-hang";
/// A parent, and a child that does nothing.
pub(crate) const PARENT_AND_CHILD: &str = "bench-parent-and-child";

/// A run of about a thousand events without memory.
pub(crate) const LONG_LOG: &str = "bench-long-log";
/// Each round gives four events.
const LONG_LOG_ROUNDS: u64 = 249;

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
        document(
            "bench-approval",
            &[
                noop("before"),
                node("gate", "core.approvalGate", json!({"title": "Go on?"})),
                noop("after"),
            ],
            &[("before", "gate"), ("gate", "after")],
        ),
        document(
            HISTORY,
            &[
                node(
                    "rounds",
                    "core.loop",
                    json!({"times": HISTORY_ITERATIONS, "maxIterations": HISTORY_ITERATIONS}),
                ),
                node(
                    "note",
                    "vendor.tandem.memory",
                    json!({"action": "put", "key": "progress", "value": "so far, so good"}),
                ),
                noop("end"),
            ],
            &[("rounds", "note"), ("note", "rounds"), ("rounds", "end")],
        ),
        document(
            LONG_LOG,
            &[
                node(
                    "rounds",
                    "core.loop",
                    json!({"times": LONG_LOG_ROUNDS, "maxIterations": LONG_LOG_ROUNDS}),
                ),
                noop("step"),
                noop("end"),
            ],
            &[("rounds", "step"), ("step", "rounds"), ("rounds", "end")],
        ),
        hanging(),
        document(
            PARENT_AND_CHILD,
            &[node(
                "child",
                "core.subWorkflow",
                json!({"workflowId": "bench-noop"}),
            )],
            &[],
        ),
        supervised("conformance-bench-pair", "bench-noop", 1),
        supervised("conformance-bench-short", "bench-noop", SHORT_ITERATIONS),
        supervised("conformance-bench-long", "bench-noop", LONG_ITERATIONS),
        supervised("conformance-bench-wait", "bench-wait", 1),
    ]
}

fn hanging() -> Value {
    let mut call = node("call", "vendor.tandem.http", json!({"timeoutMs": 60_000}));
    call["inputs"] = json!({"url": {"type": "variable", "variableName": "url"}});
    let mut document = document(HANGING, &[call], &[]);
    document["variables"] = json!([{"name": "url", "type": "string"}]);
    document
}

/// A supervisor that names the same worker in every iteration, then ends the run.
fn supervised(id: &str, worker: &str, iterations: u64) -> Value {
    let decision = json!({"kind": "next-worker", "nextWorkerIds": [worker]});
    let plan: Vec<Value> = (1..=iterations).map(|_| decision.clone()).collect();
    let lead = json!({"mockDispatchPlan": plan});
    let nodes = [
        node("lead", "core.orchestrator.supervisor", lead),
        node("send", "core.dispatch", json!({})),
    ];
    document(id, &nodes, &[("lead", "send"), ("send", "lead")])
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
