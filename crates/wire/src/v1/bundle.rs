use super::project::{self, SnapshotExtras};
use super::time::rfc3339;
use serde_json::{Value, json};
use tandem_record::{Recorded, RunView, Sensitivity, Timestamp};

pub struct HostInfo {
    pub name: String,
    pub version: String,
    pub vendor: Option<String>,
}

pub fn debug_bundle(
    host: &HostInfo,
    view: &RunView,
    sensitivity: &Sensitivity,
    events: &[Recorded],
    extras: &SnapshotExtras,
    now: Timestamp,
    max_events: Option<usize>,
) -> Value {
    let shown = max_events.map_or(events.len(), |n| n.min(events.len()));
    let docs: Vec<Value> = events[..shown]
        .iter()
        .map(|e| project::event(&view.run_id, e, sensitivity))
        .collect();
    json!({
        "bundleVersion": "1.0",
        "generatedAt": rfc3339(now),
        "host": {"name": host.name, "version": host.version, "vendor": host.vendor},
        "run": project::snapshot(view, sensitivity, extras),
        "metrics": {"eventCount": docs.len()},
        "events": docs,
        "spans": [],
        "redactionApplied": true,
        "redactionMode": "mask",
    })
}
