//! Rules about supervisors and the nodes that carry out their decisions.

use super::document::Document;
use super::{CompiledNode, Problem};
use crate::node::{DecisionSource, Kind, Supervisor};

pub(super) fn check(doc: &Document, nodes: &[CompiledNode], problems: &mut Vec<Problem>) {
    // Compared by type: a node with a refused configuration still counts.
    let has = |type_id: &str| doc.nodes.iter().any(|n| n.type_id == type_id);
    let supervised = has("core.orchestrator.supervisor");
    let dispatched = has("core.dispatch");
    for node in nodes {
        let (place, fault) = match &node.kind {
            Kind::Dispatch(_) if !supervised => (
                "",
                "core.dispatch carries out what a core.orchestrator.supervisor decides; there is none",
            ),
            Kind::Supervisor(config) => {
                let fault = missing_decision_source(doc, node, config)
                    .or_else(|| verifier_without_dispatch(config, dispatched));
                match fault.or_else(|| same_agent(doc, node, config)) {
                    Some(fault) => fault,
                    None => continue,
                }
            }
            _ => continue,
        };
        let mut problem = Problem::new(format!("/nodes/{}{place}", node.doc), fault);
        problem.node = Some(node.id.clone());
        problems.push(problem);
    }
}

type Fault = (&'static str, &'static str);

/// A supervisor without a source of decisions.
fn missing_decision_source(
    doc: &Document,
    node: &CompiledNode,
    config: &Supervisor,
) -> Option<Fault> {
    let bound = doc.nodes[node.doc].inputs.contains_key("decision");
    let wired = doc
        .edges
        .iter()
        .any(|e| e.target_node_id == node.id && e.target_input.as_deref() == Some("decision"));
    let decided = bound || wired || !matches!(config.source, DecisionSource::Port);
    (!decided).then_some((
        "",
        "a supervisor needs a source of decisions: config.endpoint, or the port \"decision\"",
    ))
}

/// A verifier in a workflow without a dispatch node would never be called.
fn verifier_without_dispatch(config: &Supervisor, dispatched: bool) -> Option<Fault> {
    let place = match &config.verifier {
        Some(_) => "/config/verifier",
        None if !config.success_criteria.is_empty() => "/config/successCriteria",
        None => return None,
    };
    (!dispatched).then_some((
        place,
        "is looked at where a core.dispatch carries out what was decided; there is none",
    ))
}

/// An agent must not verify its own decisions.
fn same_agent(doc: &Document, node: &CompiledNode, config: &Supervisor) -> Option<Fault> {
    let verifier = config.verifier.as_ref()?.agent_id.as_deref()?;
    let pin = doc.nodes[node.doc].agent.as_ref();
    let pinned = pin.and_then(|pin| pin.get("agentId")?.as_str());
    let own = pinned.or(config.agent_id.as_deref());
    (own == Some(verifier)).then_some((
        "/config/verifier/agentId",
        "a verifier must be another agent than the supervisor it checks",
    ))
}

pub(super) fn dispatchers(nodes: &[CompiledNode]) -> Vec<usize> {
    let dispatches = |ix: &usize| matches!(nodes[*ix].kind, Kind::Dispatch(_));
    (0..nodes.len()).filter(dispatches).collect()
}
