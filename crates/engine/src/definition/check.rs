//! Compiles JSON to a [`Definition`]: first the schema, then everything a schema cannot express.

use super::document::{Document, Edge, PortValue};
use super::schema::Schemas;
use super::topology::{self, Topology};
use super::{
    CompiledChannel, CompiledEdge, CompiledNode, Definition, Loop, Permissions, Problem, schema,
    supervision, triggers,
};
use crate::conformance::AllowedHooks;
use crate::expression::Expression;
use crate::graph::condition::CompiledCondition;
use crate::ids::definition_hash;
use crate::node::{self, Kind, ParseContext};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tandem_record::NodeId;
use tandem_schema::Schema;

/// A document as far as it could be parsed, and all its problems.
pub(super) struct Examined {
    /// Absent when the document could not be read. With problems it is only good for finding more.
    pub(super) definition: Option<Definition>,
    /// All edges of the document are part of the definition.
    pub(super) whole: bool,
    pub(super) problems: Vec<Problem>,
}

pub(super) fn compile(
    source: &Value,
    permissions: Permissions<'_>,
) -> Result<Definition, Vec<Problem>> {
    let examined = examine(source, permissions);
    match examined.definition {
        Some(definition) if examined.problems.is_empty() => Ok(definition),
        _ => Err(examined.problems),
    }
}

/// Finds all problems, not only the first kind, so that an author can fix a document in one round.
pub(super) fn examine(source: &Value, permissions: Permissions<'_>) -> Examined {
    let mut problems = schema::check(source);
    let document: Document = match serde_json::from_value(source.clone()) {
        Ok(document) => document,
        Err(e) => {
            if problems.is_empty() {
                problems.push(Problem::new("", format!("unreadable document: {e}")));
            }
            return Examined {
                definition: None,
                whole: false,
                problems,
            };
        }
    };
    unique_names(&document, &mut problems);
    references(&document, &mut problems);
    if document.settings.compensation.is_some() {
        problems.push(Problem {
            capability: Some("compensation"),
            ..Problem::new(
                "/settings/compensation",
                "this host does not unwind runs; remove settings.compensation",
            )
        });
    }
    let mut schemas = Schemas::of(permissions);
    let channels = channels(&document, &mut schemas, &mut problems);
    let configurable = configurable(&document, &mut schemas, &mut problems);
    let mut parts = Parts::compile(&document, permissions, &mut schemas, &mut problems);
    supervision::check(&document, &parts.nodes, &mut problems);
    let (graph, topology) = graph(&document, &mut parts, &mut problems);
    let whole = graph.edges.len() == document.edges.len();
    let built = build(&graph, &topology, parts);
    let triggers = triggers::compile(&document, &built, &mut problems);

    let mut nodes = built.nodes;
    for trigger in &triggers {
        if nodes[trigger.node].incoming.is_empty() {
            nodes[trigger.node].trigger_only = true;
        }
    }
    let mut definition = Definition {
        hash: definition_hash(source),
        warnings: Vec::new(),
        sensitivity: Arc::default(),
        dispatchers: supervision::dispatchers(&nodes),
        by_id: nodes.iter().map(|n| n.id.clone()).zip(0..).collect(),
        nodes,
        edges: built.edges,
        channels,
        configurable,
        triggers,
        schema_weight: schemas.weight(),
        document,
    };
    definition.sensitivity = Arc::new(definition.sensitivity_given(&[]));
    Examined {
        definition: Some(definition),
        whole,
        problems,
    }
}

/// The document with the edges a graph can be built of, and the order of its nodes. Edges that lead
/// nowhere are left out, and all of them where they form a cycle, so that nodes are checked anyway.
fn graph<'a>(
    doc: &'a Document,
    parts: &mut Parts,
    problems: &mut Vec<Problem>,
) -> (Cow<'a, Document>, Topology) {
    let known: HashSet<&NodeId> = doc.nodes.iter().map(|n| &n.id).collect();
    let connects =
        |edge: &Edge| known.contains(&edge.source_node_id) && known.contains(&edge.target_node_id);
    let mut graph = Cow::Borrowed(doc);
    if !doc.edges.iter().all(connects) {
        let mut connecting = doc.edges.iter().map(connects);
        let mut keeps = || connecting.next().unwrap_or(false);
        parts.conditions.retain(|_| keeps());
        graph.to_mut().edges.retain(connects);
    }
    if let Err(cycle) = topology::sort(&graph) {
        let names: Vec<&str> = cycle.nodes.iter().map(NodeId::as_str).collect();
        let names = names.join(", ");
        let message =
            format!("nodes {names} form a cycle; only edges back to core.loop or a supervisor may");
        problems.push(Problem::new("/edges", message).with_reason("cycle_detected"));
        graph.to_mut().edges.clear();
        parts.conditions.clear();
    }
    let topology = topology::sort(&graph);
    let topology = topology.unwrap_or_else(|_| unreachable!("without edges there is no cycle"));
    (graph, topology)
}

fn unique_names(doc: &Document, problems: &mut Vec<Problem>) {
    let mut check = |list: &str, what: &str, names: Vec<&str>| {
        let mut seen = HashSet::new();
        for (i, name) in names.into_iter().enumerate() {
            if !seen.insert(name) {
                problems.push(Problem::new(
                    format!("/{list}/{i}/{what}"),
                    format!("{name:?} is used twice"),
                ));
            }
        }
    };
    check(
        "nodes",
        "id",
        doc.nodes.iter().map(|n| n.id.as_str()).collect(),
    );
    check(
        "edges",
        "id",
        doc.edges.iter().map(|e| e.id.as_str()).collect(),
    );
    check(
        "triggers",
        "id",
        doc.triggers.iter().map(|t| t.id.as_str()).collect(),
    );
    check(
        "variables",
        "name",
        doc.variables.iter().map(|v| v.name.as_str()).collect(),
    );
}

fn references(doc: &Document, problems: &mut Vec<Problem>) {
    let known: HashSet<&str> = doc.nodes.iter().map(|n| n.id.as_str()).collect();
    let mut check = |path: String, node: &NodeId| {
        if !known.contains(node.as_str()) {
            problems.push(Problem::new(
                path,
                format!("there is no node {node:?}", node = node.as_str()),
            ));
        }
    };
    for (i, edge) in doc.edges.iter().enumerate() {
        check(format!("/edges/{i}/sourceNodeId"), &edge.source_node_id);
        check(format!("/edges/{i}/targetNodeId"), &edge.target_node_id);
    }
    for (i, trigger) in doc.triggers.iter().enumerate() {
        if let Some(node) = &trigger.node_id {
            check(format!("/triggers/{i}/nodeId"), node);
        }
    }
    for (i, group) in doc.groups.iter().enumerate() {
        for (j, node) in group.node_ids.iter().enumerate() {
            check(format!("/groups/{i}/nodeIds/{j}"), node);
        }
    }
    for (i, node) in doc.nodes.iter().enumerate() {
        for (port, value) in &node.inputs {
            if let PortValue::Connection { node_id, .. } = value {
                check(format!("/nodes/{i}/inputs/{port}/nodeId"), node_id);
            }
        }
    }
}

fn channels(
    doc: &Document,
    schemas: &mut Schemas,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, CompiledChannel> {
    let mut compiled = BTreeMap::new();
    for (name, declared) in doc.channels.iter().flatten() {
        let schema = declared.schema.as_ref().and_then(|schema| {
            let at = format!("/channels/{name}/schema");
            let compiled = schemas.compile(schema);
            compiled
                .map_err(|why| problems.push(schema::refusal(&why, &at)))
                .ok()
        });
        compiled.insert(
            name.clone(),
            CompiledChannel {
                declared: declared.clone(),
                schema,
            },
        );
    }
    for (i, variable) in doc.variables.iter().enumerate() {
        if compiled.contains_key(&variable.name) {
            problems.push(Problem::new(
                format!("/variables/{i}/name"),
                format!("{:?} is declared as a channel too", variable.name),
            ));
        }
    }
    compiled
}

fn configurable(
    doc: &Document,
    schemas: &mut Schemas,
    problems: &mut Vec<Problem>,
) -> Option<Schema> {
    let schema = doc.configurable_schema.as_ref()?;
    let compiled = schemas.compile(schema);
    compiled
        .map_err(|why| problems.push(schema::refusal(&why, "/configurableSchema")))
        .ok()
}

pub(super) struct Built {
    pub(super) nodes: Vec<CompiledNode>,
    pub(super) edges: Vec<CompiledEdge>,
}

/// Nodes and conditions, each parsed on its own, in the document's order.
struct Parts {
    nodes: Vec<CompiledNode>,
    conditions: Vec<Option<CompiledCondition>>,
}

impl Parts {
    fn compile(
        doc: &Document,
        permissions: Permissions<'_>,
        schemas: &mut Schemas,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let nodes = (0..doc.nodes.len())
            .map(|d| compile_node(doc, d, permissions, schemas, problems))
            .collect();
        let mut condition = |(e, edge): (usize, &Edge)| {
            let compiled =
                CompiledCondition::new(edge.condition.as_ref()?, |text| schemas.pattern(text));
            compiled
                .map_err(|(key, message)| {
                    problems.push(
                        Problem::new(format!("/edges/{e}/condition/{key}"), message)
                            .with_reason("expression_invalid"),
                    );
                })
                .ok()
        };
        Self {
            nodes,
            conditions: doc.edges.iter().enumerate().map(&mut condition).collect(),
        }
    }
}

fn build(doc: &Document, topology: &Topology, parts: Parts) -> Built {
    let mut place = vec![0_usize; doc.nodes.len()];
    for (ix, &d) in topology.order.iter().enumerate() {
        place[d] = ix;
    }
    let by_id: HashMap<&NodeId, usize> = doc
        .nodes
        .iter()
        .enumerate()
        .map(|(d, n)| (&n.id, place[d]))
        .collect();
    let all_ends: Vec<(usize, usize)> = doc
        .edges
        .iter()
        .map(|e| (by_id[&e.source_node_id], by_id[&e.target_node_id]))
        .collect();

    let mut nodes = parts.nodes;
    nodes.sort_by_key(|node| place[node.doc]);
    let mut conditions = parts.conditions;
    let mut edges = Vec::new();
    // The rule is set on edges but belongs to the target: the smallest edge id wins.
    let mut rule_from: HashMap<usize, &str> = HashMap::new();
    for (e, edge) in doc.edges.iter().enumerate() {
        let (source, target) = all_ends[e];
        if topology.back_edges.contains(&e) {
            continue;
        }
        let condition = conditions[e].take();
        let ix = edges.len();
        edges.push(CompiledEdge {
            source,
            target,
            source_output: edge
                .source_output
                .clone()
                .unwrap_or_else(|| "output".into()),
            target_input: edge.target_input.clone().unwrap_or_else(|| "input".into()),
            condition,
        });
        nodes[source].outgoing.push(ix);
        nodes[target].incoming.push(ix);
        if rule_from
            .get(&target)
            .is_none_or(|held| edge.id.as_str() < *held)
        {
            rule_from.insert(target, &edge.id);
            nodes[target].rule = edge.trigger_rule;
        }
    }
    for &e in &topology.back_edges {
        let (tail, head) = all_ends[e];
        let forward = topology::reach(nodes.len(), &all_ends, &topology.back_edges, head);
        let body: BTreeSet<usize> = forward
            .iter()
            .copied()
            .filter(|&n| {
                n != head
                    && topology::reach(nodes.len(), &all_ends, &topology.back_edges, n)
                        .contains(&tail)
            })
            .collect();
        let repeats = nodes[head].repeats.get_or_insert_with(|| Loop {
            body: Vec::new(),
            tails: Vec::new(),
        });
        repeats.tails.push(tail);
        let merged: BTreeSet<usize> = repeats.body.iter().copied().chain(body).collect();
        repeats.body = merged.into_iter().collect();
    }
    include_inner_bodies(&mut nodes);
    Built { nodes, edges }
}

/// A round of an outer loop runs all of its inner loops again, with their bodies. Inner heads come
/// after outer ones in the order, so a backward pass finds each inner body complete.
fn include_inner_bodies(nodes: &mut [CompiledNode]) {
    for head in (0..nodes.len()).rev() {
        let Some(repeats) = &nodes[head].repeats else {
            continue;
        };
        let inner = repeats
            .body
            .iter()
            .filter_map(|n| nodes[*n].repeats.as_ref());
        let all: BTreeSet<usize> = inner
            .flat_map(|inner| inner.body.iter())
            .chain(&repeats.body)
            .copied()
            .collect();
        if let Some(repeats) = &mut nodes[head].repeats {
            repeats.body = all.into_iter().collect();
        }
    }
}

fn compile_node(
    doc: &Document,
    d: usize,
    permissions: Permissions<'_>,
    schemas: &mut Schemas,
    problems: &mut Vec<Problem>,
) -> CompiledNode {
    let node = &doc.nodes[d];
    let mut expressions = BTreeMap::new();
    for (port, value) in &node.inputs {
        if let PortValue::Expression { expression } = value {
            match Expression::parse(expression) {
                Ok(parsed) => {
                    expressions.insert(port.clone(), parsed);
                }
                Err(e) => problems.push(
                    Problem::new(
                        format!("/nodes/{d}/inputs/{port}/expression"),
                        e.to_string(),
                    )
                    .with_reason("expression_invalid"),
                ),
            }
        }
    }
    if node
        .agent
        .as_ref()
        .is_some_and(|a| a.get("channel").is_some())
    {
        problems.push(Problem::new(
            format!("/nodes/{d}/agent/channel"),
            "this host has no deployment channels; pin a version instead",
        ));
    }
    let mut context = ParseContext {
        path: format!("/nodes/{d}"),
        node: &node.id,
        hooks: AllowedHooks::of(permissions.conformance, doc.id.as_str()),
        test_only: false,
        packs: permissions.packs,
        schemas,
        problems,
    };
    let kind = node::parse(&node.type_id, &node.config, &mut context).unwrap_or(Kind::Passthrough);
    let test_only = context.test_only;
    CompiledNode {
        id: node.id.clone(),
        type_id: node.type_id.clone(),
        kind,
        doc: d,
        disabled: node.disabled,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        rule: Default::default(),
        expressions,
        repeats: None,
        trigger_only: false,
        test_only,
    }
}
