//! The debug bundle: one run, portable, with everything a caller put in masked out.

use super::project::{self, SnapshotExtras};
use super::spans;
use super::time::rfc3339;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use tandem_record::{Object, Recorded, RunView, Sensitivity, Timestamp};

/// Who made the bundle. No machine names, no addresses.
#[derive(Debug, Clone)]
pub struct HostInfo {
    pub name: String,
    pub version: String,
    pub vendor: Option<String>,
}

/// Serialized size a bundle's events may have.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;
/// Shorter texts would blank out ordinary words.
const MIN_ECHO_CHARS: usize = 4;
const MASK: &str = "[REDACTED]";

pub fn debug_bundle(
    host: &HostInfo,
    view: &RunView,
    sensitivity: &Sensitivity,
    events: &[Recorded],
    extras: &SnapshotExtras,
    now: Timestamp,
    max_events: Option<usize>,
) -> Value {
    let echoes = echoes(&view.inputs);
    let mut run = project::snapshot(view, sensitivity, extras);
    for key in ["inputs", "variables", "channels", "outputs"] {
        if let Some(Value::Object(values)) = run.get_mut(key) {
            values.values_mut().for_each(|v| *v = Value::from(MASK));
        }
    }
    if run.get("error").is_none() {
        run["error"] = Value::Null;
    }
    scrub(&mut run, &echoes);

    let mut shown = Vec::new();
    let mut bytes = 0;
    let mut truncated = None;
    for (i, recorded) in events.iter().enumerate() {
        if max_events.is_some_and(|max| i >= max) {
            truncated = Some("events_truncated_to_max_events");
            break;
        }
        let mut event = project::event(&view.run_id, recorded, sensitivity);
        scrub(&mut event, &echoes);
        bytes += event.to_string().len();
        if bytes > MAX_EVENT_BYTES {
            truncated = Some("events_truncated_to_size_cap");
            break;
        }
        shown.push(event);
    }
    let nodes: HashSet<_> = events.iter().filter_map(|e| e.event.node()).collect();
    let mut bundle = json!({
        "bundleVersion": "1.0",
        "generatedAt": rfc3339(now),
        "host": host_document(host),
        "run": run,
        "metrics": {
            "eventCount": shown.len(),
            "totalEventCount": events.len(),
            "nodeCount": nodes.len(),
            "openwopCost": null,
        },
        "events": shown,
        "spans": span_documents(view, events),
        "redactionApplied": true,
        "redactionMode": "mask",
    });
    if let Some(reason) = truncated {
        bundle["truncated"] = Value::from(true);
        bundle["truncatedReason"] = Value::from(reason);
    }
    bundle
}

fn host_document(host: &HostInfo) -> Value {
    let mut document = json!({"name": host.name, "version": host.version});
    if let Some(vendor) = &host.vendor {
        document["vendor"] = Value::from(vendor.as_str());
    }
    document
}

/// Spans in the bundle's shape.
pub fn span_documents(view: &RunView, events: &[Recorded]) -> Vec<Value> {
    spans::spans(&view.run_id, &view.workflow_id, events)
        .into_iter()
        .map(|span| {
            let mut status = json!({"code": span.status.as_str()});
            if let Some(message) = span.message {
                status["message"] = Value::from(message);
            }
            json!({
                "name": span.name,
                "traceId": span.trace_id,
                "spanId": span.span_id,
                "parentSpanId": span.parent_span_id,
                "kind": span.kind,
                "startedAt": rfc3339(span.started_at),
                "endedAt": span.ended_at.map(rfc3339),
                "attributes": span.attributes,
                "status": status,
            })
        })
        .collect()
}

/// Every text a caller sent, at any depth.
fn echoes(inputs: &Object) -> BTreeSet<String> {
    fn collect(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if text.chars().count() >= MIN_ECHO_CHARS => {
                found.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|v| collect(v, found)),
            Value::Object(map) => map.values().for_each(|v| collect(v, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    inputs.values().for_each(|v| collect(v, &mut found));
    found
}

/// Blanks out inputs wherever they come back, and whatever stands under `inputs`.
fn scrub(value: &mut Value, echoes: &BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if echoes.iter().any(|echo| text.contains(echo.as_str())) {
                *text = MASK.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| scrub(v, echoes)),
        Value::Object(map) => {
            if let Some(Value::Object(inputs)) = map.get_mut("inputs") {
                inputs.values_mut().for_each(|v| *v = Value::from(MASK));
            }
            map.values_mut().for_each(|v| scrub(v, echoes));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_never_come_back() {
        let inputs = json!({"secret": {"deep": ["CANARY-1234"]}, "n": 7});
        let echoes = echoes(inputs.as_object().unwrap());
        let mut event =
            json!({"payload": {"inputs": {"a": 1}, "outputs": {"x": "say CANARY-1234!"}}});
        scrub(&mut event, &echoes);
        assert!(!event.to_string().contains("CANARY"));
        assert_eq!(event["payload"]["inputs"]["a"], "[REDACTED]");
    }
}
