//! When a node may run: the state of its incoming edges under its trigger rule.

use super::binding::RunScope;
use crate::definition::document::TriggerRule;
use crate::node::Kind;
use crate::run::Run;
use serde_json::Value;
use tandem_record::NodeStatus;
use tandem_schema::Meter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeState {
    Success,
    /// The source will not contribute: skipped, cancelled, or its condition is false.
    Inactive,
    Failed,
    Unresolved,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    Skip(&'static str),
    Wait,
}

pub(crate) fn edge_state(run: &Run, edge: usize, meter: &Meter) -> EdgeState {
    let edge = &run.def.edges[edge];
    let source = run.node(edge.source);
    let node = &run.def.nodes[edge.source];
    match source.status {
        NodeStatus::Completed => {
            let outputs = source.outputs.as_deref();
            if let (Kind::Loop(_), Some(repeats)) = (&node.kind, &node.repeats) {
                let done = outputs.and_then(|o| o.get("done")) == Some(&Value::Bool(true));
                match (repeats.body.contains(&edge.target), done) {
                    (true, true) => return EdgeState::Inactive,
                    (false, false) => return EdgeState::Unresolved,
                    (true, false) | (false, true) => {}
                }
            }
            let holds = edge.condition.as_ref().is_none_or(|condition| {
                outputs.is_some_and(|o| condition.holds(o, &RunScope::with_output(run, o), meter))
            });
            if holds {
                EdgeState::Success
            } else {
                EdgeState::Inactive
            }
        }
        NodeStatus::Failed => EdgeState::Failed,
        NodeStatus::Skipped | NodeStatus::Cancelled => EdgeState::Inactive,
        NodeStatus::Pending if node.trigger_only && !source.cut_off => EdgeState::Inactive,
        NodeStatus::Pending | NodeStatus::Running | NodeStatus::Suspended => EdgeState::Unresolved,
    }
}

/// What should happen to a pending node.
pub(crate) fn readiness(run: &Run, ix: usize, meter: &Meter) -> Readiness {
    let node = &run.def.nodes[ix];
    if node.disabled {
        return Readiness::Skip("disabled");
    }
    // It was ready before, by its edges or a trigger, and a pause cut it off.
    if run.node(ix).cut_off {
        return Readiness::Ready;
    }
    if node.trigger_only {
        return Readiness::Wait;
    }
    if node.incoming.is_empty() {
        return Readiness::Ready;
    }
    let incoming = node.incoming.iter();
    let edges: Vec<EdgeState> = incoming.map(|e| edge_state(run, *e, meter)).collect();
    let count = |wanted: EdgeState| edges.iter().filter(|e| **e == wanted).count();
    let (succeeded, failed) = (count(EdgeState::Success), count(EdgeState::Failed));
    let resolved = count(EdgeState::Unresolved) == 0;
    let verdict = match node.rule {
        TriggerRule::AllSuccess if resolved => Some(failed == 0 && succeeded > 0),
        TriggerRule::AnySuccess if succeeded > 0 => Some(true),
        TriggerRule::AnySuccess if resolved => Some(false),
        TriggerRule::AllComplete if resolved => Some(true),
        TriggerRule::NoneFailed if failed > 0 => Some(false),
        TriggerRule::NoneFailed if resolved => Some(true),
        TriggerRule::AnyFailed if failed > 0 => Some(true),
        TriggerRule::AnyFailed if resolved => Some(false),
        TriggerRule::AllSuccess
        | TriggerRule::AnySuccess
        | TriggerRule::AllComplete
        | TriggerRule::NoneFailed
        | TriggerRule::AnyFailed => None,
    };
    match verdict {
        Some(true) => Readiness::Ready,
        Some(false) => Readiness::Skip(skip_reason(run, ix, failed)),
        None => Readiness::Wait,
    }
}

fn skip_reason(run: &Run, ix: usize, failed: usize) -> &'static str {
    let node = &run.def.nodes[ix];
    let by_condition = node.incoming.iter().any(|&e| {
        let edge = &run.def.edges[e];
        edge.condition.is_some() && run.node(edge.source).status == NodeStatus::Completed
    });
    match node.rule {
        TriggerRule::AnyFailed | TriggerRule::NoneFailed => "trigger-rule",
        _ if failed > 0 => "trigger-rule",
        _ if by_condition => "condition",
        _ => "upstream-skipped",
    }
}

/// Whether the workflow handles a node's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    Handled,
    /// A branch may still handle it.
    Open,
    Unhandled,
}

pub(crate) fn handling(run: &Run, failed: usize) -> Handling {
    let mut best = Handling::Unhandled;
    for &e in &run.def.nodes[failed].outgoing {
        let target = run.def.edges[e].target;
        let node = &run.def.nodes[target];
        let status = run.node(target).status;
        if node.disabled || matches!(status, NodeStatus::Skipped | NodeStatus::Cancelled) {
            continue;
        }
        match node.rule {
            TriggerRule::AnyFailed | TriggerRule::AllComplete => return Handling::Handled,
            TriggerRule::AnySuccess => {
                if status != NodeStatus::Pending {
                    return Handling::Handled;
                }
                best = Handling::Open;
            }
            TriggerRule::AllSuccess | TriggerRule::NoneFailed => {}
        }
    }
    best
}
