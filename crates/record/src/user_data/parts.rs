//! The user data in the parts that events are made of.

use super::{UserData, UserDataRefs};
use crate::conversation::FlowCall;
use crate::{
    AgentEvent, AgentEventKind, ApprovalDecision, ChunkPiece, ClaimedParent, EnvelopeEvent,
    EnvelopeEventKind, ErrorInfo, Handoff, HandoffStep, HttpRequest, MemoryEntry, MockCall,
    MockEnding, ModelAnswer, ModelAnswered, ModelMessage, ModelRefusal, ModelRequest, Resolution,
    RunOptions, RunRequest, ToolOperation, ToolRequest, TraceContext, Work,
};
use serde_json::Value;

pub(super) fn optional_text<'a>(text: &'a mut Option<String>, to: &mut UserDataRefs<'a>) {
    to.extend(text.as_mut().map(UserData::Text));
}

pub(super) fn optional_value<'a>(value: &'a mut Option<Value>, to: &mut UserDataRefs<'a>) {
    to.extend(value.as_mut().map(UserData::Value));
}

pub(super) fn texts<'a>(texts: &'a mut [String], to: &mut UserDataRefs<'a>) {
    to.extend(texts.iter_mut().map(UserData::Text));
}

pub(super) fn of_request<'a>(request: &'a mut RunRequest, to: &mut UserDataRefs<'a>) {
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
        waiting_session: _,
        isolated_memory: _,
        transport: _,
        trace,
        memory: _,
        forked_from,
        forked_by: _,
        levels_above: _,
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
    if let Some(from) = forked_from {
        to.extend(from.flow_results.values_mut().map(UserData::Object));
    }
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

pub(super) fn of_error<'a>(error: &'a mut ErrorInfo, to: &mut UserDataRefs<'a>) {
    let ErrorInfo {
        code,
        message,
        details,
        retryable: _,
    } = error;
    to.extend([UserData::Text(code), UserData::Text(message)]);
    optional_value(details, to);
}

pub(super) fn of_decision<'a>(decision: &'a mut ApprovalDecision, to: &mut UserDataRefs<'a>) {
    let ApprovalDecision {
        action: _,
        by: _,
        voter,
        claimed_by,
        decider: _,
        feedback,
        refine,
        edited,
    } = decision;
    optional_text(voter, to);
    optional_text(claimed_by, to);
    optional_text(feedback, to);
    optional_value(refine, to);
    optional_value(edited, to);
}

pub(super) fn of_resolution<'a>(resolution: &'a mut Resolution, to: &mut UserDataRefs<'a>) {
    let Resolution {
        interrupt: _,
        kind: _,
        value,
        by: _,
        decider: _,
        event_id,
        outcome,
        reason,
    } = resolution;
    to.push(UserData::Value(value));
    optional_text(event_id, to);
    optional_text(outcome, to);
    optional_text(reason, to);
}

pub(super) fn of_entry<'a>(entry: &'a mut MemoryEntry, to: &mut UserDataRefs<'a>) {
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
        sensitive: _,
    } = entry;
    to.push(UserData::Text(memory_ref));
    // The key of a note is its id.
    if !note {
        to.push(UserData::Text(key));
    }
    // A reader sees the value and its tags as one text.
    to.push(UserData::Value(value));
    texts(tags, to);
    optional_text(agent, to);
}

pub(super) fn of_piece<'a>(piece: &'a mut ChunkPiece, to: &mut UserDataRefs<'a>) {
    match piece {
        ChunkPiece::Text(text) => to.push(UserData::Text(text)),
        ChunkPiece::ToolCall {
            id,
            name,
            arguments,
        } => to.extend([id, name, arguments].map(UserData::Text)),
    }
}

fn of_refusal<'a>(refusal: &'a mut ModelRefusal, to: &mut UserDataRefs<'a>) {
    let ModelRefusal { text, category } = refusal;
    optional_text(text, to);
    optional_text(category, to);
}

pub(super) fn of_answered<'a>(answered: &'a mut ModelAnswered, to: &mut UserDataRefs<'a>) {
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

pub(super) fn of_envelope<'a>(envelope: &'a mut EnvelopeEvent, to: &mut UserDataRefs<'a>) {
    let EnvelopeEvent {
        node: _,
        provider,
        model,
        kind,
    } = envelope;
    to.extend([provider, model].map(UserData::Text));
    match kind {
        EnvelopeEventKind::Refused(refusal) => of_refusal(refusal, to),
        EnvelopeEventKind::Exhausted { error, .. } => optional_text(error, to),
        EnvelopeEventKind::Truncated { .. } | EnvelopeEventKind::Recovered { .. } => {}
    }
}

pub(super) fn of_agent<'a>(agent_event: &'a mut AgentEvent, to: &mut UserDataRefs<'a>) {
    let AgentEvent {
        node: _,
        agent_id,
        kind,
    } = agent_event;
    to.push(UserData::Text(agent_id));
    match kind {
        AgentEventKind::Reasoned {
            reasoning,
            verbosity,
            token_count: _,
        } => to.extend([reasoning, verbosity].map(UserData::Text)),
        AgentEventKind::ReasoningDelta { delta, sequence: _ } => to.push(UserData::Text(delta)),
        AgentEventKind::ToolCalled {
            tool,
            call,
            inputs,
            transport: _,
            principal: _,
        } => {
            to.extend([tool, call].map(UserData::Text));
            optional_value(inputs, to);
        }
        AgentEventKind::ToolReturned {
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
        AgentEventKind::HandedOff {
            to: agent,
            reason,
            context,
        } => {
            to.push(UserData::Text(agent));
            optional_text(reason, to);
            optional_value(context, to);
        }
        AgentEventKind::Decided {
            decision,
            confidence: _,
            reasoning,
        } => {
            to.push(UserData::Value(decision));
            optional_text(reasoning, to);
        }
        AgentEventKind::Verified {
            verification_subject: _,
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

pub(super) fn of_handoff<'a>(handoff: &'a mut Handoff, to: &mut UserDataRefs<'a>) {
    let Handoff {
        node: _,
        index: _,
        worker: _,
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

pub(super) fn of_work<'a>(work: &'a mut Work, to: &mut UserDataRefs<'a>) {
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
                operation,
                timeout_ms: _,
            } = &mut **request;
            match operation {
                ToolOperation::Call { tool, arguments } => {
                    to.extend([UserData::Text(tool), UserData::Object(arguments)]);
                }
                ToolOperation::List { cursor } => optional_text(cursor, to),
                ToolOperation::Read { uri } => to.push(UserData::Text(uri)),
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
        Work::Flow { flow_run: _, call } => {
            let FlowCall {
                agent_id: _,
                flow_id: _,
                target: _,
                input,
                allow_session_bootstrap: _,
                on_active_flow: _,
            } = &mut **call;
            optional_value(input, to);
        }
        Work::SecretEcho { .. } | Work::Child { .. } => {}
    }
}

fn of_mock<'a>(mock: &'a mut MockCall, to: &mut UserDataRefs<'a>) {
    for piece in &mut mock.script.pieces {
        of_piece(piece, to);
    }
    if let MockEnding::Failure(error) = &mut mock.script.ending {
        of_error(error, to);
    }
}
