//! Where a workflow copies values that its author marked as sensitive. Computed from the document
//! alone, once when it is compiled, and again only for a child whose parent gave it something
//! sensitive.
//!
//! Whatever path a run takes, a value that is passed on is marked wherever it arrives: over inputs,
//! edges and bindings, through variables, channels and loops, out of children that received it. A
//! few more places may be marked, such as everything that is read from memory under a key that another
//! node wrote a sensitive value to. Not marked are results that others compute from a value
//! (services, models, tools, packs, people), what other runs left in memory, and what a condition reveals
//! about it.

use super::document::PortValue;
use super::{CompiledNode, Definition};
use crate::expression::Expression;
use crate::node::{DecisionSource, Kind, MemoryAction, MemoryConfig, MemoryKey, MemorySource};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{Masking, NodeId, RunRequest, Sensitivity};

/// One more place that contains something sensitive.
enum Mark<'a> {
    Port(&'a str),
    Variable(&'a str),
    Channel(&'a str),
    /// The node's error, which may quote what the node handles.
    Error,
}

impl Definition {
    /// What is masked in a run with this request.
    pub fn sensitivity_for(&self, request: &RunRequest) -> Arc<Sensitivity> {
        match request.sensitive_inputs.as_slice() {
            [] => Arc::clone(&self.sensitivity),
            inputs => Arc::new(self.sensitivity_given(inputs)),
        }
    }

    /// Whether the author marked this name itself, and not only a value it is computed from.
    pub(crate) fn is_declared_sensitive(&self, name: &str) -> bool {
        let channel = self.channels.get(name);
        let mut variables = self.document.variables.iter();
        variables.any(|v| v.sensitive && v.name == name)
            || channel.is_some_and(|c| c.declared.sensitive)
    }

    /// What is sensitive in a run whose parent passed these inputs, which are sensitive there.
    pub(super) fn sensitivity_given(&self, inputs: &[String]) -> Sensitivity {
        let mut found = self.marked_by_author();
        if !inputs.is_empty() && found.mode == Masking::Passthrough {
            // This workflow's author may not show them.
            found.mode = Masking::Mask;
        }
        found.variables.extend(inputs.iter().cloned());
        if !found.hides_anything() {
            return found;
        }
        // Marks are only added, and their number is limited: the loop ends.
        while self.propagate(&mut found) {}
        let last = self.sinks().map(|ix| self.nodes[ix].id.clone());
        found.last = last.collect();
        found
    }

    fn marked_by_author(&self) -> Sensitivity {
        let doc = &self.document;
        let config = doc.metadata.compliance_config.as_ref();
        let variables = doc.variables.iter().filter(|v| v.sensitive);
        let channels = doc.channels.iter().flatten().filter(|(_, c)| c.sensitive);
        let outputs = doc.nodes.iter().map(|node| {
            let ports = node.output_sensitivity.iter().filter(|(_, on)| **on);
            (
                node.id.clone(),
                ports.map(|(port, _)| port.clone()).collect(),
            )
        });
        Sensitivity {
            mode: config.and_then(|c| c.masking_mode).unwrap_or_default(),
            texts: None,
            class: doc.metadata.compliance_class.clone(),
            variables: variables.map(|v| v.name.clone()).collect(),
            channels: channels.map(|(name, _)| name.clone()).collect(),
            outputs: outputs
                .filter(|(_, ports): &(_, BTreeSet<String>)| !ports.is_empty())
                .collect(),
            errors: BTreeSet::new(),
            last: BTreeSet::new(),
        }
    }

    /// Propagates every mark one step; returns whether a mark was added.
    fn propagate(&self, found: &mut Sensitivity) -> bool {
        let mut more = false;
        for node in &self.nodes {
            let ports = self.sensitive_ports(node, found);
            let error = may_quote_sensitive(node, &ports, found).then_some(Mark::Error);
            let decision = self.carries_out_sensitive(node, found);
            let decision = decision.then_some(Mark::Port("decision"));
            let reads_memory = self.reads_sensitive_memory(node, found);
            for mark in marks(node, &ports, reads_memory, found)
                .into_iter()
                .chain(error)
                .chain(decision)
            {
                more |= match mark {
                    Mark::Error => found.errors.insert(node.id.clone()),
                    Mark::Port(port) => {
                        let known = found.outputs.entry(node.id.clone()).or_default();
                        known.insert(port.to_owned())
                    }
                    Mark::Variable(name) => found.variables.insert(name.to_owned()),
                    Mark::Channel(name) => found.channels.insert(name.to_owned()),
                };
            }
        }
        more
    }

    /// Whether the node carries out decisions of supervisors, and one of these is sensitive.
    fn carries_out_sensitive(&self, node: &CompiledNode, found: &Sensitivity) -> bool {
        let supervises = |node: &&CompiledNode| matches!(node.kind, Kind::Supervisor(_));
        matches!(node.kind, Kind::Dispatch(_))
            && self
                .nodes
                .iter()
                .filter(supervises)
                .any(|supervisor| is_sensitive_output(found, &supervisor.id, "decision"))
    }

    /// Whether the node reads an entry of memory that another node of this workflow writes something sensitive to.
    fn reads_sensitive_memory(&self, node: &CompiledNode, found: &Sensitivity) -> bool {
        let Kind::Memory(config) = &node.kind else {
            return false;
        };
        let may_read = |key: &Option<String>| match &config.action {
            MemoryAction::Get {
                key: MemoryKey::Text(read),
            } => key.as_ref() == Some(read),
            MemoryAction::Get { .. } | MemoryAction::List { .. } => true,
            MemoryAction::Put { .. } | MemoryAction::Delete { .. } => false,
        };
        self.nodes.iter().any(|other| {
            matches!(&other.kind, Kind::Memory(MemoryConfig {
                action: MemoryAction::Put { key, value: MemorySource::Variable(name), .. }, ..
            }) if found.holds(name) && may_read(key))
        })
    }

    /// The input ports that may contain something sensitive: the static counterpart of
    /// `port_values`.
    pub(crate) fn sensitive_ports(
        &self,
        node: &CompiledNode,
        found: &Sensitivity,
    ) -> BTreeSet<String> {
        let bindings = &self.document.nodes[node.doc].inputs;
        let mut ports = BTreeSet::new();
        if node.incoming.is_empty() {
            ports.extend(found.variables.iter().cloned());
        }
        for &e in &node.incoming {
            let edge = &self.edges[e];
            if is_sensitive_output(found, &self.nodes[edge.source].id, &edge.source_output) {
                ports.insert(edge.target_input.clone());
            }
        }
        for (port, binding) in bindings {
            let sensitive = match binding {
                PortValue::Static { .. } => false,
                PortValue::Variable { variable_name, .. } => found.holds(variable_name),
                PortValue::Connection {
                    node_id,
                    output_key,
                    ..
                } => is_sensitive_output(found, node_id, output_key),
                PortValue::Expression { .. } => {
                    let expression = node.expressions.get(port);
                    expression.is_some_and(|e| reads_sensitive(found, e))
                }
            };
            if sensitive {
                ports.insert(port.clone());
            } else {
                ports.remove(port);
            }
        }
        ports
    }
}

/// What a node copies from its ports and variables. Every kind is listed, so that a new kind has to
/// be classified.
fn marks<'a>(
    node: &'a CompiledNode,
    ports: &'a BTreeSet<String>,
    reads_sensitive_memory: bool,
    found: &Sensitivity,
) -> Vec<Mark<'a>> {
    // A value that goes to a variable and to a port is sensitive in both places.
    let same = |port: &'a str, variable: Option<&'a String>, arrives: bool| {
        let stored = variable.is_some_and(|name| found.variables.contains(name));
        if !arrives && !stored && !is_sensitive_output(found, &node.id, port) {
            return Vec::new();
        }
        let variable = variable.map(|name| Mark::Variable(name));
        std::iter::once(Mark::Port(port)).chain(variable).collect()
    };
    let when = |on: bool, mark: Mark<'a>| if on { vec![mark] } else { Vec::new() };
    match &node.kind {
        Kind::Passthrough => ports.iter().map(|port| Mark::Port(port)).collect(),
        Kind::Conformance(kind) if kind.passes_inputs_on() => {
            ports.iter().map(|port| Mark::Port(port)).collect()
        }
        Kind::SetVariable { name, value } => {
            let arrives = value.is_none() && ports.contains("value");
            same("value", Some(name), arrives)
        }
        Kind::GetVariable { name } => when(found.holds(name), Mark::Port("value")),
        Kind::ChannelWrite(write) => match &write.channel {
            Some(channel) => when(
                write.value.is_none() && ports.contains("value"),
                Mark::Channel(channel),
            ),
            None => Vec::new(),
        },
        Kind::Loop(config) => same(
            "item",
            config.item_variable.as_ref(),
            ports.contains("items"),
        ),
        Kind::Http(config) => same("body", config.output.as_ref(), false),
        Kind::Memory(config) => {
            let port = match &config.action {
                MemoryAction::Get { .. } => "value",
                MemoryAction::List { .. } => "entries",
                MemoryAction::Put { .. } => "memoryId",
                MemoryAction::Delete { .. } => "deleted",
            };
            same(port, config.output.as_ref(), reads_sensitive_memory)
        }
        // A person who accepts it may have edited it.
        Kind::ApprovalGate(gate) => when(
            gate.shows_inputs() && !ports.is_empty(),
            Mark::Port("artifactData"),
        ),
        Kind::Supervisor(config) => when(
            matches!(config.source, DecisionSource::Port) && ports.contains("decision"),
            Mark::Port("decision"),
        ),
        // What a child does with its inputs is not known here.
        Kind::SubWorkflow(config) => {
            let mut given = config.input_mapping.iter().map(|(_, ours)| ours);
            let left = config.output_mapping.iter().map(|(ours, _)| ours);
            match given.any(|name| found.holds(name)) {
                true => left.map(|name| Mark::Variable(name)).collect(),
                false => Vec::new(),
            }
        }
        Kind::Dispatch(config) => match config.input_variables().any(|name| found.holds(name)) {
            true => config
                .output_variables()
                .map(|name| Mark::Variable(name))
                .collect(),
            false => Vec::new(),
        },
        Kind::Delay { .. }
        | Kind::Fail { .. }
        | Kind::Model(_)
        | Kind::Tool(_)
        | Kind::ClarificationGate(_)
        | Kind::GenericInterrupt(_)
        | Kind::ConversationGate(_)
        | Kind::ChatFlow(_)
        | Kind::Pack
        | Kind::Gated { .. }
        | Kind::Conformance(_) => Vec::new(),
    }
}

/// Whether a node's error may hold something sensitive: the node is given it, over a port or by a name
/// in its configuration, or puts it out. Nodes that say only what their configuration says are left out.
fn may_quote_sensitive(node: &CompiledNode, ports: &BTreeSet<String>, found: &Sensitivity) -> bool {
    let named = match &node.kind {
        Kind::Fail { .. } | Kind::GetVariable { .. } => {
            return found.outputs.contains_key(&node.id);
        }
        Kind::SubWorkflow(config) => {
            let mut given = config.input_mapping.iter().map(|(_, ours)| ours);
            given.any(|name| found.holds(name))
        }
        Kind::Dispatch(config) => config.input_variables().any(|name| found.holds(name)),
        Kind::Memory(config) => config.variables_read().any(|name| found.holds(name)),
        // A run's `delaySeconds` is read past the ports.
        Kind::Delay { .. } => found.holds("delaySeconds"),
        _ => false,
    };
    named || !ports.is_empty() || found.outputs.contains_key(&node.id)
}

fn is_sensitive_output(found: &Sensitivity, node: &NodeId, port: &str) -> bool {
    // What a failed node leaves when its run goes on.
    if port == "error" && found.errors.contains(node) {
        return true;
    }
    let ports = found.outputs.get(node);
    ports.is_some_and(|ports| ports.contains(port))
}

/// Whether an expression reads something sensitive.
pub(crate) fn reads_sensitive(found: &Sensitivity, expression: &Expression) -> bool {
    let any = |root: &str, sensitive: &dyn Fn(&[&str]) -> bool| {
        let places = expression.places_below(root);
        places.iter().any(|place| sensitive(place))
    };
    let named = |place: &[&str]| match place.first() {
        Some(name) => found.holds(name),
        None => !(found.variables.is_empty() && found.channels.is_empty()),
    };
    any("variables", &named)
        || any("channels", &named)
        || any("inputs", &named)
        || any("nodes", &|place| match place {
            [node, "outputs", port, ..] => is_sensitive_output(found, &NodeId::new(*node), port),
            [node, ..] => {
                let node = NodeId::new(*node);
                found.outputs.contains_key(&node) || found.errors.contains(&node)
            }
            [] => !(found.outputs.is_empty() && found.errors.is_empty()),
        })
}
