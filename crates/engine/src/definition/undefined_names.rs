//! Names that a document reads but never defines: variables, channels and nodes in expressions and
//! mappings, and in the texts of interrupts.

use super::document::{ConditionKind, PortValue};
use super::{CompiledNode, Definition, Problem, nearest};
use crate::expression::Expression;
use crate::graph::binding::{OUTPUT, ROOTS};
use crate::node::{Kind, MemoryAction, MemoryKey, MemorySource, escaped};
use crate::template::Template;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tandem_record::{NodeId, Object, WorkflowId};

/// Where a text of an interrupt is a template: the key, or the list and the key in its items.
const TEXTS: [(&str, &[&str]); 2] = [
    ("core.approvalGate", &["title", "description"]),
    ("core.clarificationGate", &["questions"]),
];

/// A workflow that a node starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildReference {
    /// JSON pointer to the place that names it.
    pub path: String,
    pub node: NodeId,
    pub workflow: WorkflowId,
}

/// The other workflows a document starts, as far as it names them. The document need not be valid
/// otherwise.
pub fn child_references(document: &Value) -> Vec<ChildReference> {
    let own = document["id"].as_str();
    let named = named_children(document).into_iter();
    named.filter(|c| Some(c.workflow.as_str()) != own).collect()
}

/// A workflow that starts itself: the run fails where it would.
pub(super) fn own_children(document: &Value) -> Vec<Problem> {
    let own = document["id"].as_str();
    let named = named_children(document).into_iter();
    let own = named.filter(|c| Some(c.workflow.as_str()) == own);
    own.map(|child| {
        let message = "is this workflow itself; a run that gets here fails with \
                       subworkflow_cycle_detected";
        Problem {
            node: Some(child.node),
            ..Problem::warning(child.path, message)
        }
    })
    .collect()
}

fn named_children(document: &Value) -> Vec<ChildReference> {
    let nodes = document["nodes"].as_array().into_iter().flatten();
    let mut found: Vec<ChildReference> = Vec::new();
    for (i, node) in nodes.enumerate() {
        let Some(id) = node["id"].as_str() else {
            continue;
        };
        let mut add = |place: String, workflow: &str| {
            found.push(ChildReference {
                path: format!("/nodes/{i}/config/{place}"),
                node: NodeId::new(id),
                workflow: WorkflowId::new(workflow),
            });
        };
        let config = &node["config"];
        match node["typeId"].as_str() {
            Some("core.subWorkflow") => {
                if let Some(child) = config["workflowId"].as_str() {
                    add("workflowId".to_owned(), child);
                }
            }
            Some("core.orchestrator.supervisor") => {
                if let Some(child) = config["verifier"]["workflowId"].as_str() {
                    add("verifier/workflowId".to_owned(), child);
                }
            }
            Some("core.dispatch") => {
                for key in ["perWorkerInputMappings", "perWorkerOutputMappings"] {
                    for worker in config[key].as_object().into_iter().flat_map(Object::keys) {
                        add(format!("{key}/{}", escaped(worker)), worker);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

impl ChildReference {
    /// No workflow has that name yet. It may be registered later: only a run needs it.
    pub fn unknown(&self) -> Problem {
        let message = format!(
            "there is no workflow {:?} yet; a run that gets here fails until there is one",
            self.workflow.as_str()
        );
        Problem {
            node: Some(self.node.clone()),
            ..Problem::warning(self.path.clone(), message)
        }
    }
}

/// `lenient`: a root that does not exist is a warning in an expression.
pub(super) fn problems(definition: &Definition, lenient: bool) -> Vec<Problem> {
    let names = DefinedNames::of(definition);
    let mut problems = Vec::new();
    for node in &definition.nodes {
        check_templates(definition, node, &names, &mut problems);
    }
    let mut report = |path: String, node: Option<&NodeId>, fault: String| {
        problems.push(Problem {
            node: node.cloned(),
            ..Problem::warning(path, fault)
        });
    };
    for node in &definition.nodes {
        for (path, name) in set_by(definition, node) {
            if let Some(fault) = names.undeclared(&name) {
                report(path, Some(&node.id), fault);
            }
        }
        for (path, name) in read_by(definition, node) {
            if let Some(fault) = names.unknown_variable(&name) {
                report(path, Some(&node.id), fault);
            }
        }
    }
    for place in expressions(definition) {
        let fault = names.unreadable(&place.expression, place.has_output);
        let problem = match fault {
            Some(fault) => Problem {
                warning: lenient,
                ..Problem::new(place.path, fault).with_reason("expression_invalid")
            },
            None => match names.unknown_in(&place.expression) {
                Some(fault) => Problem::warning(place.path, fault),
                None => continue,
            },
        };
        problems.push(Problem {
            node: place.node.cloned(),
            ..problem
        });
    }
    problems
}

/// An expression of a document.
struct ExpressionPlace<'a> {
    path: String,
    node: Option<&'a NodeId>,
    expression: Cow<'a, Expression>,
    /// Reads the outputs of the source of an edge.
    has_output: bool,
}

/// All of them but those in texts.
fn expressions(definition: &Definition) -> Vec<ExpressionPlace<'_>> {
    let mut places = Vec::new();
    for node in &definition.nodes {
        let mut add = |below: String, expression| {
            places.push(ExpressionPlace {
                path: format!("/nodes/{}/{below}", node.doc),
                node: Some(&node.id),
                expression: Cow::Borrowed(expression),
                has_output: false,
            });
        };
        for (port, expression) in &node.expressions {
            add(format!("inputs/{port}/expression"), expression);
        }
        if let Kind::Loop(config) = &node.kind
            && let Some(condition) = &config.condition
        {
            add("config/while".to_owned(), condition);
        }
    }
    for (e, edge) in definition.document.edges.iter().enumerate() {
        let condition = edge.condition.as_ref();
        let condition = condition.filter(|c| c.kind == ConditionKind::Expression);
        let text = condition.and_then(|c| c.expression.as_deref());
        if let Some(expression) = text.and_then(|text| Expression::parse(text).ok()) {
            places.push(ExpressionPlace {
                path: format!("/edges/{e}/condition/expression"),
                node: None,
                expression: Cow::Owned(expression),
                has_output: true,
            });
        }
    }
    places
}

/// All names that a document declares or sets.
struct DefinedNames<'a> {
    /// Declared in the document. Channels are read as variables too.
    declared: BTreeSet<&'a str>,
    /// Declared, or set by a node.
    variables: BTreeSet<&'a str>,
    nodes: BTreeSet<&'a str>,
}

impl<'a> DefinedNames<'a> {
    fn of(definition: &'a Definition) -> Self {
        let doc = &definition.document;
        let mut variables: BTreeSet<&str> = doc.variables.iter().map(|v| v.name.as_str()).collect();
        variables.extend(definition.channels.keys().map(String::as_str));
        let declared = variables.clone();
        for node in &definition.nodes {
            variables.extend(written_by(node));
        }
        Self {
            declared,
            variables,
            nodes: definition.nodes.iter().map(|n| n.id.as_str()).collect(),
        }
    }

    /// Why a value of this expression would never exist, whatever the run does.
    fn unreadable(&self, expression: &Expression, has_output: bool) -> Option<String> {
        let known = || ROOTS.into_iter().chain(has_output.then_some(OUTPUT));
        let mut roots = expression.roots().into_iter();
        if let Some(root) = roots.find(|root| known().all(|known| known != *root)) {
            let fault = format!("{root:?} is nothing an expression can read");
            return Some(match self.meant_by(root, known()) {
                Some(meant) => format!("{fault}; did you mean `{meant}`?"),
                None => format!("{fault}: {}", known().collect::<Vec<_>>().join(", ")),
            });
        }
        let mut places = expression.places_below("nodes").into_iter();
        places.find_map(|place| match place.as_slice() {
            [node, part, ..] if *part != "outputs" => Some(format!(
                "a node has no {part:?}; did you mean `nodes.{node}.outputs`?"
            )),
            _ => None,
        })
    }

    fn meant_by<'r>(&self, root: &str, known: impl Iterator<Item = &'r str>) -> Option<String> {
        if self.variables.contains(root) {
            return Some(format!("variables.{root}"));
        }
        if self.nodes.contains(root) {
            return Some(format!("nodes.{root}.outputs"));
        }
        nearest(root, known).map(str::to_owned)
    }

    fn unknown_variable(&self, name: &str) -> Option<String> {
        if self.variables.contains(name) {
            return None;
        }
        Some(missing("variable", name, &self.variables))
    }

    /// Why a node should not set this variable.
    fn undeclared(&self, name: &str) -> Option<String> {
        if self.declared.contains(name) {
            return None;
        }
        let fault = format!("sets a variable that is not declared: {name:?}");
        Some(match nearest(name, self.declared.iter().copied()) {
            Some(meant) => format!("{fault}; did you mean `{meant}`?"),
            None => format!("{fault}; declare it in variables"),
        })
    }

    /// Inputs are not checked: a caller may give more of them than are declared.
    fn unknown_in(&self, expression: &Expression) -> Option<String> {
        let read = |root: &str| expression.read_below(root).into_iter().flatten();
        let variable = read("variables").chain(read("channels"));
        let mut unknown = variable.filter_map(|name| self.unknown_variable(name));
        unknown.next().or_else(|| {
            let node = read("nodes").find(|node| !self.nodes.contains(node))?;
            Some(missing("node", node, &self.nodes))
        })
    }
}

fn missing(what: &str, name: &str, known: &BTreeSet<&str>) -> String {
    let fault = format!("there is no {what} {name:?} in this workflow");
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("{fault}; did you mean `{meant}`?"),
        None if what == "variable" => format!("{fault}; declare it in variables"),
        None => fault,
    }
}

/// Variables a node sets.
fn written_by(node: &CompiledNode) -> Vec<&str> {
    match &node.kind {
        Kind::SetVariable { name, .. } => vec![name],
        Kind::ChannelWrite(write) => write.channel.as_deref().into_iter().collect(),
        Kind::SubWorkflow(config) => {
            let pairs = config.output_mapping.iter();
            pairs.map(|(ours, _)| ours.as_str()).collect()
        }
        Kind::Dispatch(config) => config.output_variables().map(String::as_str).collect(),
        Kind::Http(config) => config.output.as_deref().into_iter().collect(),
        Kind::Memory(config) => config.output.as_deref().into_iter().collect(),
        Kind::Loop(config) => config.item_variable.as_deref().into_iter().collect(),
        // Test hooks leave what they found.
        Kind::Conformance(kind) => kind.result_variables().to_vec(),
        // Their turns are kept in a channel of this name.
        Kind::ConversationGate(_) => vec!["conversation"],
        _ => Vec::new(),
    }
}

/// Variables that the author has a node set, and the path of each.
fn set_by(definition: &Definition, node: &CompiledNode) -> Vec<(String, String)> {
    let at = format!("/nodes/{}/config", node.doc);
    let config = &definition.document.nodes[node.doc].config;
    match &node.kind {
        Kind::SetVariable { name, .. } => vec![(format!("{at}/name"), name.clone())],
        Kind::Http(_) | Kind::Memory(_) => {
            let output = config.get("output").and_then(Value::as_str);
            let output = output.map(|name| (format!("{at}/output"), name.to_owned()));
            output.into_iter().collect()
        }
        Kind::SubWorkflow(_) => names_of_mapping(&at, "outputMapping", config.get("outputMapping")),
        Kind::Dispatch(_) => {
            let mut set = names_of_mapping(&at, "outputMapping", config.get("outputMapping"));
            let workers = config.get("perWorkerOutputMappings");
            for (worker, mapping) in workers.and_then(Value::as_object).into_iter().flatten() {
                let under = format!("perWorkerOutputMappings/{worker}");
                set.extend(names_of_mapping(&at, &under, Some(mapping)));
            }
            set
        }
        _ => Vec::new(),
    }
}

/// The names on the left of a mapping.
fn names_of_mapping(at: &str, under: &str, mapping: Option<&Value>) -> Vec<(String, String)> {
    let pairs = mapping.and_then(Value::as_object).into_iter().flatten();
    pairs
        .map(|(name, _)| (format!("{at}/{under}/{name}"), name.clone()))
        .collect()
}

/// Variables a node reads by name, and the path of each.
fn read_by(definition: &Definition, node: &CompiledNode) -> Vec<(String, String)> {
    let at = format!("/nodes/{}", node.doc);
    let document = &definition.document.nodes[node.doc];
    let mut read = Vec::new();
    for (port, binding) in &document.inputs {
        if let PortValue::Variable { variable_name, .. } = binding {
            let path = format!("{at}/inputs/{port}/variableName");
            read.push((path, variable_name.clone()));
        }
    }
    let mut add = |below: &str, name: &str| {
        read.push((format!("{at}/config/{below}"), name.to_owned()));
    };
    match &node.kind {
        Kind::GetVariable { name } => add("name", name),
        Kind::SubWorkflow(config) => {
            for (theirs, ours) in &config.input_mapping {
                add(&format!("inputMapping/{theirs}"), ours);
            }
        }
        Kind::Dispatch(_) => {
            let every = document.config.get("inputMapping");
            let mut mapped = |under: &str, mapping: Option<&Value>| {
                let pairs = mapping.and_then(Value::as_object).into_iter().flatten();
                for (theirs, ours) in pairs {
                    add(
                        &format!("{under}/{theirs}"),
                        ours.as_str().unwrap_or_default(),
                    );
                }
            };
            mapped("inputMapping", every);
            let workers = document.config.get("perWorkerInputMappings");
            for (worker, mapping) in workers.and_then(Value::as_object).into_iter().flatten() {
                mapped(&format!("perWorkerInputMappings/{worker}"), Some(mapping));
            }
        }
        Kind::Memory(config) => match &config.action {
            MemoryAction::Put {
                value: MemorySource::Variable(name),
                ..
            } => add("valueFrom", name),
            MemoryAction::Get {
                key: MemoryKey::Variable(name),
            }
            | MemoryAction::Delete {
                key: MemoryKey::Variable(name),
            } => add("keyFrom", name),
            _ => {}
        },
        _ => {}
    }
    read
}

/// The values that an interrupt shows must be defined at registration, not only when a person reads
/// it.
fn check_templates(
    definition: &Definition,
    node: &CompiledNode,
    names: &DefinedNames<'_>,
    problems: &mut Vec<Problem>,
) {
    let config = &definition.document.nodes[node.doc].config;
    let interrupt_kind = config.get("kind").and_then(Value::as_str);
    let (type_id, config, under) = match (node.type_id.as_str(), interrupt_kind) {
        ("core.interrupt", Some(kind)) => {
            let Some(data) = config.get("data").and_then(Value::as_object) else {
                return;
            };
            let type_id = match kind {
                "approval" => "core.approvalGate",
                "clarification" => "core.clarificationGate",
                _ => return,
            };
            (type_id, data, "config/data")
        }
        (type_id, _) => (type_id, config, "config"),
    };
    let Some((_, keys)) = TEXTS.iter().find(|(known, _)| *known == type_id) else {
        return;
    };
    let mut check = |below: String, text: &str| {
        let fault = match Template::parse(text) {
            Err(fault) => Some(fault),
            Ok(template) => template.expressions().find_map(|e| {
                let fault = names.unreadable(e, false);
                fault.or_else(|| names.unknown_in(e))
            }),
        };
        if let Some(fault) = fault {
            let path = format!("/nodes/{}/{under}/{below}", node.doc);
            let mut problem = Problem::new(path, fault).with_reason("expression_invalid");
            problem.node = Some(node.id.clone());
            problems.push(problem);
        }
    };
    for key in *keys {
        match config.get(*key) {
            Some(Value::String(text)) => check((*key).to_owned(), text),
            Some(Value::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if let Some(text) = item["question"].as_str() {
                        check(format!("{key}/{i}/question"), text);
                    }
                }
            }
            _ => {}
        }
    }
}
