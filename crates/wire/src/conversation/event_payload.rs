//! The own fields of each event of a session. Texts and data of people pass [`Payload::text`], so that a
//! reader who may not see them does not.

use super::escalation_payload::escalation_payload;
use super::event::Payload;
use super::flow_payload::flow_payload;
use super::interrupt_payload::interrupt_payload;
use super::proxy_payload::proxy_payload;
use super::response_payload::response_payload;
use super::takeover_payload::takeover_payload;
use serde_json::json;
use tandem_record::Timestamp;
use tandem_record::conversation::{
    ProfileChange, RequestedWork, SessionEventBody as Body, SessionWork, TurnCause, TurnOutcome,
};

pub(super) fn write_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::SessionStarted(start) => {
            out.set("userExternalId", &start.user.external_user_id);
            out.set("transport", &start.transport);
        }
        Body::MessageReceived {
            message,
            held_until,
        } => {
            out.set("messageId", &message.message_id);
            out.set("from", &message.from);
            out.set("type", message.kind.as_deref().unwrap_or("text"));
            out.set("hasMedia", message.media.is_some());
            out.text("text", &message.body);
            out.opt("heldUntil", held_until.map(Timestamp::rfc3339));
        }
        Body::BurstClosed | Body::ReportQueued { .. } => {}
        Body::MessageTranscribed { text } => {
            out.set("failed", text.is_none());
            out.opt_text("text", text.as_ref());
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
        Body::TurnDropped {
            number: _,
            message_ids,
            reason,
        } => {
            out.set("messageIds", message_ids);
            out.set("reason", reason);
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
            out.opt("usage", answer.usage.as_ref());
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
        Body::ProfileChanged(change) => profile_change(change, out),
        Body::ModeChanged { mode } => out.set("agentMode", mode),
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
        Body::ScheduleScopeDenied {
            operation,
            schedule_id,
            offending_fields,
        } => {
            out.set("operation", operation.tool());
            out.opt("scheduleId", schedule_id.as_ref());
            out.set("offendingFields", offending_fields);
        }
        Body::SessionEndRequested { reason } | Body::SessionEnded { reason } => {
            out.set("reason", reason);
        }
        Body::FlowStarted { .. }
        | Body::FlowStartRefused { .. }
        | Body::FlowEffectStarted { .. }
        | Body::FlowPaused { .. }
        | Body::FlowResumed { .. }
        | Body::FlowHandoff { .. }
        | Body::FlowEnded { .. }
        | Body::FlowFailed { .. }
        | Body::FlowDiverged { .. }
        | Body::FlowEffectIgnored { .. }
        | Body::FlowNondeterministic { .. }
        | Body::DivergenceSettled { .. }
        | Body::FlowStartDeferred { .. }
        | Body::FlowStartWithdrawn { .. }
        | Body::WorkflowFinishedEarly { .. }
        | Body::WorkflowQuestionOpened { .. }
        | Body::WorkflowQuestionAnswered { .. }
        | Body::WorkflowAnswerRefused { .. }
        | Body::WorkflowQuestionClosed { .. } => flow_payload(body, out),
        Body::InterruptPaused { .. }
        | Body::InterruptResumed { .. }
        | Body::InterruptLate { .. }
        | Body::ConfirmRequested { .. }
        | Body::ConfirmResolved { .. }
        | Body::ConfirmTimedOut { .. }
        | Body::ConfirmUnrecognized { .. }
        | Body::ReminderSent { .. }
        | Body::ApprovalRequested(_)
        | Body::ApprovalDecided { .. } => interrupt_payload(body, out),
        Body::EscalationCreated(_)
        | Body::EscalationVoted { .. }
        | Body::EscalationClaimed { .. }
        | Body::EscalationReleased { .. }
        | Body::EscalationAssigned { .. }
        | Body::EscalationResolved { .. }
        | Body::EscalationTimedOut { .. }
        | Body::EscalationCanceled { .. }
        | Body::EscalationDetached { .. }
        | Body::PendingMessage { .. }
        | Body::QueueConsumed { .. } => escalation_payload(body, out),
        Body::LiveTakeoverStarted { .. }
        | Body::LiveTakeoverMessage { .. }
        | Body::LiveTakeoverForwarded(_)
        | Body::LiveTakeoverEnded(_)
        | Body::ExternalReplyRecorded { .. } => takeover_payload(body, out),
        Body::ProxyStarted { .. }
        | Body::ProxyInputReceived { .. }
        | Body::ProxyInputTaken { .. }
        | Body::ProxyForwarded { .. }
        | Body::ProxyTimedOut { .. }
        | Body::ProxyStopped { .. } => proxy_payload(body, out),
        Body::ResponsePrepared { .. }
        | Body::ResponseQueued { .. }
        | Body::DraftHeld { .. }
        | Body::DraftDecided { .. }
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
        TurnCause::AdminCommand { message, .. } => out.set("messageId", &message.message_id),
        TurnCause::Deadline { interrupt }
        | TurnCause::Reminder { interrupt, .. }
        | TurnCause::Answered { interrupt, .. } => out.set("interruptId", interrupt),
        TurnCause::WorkflowAsked {
            interrupt,
            question,
        } => {
            out.set("interruptId", interrupt);
            out.set("runId", &question.run_id);
        }
        TurnCause::WorkflowFinished { interrupt, result } => {
            out.set("interruptId", interrupt);
            out.set("runId", &result.run_id);
        }
        TurnCause::EndTakeover(ending) => {
            out.set("escalationId", &ending.escalation);
            out.set("reason", ending.reason);
        }
        TurnCause::ProxyInput { proxy, input } => {
            out.set("proxyId", proxy);
            out.set("inputId", &input.id);
        }
        TurnCause::ProxyClosed {
            interrupt,
            proxy,
            reason,
            timed_out: _,
        } => {
            out.set("interruptId", interrupt);
            out.set("proxyId", proxy);
            out.set("reason", reason);
        }
        TurnCause::ProxyEnding(ending) => {
            out.set("proxyId", &ending.proxy);
            out.set("reason", &ending.reason);
        }
        TurnCause::EscalationClosed { escalation } => out.set("escalationId", escalation),
        TurnCause::StartFlow(request) => out.set("flowId", &request.flow),
        TurnCause::Scheduled(turn) => {
            out.set("scheduleId", &turn.schedule_id);
            out.set("scheduledFor", turn.scheduled_for.rfc3339());
            out.set("flowId", &turn.flow_id);
        }
    }
}

fn turn_outcome(outcome: &TurnOutcome, out: &mut Payload) {
    let (name, reason) = match outcome {
        TurnOutcome::Processed => ("processed", None),
        TurnOutcome::EndedByPolicy { reason } => ("ended_by_policy", reason.as_ref()),
        TurnOutcome::Failed { reason } => ("failed", Some(reason)),
        TurnOutcome::Interrupted => ("interrupted", None),
        TurnOutcome::Canceled { reason } => ("canceled", Some(reason)),
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
        SessionWork::StartWorkflow(start) => out.set("workflowId", &start.workflow_id),
        SessionWork::CancelWorkflow { run_id } => out.set("runId", run_id),
        SessionWork::AnswerWorkflow(answer) => out.set("runId", &answer.run_id),
        SessionWork::Continue
        | SessionWork::Send(_)
        | SessionWork::Notify(_)
        | SessionWork::Transcribe { .. }
        | SessionWork::ReportFlow(_)
        | SessionWork::ReportSchedule(_)
        | SessionWork::ListEscalations => {}
        SessionWork::ManageSchedule(call) => out.set("name", call.operation.tool()),
    }
}

/// Which parts of the profile changed, and to what.
fn profile_change(change: &ProfileChange, out: &mut Payload) {
    let ProfileChange {
        display_name,
        name_is_chosen: _,
        tags,
        proactive,
        preferences,
    } = change;
    out.opt_text("displayName", display_name.as_ref());
    out.opt("tags", tags.as_ref());
    out.opt("proactive", *proactive);
    out.opt_text("preferences", preferences.as_ref());
}
