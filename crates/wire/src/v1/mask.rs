//! Masking of values that the workflow author marked as sensitive.

use serde_json::{Value, json};
use tandem_record::{Masking, NodeId, Object, Sensitivity};

/// Masks the entries of an object whose keys are sensitive.
pub(super) fn masked_entries(
    entries: &Object,
    mode: Masking,
    sensitive: impl Fn(&str) -> bool,
) -> Object {
    entries
        .iter()
        .filter_map(|(key, value)| {
            let shown = if sensitive(key) {
                mode.mask_value(value)?
            } else {
                value.clone()
            };
            Some((key.clone(), shown))
        })
        .collect()
}

/// What stands in place of a text where there must be one.
pub(super) fn mask_text(text: &str, mode: Masking) -> Value {
    mode.mask_value(&json!(text)).unwrap_or_else(|| json!(""))
}

/// The outputs of a node with sensitive ports masked.
pub(super) fn masked_outputs(node: &NodeId, outputs: &Object, sensitivity: &Sensitivity) -> Object {
    masked_entries(outputs, sensitivity.mode, |port| {
        is_masked_port(node, port, sensitivity)
    })
}

fn is_masked_port(node: &NodeId, port: &str, sensitivity: &Sensitivity) -> bool {
    let ports = sensitivity.outputs.get(node);
    let error = port == "error" && sensitivity.errors.contains(node);
    error || ports.is_some_and(|ports| ports.contains(port))
}

/// The outputs of a run are those of its last nodes: by node name, or flat if there is one node. A
/// flat object does not name its node, so a port that is sensitive at any last node is masked.
pub(super) fn masked_run_outputs(outputs: &Object, sensitivity: &Sensitivity) -> Object {
    let of_a_node = |(key, value): (&String, &Value)| {
        value.is_object() && sensitivity.last.contains(&NodeId::new(key.as_str()))
    };
    if outputs.len() > 1 && outputs.iter().all(of_a_node) {
        return masked_nodes(outputs, sensitivity);
    }
    let masked = |port: &str| {
        let mut last = sensitivity.last.iter();
        last.any(|node| is_masked_port(node, port, sensitivity))
    };
    // The only port of a node, when it has this name, is put out without it.
    let unwrapped = masked("output");
    masked_entries(outputs, sensitivity.mode, |key| unwrapped || masked(key))
}

fn masked_nodes(outputs: &Object, sensitivity: &Sensitivity) -> Object {
    let shown = outputs.iter().map(|(key, value)| {
        let node = NodeId::new(key.as_str());
        let value = match value {
            Value::Object(inner) => Value::Object(masked_outputs(&node, inner, sensitivity)),
            other => other.clone(),
        };
        (key.clone(), value)
    });
    shown.collect()
}
