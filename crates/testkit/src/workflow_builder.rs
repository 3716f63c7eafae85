//! A builder for workflow documents.

use serde_json::{Value, json};

pub struct WorkflowBuilder {
    document: Value,
}

/// An empty workflow, to be filled.
pub fn wf(id: &str) -> WorkflowBuilder {
    WorkflowBuilder {
        document: json!({
            "id": id, "name": id, "version": "1.0", "metadata": {}, "settings": {},
            "triggers": [{"id": "manual", "type": "manual"}],
            "variables": [], "nodes": [], "edges": [],
        }),
    }
}

impl WorkflowBuilder {
    pub fn node(mut self, id: &str, type_id: &str, config: Value) -> Self {
        self.list("nodes").push(json!({
            "id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
            "config": config, "inputs": {},
        }));
        self
    }

    pub fn noop(self, id: &str) -> Self {
        self.node(id, "core.noop", json!({}))
    }

    pub fn delay(self, id: &str, ms: u64) -> Self {
        self.node(id, "core.delay", json!({"ms": ms}))
    }

    pub fn http(self, id: &str, max_attempts: u32) -> Self {
        let retry = json!({"maxAttempts": max_attempts, "backoff": "fixed", "backoffMs": 200});
        let config = json!({"url": "http://world.test/", "retry": retry});
        self.node(id, "vendor.tandem.http", config)
    }

    pub fn call(self, id: &str, workflow: &str, config: Value) -> Self {
        let mut whole = json!({"workflowId": workflow});
        merge(&mut whole, &config);
        self.node(id, "core.subWorkflow", whole)
    }

    /// Sets a key of the node added last.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        let node = self.list("nodes").last_mut().expect("a node to change");
        node[key] = value;
        self
    }

    pub fn port(mut self, port: &str, binding: Value) -> Self {
        let node = self.list("nodes").last_mut().expect("a node to change");
        node["inputs"][port] = binding;
        self
    }

    pub fn edge(self, source: &str, target: &str) -> Self {
        self.edge_with(source, target, json!({}))
    }

    /// An edge with a rule, a condition, or ports.
    pub fn edge_with(mut self, source: &str, target: &str, extra: Value) -> Self {
        let edges = self.list("edges");
        let mut edge = json!({
            "id": format!("e{:03}", edges.len()),
            "sourceNodeId": source, "targetNodeId": target,
        });
        merge(&mut edge, &extra);
        edges.push(edge);
        self
    }

    /// Edges along a path: `"a b c"` is a→b→c.
    pub fn path(self, nodes: &str) -> Self {
        let nodes: Vec<&str> = nodes.split_whitespace().collect();
        let pairs = nodes.windows(2);
        pairs.fold(self, |flow, pair| flow.edge(pair[0], pair[1]))
    }

    /// A variable with the type of its default.
    pub fn variable(mut self, name: &str, default: Value) -> Self {
        let kind = match default {
            Value::Null | Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.list("variables")
            .push(json!({"name": name, "type": kind, "defaultValue": default}));
        self
    }

    pub fn channel(mut self, name: &str, declaration: Value) -> Self {
        self.document["channels"][name] = declaration;
        self
    }

    /// A `channel-write` trigger that starts `node`.
    pub fn on_write(mut self, channel: &str, node: &str, debounce_ms: u64) -> Self {
        self.list("triggers").push(json!({
            "id": format!("on-{channel}"), "type": "channel-write", "nodeId": node,
            "config": {"channel": channel, "debounceMs": debounce_ms},
        }));
        self
    }

    pub fn settings(mut self, settings: Value) -> Self {
        self.document["settings"] = settings;
        self
    }

    pub fn document(self) -> Value {
        self.document
    }

    fn list(&mut self, key: &str) -> &mut Vec<Value> {
        let list = self.document[key].as_array_mut();
        list.expect("the document has this list")
    }
}

fn merge(into: &mut Value, from: &Value) {
    let from = from.as_object().expect("extra keys are an object");
    for (key, value) in from {
        into[key] = value.clone();
    }
}
