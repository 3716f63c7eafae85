//! Rules about supervisors and the nodes that carry out what they decide.

use super::document::Document;
use super::{CompiledNode, Problem};
use crate::node::{Kind, Source};

pub(super) fn check(doc: &Document, nodes: &[CompiledNode], problems: &mut Vec<Problem>) {
    // By its name: one whose configuration is refused is still there.
    let supervised = doc
        .nodes
        .iter()
        .any(|n| n.type_id == "core.orchestrator.supervisor");
    for node in nodes {
        let fault = match &node.kind {
            Kind::Dispatch(_) if !supervised => {
                "core.dispatch carries out what a core.orchestrator.supervisor decides; there is none"
            }
            Kind::Supervisor(config) if matches!(config.source, Source::Port) => {
                let bound = doc.nodes[node.doc].inputs.contains_key("decision");
                let wired = doc.edges.iter().any(|e| {
                    e.target_node_id == node.id && e.target_input.as_deref() == Some("decision")
                });
                if bound || wired {
                    continue;
                }
                "a supervisor needs somebody who decides: config.endpoint, or the port \"decision\""
            }
            _ => continue,
        };
        let mut problem = Problem::new(format!("/nodes/{}", node.doc), fault);
        problem.node = Some(node.id.clone());
        problems.push(problem);
    }
}

pub(super) fn dispatchers(nodes: &[CompiledNode]) -> Vec<usize> {
    let dispatches = |ix: &usize| matches!(nodes[*ix].kind, Kind::Dispatch(_));
    (0..nodes.len()).filter(dispatches).collect()
}
