//! Random small workflows: any shape, any kinds, any rules.

use super::workflow_builder::{WorkflowBuilder, workflow};
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(super) struct RandomNode {
    kind: Kind,
    disabled: bool,
    /// The edges from earlier nodes to this one.
    incoming: Vec<Option<RandomEdge>>,
    rule: usize,
    timeout: bool,
    retries: u32,
    on_error: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Noop,
    Fail,
    Delay(u64),
    Http,
    Tool,
    Call,
    SetVariable,
    Write,
    /// A loop around its own node, which only runs while a variable is set.
    Loop(u64, bool),
}

#[derive(Debug, Clone, Copy)]
enum RandomEdge {
    Always,
    Never,
    OnVariable,
}

const RULES: [&str; 5] = [
    "all_success",
    "any_success",
    "all_complete",
    "none_failed",
    "any_failed",
];

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::Noop),
        1 => Just(Kind::Fail),
        2 => (1_u64..400).prop_map(Kind::Delay),
        3 => Just(Kind::Http),
        2 => Just(Kind::Tool),
        2 => Just(Kind::Call),
        1 => Just(Kind::SetVariable),
        4 => Just(Kind::Write),
        2 => (0_u64..4, any::<bool>()).prop_map(|(times, guarded)| Kind::Loop(times, guarded)),
    ]
}

fn edge() -> impl Strategy<Value = Option<RandomEdge>> {
    prop_oneof![
        5 => Just(None),
        4 => Just(Some(RandomEdge::Always)),
        1 => Just(Some(RandomEdge::Never)),
        1 => Just(Some(RandomEdge::OnVariable)),
    ]
}

fn node() -> impl Strategy<Value = RandomNode> {
    (
        kind(),
        prop::bool::weighted(0.05),
        prop::collection::vec(edge(), 7),
        0_usize..12,
        prop::bool::weighted(0.2),
        0_u32..3,
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(kind, disabled, incoming, rule, timeout, retries, on_error)| RandomNode {
                kind,
                disabled,
                incoming,
                rule,
                timeout,
                retries,
                on_error,
            },
        )
}

/// Nodes, whether a trigger listens to the channel, its debounce, and the run's limits.
#[derive(Debug, Clone)]
pub(super) struct RandomWorkflow {
    nodes: Vec<RandomNode>,
    trigger: Option<(usize, u64)>,
}

pub(super) fn random_workflow() -> impl Strategy<Value = RandomWorkflow> {
    let trigger = prop::option::weighted(0.6, (0_usize..8, prop_oneof![Just(0_u64), 1_u64..200]));
    (prop::collection::vec(node(), 1..8), trigger)
        .prop_map(|(nodes, trigger)| RandomWorkflow { nodes, trigger })
}

impl RandomWorkflow {
    pub(super) fn document(&self) -> WorkflowBuilder {
        let mut built = workflow("random")
            .settings(json!({"maxLoopbackIterations": 2}))
            .channel("c", json!({"reducer": "append", "maxSize": 3}))
            .variable("flag", json!({"type": "boolean"}));
        for (ix, node) in self.nodes.iter().enumerate() {
            built = add_node(built, &name(ix), node);
        }
        for (ix, node) in self.nodes.iter().enumerate() {
            let sources = node.incoming.iter().take(ix).enumerate();
            for (source, edge) in sources.filter_map(|(s, edge)| Some((s, (*edge)?))) {
                let rule = RULES.get(node.rule).unwrap_or(&RULES[0]);
                let mut extra = json!({"triggerRule": rule});
                if let Some(condition) = condition(edge) {
                    extra["condition"] = condition;
                }
                built = built.edge(&name(source), &name(ix), extra);
            }
            if let Kind::Loop(_, guarded) = node.kind {
                let (head, body) = (name(ix), format!("{}-body", name(ix)));
                let guard = if guarded {
                    RandomEdge::OnVariable
                } else {
                    RandomEdge::Always
                };
                let extra = condition(guard).map_or(json!({}), |c| json!({"condition": c}));
                built = built
                    .edge(&head, &body, extra)
                    .path(&format!("{body} {head}"));
            }
        }
        match self.trigger {
            Some((node, debounce)) => {
                let target = name(node % self.nodes.len());
                built.on_write("c", &target, debounce)
            }
            None => built,
        }
    }
}

fn name(ix: usize) -> String {
    format!("n{ix}")
}

fn condition(edge: RandomEdge) -> Option<Value> {
    match edge {
        RandomEdge::Always => None,
        RandomEdge::Never => Some(json!({"type": "truthy", "left": "nothing"})),
        RandomEdge::OnVariable => {
            Some(json!({"type": "expression", "expression": "variables.flag == true"}))
        }
    }
}

fn add_node(workflow: WorkflowBuilder, id: &str, node: &RandomNode) -> WorkflowBuilder {
    let retry = json!({"maxAttempts": node.retries + 1, "backoff": "fixed", "backoffMs": 50});
    let mut settings = json!({"retry": retry});
    if node.timeout {
        settings["timeoutMs"] = json!(150);
    }
    if node.on_error {
        settings["onError"] = json!("continue");
    }
    let workflow = match node.kind {
        Kind::Noop => workflow.noops(id),
        Kind::Fail => workflow.fail(id, "broken"),
        Kind::Delay(ms) => workflow.delay(id, ms),
        Kind::Http => workflow.http(id, json!({})),
        Kind::Tool => super::tools::caller(workflow, id, json!({})),
        Kind::Call => workflow.call(id, "child", json!({})),
        Kind::SetVariable => workflow.node(
            id,
            "core.setVariable",
            json!({"name": "flag", "value": true}),
        ),
        Kind::Write => workflow.write(id, "c", json!(id)),
        Kind::Loop(times, _) => {
            workflow
                .delay(&format!("{id}-body"), 5)
                .node(id, "core.loop", json!({"times": times}))
        }
    };
    let disabled = node.disabled && !matches!(node.kind, Kind::Loop(..));
    workflow
        .with("settings", settings)
        .with("disabled", json!(disabled))
}
