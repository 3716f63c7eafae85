use super::time::rfc3339;
use serde_json::{Value, json};
use tandem_record::{Cause, Object, Recorded, RunId, RunStatus, RunView, Sensitivity};

pub fn event(run: &RunId, recorded: &Recorded, _sensitivity: &Sensitivity) -> Value {
    let mut payload = serde_json::to_value(&recorded.event).unwrap_or_default();
    let name = payload["t"].as_str().unwrap_or_default().replacen('_', ".", 1);
    if let Some(fields) = payload.as_object_mut() {
        fields.remove("t");
    }
    let mut doc = json!({
        "eventId": run.event_id(recorded.seq),
        "runId": run,
        "type": name,
        "payload": payload,
        "timestamp": rfc3339(recorded.at),
        "sequence": recorded.seq,
        "schemaVersion": 1,
        "engineVersion": "1",
    });
    if let Some(node) = recorded.event.node() {
        doc["nodeId"] = json!(node);
    }
    match &recorded.cause {
        Some(Cause::Event(seq)) => doc["causationId"] = json!(run.event_id(*seq)),
        Some(Cause::External(id)) => doc["causationId"] = json!(id),
        None => {}
    }
    doc
}

#[derive(Default)]
pub struct SnapshotExtras {
    pub children: Vec<(RunId, RunStatus)>,
    pub outputs: Option<Object>,
}

pub fn snapshot(view: &RunView, _sensitivity: &Sensitivity, extras: &SnapshotExtras) -> Value {
    let mut doc = json!({
        "runId": view.run_id,
        "workflowId": view.workflow_id,
        "status": view.status.as_str(),
        "owner": view.owner,
        "startedAt": rfc3339(view.created_at),
        "inputs": view.inputs,
        "variables": view.variables,
        "nodeStates": {},
        "childRuns": view.children.iter().map(|c| {
            let fresh = extras.children.iter().find(|(id, _)| *id == c.run_id);
            json!({"runId": c.run_id, "status": fresh.map_or(c.status, |(_, s)| *s).as_str()})
        }).collect::<Vec<_>>(),
    });
    if let Some(at) = view.ended_at {
        doc["completedAt"] = json!(rfc3339(at));
        doc["endedAt"] = json!(rfc3339(at));
    }
    if let Some(error) = &view.error {
        doc["error"] = json!({"code": error.code, "message": error.message});
    }
    if let Some(outputs) = &extras.outputs {
        doc["outputs"] = json!(outputs);
    }
    doc
}
