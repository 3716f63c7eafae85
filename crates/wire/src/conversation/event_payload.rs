//! The own fields of each event of a session. Texts and data of people pass [`Payload::text`], so that a
//! reader who may not see them does not.

use super::event::Payload;
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_record::conversation::{
    Candidate, EscalationRecord, FlowFailure, FlowPause, RequestedWork, SessionEventBody as Body,
    SessionWork, TurnCause, TurnOutcome,
};

pub(super) fn write_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::SessionStarted(start) => {
            out.set("userExternalId", &start.user.external_user_id);
            out.set("transport", &start.transport);
        }
        Body::MessageReceived { message } => {
            out.set("messageId", &message.message_id);
            out.set("from", &message.from);
            out.set("type", message.kind.as_deref().unwrap_or("text"));
            out.set("hasMedia", message.media.is_some());
            out.text("text", &message.body);
        }
        Body::TurnQueued { cause } => turn_cause(cause, out),
        Body::TurnStarted {
            trigger,
            message_ids,
            ..
        } => {
            out.set("trigger", trigger);
            out.set("messageIds", message_ids);
        }
        Body::TurnEnded(outcome) => turn_outcome(outcome, out),
        Body::WorkRequested(work) => requested_work(work, out),
        Body::WorkFinished { effect_id } => out.set("workId", effect_id),
        Body::CommandHandled { name } => out.set("command", name),
        Body::HookDecided { stage, decision } => {
            out.set("stage", stage);
            out.opt("action", decision.get("action"));
            out.text("decision", decision);
        }
        Body::ModelAnswered { purpose, answer } => {
            out.set("purpose", purpose);
            out.opt_text("text", answer.text.as_ref());
            out.opt_text("structured", answer.structured.as_ref());
            let calls = answer.tool_calls.iter();
            let calls: Vec<_> = calls
                .map(|call| json!({"id": call.id, "name": call.name}))
                .collect();
            out.set("toolCalls", calls);
        }
        Body::ModelFailed { purpose, error } => {
            out.set("purpose", purpose);
            out.set("error", error);
        }
        Body::ToolAnswered {
            call_id,
            name,
            content,
            failed,
        } => {
            out.set("callId", call_id);
            out.set("name", name);
            out.set("failed", failed);
            out.text("content", content);
        }
        Body::KvChanged { key, value } => {
            out.set("key", key);
            out.opt_text("value", value.as_ref());
        }
        Body::PreferenceChanged { key, value } => {
            out.set("key", key);
            out.set("value", value);
        }
        Body::RouterDecided {
            mode,
            flow,
            confidence,
            reason,
            fallback_used,
        } => {
            out.set("mode", mode);
            out.opt("flow", flow.as_ref());
            out.opt("confidence", *confidence);
            out.set("reason", reason);
            out.set("fallbackUsed", fallback_used);
        }
        Body::AuthorizationDecided(decision) => super::audit::write_decision(decision, out),
        Body::SessionEndRequested { reason } | Body::SessionEnded { reason } => {
            out.set("reason", reason);
        }
        Body::ReportQueued { .. } => {}
        Body::FlowStarted { .. }
        | Body::FlowStartRefused { .. }
        | Body::FlowEffectStarted { .. }
        | Body::FlowPaused { .. }
        | Body::FlowResumed { .. }
        | Body::FlowHandoff { .. }
        | Body::FlowEnded { .. }
        | Body::FlowFailed { .. }
        | Body::FlowDiverged { .. }
        | Body::FlowEffectIgnored { .. } => flow_payload(body, out),
        Body::InterruptPaused { .. }
        | Body::InterruptResumed { .. }
        | Body::InterruptLate { .. }
        | Body::ConfirmRequested { .. }
        | Body::ConfirmResolved { .. }
        | Body::ConfirmTimedOut { .. }
        | Body::ConfirmUnrecognized { .. } => interrupt_payload(body, out),
        Body::EscalationCreated(_)
        | Body::EscalationResolved { .. }
        | Body::EscalationTimedOut { .. }
        | Body::EscalationCanceled { .. }
        | Body::EscalationDetached { .. }
        | Body::PendingMessage { .. }
        | Body::QueueConsumed { .. } => escalation_payload(body, out),
        Body::ResponsePrepared { .. }
        | Body::ResponseQueued { .. }
        | Body::ResponseCanceled { .. }
        | Body::ResponseSuppressed { .. }
        | Body::ResponseSent { .. }
        | Body::ResponsePersisted { .. }
        | Body::ResponseFailed { .. }
        | Body::SendFailed { .. } => response_payload(body, out),
    }
}

fn turn_cause(cause: &TurnCause, out: &mut Payload) {
    out.set("trigger", cause.trigger());
    match cause {
        TurnCause::Message { message, .. } => out.set("messageId", &message.message_id),
        TurnCause::QueueReplay { message } => out.set("messageId", &message.message.message_id),
        TurnCause::Deadline { interrupt } => out.set("interruptId", interrupt),
        TurnCause::EscalationClosed { escalation } => out.set("escalationId", escalation),
        TurnCause::StartFlow { flow, .. } => out.set("flowId", flow),
    }
}

fn turn_outcome(outcome: &TurnOutcome, out: &mut Payload) {
    let (name, reason) = match outcome {
        TurnOutcome::Processed => ("processed", None),
        TurnOutcome::EndedByPolicy { reason } => ("ended_by_policy", reason.as_ref()),
        TurnOutcome::Failed { reason } => ("failed", Some(reason)),
    };
    out.set("outcome", name);
    out.opt("reason", reason);
}

fn requested_work(work: &RequestedWork, out: &mut Payload) {
    out.set("workId", &work.effect_id);
    match &work.work {
        SessionWork::Tool { name, args } => {
            out.set("name", name);
            out.text("args", args);
        }
        SessionWork::Model { purpose, tools, .. } => {
            out.set("purpose", purpose);
            out.set("tools", tools);
        }
        SessionWork::Code(call) => out.set("path", &call.path),
        SessionWork::Continue | SessionWork::Send(_) => {}
    }
}

fn flow_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::FlowStarted {
            origin,
            input,
            version,
        } => {
            out.set("origin", origin);
            out.opt_text("input", input.as_ref());
            out.set("codeHash", version);
        }
        Body::FlowStartRefused { reason } => out.set("reason", reason),
        Body::FlowEffectStarted { step, effect } => {
            out.set("step", step);
            out.opt("type", effect.get("type").and_then(Value::as_str));
            out.text("effect", effect);
        }
        Body::FlowPaused { pause } => flow_pause(pause, out),
        Body::FlowResumed { by, answer } => {
            out.set("by", by);
            out.opt("key", answer.as_ref().map(|(key, _)| key));
        }
        Body::FlowHandoff { to } => out.set("to", to),
        Body::FlowEnded { reason } => out.opt("reason", reason.as_ref()),
        Body::FlowFailed { error } => {
            let FlowFailure {
                code,
                message,
                details,
            } = error;
            let mut shown = json!({"code": code, "message": message});
            if let Some(details) = details {
                shown["details"] = details.clone();
            }
            out.set("error", shown);
        }
        Body::FlowDiverged {
            step,
            expected,
            actual,
            code_hash,
        } => {
            out.set("step", step);
            out.text("expected", expected);
            out.text("actual", actual);
            out.set("codeHash", code_hash);
        }
        Body::FlowEffectIgnored { effect } => {
            out.opt("type", effect.get("type").and_then(Value::as_str));
            out.text("effect", effect);
        }
        _ => {}
    }
}

fn flow_pause(pause: &FlowPause, out: &mut Payload) {
    let kind = match pause {
        FlowPause::Ask { .. } => "ask",
        FlowPause::Confirm { .. } => "confirm",
        FlowPause::Wait { .. } => "wait",
        FlowPause::Workflow { .. } => "workflow",
    };
    out.set("kind", kind);
    out.set("interruptId", pause.interrupt_id());
    match pause {
        FlowPause::Ask { key, .. } => out.set("key", key),
        FlowPause::Wait {
            wait_for,
            escalation_id,
            ..
        } => {
            out.set("waitFor", wait_for);
            out.opt("escalationId", escalation_id.as_ref());
        }
        FlowPause::Workflow { run_id, .. } => out.set("runId", run_id),
        FlowPause::Confirm { .. } => {}
    }
    out.opt("deadline", pause.deadline().map(Timestamp::rfc3339));
}

fn interrupt_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::InterruptPaused {
            interrupt_id,
            kind,
            wait_for,
            deadline,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("kind", kind);
            out.opt("waitFor", *wait_for);
            out.opt("deadline", deadline.map(Timestamp::rfc3339));
        }
        Body::InterruptResumed {
            interrupt_id,
            kind,
            by,
            outcome,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("kind", kind);
            out.set("by", by);
            out.set("outcome", outcome);
        }
        Body::InterruptLate { interrupt_id } => out.set("interruptId", interrupt_id),
        Body::ConfirmRequested {
            interrupt_id,
            question,
            deadline,
            has_schema,
        } => {
            out.set("interruptId", interrupt_id);
            out.text("question", question);
            out.set("deadline", deadline.rfc3339());
            out.set("hasSchema", has_schema);
        }
        Body::ConfirmResolved {
            interrupt_id,
            decision,
            reason,
            text,
            value,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("decision", decision);
            out.opt("reason", reason.as_ref());
            out.text("text", text);
            out.opt_text("value", value.as_ref());
        }
        Body::ConfirmTimedOut {
            interrupt_id,
            deadline,
            behavior,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("deadline", deadline.rfc3339());
            out.set("behavior", behavior);
        }
        Body::ConfirmUnrecognized {
            interrupt_id,
            text,
            attempt,
            ..
        } => {
            out.set("interruptId", interrupt_id);
            out.text("text", text);
            out.set("attempt", attempt);
        }
        _ => {}
    }
}

fn escalation_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::EscalationCreated(escalation) => {
            let EscalationRecord {
                id,
                mode,
                reason,
                priority,
                metadata,
                client_id,
                deadline,
                ..
            } = &**escalation;
            out.set("escalationId", id);
            out.set("mode", mode);
            out.set("reason", reason);
            out.set("priority", priority);
            out.opt_text("metadata", metadata.as_ref());
            out.opt("clientId", client_id.as_ref());
            out.opt("deadline", deadline.map(Timestamp::rfc3339));
        }
        Body::EscalationResolved {
            escalation_id,
            resolution,
            detached,
        } => {
            out.set("escalationId", escalation_id);
            out.set("approved", resolution.approved);
            out.opt_text("message", resolution.message.as_ref());
            out.opt_text("actionData", resolution.action_data.as_ref());
            out.set("resolvedBy", &resolution.resolved_by);
            out.opt("claimedBy", resolution.claimed_by.as_ref());
            out.set("detached", detached);
        }
        Body::EscalationTimedOut {
            escalation_id,
            deadline,
        } => {
            out.set("escalationId", escalation_id);
            out.set("deadline", deadline.rfc3339());
        }
        Body::EscalationCanceled {
            escalation_id,
            reason,
        } => {
            out.set("escalationId", escalation_id);
            out.set("reason", reason);
        }
        Body::EscalationDetached { escalation_id } => out.set("escalationId", escalation_id),
        Body::PendingMessage {
            message_id,
            behavior,
        } => {
            out.set("messageId", message_id);
            out.set("behavior", behavior);
        }
        Body::QueueConsumed { message_ids } => out.set("messageIds", message_ids),
        _ => {}
    }
}

fn response_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::ResponsePrepared { candidate, source } => {
            out.set("source", source);
            candidate_fields(candidate, out);
        }
        Body::ResponseQueued {
            effect_id,
            to,
            candidate,
            ..
        } => {
            out.set("messageId", effect_id);
            out.set("to", to);
            candidate_fields(candidate, out);
        }
        Body::ResponseCanceled { index, reason } => {
            out.set("index", index);
            out.opt("reason", reason.as_ref());
        }
        Body::ResponseSuppressed { effect_id, reason } => {
            out.opt("messageId", effect_id.as_ref());
            out.set("reason", reason);
        }
        Body::ResponseSent {
            effect_id,
            provider_message_id,
        } => {
            out.set("messageId", effect_id);
            out.opt("providerMessageId", provider_message_id.as_ref());
        }
        Body::ResponsePersisted { effect_id } => out.set("messageId", effect_id),
        Body::ResponseFailed { stage, reason } => {
            out.set("stage", stage);
            out.set("reason", reason);
        }
        Body::SendFailed { effect_id, reason } => {
            out.set("messageId", effect_id);
            out.set("reason", reason);
        }
        _ => {}
    }
}

fn candidate_fields(candidate: &Candidate, out: &mut Payload) {
    out.set("index", candidate.index);
    out.set("origin", candidate.origin);
    out.text("text", &candidate.text);
    out.opt_text("structured", candidate.structured.as_ref());
}
