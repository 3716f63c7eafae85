//! The values on a node's input ports, and the values that expressions can read.

use super::channel::{AccessSide, check_access};
use super::readiness::{EdgeState, edge_state};
use crate::cost::{self, charge_copies};
use crate::definition::document::PortValue;
use crate::definition::sensitive::reads_sensitive;
use crate::expression::{Expression, Scope, Step, ValueLocation};
use crate::run::{Limits, Run};
use crate::template::Template;
use serde_json::Value;
use std::borrow::Cow;
use tandem_record::{ErrorInfo, Masking, NodeId, NodeStatus, Object, Size};
use tandem_schema::Meter;

/// What stands at a port is copied into the port, events and the state.
const PORT_COPIES: u64 = 4;

impl Run {
    /// A variable, or a channel by the same name.
    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        let variable = self.variables().get(name);
        variable.or_else(|| self.channel_value(name))
    }

    /// Folded value of a channel; its declared default before the first write.
    pub(crate) fn channel_value(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.written_channel(name) {
            return Some(value);
        }
        self.def.channels.get(name)?.declared.default.as_ref()
    }

    /// All channels, declared or written.
    pub(crate) fn channel_values(&self) -> Object {
        let channels = self.channels();
        channels
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn channels(&self) -> impl Iterator<Item = (&String, &Value)> {
        let undeclared = self.written_channels();
        let undeclared = undeclared.filter(|name| !self.def.channels.contains_key(*name));
        let names = self.def.channels.keys().chain(undeclared);
        names.filter_map(|name| Some((name, self.channel_value(name)?)))
    }

    /// Port values for a node about to start: run inputs at a root, then edges, then bindings.
    /// Refused as soon as they are more than an event may carry: many ports may show one value.
    pub(crate) fn port_values(
        &self,
        ix: usize,
        limits: &Limits,
        meter: &Meter,
    ) -> Result<Object, ErrorInfo> {
        let node = &self.def.nodes[ix];
        let mut ports = Object::new();
        let mut text = 0;
        let mut copy = |value: Cow<'_, Value>| {
            let Some(size) = charge_copies(&*value, PORT_COPIES, meter) else {
                return Err(not_evaluated());
            };
            text += size.text;
            if text > limits.max_event_bytes {
                let what = format!("what node {:?} is given", node.id.as_str());
                limits.admit(&what, text)?;
            }
            Ok(value.into_owned())
        };
        if node.incoming.is_empty() {
            let inputs = &self.request().inputs;
            charge_copies(inputs, PORT_COPIES, meter).ok_or_else(not_evaluated)?;
            ports.extend(inputs.clone());
        }
        for &e in &node.incoming {
            let edge = &self.def.edges[e];
            let source = self.node(edge.source);
            if edge_state(self, e, meter) != EdgeState::Success {
                continue;
            }
            if let Some(value) = source
                .outputs
                .as_ref()
                .and_then(|o| o.get(&edge.source_output))
            {
                ports.insert(edge.target_input.clone(), copy(Cow::Borrowed(value))?);
            }
        }
        // Changes requested by a reviewer are passed to the node that has to make them.
        if let Some(feedback) = self.requested_changes(&node.id) {
            ports.insert("refineFeedback".to_owned(), feedback.clone());
        }
        for (port, binding) in &self.def.doc_node(ix).inputs {
            match self.resolve_binding(ix, port, binding, meter)? {
                Some(value) => ports.insert(port.clone(), copy(value)?),
                None => ports.remove(port),
            };
        }
        Ok(ports)
    }

    fn resolve_binding<'a>(
        &'a self,
        ix: usize,
        port: &str,
        binding: &'a PortValue,
        meter: &Meter,
    ) -> Result<Option<Cow<'a, Value>>, ErrorInfo> {
        let unresolved = |what: String| {
            Err(ErrorInfo::new(
                "input_unresolved",
                format!(
                    "port {port:?} of node {:?}: {what}",
                    self.def.nodes[ix].id.as_str()
                ),
            ))
        };
        match binding {
            PortValue::Static { value } => Ok(Some(Cow::Borrowed(value))),
            PortValue::Variable {
                variable_name,
                optional,
            } => {
                self.check_channel_access(ix, variable_name)?;
                let declared = || {
                    let variables = self.def.document.variables.iter();
                    variables.map(|v| &v.name).any(|name| name == variable_name)
                        || self.def.channels.contains_key(variable_name)
                };
                match self.variable(variable_name) {
                    Some(value) => Ok(Some(Cow::Borrowed(value))),
                    None if *optional || declared() => Ok(None),
                    None => unresolved(format!("there is no variable {variable_name:?}")),
                }
            }
            PortValue::Connection {
                node_id,
                output_key,
                optional,
            } => {
                let source = self.def.index(node_id).map(|s| self.node(s));
                match source.filter(|s| s.status == NodeStatus::Completed) {
                    Some(source) => {
                        let outputs = source.outputs.as_ref();
                        match outputs.and_then(|o| o.get(output_key)) {
                            Some(value) => Ok(Some(Cow::Borrowed(value))),
                            None if *optional => Ok(None),
                            None => unresolved(format!(
                                "node {:?} put out nothing under {output_key:?}",
                                node_id.as_str()
                            )),
                        }
                    }
                    None if *optional => Ok(None),
                    None => unresolved(format!("node {:?} did not complete", node_id.as_str())),
                }
            }
            PortValue::Expression { .. } => {
                let Some(expression) = self.def.nodes[ix].expressions.get(port) else {
                    return Ok(None);
                };
                for name in expression.read_below("channels") {
                    match name {
                        Some(name) => self.check_channel_access(ix, name)?,
                        None => self
                            .def
                            .channels
                            .keys()
                            .try_for_each(|name| self.check_channel_access(ix, name))?,
                    }
                }
                let scope = RunScope::new(self);
                Ok(Some(match expression.evaluate(&scope, meter) {
                    // The scope lives shorter than what it shows.
                    Cow::Borrowed(value) => {
                        charge_copies(value, 1, meter).ok_or_else(not_evaluated)?;
                        Cow::Owned(value.clone())
                    }
                    Cow::Owned(value) => Cow::Owned(value),
                }))
            }
        }
    }

    /// Whether a node may read this name. Only a channel's access list can forbid it.
    pub(crate) fn check_channel_access(&self, ix: usize, name: &str) -> Result<(), ErrorInfo> {
        let Some(channel) = self.def.channels.get(name) else {
            return Ok(());
        };
        let node = &self.def.nodes[ix];
        let (id, kind) = (node.id.as_str(), node.type_id.as_str());
        check_access(name, &channel.declared, AccessSide::Readers, id, kind)
    }
}

impl Run {
    /// A text of the workflow with the run's values in it. What is sensitive stays masked: the text
    /// is shown wherever the question is.
    pub(crate) fn render_template(&self, text: &Template, meter: &Meter) -> String {
        let sensitivity = text.expressions().next().map(|_| self.sensitivity());
        let hidden = |e: &Expression| {
            let rules = sensitivity.as_ref();
            rules.is_some_and(|s| s.mode != Masking::Passthrough && reads_sensitive(s, e))
        };
        text.render(&RunScope::new(self), meter, hidden)
    }
}

/// Stands for what did not fit the meter. It is never recorded.
fn not_evaluated() -> ErrorInfo {
    ErrorInfo::new("decision_work_exceeded", "the value was not evaluated")
}

/// What every expression can read.
pub(crate) const ROOTS: [&str; 4] = ["inputs", "variables", "channels", "nodes"];
/// What the condition of an edge can read besides: the outputs of the edge's source.
pub(crate) const OUTPUT: &str = "output";

/// What an expression sees of a run.
pub(crate) struct RunScope<'a> {
    run: &'a Run,
    output: Option<&'a Object>,
}

impl<'a> RunScope<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, output: None }
    }

    /// For a condition: `output` contains the outputs of the edge's source.
    pub(crate) fn with_output(run: &'a Run, output: &'a Object) -> Self {
        Self {
            run,
            output: Some(output),
        }
    }
}

impl Scope for RunScope<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "inputs" => Some(Value::Object(self.run.request().inputs.clone())),
            "variables" => Some(Value::Object(self.run.variables().clone())),
            "channels" => Some(Value::Object(self.run.channel_values())),
            "output" => self.output.cloned().map(Value::Object),
            "nodes" => {
                let nodes = self.run.def.nodes.iter().zip(self.run.nodes());
                let outputs = nodes.filter_map(|(node, state)| {
                    let outputs = state.outputs.as_deref()?.clone();
                    let wrapped = Object::from_iter([("outputs".to_owned(), outputs.into())]);
                    Some((node.id.to_string(), Value::Object(wrapped)))
                });
                Some(Value::Object(outputs.collect()))
            }
            _ => None,
        }
    }

    fn root_cost(&self, name: &str) -> u64 {
        let size = match name {
            "inputs" => Size::of(&self.run.request().inputs),
            "variables" => Size::of(self.run.variables()),
            "channels" => self
                .run
                .channels()
                .fold(Size::default(), |sum, (_, value)| sum + Size::of(value)),
            "output" => self.output.map_or(Size::default(), Size::of),
            "nodes" => {
                let nodes = self.run.nodes().iter();
                let outputs = nodes.filter_map(|state| state.outputs.as_deref());
                outputs.fold(Size::default(), |sum, outputs| sum + Size::of(outputs))
            }
            _ => Size::default(),
        };
        cost::of_copy(size)
    }

    fn locate(&self, root: &str, path: &[Step]) -> ValueLocation<'_> {
        let run = self.run;
        let (object, key, steps) = match (root, path) {
            ("inputs", [Step::Key(key), ..]) => (Some(&run.request().inputs), key, 1),
            ("variables", [Step::Key(key), ..]) => (Some(run.variables()), key, 1),
            ("output", [Step::Key(key), ..]) => (self.output, key, 1),
            ("nodes", [Step::Key(node), Step::Key(outputs), Step::Key(key), ..])
                if outputs == "outputs" =>
            {
                let ix = run.def.index(&NodeId::from(node.as_str()));
                let outputs = ix.and_then(|ix| run.node(ix).outputs.as_deref());
                (outputs, key, 3)
            }
            ("channels", [Step::Key(key), ..]) => {
                return match run.written_channel(key) {
                    Some(value) => ValueLocation::Found(value, 1),
                    None => ValueLocation::NotStored,
                };
            }
            _ => return ValueLocation::NotStored,
        };
        match object.and_then(|object| object.get(key)) {
            Some(value) => ValueLocation::Found(value, steps),
            None => ValueLocation::Missing,
        }
    }
}
