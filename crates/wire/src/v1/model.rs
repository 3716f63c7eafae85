//! Model calls as clients see them: usage and errors, never content. The request and the answer
//! stay in the log.

use crate::fields::WriteFields;
use serde_json::{Value, json};
use tandem_record::{EnvelopeEvent, EnvelopeEventKind, Event, ModelAnswered, Object, Sensitivity};

pub(super) fn answer_name(event: &ModelAnswered) -> &'static str {
    match event.answer.usage {
        Some(_) => "provider.usage",
        // No usage is reported for a provider that does not count tokens.
        None => "tandem.model.answered",
    }
}

pub(super) fn envelope_name(event: &EnvelopeEvent) -> &'static str {
    match event.kind {
        EnvelopeEventKind::Refused(_) => "envelope.refusal",
        EnvelopeEventKind::Truncated { .. } => "envelope.truncated",
        EnvelopeEventKind::Recovered { .. } => "envelope.recovery.applied",
        EnvelopeEventKind::Exhausted { .. } => "envelope.retry.exhausted",
    }
}

pub(super) fn model_payload(event: &Event, sensitivity: &Sensitivity, out: &mut impl WriteFields) {
    match event {
        Event::ModelAnswered(event) => {
            out.node(&event.node);
            out.set("provider", &event.provider);
            out.set("model", &event.model);
            if let Some(usage) = event.answer.usage {
                let (input, output) = (usage.input_tokens, usage.output_tokens);
                out.set("inputTokens", input);
                out.set("outputTokens", output);
                out.set("totalTokens", input.saturating_add(output));
                out.opt("cacheReadTokens", usage.cache_read_tokens);
                out.opt("cacheWriteTokens", usage.cache_write_tokens);
            }
        }
        Event::ModelRetried(retry) => {
            out.node(&retry.node);
            out.set("attempt", retry.attempt);
            out.set("reason", retry.reason.as_str());
            let hidden = sensitivity.hides_error_of(&retry.node);
            out.opt("previousError", retry.error.as_ref().filter(|_| !hidden));
        }
        Event::Envelope(fact) => {
            out.node(&fact.node);
            let hidden = sensitivity.hides_error_of(&fact.node);
            envelope(fact, hidden, out);
        }
        Event::ReplayDivergedAtRefusal(event) => {
            let (original, replayed) = event.kinds();
            out.set("sourceRunId", &event.source);
            out.set("atSequence", event.sequence);
            out.set("originalEventId", event.source.event_id(event.sequence));
            out.node(&event.node);
            out.set("originalEnvelopeKind", original);
            out.set("replayEnvelopeKind", replayed);
            out.opt("refusalReason", event.reason.as_ref());
        }
        _ => unreachable!("called only for model events"),
    }
}

/// `hidden`: what the model said may repeat something sensitive.
fn envelope(event: &EnvelopeEvent, hidden: bool, out: &mut impl WriteFields) {
    let mut who = || {
        out.set("provider", &event.provider);
        out.set("model", &event.model);
    };
    match &event.kind {
        EnvelopeEventKind::Refused(refusal) => {
            who();
            out.opt("refusalText", refusal.text.as_ref().filter(|_| !hidden));
            out.opt("safetyCategory", refusal.category.as_ref());
        }
        EnvelopeEventKind::Truncated {
            stop,
            output_tokens,
        } => {
            who();
            out.set("stopReason", stop.as_str());
            // A truncated answer is not used: the model is called again with a larger budget.
            out.set("partialPayloadAvailable", false);
            out.opt("outputTokenCount", output_tokens.as_ref());
        }
        EnvelopeEventKind::Recovered { path, byte_offset } => {
            out.set("path", path.as_str());
            out.set("byteOffset", byte_offset);
        }
        EnvelopeEventKind::Exhausted {
            attempts,
            reason,
            error,
        } => {
            out.set("totalAttempts", attempts);
            out.set("finalReason", reason.as_str());
            out.opt("finalError", error.as_ref().filter(|_| !hidden));
        }
    }
}

/// Adds the usage of an answer to the attributes of a span.
pub(super) fn add_usage(event: &ModelAnswered, attributes: &mut Object) {
    let Some(usage) = event.answer.usage else {
        return;
    };
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    for (name, tokens) in [
        ("input", input),
        ("output", output),
        ("total", input.saturating_add(output)),
    ] {
        let name = format!("openwop.cost.tokens.{name}");
        let before = attributes.get(&name).and_then(Value::as_u64).unwrap_or(0);
        attributes.insert(name, json!(before.saturating_add(tokens)));
    }
    attributes.insert("openwop.cost.provider".to_owned(), json!(event.provider));
    attributes.insert("openwop.cost.model".to_owned(), json!(event.model));
}
