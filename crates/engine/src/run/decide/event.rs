//! External events. An event that a node waits for answers it. An event that comes too early is
//! stored, up to a limit, and used by the first wait that matches. Each event is used once, even if
//! its sender repeats it.

use crate::definition::Problem;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::questions::{check_payload, waiting_for};
use crate::run::refusal::Refusal;
use serde_json::Value;
use tandem_record::{Event, ExternalEventOutcome, Object, Principal, Reply};

/// Maximum number of early events stored per run.
const MAX_STORED_EVENTS: usize = 64;
/// Maximum number of events a run accepts in total; their ids are stored.
const MAX_EVENTS_PER_RUN: usize = 1024;
const MAX_PAYLOAD_BYTES: usize = 64 * 1024;
const MAX_NAME_CHARS: usize = 256;

pub(super) fn deliver(
    draft: &mut DecisionDraft<'_>,
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
    if payload.to_string().len() > MAX_PAYLOAD_BYTES {
        let message = format!("is larger than {MAX_PAYLOAD_BYTES} bytes");
        return Err(Refusal::Invalid(vec![Problem::new("/payload", message)]));
    }
    if draft.run.knows_external_event(&event_id) {
        return Ok(event_reply(draft, ExternalEventOutcome::Duplicate));
    }
    if !matches!(draft.run.phase(), Phase::Running | Phase::Paused) {
        let status = draft.run.status();
        return Err(Refusal::RunEnded { status });
    }
    let waiting = waiting_for(draft, &event_type, &payload);
    let (accepted, stored) = draft.run.external_event_counts();
    let full = accepted >= MAX_EVENTS_PER_RUN || (waiting.is_none() && stored >= MAX_STORED_EVENTS);
    if full {
        return Err(Refusal::TooManyEvents {
            limit: MAX_STORED_EVENTS,
        });
    }
    // Checked before it is recorded: an event that does not match its wait is an error of the
    // sender.
    if let Some(ix) = waiting {
        check_payload(draft, ix, &payload)?;
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
    draft.emit(event, draft.run.head());
    let Some(ix) = waiting else {
        return Ok(event_reply(draft, ExternalEventOutcome::Retained));
    };
    let node = draft.run.def.nodes[ix].id.clone();
    let open = draft.run.open_interrupt(ix);
    let interrupt = open.expect("it waits").interrupt.id.clone();
    draft.answer_from_early_event(ix);
    draft.advance();
    Ok(event_reply(
        draft,
        ExternalEventOutcome::Matched { node, interrupt },
    ))
}

fn event_reply(draft: &DecisionDraft<'_>, outcome: ExternalEventOutcome) -> Reply {
    Reply::ExternalEventAccepted {
        outcome,
        status: draft.run.status(),
    }
}
