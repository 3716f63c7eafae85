//! What the protocol allows in a document and this host does nothing with. An author who relies on
//! it is warned.

use super::Problem;
use serde_json::Value;

/// Keys of the document as a whole, and what is true instead.
const OF_WORKFLOW: [(&str, &str); 3] = [
    (
        "/settings/logLevel",
        "has no effect: every event of a run is recorded",
    ),
    (
        "/defaults",
        "has no effect: prompts are part of the nodes that use them",
    ),
    (
        "/acceptsInheritedArtifacts",
        "has no effect: runs inherit no artifacts",
    ),
];
const OF_NODE: [(&str, &str); 2] = [
    (
        "credentialsRef",
        "has no effect: name the secret where the node's configuration uses it",
    ),
    ("envelopeContract", "has no effect: it is not checked"),
];
/// Triggers that start a run or a node here, or are reported elsewhere.
const TRIGGERS: [&str; 3] = ["manual", "schedule", "channel-write"];

pub(super) fn problems(document: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, why) in OF_WORKFLOW {
        if document.pointer(path).is_some_and(is_given) {
            problems.push(Problem::warning(path, why));
        }
    }
    if document["isActive"] == Value::Bool(false) && document.get("status").is_none() {
        let why = "has no effect; `\"status\": \"inactive\"` keeps runs from being started";
        problems.push(Problem::warning("/isActive", why));
    }
    for (i, node) in listed(&document["nodes"]) {
        for (key, why) in OF_NODE {
            if node.get(key).is_some_and(is_given) {
                problems.push(Problem {
                    node: node["id"].as_str().map(Into::into),
                    ..Problem::warning(format!("/nodes/{i}/{key}"), why)
                });
            }
        }
    }
    for (i, variable) in listed(&document["variables"]) {
        if variable.get("format").is_some_and(is_given) {
            let why = "has no effect: only the type of an input is checked";
            problems.push(Problem::warning(format!("/variables/{i}/format"), why));
        }
    }
    for (i, trigger) in listed(&document["triggers"]) {
        let kind = trigger["type"].as_str().unwrap_or("manual");
        if !TRIGGERS.contains(&kind) && trigger["enabled"] != Value::Bool(false) {
            let why = format!("has no effect: this host starts no runs by {kind:?}");
            problems.push(Problem::warning(format!("/triggers/{i}/type"), why));
        }
    }
    problems
}

fn listed(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
