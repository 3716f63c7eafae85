//! Answers that are not approvals: clarifications, external events, custom questions.

use super::answer::{Answer, AnswerOutcome, Closing, close, invalid};
use crate::cost::equal;
use crate::definition::Problem;
use crate::node::{ClarificationGate, GenericInterrupt, interrupt_kind};
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use crate::run::scheduling::Done;
use serde_json::{Value, json};
use tandem_record::Object;
use tandem_schema::Meter;

pub(in crate::run) fn resolve_clarification(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    gate: &ClarificationGate,
    answer: &Answer,
) -> Result<AnswerOutcome, Refusal> {
    let answers = read_answers(&answer.value)?;
    let problems: Vec<Problem> = gate
        .answer_problems(&answers, draft.cx.work)
        .into_iter()
        .map(|(below, why)| Problem::new(format!("/resumeValue/answers{below}"), why))
        .chain(
            gate.interrupt_settings
                .resume_schema_problems(&answer.value, draft.cx.work),
        )
        .collect();
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    draft.emit_clarification_resolved(ix, &answers, answer.by.as_ref());
    let closing = Closing {
        value: json!({"answers": answers}),
        ..answer.closing("answered")
    };
    let resumed = close(draft, ix, closing);
    let outputs = Object::from_iter([("answers".to_owned(), json!(answers))]);
    draft.complete_node(ix, Done::with(outputs), resumed);
    Ok(AnswerOutcome {
        outcome: Some("answered".to_owned()),
        votes: Vec::new(),
    })
}

/// Reads both forms clients send: an object by question id, or a list of id and answer.
pub(in crate::run) fn read_answers(value: &Value) -> Result<Object, Refusal> {
    // Older clients send the bare list.
    let bare = value.is_array().then_some(value);
    match value.get("answers").or(bare) {
        Some(Value::Object(answers)) => Ok(answers.clone()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                let id = item.get("id").and_then(Value::as_str)?.to_owned();
                Some((id, item.get("answer")?.clone()))
            })
            .collect::<Option<Object>>()
            .map_or_else(|| invalid("/answers", "each entry needs id and answer"), Ok),
        _ => invalid("/answers", "answers are required"),
    }
}

pub(in crate::run) fn resolve_open_interrupt(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    open: &GenericInterrupt,
    answer: &Answer,
) -> Result<AnswerOutcome, Refusal> {
    let keys = mismatched_keys(open, &answer.value, draft.cx.work);
    if !keys.is_empty() {
        return Err(Refusal::CorrelationMismatch { keys });
    }
    let problems = open.check_value(&answer.value, "/resumeValue", draft.cx.work);
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let outcome = accept_answer(draft, ix, answer);
    Ok(AnswerOutcome {
        outcome: Some(outcome.to_owned()),
        votes: Vec::new(),
    })
}

/// What a wait correlates by that this event does not have.
pub(in crate::run) fn mismatched_keys(
    open: &GenericInterrupt,
    value: &Value,
    meter: &Meter,
) -> Vec<String> {
    if open.kind != "external-event" {
        return Vec::new();
    }
    let wanted = open.data.get("correlation").and_then(Value::as_object);
    let inner = value.get("eventPayload");
    let fits = |key: &str, wanted: &Value| {
        let found = value.get(key).or_else(|| inner?.get(key));
        found.is_some_and(|found| equal(found, wanted, meter))
    };
    let off = wanted
        .into_iter()
        .flatten()
        .filter(|(key, value)| !fits(key, value));
    off.map(|(key, _)| key.clone()).collect()
}

/// Closes a question with a valid answer and completes its node.
pub(in crate::run) fn accept_answer(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: &Answer,
) -> &'static str {
    let open = draft.run.open_interrupt(ix);
    let kind = &open
        .expect("only open questions are answered")
        .interrupt
        .kind;
    let outcome = interrupt_kind::outcome(kind, &answer.value);
    let resumed = close(draft, ix, answer.closing(outcome));
    draft.complete_node(ix, Done::with(outputs_of(&answer.value)), resumed);
    outcome
}

/// The outputs of a node that received this answer.
pub(in crate::run) fn outputs_of(value: &Value) -> Object {
    match value {
        Value::Object(fields) => fields.clone(),
        value => Object::from_iter([("output".to_owned(), value.clone())]),
    }
}
