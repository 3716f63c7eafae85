//! Texts and data of people in the events of a flow run, for agents that do not show them.

use serde_json::Value;
use tandem_record::conversation::FlowRecord;
use tandem_record::{ErrorInfo, Event, Masking, Object};

/// Keys whose values name something of the run or of the flow's code.
const NAMES: &[&str] = &[
    "actions",
    "agentId",
    "artifactId",
    "artifactType",
    "code",
    "escalationId",
    "eventType",
    "flowId",
    "flowRunId",
    "id",
    "key",
    "kind",
    "mode",
    "outcome",
    "priority",
    "proxyId",
    "runId",
    "sessionId",
    "status",
    "to",
    "type",
    "waitFor",
    "workflowId",
];

/// The event with something else in place of its texts.
pub(super) fn without_texts(event: &Event, mode: Masking) -> Event {
    let mut event = event.clone();
    match &mut event {
        Event::RunStarted { request, .. } => mask_all(&mut request.inputs, mode),
        Event::InterruptRequested { interrupt, .. } => mask(&mut interrupt.data, mode),
        Event::ClarificationRequested { questions, .. } => mask(questions, mode),
        Event::ApprovalRequested { title, .. } => mask_text(title, mode),
        Event::ApprovalReceived { decision, .. } => {
            decision
                .feedback
                .iter_mut()
                .for_each(|text| mask_text(text, mode));
            decision
                .edited
                .iter_mut()
                .for_each(|value| mask(value, mode));
        }
        Event::ClarificationResolved { answers, .. } => mask_all(answers, mode),
        Event::InterruptResolved { resolution, .. } => mask(&mut resolution.value, mode),
        Event::NodeResumed { value, .. } => value.iter_mut().for_each(|value| mask(value, mode)),
        Event::NodeCompleted { outputs, .. } | Event::RunCompleted { outputs, .. } => {
            mask_all(outputs, mode);
        }
        Event::NodeFailed { error, .. } | Event::RunFailed { error, .. } => mask_error(error, mode),
        Event::Flow(record) => mask_record(record, mode),
        // The rest says what happened, not what was said.
        _ => {}
    }
    event
}

fn mask_record(record: &mut FlowRecord, mode: Masking) {
    match record {
        FlowRecord::Started(start) => start.input.iter_mut().for_each(|value| mask(value, mode)),
        FlowRecord::Effect { effect, .. } => mask(effect, mode),
        FlowRecord::Result { value, error, .. } | FlowRecord::Host { value, error, .. } => {
            let values = value.iter_mut().chain(error);
            values.for_each(|value| mask(value, mode));
        }
        FlowRecord::Failed { failure } => {
            mask_text(&mut failure.message, mode);
            failure
                .details
                .iter_mut()
                .for_each(|value| mask(value, mode));
        }
        FlowRecord::Diverged {
            expected, actual, ..
        } => [expected, actual]
            .into_iter()
            .for_each(|value| mask(value, mode)),
        FlowRecord::Hook {
            input, decision, ..
        } => [input, decision]
            .into_iter()
            .for_each(|value| mask(value, mode)),
        FlowRecord::Segment { .. }
        | FlowRecord::Paused { .. }
        | FlowRecord::Resumed { .. }
        | FlowRecord::Ended { .. } => {}
    }
}

fn mask_error(error: &mut ErrorInfo, mode: Masking) {
    mask_text(&mut error.message, mode);
    error.details.iter_mut().for_each(|value| mask(value, mode));
}

fn mask_text(text: &mut String, mode: Masking) {
    let shown = mode.mask_value(&Value::from(text.as_str()));
    *text = match shown {
        Some(Value::String(shown)) => shown,
        _ => String::new(),
    };
}

fn mask_all(fields: &mut Object, mode: Masking) {
    for (key, value) in fields {
        let is_name = NAMES.contains(&key.as_str()) && !value.is_object();
        if !is_name {
            mask(value, mode);
        }
    }
}

/// The structure stays; what people said is replaced. A replaced value that is left out is `null`.
fn mask(value: &mut Value, mode: Masking) {
    match value {
        Value::Object(fields) => mask_all(fields, mode),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, mode)),
        Value::String(_) | Value::Number(_) => *value = mode.mask_value(value).unwrap_or_default(),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Z-202 (half: the shape of masked values on the run stream)
    #[test]
    fn structure_stays_and_texts_go() {
        let shown = json!({"questions": [{"id": "name", "question": "Who are you?"}], "n": 5});
        let mut omitted = shown.clone();
        mask(&mut omitted, Masking::Omit);
        assert_eq!(
            omitted,
            json!({"questions": [{"id": "name", "question": null}], "n": null})
        );
        let mut hashed = shown;
        mask(&mut hashed, Masking::Hash);
        assert_eq!(hashed["questions"][0]["id"], "name");
        let text = hashed["questions"][0]["question"].as_str().expect("a hash");
        assert!(text.starts_with("sha256:"), "{text}");
    }
}
