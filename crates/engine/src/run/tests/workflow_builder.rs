//! A short notation for workflow documents.

use crate::definition::{Definition, Permissions, Problem};
use crate::pack::AllowedPackTypes;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct WorkflowBuilder {
    doc: Value,
}

pub(super) fn workflow(id: &str) -> WorkflowBuilder {
    WorkflowBuilder {
        doc: json!({
            "id": id, "name": id, "version": "1.0", "metadata": {}, "settings": {},
            "triggers": [{"id": "manual", "type": "manual"}],
            "variables": [], "nodes": [], "edges": [],
        }),
    }
}

impl WorkflowBuilder {
    pub(super) fn node(mut self, id: &str, type_id: &str, config: Value) -> Self {
        self.list("nodes").push(json!({
            "id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
            "config": config, "inputs": {},
        }));
        self
    }

    /// Nodes that do nothing, by name.
    pub(super) fn noops(self, ids: &str) -> Self {
        let ids = ids.split_whitespace();
        ids.fold(self, |workflow, id| {
            workflow.node(id, "core.noop", json!({}))
        })
    }

    pub(super) fn delay(self, id: &str, ms: u64) -> Self {
        self.node(id, "core.delay", json!({"ms": ms}))
    }

    pub(super) fn fail(self, id: &str, code: &str) -> Self {
        self.node(id, "core.fail", json!({"code": code}))
    }

    pub(super) fn http(self, id: &str, config: Value) -> Self {
        let mut whole = json!({"url": "http://world.test/"});
        merge(&mut whole, &config);
        self.node(id, "vendor.tandem.http", whole)
    }

    /// A sub-workflow call.
    pub(super) fn call(self, id: &str, workflow: &str, config: Value) -> Self {
        let mut whole = json!({"workflowId": workflow});
        merge(&mut whole, &config);
        self.node(id, "core.subWorkflow", whole)
    }

    /// A key of the node added last.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        let node = self.list("nodes").last_mut().expect("a node to change");
        node[key] = value;
        self
    }

    pub(super) fn port(mut self, port: &str, binding: Value) -> Self {
        let node = self.list("nodes").last_mut().expect("a node to change");
        node["inputs"][port] = binding;
        self
    }

    /// Edges along a path: `"a b c"` is a→b→c.
    pub(super) fn path(self, nodes: &str) -> Self {
        let nodes: Vec<&str> = nodes.split_whitespace().collect();
        let pairs = nodes.windows(2);
        pairs.fold(self, |workflow, pair| {
            workflow.edge(pair[0], pair[1], json!({}))
        })
    }

    pub(super) fn edge(mut self, source: &str, target: &str, extra: Value) -> Self {
        let edges = self.list("edges");
        let mut edge = json!({
            "id": format!("e{:02}", edges.len()),
            "sourceNodeId": source, "targetNodeId": target,
        });
        merge(&mut edge, &extra);
        edges.push(edge);
        self
    }

    pub(super) fn ruled(self, source: &str, target: &str, rule: &str) -> Self {
        self.edge(source, target, json!({"triggerRule": rule}))
    }

    pub(super) fn variable(mut self, name: &str, extra: Value) -> Self {
        let mut variable = json!({"name": name, "type": "string"});
        merge(&mut variable, &extra);
        self.list("variables").push(variable);
        self
    }

    pub(super) fn channel(mut self, name: &str, declaration: Value) -> Self {
        self.doc["channels"][name] = declaration;
        self
    }

    /// A `channel-write` trigger that fires `node`.
    pub(super) fn on_write(mut self, channel: &str, node: &str, debounce_ms: u64) -> Self {
        self.list("triggers").push(json!({
            "id": format!("on-{channel}"), "type": "channel-write", "nodeId": node,
            "config": {"channel": channel, "debounceMs": debounce_ms},
        }));
        self
    }

    pub(super) fn write(self, id: &str, channel: &str, value: Value) -> Self {
        let config = json!({"channelName": channel, "value": value});
        self.node(id, "core.channelWrite", config)
    }

    pub(super) fn settings(mut self, settings: Value) -> Self {
        self.doc["settings"] = settings;
        self
    }

    /// A key of the whole document.
    pub(super) fn key(mut self, key: &str, value: Value) -> Self {
        self.doc[key] = value;
        self
    }

    pub(super) fn document(self) -> Value {
        self.doc
    }

    pub(super) fn compile(self) -> Arc<Definition> {
        let permissions = Permissions {
            packs: AllowedPackTypes::Listed(&super::harness::packs()),
            ..Permissions::default()
        };
        let compiled = Definition::compile(&self.doc, permissions);
        Arc::new(compiled.expect("the test's workflow compiles"))
    }

    /// The problems of a workflow that should be refused.
    pub(super) fn faults(self) -> Vec<Problem> {
        let admitted = Definition::admit(&self.doc, Permissions::default());
        let mut faults = admitted.expect_err("the test's workflow is faulty");
        faults.retain(|fault| !fault.warning);
        faults
    }

    fn list(&mut self, key: &str) -> &mut Vec<Value> {
        let list = self.doc[key].as_array_mut();
        list.expect("the document has this list")
    }
}

fn merge(into: &mut Value, from: &Value) {
    let from = from.as_object().expect("extra keys are an object");
    for (key, value) in from {
        into[key] = value.clone();
    }
}
