//! Marks data from outside on its way through a run and its descendants: from a tool's node along
//! edges and bindings, through variables and channels, into children and back, to every value
//! computed from it. Prompts of models show the marks.
//!
//! Memory carries no marks. A person's answer is not marked, whatever the person was shown.

use crate::definition::document::PortValue;
use crate::expression::Expression;
use crate::graph::readiness::{EdgeState, edge_state};
use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::NodeState;
use crate::run::state::Run;
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::{NodeId, Object};
use tandem_schema::Meter;

const OPEN: &str = "<UNTRUSTED";
const CLOSE: &str = "</UNTRUSTED";

impl Run {
    /// The ports of a node that contain data from outside.
    pub(in crate::run) fn untrusted_ports(&self, ix: usize, meter: &Meter) -> BTreeSet<String> {
        let node = &self.def.nodes[ix];
        let mut ports = BTreeSet::new();
        if node.incoming.is_empty() {
            ports.extend(self.request().untrusted_inputs.iter().cloned());
        }
        for &e in &node.incoming {
            let edge = &self.def.edges[e];
            let source = self.node(edge.source);
            if source.offers_untrusted(&edge.source_output)
                && edge_state(self, e, meter) == EdgeState::Success
            {
                ports.insert(edge.target_input.clone());
            }
        }
        for (port, binding) in &self.def.doc_node(ix).inputs {
            let marked = match binding {
                PortValue::Static { .. } => false,
                PortValue::Variable { variable_name, .. } => {
                    self.state.values.untrusted.contains(variable_name)
                }
                PortValue::Connection {
                    node_id,
                    output_key,
                    ..
                } => {
                    let source = self.def.index(node_id).map(|s| self.node(s));
                    source.is_some_and(|s| s.offers_untrusted(output_key))
                }
                PortValue::Expression { .. } => {
                    let expression = node.expressions.get(port);
                    expression.is_some_and(|e| self.reads_untrusted(e))
                }
            };
            if marked {
                ports.insert(port.clone());
            } else {
                ports.remove(port);
            }
        }
        ports
    }

    /// Whether an expression reads data from outside.
    fn reads_untrusted(&self, expression: &Expression) -> bool {
        let reads = |root: &str, marked: &dyn Fn(Option<&str>) -> bool| {
            expression.read_below(root).into_iter().any(marked)
        };
        let named = |name: Option<&str>| match name {
            Some(name) => self.state.values.untrusted.contains(name),
            None => !self.state.values.untrusted.is_empty(),
        };
        let given = &self.request().untrusted_inputs;
        reads("nodes", &|id| match id {
            Some(id) => {
                let ix = self.def.index(&NodeId::new(id));
                ix.is_some_and(|ix| self.node(ix).untrusted)
            }
            None => self.nodes().iter().any(|n| n.untrusted),
        }) || reads("variables", &named)
            || reads("channels", &named)
            || reads("inputs", &|name| match name {
                Some(name) => given.iter().any(|given| given == name),
                None => !given.is_empty(),
            })
    }

    /// Whether a node's outputs are computed from data from outside.
    pub(in crate::run) fn passes_on_untrusted(&self, ix: usize, meter: &Meter) -> bool {
        match &self.def.nodes[ix].kind {
            Kind::GetVariable { name } => self.state.values.untrusted.contains(name),
            Kind::SetVariable { value, .. } => {
                value.is_none() && self.untrusted_ports(ix, meter).contains("value")
            }
            Kind::Passthrough | Kind::Model(_) | Kind::ChannelWrite(_) | Kind::Loop(_) => {
                !self.untrusted_ports(ix, meter).is_empty()
            }
            _ => false,
        }
    }
}

impl NodeState {
    /// Whether one of its output ports can give data from outside.
    fn offers_untrusted(&self, port: &str) -> bool {
        let outputs = self.outputs.as_ref();
        self.untrusted && outputs.is_some_and(|outputs| outputs.contains_key(port))
    }
}

impl DecisionDraft<'_> {
    /// A model's inputs with all data from outside between markers.
    pub(in crate::run) fn mark_untrusted_inputs(&self, ix: usize, inputs: &Object) -> Object {
        let marked = self.run.untrusted_ports(ix, self.cx.work);
        if marked.is_empty() {
            return inputs.clone();
        }
        let tools = self.untrusted_tool_names();
        let mut marked_inputs = inputs.clone();
        for value in marked_inputs
            .iter_mut()
            .filter_map(|(port, value)| marked.contains(port).then_some(value))
        {
            wrap_untrusted(value, &tools);
        }
        marked_inputs
    }

    /// The names of the tools that have answered so far; names of tools in other runs are not
    /// known.
    fn untrusted_tool_names(&self) -> String {
        let nodes = self.run.def.nodes.iter().zip(self.run.nodes());
        let untrusted_nodes = nodes.filter(|(_, state)| state.untrusted);
        let names: BTreeSet<&str> = untrusted_nodes
            .filter_map(|(node, _)| match &node.kind {
                Kind::Tool(config) => config.tool_name(),
                _ => None,
            })
            .collect();
        if names.is_empty() {
            return "elsewhere".to_owned();
        }
        let names = names.into_iter().collect::<Vec<_>>().join(",");
        names.replace(['"', '<', '>', '\n'], "_")
    }
}

/// A text, or the text of every message.
fn wrap_untrusted(value: &mut Value, tools: &str) {
    match value {
        Value::String(text) => {
            let inner = escape_end_marker(text);
            *text = format!("{OPEN} tool=\"{tools}\">{inner}{CLOSE}>");
        }
        Value::Array(messages) => {
            for content in messages.iter_mut().filter_map(|m| m.get_mut("content")) {
                wrap_untrusted(content, tools);
            }
        }
        _ => {}
    }
}

/// Escapes the end marker, so that the text inside cannot end the wrapping.
fn escape_end_marker(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (found, _) in lower.match_indices("</untrusted") {
        out += &text[at..found];
        out += "<\\/";
        at = found + 2;
    }
    out + &text[at..]
}
