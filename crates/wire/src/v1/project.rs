//! What readers of this protocol major see of stored events and folded runs. Everybody outside of this
//! major calls [`crate::project`].

use super::agent;
use super::interrupt::public_data;
use super::mask::{masked_entries, masked_run_outputs};
use super::memory_and_lineage::{forked_from, owner};
use super::payload::{type_name, write_payload};
use super::time::rfc3339;
use crate::fields::{Fields, TextFields, WriteFields};
use serde_json::{Value, json};
use std::borrow::Cow;
use tandem_record::{
    Cause, Event, InterruptView, Object, ParentCause, RecordedEvent, RunId, RunStatus, RunView,
    Sensitivity, Timestamp,
};

/// Version of each event's payload contract.
const EVENT_SCHEMA_VERSION: u32 = 1;
/// Version of the log's shape.
pub const EVENT_LOG_SCHEMA_VERSION: u32 = 2;

/// Parts of a snapshot that are not in the run's own log.
#[derive(Default)]
pub struct SnapshotExtras {
    /// Child runs with their current status.
    pub children: Vec<(RunId, RunStatus)>,
    pub outputs: Option<Object>,
    /// A signed link to the open interrupt of the run.
    pub link: Option<SignedLink>,
}

/// A signed link that shows and answers one interrupt. It is sent only in authenticated responses
/// and in notifications to the run's callback.
#[derive(Clone)]
pub struct SignedLink {
    pub token: String,
    pub expires_at: Timestamp,
}

/// A run's immediate parent; clients follow the chain themselves.
pub(crate) fn ancestry(view: &RunView, host_id: &str) -> Value {
    let parent = match (&view.parent, &view.claimed_parent) {
        (Some(link), _) => {
            let cause = match link.cause {
                ParentCause::SubWorkflow => "core.subWorkflow",
                ParentCause::Dispatch => "core.dispatch",
            };
            json!({"runId": link.run_id, "hostId": host_id, "cause": cause})
        }
        (None, Some(claimed)) => {
            let mut parent = Fields::default();
            parent.set("runId", &claimed.run_id);
            parent.set("hostId", &claimed.host_id);
            // Another host can start a run over HTTP only as a whole workflow.
            parent.set("cause", "core.subWorkflow");
            parent.opt("wellKnownUrl", claimed.well_known_url.as_ref());
            Value::Object(parent.0)
        }
        (None, None) => Value::Null,
    };
    json!({"runId": view.run_id, "hostId": host_id, "parent": parent})
}

/// The public name of a stored event.
pub fn event_type(event: &Event) -> &'static str {
    type_name(event)
}

/// One event as clients see it.
pub(crate) fn event(run: &RunId, recorded: &RecordedEvent, sensitivity: &Sensitivity) -> Value {
    let mut out = Fields::default();
    write_event(run, recorded, sensitivity, &mut out);
    Value::Object(out.0)
}

/// The same as text.
pub(crate) fn event_text(
    run: &RunId,
    recorded: &RecordedEvent,
    sensitivity: &Sensitivity,
) -> String {
    let mut text = Vec::new();
    append_event(run, recorded, sensitivity, &mut text);
    String::from_utf8(text).expect("JSON text is UTF-8")
}

/// The same at the end of a longer text.
pub(crate) fn append_event(
    run: &RunId,
    recorded: &RecordedEvent,
    sensitivity: &Sensitivity,
    text: &mut Vec<u8>,
) {
    TextFields::write_object(text, |out| write_event(run, recorded, sensitivity, out));
}

fn write_event(
    run: &RunId,
    recorded: &RecordedEvent,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    let event = &recorded.event;
    out.set("eventId", run.event_id(recorded.seq));
    out.set("runId", run);
    out.opt("nodeId", event.node());
    out.set("type", type_name(event));
    out.set_object("payload", |payload| {
        write_payload(run, event, recorded.at, sensitivity, payload);
        if let Some(Cause::Foreign { host, .. }) = &recorded.cause
            && agent::names_foreign_hosts(event)
        {
            payload.set("causationHostId", host);
        }
    });
    out.set("timestamp", rfc3339(recorded.at));
    out.set("sequence", recorded.seq);
    out.set("schemaVersion", EVENT_SCHEMA_VERSION);
    out.set("engineVersion", "1");
    let cause = recorded.cause.as_ref().map(|cause| match cause {
        Cause::Event(seq) => Cow::Owned(run.event_id(*seq)),
        Cause::External(id) | Cause::Foreign { event: id, .. } => Cow::Borrowed(id.as_str()),
    });
    out.opt("causationId", cause);
}

/// The payload of one event as text, without its envelope.
pub(crate) fn message(run: &RunId, recorded: &RecordedEvent, sensitivity: &Sensitivity) -> String {
    let mut text = Vec::new();
    TextFields::write_object(&mut text, |out| {
        write_payload(run, &recorded.event, recorded.at, sensitivity, out);
    });
    String::from_utf8(text).expect("JSON text is UTF-8")
}

/// A run as clients see it.
pub(crate) fn snapshot(
    view: &RunView,
    sensitivity: &Sensitivity,
    extras: &SnapshotExtras,
) -> Value {
    let secret = |name: &str| sensitivity.variables.contains(name);
    let secret_channel = |name: &str| sensitivity.channels.contains(name);
    let hidden = |name: &str| secret(name) || secret_channel(name);
    let mut out = Fields::default();
    out.set("runId", &view.run_id);
    out.set("workflowId", &view.workflow_id);
    out.set("status", view.status);
    out.set("owner", owner(&view.owner));
    out.opt("currentNodeId", view.current_node.as_ref());
    out.set("startedAt", rfc3339(view.created_at));
    out.set("endedAt", view.ended_at.map(rfc3339));
    out.opt("completedAt", view.ended_at.map(rfc3339));
    out.opt("pausedAt", view.paused_at.map(rfc3339));
    out.set("lastSequence", view.head);
    out.set("nodeStates", node_states(view, sensitivity));
    out.set(
        "inputs",
        masked_entries(&view.inputs, sensitivity.mode, secret),
    );
    out.set(
        "variables",
        masked_entries(&view.variables, sensitivity.mode, hidden),
    );
    let channels = view.channels.as_ref();
    out.opt(
        "channels",
        channels.map(|c| masked_entries(c, sensitivity.mode, secret_channel)),
    );
    let error = view.error.as_ref().map(|error| {
        let error = sensitivity.visible_error(view.failed_node.as_ref(), error);
        let mut shown = Fields::default();
        shown.set("code", &error.code);
        shown.set("message", &error.message);
        shown.opt("details", error.details.as_ref().filter(|d| d.is_object()));
        Value::Object(shown.0)
    });
    out.opt("error", error);
    out.set("engineVersion", view.engine_version.to_string());
    out.set("eventLogSchemaVersion", EVENT_LOG_SCHEMA_VERSION);
    out.opt("tags", view.options.tags.as_ref());
    out.opt("metadata", view.options.metadata.as_ref());
    out.opt("configurable", view.options.configurable.as_ref());
    out.opt("agent", view.agent.as_ref());
    out.opt("runOrchestrator", view.orchestrator.as_ref());
    let outputs = extras.outputs.as_ref();
    out.opt(
        "outputs",
        outputs.map(|outputs| masked_run_outputs(outputs, sensitivity)),
    );
    if let Some(parent) = &view.parent {
        out.set("parentRunId", &parent.run_id);
        out.set("parentNodeId", &parent.node_id);
    }
    out.opt("forkedFrom", view.forked_from.as_ref().map(forked_from));
    let children = children(view, extras);
    out.opt("childRuns", (!children.is_empty()).then_some(children));
    out.opt(
        "interrupt",
        view.interrupts
            .first()
            .map(|open| interrupt(open, extras.link.as_ref(), "")),
    );
    out.opt("metrics", view.cost.as_ref().map(cost));
    Value::Object(out.0)
}

fn node_states(view: &RunView, sensitivity: &Sensitivity) -> Object {
    let nodes = view.nodes.iter();
    nodes
        .map(|node| {
            let mut out = Fields::default();
            out.set("status", node.status.as_str());
            out.set("attempt", node.attempt);
            out.opt("startedAt", node.started_at.map(rfc3339));
            out.opt("endedAt", node.ended_at.map(rfc3339));
            let error = node.error.as_ref();
            let error = error.map(|error| sensitivity.visible_error(Some(&node.node), error));
            out.opt(
                "error",
                error.map(|e| json!({"code": e.code, "message": e.message})),
            );
            (node.node.to_string(), Value::Object(out.0))
        })
        .collect()
}

fn children(view: &RunView, extras: &SnapshotExtras) -> Vec<Value> {
    let shown = |run: &RunId, status: RunStatus| json!({"runId": run, "status": status});
    view.children
        .iter()
        .map(|child| {
            let fresh = extras.children.iter().find(|(run, _)| *run == child.run_id);
            shown(
                &child.run_id,
                fresh.map_or(child.status, |(_, status)| *status),
            )
        })
        .collect()
}

/// An open interrupt. The link's URL starts with `base`: the public URL of this host, or empty.
pub(super) fn interrupt(open: &InterruptView, link: Option<&SignedLink>, base: &str) -> Value {
    let mut out = Fields::default();
    out.set("interruptId", &open.interrupt.id);
    out.set("kind", &open.interrupt.kind);
    out.set("nodeId", &open.node);
    out.set("key", &open.interrupt.key);
    out.set(
        "data",
        public_data(&open.interrupt.kind, &open.interrupt.data),
    );
    out.opt("resumeSchema", open.interrupt.resume_schema.as_ref());
    out.opt("deadline", open.deadline.map(rfc3339));
    out.opt("priority", open.interrupt.priority);
    let groups = &open.policy.groups;
    out.opt("approverGroups", (!groups.is_empty()).then_some(groups));
    if let Some((run, node)) = &open.mirrors {
        out.set("childRunId", run);
        out.set("childNodeId", node);
    }
    if let Some(link) = link {
        out.set("interruptToken", &link.token);
        out.set(
            "callbackUrl",
            format!("{base}/v1/interrupts/{}", link.token),
        );
        out.set("expiresAt", rfc3339(link.expires_at));
    }
    Value::Object(out.0)
}

/// The protocol's sum of the cost attributes that nodes reported.
fn cost(attributes: &Object) -> Value {
    let read = |name: &str| attributes.get(&format!("openwop.cost.{name}"));
    let mut tokens = Fields::default();
    tokens.opt("input", read("tokens.input"));
    tokens.opt("output", read("tokens.output"));
    let mut rollup = Fields::default();
    rollup.opt("usd", read("usd"));
    rollup.set("tokens", tokens.0);
    rollup.opt("model", read("model"));
    rollup.opt("provider", read("provider"));
    json!({"openwopCost": rollup.0})
}
