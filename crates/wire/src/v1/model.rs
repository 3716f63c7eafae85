//! Calls of models as clients see them: what was used, what went wrong, never what was said. The
//! request and the answer stay in the log.

use super::payload::Fields;
use serde_json::{Value, json};
use tandem_record::{EnvelopeFact, EnvelopeStep, Event, ModelAnswered, Object};

pub(super) fn answer_name(told: &ModelAnswered) -> &'static str {
    match told.answer.usage {
        Some(_) => "provider.usage",
        // Numbers are not invented for a provider that does not count.
        None => "tandem.model.answered",
    }
}

pub(super) fn envelope_name(fact: &EnvelopeFact) -> &'static str {
    match fact.what {
        EnvelopeStep::Refused(_) => "envelope.refusal",
        EnvelopeStep::Truncated { .. } => "envelope.truncated",
        EnvelopeStep::Recovered { .. } => "envelope.recovery.applied",
        EnvelopeStep::Exhausted { .. } => "envelope.retry.exhausted",
    }
}

pub(super) fn model_payload(event: &Event, out: &mut Fields) {
    match event {
        Event::ModelAnswered(told) => {
            out.node(&told.node);
            out.set("provider", &told.provider);
            out.set("model", &told.model);
            if let Some(usage) = told.answer.usage {
                let (input, output) = (usage.input_tokens, usage.output_tokens);
                out.set("inputTokens", input);
                out.set("outputTokens", output);
                out.set("totalTokens", input.saturating_add(output));
                out.opt("cacheReadTokens", usage.cache_read_tokens);
                out.opt("cacheWriteTokens", usage.cache_write_tokens);
            }
        }
        Event::ModelAskedAgain(retry) => {
            out.node(&retry.node);
            out.set("attempt", retry.attempt);
            out.set("reason", retry.reason.as_str());
            out.opt("previousError", retry.error.as_ref());
        }
        Event::Envelope(fact) => {
            out.node(&fact.node);
            envelope(fact, out);
        }
        Event::ReplayDivergedAtRefusal(told) => {
            let (original, replayed) = told.kinds();
            out.set("sourceRunId", &told.source);
            out.set("atSequence", told.sequence);
            out.set("originalEventId", told.source.event_id(told.sequence));
            out.node(&told.node);
            out.set("originalEnvelopeKind", original);
            out.set("replayEnvelopeKind", replayed);
            out.opt("refusalReason", told.reason.as_ref());
        }
        _ => unreachable!("only facts about models come here"),
    }
}

fn envelope(fact: &EnvelopeFact, out: &mut Fields) {
    let mut who = || {
        out.set("provider", &fact.provider);
        out.set("model", &fact.model);
    };
    match &fact.what {
        EnvelopeStep::Refused(refusal) => {
            who();
            out.opt("refusalText", refusal.text.as_ref());
            out.opt("safetyCategory", refusal.category.as_ref());
        }
        EnvelopeStep::Truncated {
            stop,
            output_tokens,
        } => {
            who();
            out.set("stopReason", stop.as_str());
            // What was cut off is not used: the model is asked again with more room.
            out.set("partialPayloadAvailable", false);
            out.opt("outputTokenCount", output_tokens.as_ref());
        }
        EnvelopeStep::Recovered { path, byte_offset } => {
            out.set("path", path.as_str());
            out.set("byteOffset", byte_offset);
        }
        EnvelopeStep::Exhausted {
            attempts,
            reason,
            error,
        } => {
            out.set("totalAttempts", attempts);
            out.set("finalReason", reason.as_str());
            out.opt("finalError", error.as_ref());
        }
    }
}

/// Adds what an answer used to the attributes of a span.
pub(super) fn add_usage(told: &ModelAnswered, attributes: &mut Object) {
    let Some(usage) = told.answer.usage else {
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
    attributes.insert("openwop.cost.provider".to_owned(), json!(told.provider));
    attributes.insert("openwop.cost.model".to_owned(), json!(told.model));
}
