//! View model of the run page. The wire crate's projection decides which values a reader may see.

use super::shown_bytes::ShownBytes;
use serde_json::Value;
use std::collections::HashMap;
use tandem_access::{Identity, Scope};
use tandem_app::Definition;
use tandem_console::{
    AgentsView, EventRow, ForkOrigin, GraphEdge, GraphNode, GraphView, NodeState, RunPageView,
};
use tandem_record::{NodeStatus, RecordedEvent, RunId, RunStatus, RunView, Sensitivity};
use tandem_wire::project::{self, Reader, SnapshotExtras};
use tandem_wire::v1::project::event_type;
use tandem_wire::v1::time::rfc3339;

/// Everything but the events.
pub(super) fn state(
    view: &RunView,
    (definition, sensitivity): (&Definition, &Sensitivity),
    extras: &SnapshotExtras,
    reader: &Identity,
    csrf: String,
    shown: &mut ShownBytes,
) -> RunPageView {
    let snapshot = project::snapshot(view, extras, Reader::v1(sensitivity));
    let error = &snapshot["error"];
    let mut text = |value: &Value| shown.text(value.as_str().unwrap_or_default());
    let error = (!error.is_null()).then(|| (text(&error["code"]), text(&error["message"])));
    let controls = reader.require_scope(Scope::RunsCancel).is_ok();
    let status = view.status;
    RunPageView {
        run_id: view.run_id.to_string(),
        workflow_id: view.workflow_id.to_string(),
        status: status.as_str().to_owned(),
        created_at: rfc3339(view.created_at),
        started_at: Some(rfc3339(view.created_at)),
        ended_at: view.ended_at.map(rfc3339),
        parent_run_id: view.parent.as_ref().map(|p| p.run_id.to_string()),
        forked_from: view.forked_from.as_ref().map(|fork| ForkOrigin {
            run_id: fork.run_id.to_string(),
            from_seq: fork.from_seq.0,
            mode: fork.mode.as_str().to_owned(),
        }),
        error,
        graph: graph(definition, Some(view)),
        events: Vec::new(),
        events_omitted: 0,
        variables_json: shown.pretty(&snapshot["variables"]),
        last_sequence: Some(view.head.0),
        can_cancel: controls && !status.is_terminal() && status != RunStatus::Cancelling,
        can_pause: controls && status == RunStatus::Running,
        can_resume: controls && status == RunStatus::Paused,
        child_runs: view
            .children
            .iter()
            .map(|child| {
                let fresh = extras.children.iter().find(|(id, _)| *id == child.run_id);
                let status = fresh.map_or(child.status, |(_, status)| *status);
                (child.run_id.to_string(), status.as_str().to_owned())
            })
            .collect(),
        supervised: is_supervised(definition),
        agents: AgentsView::default(),
        answered: Vec::new(),
        run_tree: None,
        csrf,
    }
}

pub(super) fn is_supervised(definition: &Definition) -> bool {
    let mut nodes = definition.document.nodes.iter();
    nodes.any(|node| node.type_id == "core.orchestrator.supervisor")
}

pub(super) fn event(
    run: &RunId,
    recorded: &RecordedEvent,
    sensitivity: &Sensitivity,
    shown: &mut ShownBytes,
) -> EventRow {
    let doc = project::event(run, recorded, Reader::v1(sensitivity));
    EventRow {
        payload_json: shown.pretty(&doc["payload"]),
        ..event_head(recorded)
    }
}

/// An event without its payload.
pub(super) fn event_head(recorded: &RecordedEvent) -> EventRow {
    EventRow {
        sequence: recorded.seq.0,
        at: rfc3339(recorded.at),
        kind: event_type(&recorded.event).to_owned(),
        node_id: recorded.event.node().map(ToString::to_string),
        payload_json: String::new(),
    }
}

/// A workflow's graph, coloured by a run's state if a run is given.
pub(super) fn graph(definition: &Definition, run: Option<&RunView>) -> GraphView {
    let states: HashMap<&str, NodeState> = run
        .iter()
        .flat_map(|view| &view.nodes)
        .map(|node| (node.node.as_str(), node_state(node.status)))
        .collect();
    let document = &definition.document;
    let nodes = document.nodes.iter().map(|node| GraphNode {
        id: node.id.to_string(),
        name: node.name.clone(),
        type_id: node.type_id.clone(),
        state: states.get(node.id.as_str()).copied().unwrap_or_default(),
    });
    let edges = document.edges.iter().map(|edge| GraphEdge {
        source: edge.source_node_id.to_string(),
        target: edge.target_node_id.to_string(),
        label: edge.label.clone(),
        conditional: edge.condition.is_some(),
    });
    GraphView {
        nodes: nodes.collect(),
        edges: edges.collect(),
    }
}

pub(super) fn node_state(status: NodeStatus) -> NodeState {
    match status {
        NodeStatus::Pending => NodeState::Pending,
        NodeStatus::Running => NodeState::Running,
        NodeStatus::Suspended => NodeState::Suspended,
        NodeStatus::Completed => NodeState::Completed,
        NodeStatus::Failed => NodeState::Failed,
        NodeStatus::Skipped => NodeState::Skipped,
        NodeStatus::Cancelled => NodeState::Cancelled,
    }
}
