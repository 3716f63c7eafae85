//! A workflow document, checked and compiled. Owns every rule about what may be registered. An
//! existing [`Definition`] is valid, so the run machine never checks it again.

pub(crate) mod admission;
mod check;
pub mod document;
mod nearest;
mod scheduled_triggers;
pub(crate) mod schema;
pub(crate) mod sensitive;
mod supervision;
mod topology;
mod triggers;
mod undefined_names;
mod unreachable;
mod without_effect;

pub use nearest::nearest;
pub use scheduled_triggers::{
    HORIZON_EXCEEDED, MAX_FUTURE_HORIZON, ScheduledTrigger, scheduled_trigger_hashes,
};
pub use undefined_names::{ChildReference, child_references};

use crate::conformance::MOCK_PROVIDER_KEY;
pub use crate::conformance::{ConformanceTypes, is_conformance};
use crate::expression::Expression;
use crate::graph::condition::CompiledCondition;
use crate::node::Kind;
use crate::pack::AllowedPackTypes;
use document::{Document, TriggerRule};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tandem_record::{DefinitionHash, NodeId, RunOptions, Sensitivity, WorkflowId};
use tandem_schema::{Meter, Schema};

/// One thing wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer to the place.
    pub path: String,
    pub message: String,
    /// A machine-readable reason where the protocol names one (`cycle_detected`, …).
    pub reason: Option<&'static str>,
    /// The unknown or refused node type, if that is the problem.
    pub type_id: Option<String>,
    pub node: Option<NodeId>,
    /// The capability this host lacks, if that is the problem.
    pub capability: Option<&'static str>,
    /// Reported to the author, but no reason to refuse the document.
    pub warning: bool,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            reason: None,
            type_id: None,
            node: None,
            capability: None,
            warning: false,
        }
    }

    pub(crate) fn warning(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::new(path, message)
        }
    }

    pub(crate) fn with_reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }
}

/// What the registering caller and this host allow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Permissions<'a> {
    pub conformance: ConformanceTypes,
    /// Unknown settings, and unknown roots of expressions, are warnings; otherwise the document is
    /// refused.
    pub unknown_settings: bool,
    /// Node types besides the host's own.
    pub packs: AllowedPackTypes<'a>,
}

#[derive(Debug)]
pub struct Definition {
    pub hash: DefinitionHash,
    pub document: Document,
    /// Warnings for the author, found at registration.
    pub warnings: Vec<Problem>,
    /// What is masked in a run whose parent gave it nothing sensitive.
    pub sensitivity: Arc<Sensitivity>,
    /// Nodes in topological order; every index below points into this.
    pub(crate) nodes: Vec<CompiledNode>,
    pub(crate) edges: Vec<CompiledEdge>,
    pub(crate) by_id: HashMap<NodeId, usize>,
    pub(crate) channels: BTreeMap<String, CompiledChannel>,
    pub(crate) configurable: Option<Schema>,
    pub(crate) triggers: Vec<ChannelTrigger>,
    schema_weight: usize,
    /// The dispatch nodes.
    pub(crate) dispatchers: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct CompiledNode {
    pub(crate) id: NodeId,
    pub(crate) type_id: String,
    pub(crate) kind: Kind,
    /// Index into the document's own array, which has the rest of the node.
    pub(crate) doc: usize,
    pub(crate) disabled: bool,
    /// Incoming edges without those that close a loop.
    pub(crate) incoming: Vec<usize>,
    pub(crate) outgoing: Vec<usize>,
    pub(crate) rule: TriggerRule,
    pub(crate) expressions: BTreeMap<String, Expression>,
    /// For a loop head: what it repeats.
    pub(crate) repeats: Option<Loop>,
    /// Started only by a channel-write trigger.
    pub(crate) trigger_only: bool,
    /// Its type, or something in its configuration, exists for conformance tests only.
    pub(crate) test_only: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Loop {
    /// Nodes that run again in every round, without the head.
    pub(crate) body: Vec<usize>,
    /// The sources of the edges back to the head.
    pub(crate) tails: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct CompiledEdge {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) source_output: String,
    pub(crate) target_input: String,
    pub(crate) condition: Option<CompiledCondition>,
}

#[derive(Debug)]
pub(crate) struct CompiledChannel {
    pub(crate) declared: document::Channel,
    pub(crate) schema: Option<Schema>,
}

#[derive(Debug)]
pub(crate) struct ChannelTrigger {
    pub(crate) id: String,
    pub(crate) channel: String,
    pub(crate) node: usize,
    pub(crate) debounce_ms: u64,
    /// The triggered node and everything after it: their writes do not fire it again.
    pub(crate) lineage: Vec<usize>,
}

impl Definition {
    /// Checks and compiles a document, or lists its problems.
    pub fn compile(document: &Value, permissions: Permissions<'_>) -> Result<Self, Vec<Problem>> {
        check::compile(document, permissions)
    }

    pub fn id(&self) -> &WorkflowId {
        &self.document.id
    }

    pub fn channel_aware(&self) -> bool {
        self.document.channels.is_some()
    }

    /// Whether this is one of the protocol's own test workflows. Only these may use test hooks.
    pub fn is_conformance(&self) -> bool {
        is_conformance(self.document.id.as_str())
    }

    /// Secrets of the operator that test-only nodes prove to have.
    pub fn needed_secrets(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Conformance(kind) => kind.needed_secret(),
            _ => None,
        })
    }

    /// The first node type this host knows but does not provide, with the capability it needs.
    pub fn gated(&self) -> Option<(&NodeId, &str, &'static str)> {
        self.nodes.iter().find_map(|n| match n.kind {
            Kind::Gated { capability } => Some((&n.id, n.type_id.as_str(), capability)),
            _ => None,
        })
    }

    /// The first node that uses something made for conformance tests only, with its type.
    pub fn test_only(&self) -> Option<(&NodeId, &str)> {
        let node = self.nodes.iter().find(|n| n.test_only)?;
        Some((&node.id, node.type_id.as_str()))
    }

    /// The types of its nodes.
    pub fn type_ids(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|n| n.type_id.as_str())
    }

    /// Types that packs have to provide.
    pub fn pack_types(&self) -> impl Iterator<Item = &str> {
        let nodes = self.nodes.iter();
        let foreign = nodes.filter(|n| matches!(n.kind, Kind::Pack));
        foreign.map(|n| n.type_id.as_str())
    }

    /// Checks a run's `configurable` against the workflow's own schema. The mock provider of a test
    /// is not part of that schema, because children inherit it.
    pub(crate) fn check_configurable(&self, options: &RunOptions, meter: &Meter) -> Vec<Problem> {
        let Some(schema) = &self.configurable else {
            return Vec::new();
        };
        let mut configurable = options.configurable.clone().unwrap_or_default();
        configurable.remove(MOCK_PROVIDER_KEY);
        schema::problems(schema, &Value::Object(configurable), "/configurable", meter)
    }

    /// Approximate bytes of memory of its schemas.
    pub fn schema_weight(&self) -> usize {
        self.schema_weight
    }

    /// All edges with their endpoints; used to draw the graph.
    pub fn edges(&self) -> impl Iterator<Item = (&NodeId, &NodeId, &document::Edge)> {
        self.document
            .edges
            .iter()
            .map(|e| (&e.source_node_id, &e.target_node_id, e))
    }

    pub(crate) fn doc_node(&self, ix: usize) -> &document::Node {
        &self.document.nodes[self.nodes[ix].doc]
    }

    pub(crate) fn index(&self, node: &NodeId) -> Option<usize> {
        self.by_id.get(node).copied()
    }

    /// Nodes without successors. Nodes of a loop body do not count; a loop head without another
    /// successor does.
    pub(crate) fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        let repeated = |ix: usize| {
            let loops = self.nodes.iter().filter_map(|n| n.repeats.as_ref());
            loops.into_iter().any(|l| l.body.contains(&ix))
        };
        (0..self.nodes.len()).filter(move |&ix| {
            let node = &self.nodes[ix];
            let leads_on = node.outgoing.iter().any(|e| {
                let target = self.edges[*e].target;
                !node
                    .repeats
                    .as_ref()
                    .is_some_and(|l| l.body.contains(&target))
            });
            !leads_on && !repeated(ix)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
