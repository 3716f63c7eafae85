//! What a program that embeds the host brings: agents, flows, tools and nodes in Rust.

use super::packs;
use crate::failure::Failure;
use std::sync::Arc;
use tandem_agents::RustAgents;
use tandem_nodes::{RustNode, RustNodes};
use tandem_record::is_reserved_type;
use tandem_runtime::{PackType, PackTypes};
use tandem_schema::{Budget, Schema};
use tandem_wasm::Packs;

/// Recorded as the pack of nodes in Rust.
const RUST_PACK: &str = "rust";

#[derive(Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) agents: RustAgents,
    pub(crate) nodes: RustNodes,
}

impl Extensions {
    /// Adds a node whose type no other node of the program has.
    pub(crate) fn add_node(&mut self, node: RustNode) -> Result<(), Failure> {
        self.nodes.add(node).map_err(|node| {
            Failure::new(
                format!("the node type {:?} is registered twice", node.type_id()),
                "Give each node type one implementation.",
            )
        })
    }

    /// The node types that documents may use beside the host's own.
    pub(super) fn node_types(&self, packs: Option<&Packs>) -> Result<PackTypes, Failure> {
        let mut types: Vec<(String, PackType)> = packs::entries(packs).collect();
        for node in self.nodes.iter() {
            let id = node.type_id();
            if is_reserved_type(id) {
                return Err(Failure::new(
                    format!("the node type {id:?} is reserved"),
                    "Choose a name of your own, for example vendor.clinic.price.",
                ));
            }
            if types.iter().any(|(known, _)| known == id) {
                return Err(Failure::new(
                    format!("a pack and this program both define the node type {id:?}"),
                    "Rename one of them.",
                ));
            }
            types.push((
                id.to_owned(),
                PackType {
                    pack: RUST_PACK.to_owned(),
                    config: compiled(node)?.map(Arc::new),
                },
            ));
        }
        Ok(types.into_iter().collect())
    }
}

fn compiled(node: &RustNode) -> Result<Option<Schema>, Failure> {
    let compiled = node.schema().map(|schema| {
        let compiled = Schema::compile(schema, &mut Budget::default());
        let compiled = compiled.map(|compiled| compiled.keeping_keys(schema));
        compiled.map_err(|why| {
            let (id, message) = (node.type_id(), why.message);
            Failure::new(
                format!("the schema of the node type {id:?} cannot be used: {message}"),
                "Give a JSON Schema.",
            )
        })
    });
    compiled.transpose()
}
