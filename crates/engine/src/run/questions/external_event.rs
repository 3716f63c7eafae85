//! External events: which wait an event answers, and which early event answers a wait.

use super::answer::{Answer, open_question};
use super::answers::{accept_answer, mismatched_keys};
use super::overdue::expired_question;
use crate::node::{GenericInterrupt, Kind};
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use serde_json::Value;
use std::sync::Arc;
use tandem_schema::Meter;

fn awaits(open: &GenericInterrupt, event_type: &str, payload: &Value, meter: &Meter) -> bool {
    open.kind == "external-event"
        && open.data.get("eventType").and_then(Value::as_str) == Some(event_type)
        && mismatched_keys(open, payload, meter).is_empty()
}

/// The node that has waited longest for such an event.
pub(in crate::run) fn waiting_for(
    draft: &DecisionDraft<'_>,
    event_type: &str,
    payload: &Value,
) -> Option<usize> {
    let open = draft.run.shown_interrupts();
    open.filter(|(ix, _)| match &draft.run.def.nodes[*ix].kind {
        Kind::GenericInterrupt(open) => awaits(open, event_type, payload, draft.cx.work),
        _ => false,
    })
    .filter(|(ix, _)| expired_question(draft, *ix).is_none())
    .min_by_key(|(_, open)| open.since)
    .map(|(ix, _)| ix)
}

pub(in crate::run) fn check_payload(
    draft: &DecisionDraft<'_>,
    ix: usize,
    payload: &Value,
) -> Result<(), Refusal> {
    let Kind::GenericInterrupt(open) = &draft.run.def.nodes[ix].kind else {
        return Ok(());
    };
    let problems = open.check_value(payload, "/payload", draft.cx.work);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(problems))
    }
}

impl DecisionDraft<'_> {
    /// Answers the node's question with the oldest stored event that matches it, if there is one.
    pub(in crate::run) fn answer_from_early_event(&mut self, ix: usize) {
        let def = Arc::clone(&self.run.def);
        let Kind::GenericInterrupt(open) = &def.nodes[ix].kind else {
            return;
        };
        if open_question(self, &def.nodes[ix].id, None).is_err() {
            return;
        }
        let early = self.run.state.questions.early.iter();
        let fits = early.filter_map(|event| {
            let payload = Value::Object(event.payload.clone());
            let work = self.cx.work;
            let fits = awaits(open, &event.kind, &payload, work)
                && open.check_value(&payload, "", work).is_empty();
            fits.then(|| (event.clone(), payload))
        });
        let Some((event, payload)) = fits.min_by_key(|(event, _)| event.received) else {
            return;
        };
        let answer = Answer {
            event_id: Some(event.id),
            ..Answer::of(payload, event.by)
        };
        accept_answer(self, ix, &answer);
    }
}
