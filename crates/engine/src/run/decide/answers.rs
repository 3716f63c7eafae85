//! Answers that are not approvals: clarifications, events from outside, custom questions.

use super::resolve::{Answer, Closed, close, invalid};
use crate::definition::{Problem, schema};
use crate::expression::equal;
use crate::node::{ClarificationGate, OpenInterrupt};
use crate::run::finish::Done;
use crate::run::refusal::Refusal;
use crate::run::turn::Turn;
use serde_json::{Value, json};
use tandem_record::{Event, Object, Seq};

pub(super) fn clarification(
    turn: &mut Turn<'_>,
    ix: usize,
    gate: &ClarificationGate,
    answer: &Answer,
) -> Result<Closed, Refusal> {
    let answers = read_answers(&answer.value)?;
    let mut problems = Vec::new();
    for question in &gate.questions {
        let path = format!("/resumeValue/answers/{}", question.id);
        match (answers.get(&question.id), &question.schema) {
            (None, _) => problems.push(Problem::new(path, "an answer is missing")),
            (Some(value), Some(schema)) => problems.extend(schema::problems(schema, value, &path)),
            (Some(value), None) if !value.is_string() => {
                problems.push(Problem::new(path, "the answer must be a text"));
            }
            (Some(_), None) => {}
        }
    }
    let known = |id: &String| gate.questions.iter().any(|q| q.id == *id);
    for id in answers.keys().filter(|id| !known(id)) {
        let path = format!("/resumeValue/answers/{id}");
        problems.push(Problem::new(path, "nobody asked this"));
    }
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let event = Event::ClarificationResolved {
        node: turn.run.def.nodes[ix].id.clone(),
        answers: answers.clone(),
        by: answer.by.clone(),
    };
    let cause = turn.emit(event, turn.run.state.nodes[ix].last);
    let value = json!({"answers": answers});
    let resumed = close(turn, ix, value, "answered", None, answer.by.clone(), cause);
    let outputs = Object::from_iter([("answers".to_owned(), json!(answers))]);
    turn.complete_node(ix, Done::with(outputs), resumed);
    Ok(Closed {
        outcome: Some("answered".to_owned()),
        votes: Vec::new(),
    })
}

/// Both forms clients send: an object by question id, or a list of id and answer.
pub(super) fn read_answers(value: &Value) -> Result<Object, Refusal> {
    match value.get("answers") {
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

pub(super) fn other(
    turn: &mut Turn<'_>,
    ix: usize,
    open: &OpenInterrupt,
    answer: &Answer,
) -> Result<Closed, Refusal> {
    if open.kind == "external-event" {
        let wanted = open.data.get("correlation").and_then(Value::as_object);
        let inner = answer.value.get("eventPayload");
        let fits = |key: &str, value: &Value| {
            let found = answer.value.get(key).or_else(|| inner?.get(key));
            found.is_some_and(|found| equal(found, value))
        };
        let off = wanted
            .into_iter()
            .flatten()
            .filter(|(key, value)| !fits(key, value));
        let keys: Vec<String> = off.map(|(key, _)| key.clone()).collect();
        if !keys.is_empty() {
            return Err(Refusal::CorrelationMismatch { keys });
        }
    }
    if let Some(schema) = &open.schema {
        let problems = schema::problems(schema, &answer.value, "/resumeValue");
        if !problems.is_empty() {
            return Err(Refusal::Invalid(problems));
        }
    }
    let cause = turn.run.state.nodes[ix].last.unwrap_or(Seq(0));
    let by = answer.by.clone();
    let resumed = close(turn, ix, answer.value.clone(), "resolved", None, by, cause);
    let outputs = match &answer.value {
        Value::Object(fields) => fields.clone(),
        value => Object::from_iter([("output".to_owned(), value.clone())]),
    };
    turn.complete_node(ix, Done::with(outputs), resumed);
    Ok(Closed {
        outcome: Some("resolved".to_owned()),
        votes: Vec::new(),
    })
}
