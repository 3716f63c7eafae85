//! The debug bundle: one run, portable, with all caller input masked.

use super::project::{self, SnapshotExtras};
use super::spans;
use super::time::rfc3339;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use tandem_record::{Object, RecordedEvent, RunView, Sensitivity, Timestamp};

/// The host that made the bundle. No machine names, no addresses.
#[derive(Debug, Clone)]
pub struct HostInfo {
    pub name: String,
    pub version: String,
    pub vendor: Option<String>,
}

/// Maximum serialized size of the events in a bundle.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;
/// Matching shorter texts would mask ordinary words.
const MIN_MATCH_CHARS: usize = 4;
const MASK: &str = "[REDACTED]";
/// Members whose values are data of the run, of any shape.
const RUN_DATA_KEYS: [&str; 9] = [
    "outputs",
    "value",
    "previous",
    "next",
    "resumeValue",
    "answers",
    "content",
    "artifactData",
    "editedArtifactData",
];

pub fn debug_bundle(
    host: &HostInfo,
    view: &RunView,
    sensitivity: &Sensitivity,
    events: &[RecordedEvent],
    extras: &SnapshotExtras,
    now: Timestamp,
    max_events: Option<usize>,
) -> Value {
    let matcher = InputMatcher::of(&view.inputs);
    let mut run = project::snapshot(view, sensitivity, extras);
    let mut hidden = vec!["/inputs", "/variables", "/channels", "/outputs"];
    if run.pointer("/interrupt/childRunId").is_some() {
        // An interrupt of a child may repeat the child's inputs, which are not known here.
        hidden.push("/interrupt/data");
    }
    for place in hidden {
        if let Some(Value::Object(values)) = run.pointer_mut(place) {
            values.values_mut().for_each(|v| *v = Value::from(MASK));
        }
    }
    if run.get("error").is_none() {
        run["error"] = Value::Null;
    }
    matcher.scrub(&mut run, false);

    let mut shown = Vec::new();
    let mut bytes = 0;
    let mut truncated = None;
    for (i, recorded) in events.iter().enumerate() {
        if max_events.is_some_and(|max| i >= max) {
            truncated = Some("events_truncated_to_max_events");
            break;
        }
        let mut event = project::event(&view.run_id, recorded, sensitivity);
        matcher.scrub(&mut event, false);
        bytes += event.to_string().len();
        if bytes > MAX_EVENT_BYTES {
            truncated = Some("events_truncated_to_size_cap");
            break;
        }
        shown.push(event);
    }
    let total = view.head.0 + 1;
    if truncated.is_none() && (events.len() as u64) < total {
        truncated = Some("events_truncated_to_size_cap");
    }
    let nodes: HashSet<_> = events.iter().filter_map(|e| e.event.node()).collect();
    let mut bundle = json!({
        "bundleVersion": "1.0",
        "generatedAt": rfc3339(now),
        "host": host_document(host),
        "run": run,
        "metrics": {
            "eventCount": shown.len(),
            "totalEventCount": total,
            "nodeCount": nodes.len(),
            "openwopCost": null,
        },
        "events": shown,
        "spans": span_documents(view, sensitivity, events),
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

/// Spans as the bundle shows them.
fn span_documents(
    view: &RunView,
    sensitivity: &Sensitivity,
    events: &[RecordedEvent],
) -> Vec<Value> {
    let class = sensitivity.class.as_deref();
    spans::spans(&view.run_id, &view.workflow_id, class, events)
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

/// The values a caller sent, to be found in events.
#[derive(Default)]
struct InputMatcher<'a> {
    /// Texts long enough to be matched within other texts.
    texts: BTreeSet<&'a str>,
    /// Every scalar value, at any depth.
    values: Vec<&'a Value>,
}

impl<'a> InputMatcher<'a> {
    fn of(inputs: &'a Object) -> Self {
        let mut matcher = Self::default();
        inputs.values().for_each(|value| matcher.add(value));
        matcher
    }

    fn add(&mut self, value: &'a Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|v| self.add(v)),
            Value::Object(map) => map.values().for_each(|v| self.add(v)),
            Value::Null => {}
            single => {
                let long = single.as_str();
                let long = long.filter(|text| text.chars().count() >= MIN_MATCH_CHARS);
                self.texts.extend(long);
                self.values.push(single);
            }
        }
    }

    /// Masks inputs wherever they occur, and everything under `inputs`. Numbers and short texts are
    /// matched only among values of the run: elsewhere they are counts, names and states of the
    /// host.
    fn scrub(&self, value: &mut Value, among_values: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|v| self.scrub(v, among_values)),
            Value::Object(map) => {
                for (name, value) in map {
                    match (name.as_str(), value) {
                        ("inputs", Value::Object(inputs)) => {
                            inputs.values_mut().for_each(|v| *v = Value::from(MASK));
                        }
                        (name, value) => {
                            self.scrub(value, among_values || RUN_DATA_KEYS.contains(&name));
                        }
                    }
                }
            }
            Value::Null => {}
            single => {
                let text = single.as_str();
                let within = text.is_some_and(|t| self.texts.iter().any(|echo| t.contains(echo)));
                if within || (among_values && self.values.contains(&&*single)) {
                    *single = Value::from(MASK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_inputs_are_masked_everywhere_in_a_bundle() {
        let inputs = json!({"secret": {"deep": ["CANARY-1234"]}, "n": 7});
        let matcher = InputMatcher::of(inputs.as_object().unwrap());
        let outputs = json!({"x": "say CANARY-1234!", "sum": [7, 8]});
        let mut event =
            json!({"payload": {"inputs": {"a": 1}, "outputs": outputs, "durationMs": 7}});
        matcher.scrub(&mut event, false);
        assert_eq!(event["payload"]["outputs"]["sum"], json!(["[REDACTED]", 8]));
        assert_eq!(event["payload"]["durationMs"], 7);
        assert!(!event.to_string().contains("CANARY"));
        assert_eq!(event["payload"]["inputs"]["a"], "[REDACTED]");
    }
}
