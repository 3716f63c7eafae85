//! Nodes that no run reaches: after a disabled node, or after one that can only fail.

use super::document::{OnError, TriggerRule};
use super::{CompiledNode, Definition, Problem};
use crate::node::Kind;

/// How a node may end, as far as the document shows.
#[derive(Clone, Copy)]
struct Ends {
    completes: bool,
    fails: bool,
    /// It may be skipped; then its edges are inactive.
    skips: bool,
}

const SKIPPED: Ends = Ends {
    completes: false,
    fails: false,
    skips: true,
};

pub(super) fn unreachable_nodes(definition: &Definition) -> Vec<Problem> {
    let mut ends: Vec<Ends> = Vec::with_capacity(definition.nodes.len());
    let mut problems = Vec::new();
    // In topological order, so that the predecessors of a node are known.
    for node in &definition.nodes {
        let before = node.incoming.iter().map(|&e| {
            let edge = &definition.edges[e];
            let source = ends[edge.source];
            Ends {
                skips: source.skips || edge.condition.is_some(),
                ..source
            }
        });
        let before: Vec<Ends> = before.collect();
        let runs = before.is_empty() || can_start(node.rule, &before);
        ends.push(match (runs, node.disabled) {
            (true, false) => ends_of(definition, node, &before),
            _ => SKIPPED,
        });
        if !runs && !node.disabled {
            let why = "can never run: what comes before it is disabled, never runs, or ends in a \
                       way its trigger rule does not wait for";
            problems.push(Problem {
                node: Some(node.id.clone()),
                ..Problem::warning(format!("/nodes/{}", node.doc), why)
            });
        }
    }
    problems
}

fn can_start(rule: TriggerRule, before: &[Ends]) -> bool {
    let some_completes = before.iter().any(|b| b.completes);
    let some_always_fails = before.iter().any(|b| b.fails && !b.completes && !b.skips);
    match rule {
        TriggerRule::AllSuccess => some_completes && !some_always_fails,
        TriggerRule::AnySuccess => some_completes,
        TriggerRule::AllComplete => true,
        TriggerRule::NoneFailed => !some_always_fails,
        TriggerRule::AnyFailed => before.iter().any(|b| b.fails),
    }
}

fn ends_of(definition: &Definition, node: &CompiledNode, before: &[Ends]) -> Ends {
    let settings = &definition.document.nodes[node.doc].settings;
    let tolerated = settings.on_error == OnError::Continue;
    let always_fails = matches!(node.kind, Kind::Fail { .. }) && !tolerated;
    Ends {
        completes: !always_fails,
        fails: !tolerated,
        skips: !before.is_empty(),
    }
}
