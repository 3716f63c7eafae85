//! Events from outside. One that a node waits for answers it; one that comes too early is kept, a
//! bounded number of them, and taken by the first wait that fits. Each is used once, however often
//! its sender repeats it.

use super::answers::{mismatched, take};
use super::overdue::lapsed;
use super::resolve::{Answer, open_question};
use crate::definition::Problem;
use crate::node::{Kind, OpenInterrupt};
use crate::run::refusal::Refusal;
use crate::run::state::Phase;
use crate::run::turn::Turn;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{Event, EventFate, NodeStatus, Object, Principal, Reply};

/// Events kept for later per run.
const MAX_KEPT: usize = 64;
/// Events a run takes in its whole life; their ids are remembered.
const MAX_TAKEN: usize = 1024;
const MAX_BYTES: usize = 64 * 1024;
const MAX_NAME_CHARS: usize = 256;

pub(super) fn deliver(
    turn: &mut Turn<'_>,
    event_id: String,
    event_type: String,
    payload: Object,
    by: Option<Principal>,
) -> Result<Reply, Refusal> {
    for (path, text) in [("/eventId", &event_id), ("/eventType", &event_type)] {
        if !(1..=MAX_NAME_CHARS).contains(&text.chars().count()) {
            let message = format!("must have 1 to {MAX_NAME_CHARS} characters");
            return Err(Refusal::Invalid(vec![Problem::new(path, message)]));
        }
    }
    let payload = Value::Object(payload);
    if payload.to_string().len() > MAX_BYTES {
        let message = format!("is larger than {MAX_BYTES} bytes");
        return Err(Refusal::Invalid(vec![Problem::new("/payload", message)]));
    }
    if turn.run.state.event_ids.contains(&event_id) {
        return Ok(taken(turn, EventFate::Repeated));
    }
    if !matches!(turn.run.state.phase, Phase::Running | Phase::Paused) {
        let status = turn.run.status();
        return Err(Refusal::RunOver { status });
    }
    let waiting = waiting_for(turn, &event_type, &payload);
    let full = turn.run.state.event_ids.len() >= MAX_TAKEN
        || (waiting.is_none() && turn.run.state.early.len() >= MAX_KEPT);
    if full {
        return Err(Refusal::TooManyEvents { limit: MAX_KEPT });
    }
    // Judged before it is recorded: an event that does not fit its wait is the sender's to mend.
    if let Some(ix) = waiting {
        judge(turn, ix, &payload)?;
    }
    let Value::Object(payload) = payload else {
        unreachable!("built from an object");
    };
    let event = Event::ExternalEventReceived {
        event_id,
        event_type,
        payload,
        by,
    };
    turn.emit(event, turn.run.state.head);
    let Some(ix) = waiting else {
        return Ok(taken(turn, EventFate::Kept));
    };
    let node = turn.run.def.nodes[ix].id.clone();
    let open = turn.run.state.nodes[ix].suspended.as_ref();
    let interrupt = open.expect("it waits").interrupt.id.clone();
    turn.take_early(ix);
    turn.advance();
    Ok(taken(turn, EventFate::Matched { node, interrupt }))
}

fn taken(turn: &Turn<'_>, fate: EventFate) -> Reply {
    Reply::EventTaken {
        fate,
        status: turn.run.status(),
    }
}

fn awaits(open: &OpenInterrupt, event_type: &str, payload: &Value) -> bool {
    open.kind == "external-event"
        && open.data.get("eventType").and_then(Value::as_str) == Some(event_type)
        && mismatched(open, payload).is_empty()
}

/// The node that has waited longest for such an event.
fn waiting_for(turn: &Turn<'_>, event_type: &str, payload: &Value) -> Option<usize> {
    let nodes = turn.run.state.nodes.iter().enumerate();
    nodes
        .filter(|(_, state)| state.status == NodeStatus::Suspended)
        .filter(|(ix, _)| match &turn.run.def.nodes[*ix].kind {
            Kind::OpenInterrupt(open) => awaits(open, event_type, payload),
            _ => false,
        })
        .filter(|(ix, _)| lapsed(turn, *ix).is_none())
        .min_by_key(|(_, state)| state.suspended.as_ref().map(|s| s.since))
        .map(|(ix, _)| ix)
}

fn judge(turn: &Turn<'_>, ix: usize, payload: &Value) -> Result<(), Refusal> {
    let Kind::OpenInterrupt(open) = &turn.run.def.nodes[ix].kind else {
        return Ok(());
    };
    let problems = open.complaints(payload, "/payload", turn.cx.schema_work);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(problems))
    }
}

impl Turn<'_> {
    /// Answers the node's question with the oldest kept event that fits it, if there is one.
    pub(in crate::run) fn take_early(&mut self, ix: usize) {
        let def = Arc::clone(&self.run.def);
        let Kind::OpenInterrupt(open) = &def.nodes[ix].kind else {
            return;
        };
        if open_question(self, &def.nodes[ix].id, None).is_err() {
            return;
        }
        let early = self.run.state.early.iter();
        let fits = early.filter_map(|event| {
            let payload = Value::Object(event.payload.clone());
            let work = self.cx.schema_work;
            let fits = awaits(open, &event.kind, &payload)
                && open.complaints(&payload, "", work).is_empty();
            fits.then(|| (event.clone(), payload))
        });
        let Some((event, payload)) = fits.min_by_key(|(event, _)| event.received) else {
            return;
        };
        let answer = Answer {
            event_id: Some(event.id),
            ..Answer::of(payload, event.by)
        };
        take(self, ix, &answer);
    }
}
