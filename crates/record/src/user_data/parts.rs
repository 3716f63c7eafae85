//! The user data in the parts that events are made of.

use super::{Places, UserData};
use crate::{
    AgentFact, ChunkPiece, ClaimedParent, Decision, EnvelopeFact, EnvelopeStep, ErrorInfo, Handoff,
    HandoffStep, HttpRequest, MemoryEntry, MockCall, MockEnding, ModelAnswer, ModelAnswered,
    ModelMessage, ModelRefusal, ModelRequest, Resolution, RunOptions, RunRequest, Said, ToolAsk,
    ToolRequest, TraceContext, Work,
};
use serde_json::Value;

pub(super) fn optional_text<'a>(text: &'a mut Option<String>, to: &mut Places<'a>) {
    to.extend(text.as_mut().map(UserData::Text));
}

pub(super) fn optional_value<'a>(value: &'a mut Option<Value>, to: &mut Places<'a>) {
    to.extend(value.as_mut().map(UserData::Value));
}

pub(super) fn texts<'a>(texts: &'a mut [String], to: &mut Places<'a>) {
    to.extend(texts.iter_mut().map(UserData::Text));
}

pub(super) fn of_request<'a>(request: &'a mut RunRequest, to: &mut Places<'a>) {
    let RunRequest {
        owner: _,
        inputs,
        erased_defaults,
        untrusted_inputs,
        sensitive_inputs,
        options,
        scope_id,
        callback_url,
        callback_may_answer: _,
        parent: _,
        claimed_parent,
        isolated_memory: _,
        transport: _,
        trace,
        memory: _,
        forked_from: _,
        conformance_role: _,
        execution_model: _,
    } = request;
    to.push(UserData::Object(inputs));
    // Keys of the inputs, which are redacted there too.
    texts(erased_defaults, to);
    texts(untrusted_inputs, to);
    texts(sensitive_inputs, to);
    let RunOptions {
        configurable,
        tags,
        metadata,
    } = options;
    to.extend(configurable.as_mut().map(UserData::Object));
    tags.iter_mut().for_each(|tags| texts(tags, to));
    to.extend(metadata.as_mut().map(UserData::Object));
    optional_text(scope_id, to);
    optional_text(callback_url, to);
    if let Some(claimed) = claimed_parent {
        let ClaimedParent {
            run_id,
            host_id,
            well_known_url,
            event_id,
        } = claimed;
        to.extend([UserData::Text(run_id), UserData::Text(host_id)]);
        optional_text(well_known_url, to);
        optional_text(event_id, to);
    }
    if let Some(TraceContext {
        traceparent: _,
        tracestate,
    }) = trace
    {
        optional_text(tracestate, to);
    }
}

pub(super) fn of_error<'a>(error: &'a mut ErrorInfo, to: &mut Places<'a>) {
    let ErrorInfo {
        code,
        message,
        details,
        retryable: _,
    } = error;
    to.extend([UserData::Text(code), UserData::Text(message)]);
    optional_value(details, to);
}

pub(super) fn of_decision<'a>(decision: &'a mut Decision, to: &mut Places<'a>) {
    let Decision {
        action: _,
        by: _,
        voter,
        said_by,
        standing: _,
        feedback,
        refine,
        edited,
    } = decision;
    optional_text(voter, to);
    optional_text(said_by, to);
    optional_text(feedback, to);
    optional_value(refine, to);
    optional_value(edited, to);
}

pub(super) fn of_resolution<'a>(resolution: &'a mut Resolution, to: &mut Places<'a>) {
    let Resolution {
        interrupt: _,
        kind: _,
        value,
        by: _,
        standing: _,
        event_id,
        outcome,
        reason,
    } = resolution;
    to.push(UserData::Value(value));
    optional_text(event_id, to);
    optional_text(outcome, to);
    optional_text(reason, to);
}

pub(super) fn of_entry<'a>(entry: &'a mut MemoryEntry, to: &mut Places<'a>) {
    let note = entry.is_note();
    let MemoryEntry {
        id: _,
        memory_ref,
        key,
        value,
        tags,
        written_at: _,
        expires_at: _,
        agent,
    } = entry;
    to.push(UserData::Text(memory_ref));
    // The key of a note is its id.
    if !note {
        to.push(UserData::Text(key));
    }
    // What is written and what it is tagged with are one text to a reader.
    to.push(UserData::Value(value));
    texts(tags, to);
    optional_text(agent, to);
}

pub(super) fn of_piece<'a>(piece: &'a mut ChunkPiece, to: &mut Places<'a>) {
    match piece {
        ChunkPiece::Text(text) => to.push(UserData::Text(text)),
        ChunkPiece::ToolCall {
            id,
            name,
            arguments,
        } => to.extend([id, name, arguments].map(UserData::Text)),
    }
}

fn of_refusal<'a>(refusal: &'a mut ModelRefusal, to: &mut Places<'a>) {
    let ModelRefusal { text, category } = refusal;
    optional_text(text, to);
    optional_text(category, to);
}

pub(super) fn of_answered<'a>(answered: &'a mut ModelAnswered, to: &mut Places<'a>) {
    let ModelAnswered {
        node: _,
        key: _,
        round: _,
        provider,
        model,
        answer,
    } = answered;
    to.extend([provider, model].map(UserData::Text));
    let ModelAnswer {
        text,
        data,
        stop: _,
        refusal,
        usage: _,
    } = answer;
    optional_text(text, to);
    optional_value(data, to);
    refusal.iter_mut().for_each(|r| of_refusal(r, to));
}

pub(super) fn of_envelope<'a>(fact: &'a mut EnvelopeFact, to: &mut Places<'a>) {
    let EnvelopeFact {
        node: _,
        provider,
        model,
        what,
    } = fact;
    to.extend([provider, model].map(UserData::Text));
    match what {
        EnvelopeStep::Refused(refusal) => of_refusal(refusal, to),
        EnvelopeStep::Exhausted { error, .. } => optional_text(error, to),
        EnvelopeStep::Truncated { .. } | EnvelopeStep::Recovered { .. } => {}
    }
}

pub(super) fn of_agent<'a>(fact: &'a mut AgentFact, to: &mut Places<'a>) {
    let AgentFact {
        node: _,
        agent_id,
        said,
    } = fact;
    to.push(UserData::Text(agent_id));
    match said {
        Said::Reasoned {
            reasoning,
            verbosity,
            token_count: _,
        } => to.extend([reasoning, verbosity].map(UserData::Text)),
        Said::ReasoningDelta { delta, sequence: _ } => to.push(UserData::Text(delta)),
        Said::ToolCalled {
            tool,
            call,
            inputs,
            transport: _,
            principal: _,
        } => {
            to.extend([tool, call].map(UserData::Text));
            optional_value(inputs, to);
        }
        Said::ToolReturned {
            tool,
            call,
            outcome,
            error,
            duration_ms: _,
            untrusted: _,
        } => {
            to.extend([tool, call].map(UserData::Text));
            optional_value(outcome, to);
            error.iter_mut().for_each(|error| of_error(error, to));
        }
        Said::HandedOff {
            to: agent,
            reason,
            context,
        } => {
            to.push(UserData::Text(agent));
            optional_text(reason, to);
            optional_value(context, to);
        }
        Said::Decided {
            decision,
            confidence: _,
            reasoning,
        } => {
            to.push(UserData::Value(decision));
            optional_text(reasoning, to);
        }
        Said::Verified {
            judged: _,
            verdict: _,
            criteria,
            confidence: _,
            feedback,
        } => {
            texts(criteria, to);
            optional_text(feedback, to);
        }
    }
}

pub(super) fn of_handoff<'a>(handoff: &'a mut Handoff, to: &mut Places<'a>) {
    let Handoff {
        node: _,
        index: _,
        worker: _,
        returned: _,
        step,
    } = handoff;
    match step {
        HandoffStep::Began | HandoffStep::ChildCancelled { child: _ } => {}
        HandoffStep::Succeeded { child: _, agent } => optional_text(agent, to),
        HandoffStep::Failed { error } | HandoffStep::ChildFailed { child: _, error } => {
            of_error(error, to);
        }
        HandoffStep::ChildCompleted {
            child: _,
            variables,
            untrusted,
        } => {
            to.push(UserData::Object(variables));
            texts(untrusted, to);
        }
        HandoffStep::Harvested { child: _, keys } => texts(keys, to),
    }
}

pub(super) fn of_work<'a>(work: &'a mut Work, to: &mut Places<'a>) {
    match work {
        Work::Http {
            effect: _,
            request,
            output: _,
        } => {
            let HttpRequest {
                method,
                url,
                headers,
                body,
                timeout_ms: _,
            } = request;
            to.extend([method, url].map(UserData::Text));
            to.push(UserData::Object(headers));
            optional_value(body, to);
        }
        Work::Model { request, mock, .. } => {
            let ModelRequest {
                provider,
                model,
                messages,
                temperature: _,
                max_output_tokens: _,
                schema,
            } = &mut **request;
            to.extend([provider, model].map(UserData::Text));
            for ModelMessage { role: _, content } in messages {
                to.push(UserData::Text(content));
            }
            optional_value(schema, to);
            if let Some(mock) = mock {
                of_mock(mock, to);
            }
        }
        Work::Tool {
            effect: _,
            call: _,
            request,
        } => {
            let ToolRequest {
                server: _,
                ask,
                timeout_ms: _,
            } = &mut **request;
            match ask {
                ToolAsk::Call { tool, arguments } => {
                    to.extend([UserData::Text(tool), UserData::Object(arguments)]);
                }
                ToolAsk::List { cursor } => optional_text(cursor, to),
                ToolAsk::Read { uri } => to.push(UserData::Text(uri)),
            }
        }
        Work::Pack {
            effect: _,
            pack: _,
            inputs,
        } => to.push(UserData::Object(inputs)),
        Work::Sleep { until: _, outputs } => {
            to.extend(outputs.as_mut().map(UserData::Object));
        }
        Work::SecretEcho { .. } | Work::Child { .. } => {}
    }
}

fn of_mock<'a>(mock: &'a mut MockCall, to: &mut Places<'a>) {
    for piece in &mut mock.script.pieces {
        of_piece(piece, to);
    }
    if let MockEnding::Failure(error) = &mut mock.script.ending {
        of_error(error, to);
    }
}
