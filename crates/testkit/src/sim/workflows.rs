//! Random workflows: three levels that call each other downwards, so that children nest.

use super::{mocks, notes, supervised, verifier};
use crate::test_host::PACK_TYPE;
use crate::workflow_builder::{WorkflowBuilder, wf};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

const RULES: [&str; 5] = [
    "all_success",
    "any_success",
    "all_complete",
    "none_failed",
    "any_failed",
];

/// Documents in the order in which they must be registered.
pub(super) fn random(rng: &mut SmallRng) -> Vec<Value> {
    vec![
        graph(rng, "leaf", &[]),
        graph(rng, "middle", &["leaf"]),
        graph(rng, "top", &["middle", "leaf"]),
        long_loop(rng),
        triggered(rng),
        asking(rng),
        supervised::workflow(rng, &["middle", "leaf"]),
        verifier::verifier_workflow(rng),
        verifier::checked(rng, &["middle", "leaf"]),
        mocks::chat_workflow(rng),
    ]
}

/// A small graph of random nodes; edges lead from earlier to later nodes.
fn graph(rng: &mut SmallRng, id: &str, children: &[&str]) -> Value {
    let mut flow = wf(id)
        .variable("v", json!("default"))
        .settings(json!({"maxRetries": rng.random_range(0..2)}));
    let count = rng.random_range(1..6);
    let mut loops = Vec::new();
    for n in 0..count {
        let name = format!("n{n}");
        flow = match rng.random_range(0..13) {
            0 => flow.http(&name, rng.random_range(1..4)),
            1 => flow.node(&name, PACK_TYPE, json!({})),
            2 => ask_model(flow, &name),
            3..5 => flow.delay(&name, rng.random_range(1..2_000)),
            5..8 if !children.is_empty() => {
                let child = children[rng.random_range(0..children.len())];
                flow.call(&name, child, call_config(rng))
            }
            5 => {
                loops.push(name.clone());
                let body = format!("{name}-body");
                flow.http(&body, 2).node(
                    &name,
                    "core.loop",
                    json!({"times": rng.random_range(0..4)}),
                )
            }
            6 => flow.node(
                &name,
                "core.channelWrite",
                json!({"channelName": "c", "value": n, "ttlMs": 500}),
            ),
            7 => flow.node(&name, "core.fail", json!({"code": "broken"})),
            8 => flow.node(
                &name,
                "core.setVariable",
                json!({"name": "v", "value": name}),
            ),
            9 => notes::note(flow, &name),
            10 => call_tool(flow, &name),
            _ => ask(flow, &name, rng),
        };
        flow = flow.with("settings", node_settings(rng));
        for earlier in 0..n {
            if rng.random_bool(0.4) {
                let rule = RULES[rng.random_range(0..8).min(RULES.len()) % RULES.len()];
                let extra = json!({"triggerRule": rule});
                flow = flow.edge_with(&format!("n{earlier}"), &name, extra);
            }
        }
    }
    for head in loops {
        flow = flow.path(&format!("{head} {head}-body {head}"));
    }
    flow.document()
}

/// A model call, which always gets an answer.
fn ask_model(flow: WorkflowBuilder, name: &str) -> WorkflowBuilder {
    let config = json!({"provider": "acme", "outputSchema": {"type": "object"}});
    let asked = json!([{"role": "user", "content": "Is it fine?"}]);
    flow.node(name, "core.ai.structuredOutput", config)
        .port("messages", json!({"type": "static", "value": asked}))
}

/// A tool call; its result may be stored.
fn call_tool(flow: WorkflowBuilder, name: &str) -> WorkflowBuilder {
    let config = json!({"serverId": "docs", "toolName": "echo", "arguments": {"text": name}});
    flow.node(name, "core.mcp.toolCall", config)
}

fn call_config(rng: &mut SmallRng) -> Value {
    let mut config = json!({"inputMapping": {"v": "v"}, "outputMapping": {"v": "v"}});
    if rng.random_bool(0.4) {
        config["onChildFailure"] = json!("absorb");
    }
    config
}

fn node_settings(rng: &mut SmallRng) -> Value {
    let mut settings = json!({});
    if rng.random_bool(0.2) {
        settings["timeoutMs"] = json!(rng.random_range(100..3_000));
    }
    if rng.random_bool(0.2) {
        settings["onError"] = json!("continue");
    }
    settings
}

/// A question of a random kind with a random timeout action.
fn ask(flow: WorkflowBuilder, name: &str, rng: &mut SmallRng) -> WorkflowBuilder {
    let timeout = rng.random_range(1..3_000);
    let level = json!({"approverGroups": ["leads"], "timeoutMs": rng.random_range(1..3_000)});
    let policy = match rng.random_range(0..4) {
        0 => json!({"policy": "reject"}),
        1 => json!({"policy": "escalate", "levels": [level.clone(), level]}),
        2 => json!({"policy": "remind", "everyMs": 1000, "times": 3, "then": "reject"}),
        _ => json!({"policy": "remind", "everyMs": 1000, "times": 2}),
    };
    let question = json!([{"id": "q", "question": "?"}]);
    let (type_id, mut config) = match rng.random_range(0..4) {
        0 => ("core.clarificationGate", json!({"questions": question})),
        1 => (
            "core.interrupt",
            json!({"kind": "external-event",
                   "data": {"eventType": super::people::EVENT, "correlation": {"n": 1}}}),
        ),
        _ => (
            "core.approvalGate",
            json!({"requiredApprovals": rng.random_range(1..3)}),
        ),
    };
    if rng.random_bool(0.6) {
        config["timeoutMs"] = json!(timeout);
        let people = policy["levels"].is_array();
        if !(people && type_id == "core.interrupt") {
            config["tandem"] = json!({"onTimeout": policy});
        }
    }
    flow.node(name, type_id, config)
}

/// Several questions at once.
fn asking(rng: &mut SmallRng) -> Value {
    let count = rng.random_range(1..5);
    let mut flow = wf("asking").noop("root").noop("join");
    for n in 0..count {
        flow = ask(flow, &format!("n{n}"), rng);
    }
    for n in 0..count {
        flow = flow.path(&format!("root n{n} join"));
    }
    flow.document()
}

/// Enough events for snapshots.
fn long_loop(rng: &mut SmallRng) -> Value {
    let times = rng.random_range(1..45);
    wf("long")
        .node("loop", "core.loop", json!({"times": times}))
        .delay("step", 20)
        .noop("after")
        .path("loop step loop after")
        .document()
}

/// A node triggered by channel writes, some of them while it is running.
fn triggered(rng: &mut SmallRng) -> Value {
    let write = |flow: WorkflowBuilder, id: &str| {
        flow.node(
            id,
            "core.channelWrite",
            json!({"channelName": "c", "value": id}),
        )
    };
    let flow = wf("triggered").channel("c", json!({"reducer": "append"}));
    let flow = write(flow, "w1").delay("gap", rng.random_range(1..500));
    write(flow, "w2")
        .http("react", 2)
        .noop("after")
        .path("w1 gap w2")
        .path("react after")
        .on_write("c", "react", rng.random_range(0..2) * 150)
        .document()
}
