//! The public name and payload of each stored event.

use super::agent;
use super::chunk::chunk_payload;
use super::flow_record;
use super::flow_texts::without_texts;
use super::interrupt::{decider_fields, interrupt_payload, public_data};
use super::mask::{masked_entries, masked_outputs, masked_run_outputs};
use super::memory_and_lineage::{memory_payload, owner};
use super::model::{answer_name, envelope_name, model_payload};
use super::time::rfc3339;
use crate::fields::{Fields, WriteFields};
use serde_json::Value;
use tandem_record::{DrainPolicy, ErrorInfo, Event, RunId, Sensitivity, Timestamp};

/// The event type clients see. Names under `tandem.` belong to this host; the others are from the
/// protocol's catalogue.
pub(super) fn type_name(event: &Event) -> &'static str {
    match event {
        Event::RunStarted { .. } => "run.started",
        Event::RunPauseRequested { .. } => "tandem.pause.requested",
        Event::RunPaused { .. } => "run.paused",
        Event::RunResumed { .. } => "run.resumed",
        Event::RunCancelRequested { .. } => "tandem.cancel.requested",
        Event::RunCompleted { .. } => "run.completed",
        Event::RunFailed { .. } => "run.failed",
        Event::RunCancelled { .. } => "run.cancelled",
        Event::NodeStarted { .. } => "node.started",
        Event::NodeCompleted { .. } => "node.completed",
        Event::NodeFailed { .. } => "node.failed",
        Event::NodeRetried { .. } => "node.retried",
        Event::NodeSkipped { .. } => "node.skipped",
        Event::NodeCancelled { .. } => "node.cancelled",
        Event::NodeDispatched { .. } => "node.dispatched",
        Event::InterruptRequested { .. } => "interrupt.requested",
        Event::ApprovalRequested { .. } => "approval.requested",
        Event::ClarificationRequested { .. } => "clarification.requested",
        Event::ApprovalReceived { .. } => "approval.received",
        Event::ClarificationResolved { .. } => "clarification.resolved",
        Event::ApprovalQuestioned { .. } => "tandem.approval.questioned",
        Event::InterruptEscalated { .. } => "tandem.interrupt.escalated",
        Event::InterruptReminded { .. } => "tandem.interrupt.reminded",
        Event::DecisionDenied { .. } => "tandem.decision.denied",
        Event::ExternalEventReceived { .. } => "tandem.event.received",
        Event::ConversationOpened { .. } => "conversation.opened",
        Event::ConversationExchanged { .. } => "conversation.exchanged",
        Event::ConversationClosed { .. } => "conversation.closed",
        Event::NodeSuspended { .. } => "node.suspended",
        Event::InterruptResolved { .. } => "interrupt.resolved",
        Event::NodeResumed { .. } => "node.resumed",
        Event::VariableChanged { .. } => "variable.changed",
        Event::ChannelWritten { .. } => "channel.written",
        Event::CapBreached { .. } => "cap.breached",
        Event::ArtifactCreated { .. } => "artifact.created",
        Event::ModelCapabilityInsufficient { .. } => "model.capability.insufficient",
        Event::LoopbackLimitReached { .. } => "workflow.loopback-limit",
        Event::MemoryWritten { .. } => "memory.written",
        Event::MemoryDeleted { .. } => "tandem.memory.deleted",
        Event::MemoryCompacted { .. } => "memory.compacted",
        Event::ReplayDiverged { .. } => "replay.diverged",
        Event::ReplayDivergedAtRefusal(_) => "replay.divergedAtRefusal",
        Event::OutputChunk(_) => "output.chunk",
        Event::ModelAnswered(event) => answer_name(event),
        Event::ModelRetried(_) => "envelope.retry.attempted",
        Event::Envelope(event) => envelope_name(event),
        Event::TriggerArmed { .. } => "tandem.trigger.armed",
        Event::Agent(event) => agent::type_name(&event.kind),
        Event::OrchestratorDecided { .. } => "runOrchestrator.decided",
        Event::ConfidenceEscalated { .. } => "core.workflowChain.confidence-escalated",
        Event::Handoff(_) => "core.workflowChain.event",
        Event::VerificationRequested(_) => "tandem.verification.asked",
        Event::FanOut { .. } => "core.dispatch.fanOut",
        Event::FanIn { .. } => "core.dispatch.join",
        Event::LogAppended { .. } => "log.appended",
        Event::Flow(record) => flow_record::type_name(record),
    }
}

pub(super) fn write_payload(
    run: &RunId,
    event: &Event,
    at: Timestamp,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    let texts = sensitivity.texts;
    let shown = texts.map(|mode| without_texts(event, mode));
    let event = shown.as_ref().unwrap_or(event);
    match event {
        Event::RunStarted {
            workflow_id,
            request,
            engine_version,
            ..
        } => {
            let secret = |name: &str| sensitivity.variables.contains(name);
            out.set("workflowId", workflow_id);
            out.set(
                "inputs",
                masked_entries(&request.inputs, sensitivity.mode, secret),
            );
            out.set("transport", request.transport);
            out.set("engineVersion", engine_version.to_string());
            out.set("owner", owner(&request.owner));
            out.opt("tags", request.options.tags.as_ref());
            out.opt("metadata", request.options.metadata.as_ref());
        }
        Event::RunPauseRequested { reason } | Event::RunResumed { reason } => {
            out.opt("reason", reason.as_ref());
        }
        Event::RunPaused { reason, policy, .. } => {
            out.opt("reason", reason.as_ref());
            let policy = match policy {
                DrainPolicy::Immediate => "immediate",
                DrainPolicy::DrainCurrentNode => "drain-current-node",
            };
            out.set("drainPolicy", policy);
        }
        Event::RunCancelRequested {
            reason,
            by,
            by_parent,
        } => {
            out.opt("reason", reason.as_ref());
            out.opt("cancelledBy", by.as_ref());
            out.opt("parentRunId", by_parent.as_ref());
        }
        Event::RunCompleted {
            outputs,
            duration_ms,
        } => {
            out.set("outputs", masked_run_outputs(outputs, sensitivity));
            out.set("durationMs", duration_ms);
        }
        Event::RunFailed {
            error: failure,
            failed_node,
            duration_ms,
        } => {
            let visible = sensitivity.visible_error(failed_node.as_ref(), failure);
            out.set("error", error(&visible));
            out.opt("failedNodeId", failed_node.as_ref());
            out.set("durationMs", duration_ms);
        }
        Event::RunCancelled {
            reason,
            by,
            by_parent,
            duration_ms,
        } => {
            out.opt("reason", reason.as_ref());
            out.opt("cancelledBy", by.as_ref());
            out.opt("parentRunId", by_parent.as_ref());
            out.set("durationMs", duration_ms);
        }
        other => node_payload(run, other, at, sensitivity, out),
    }
}

fn node_payload(
    run: &RunId,
    event: &Event,
    at: Timestamp,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    match event {
        Event::NodeStarted {
            node,
            type_id,
            attempt,
            ..
        } => {
            out.node(node);
            out.set("typeId", type_id);
            out.set("attempt", attempt);
        }
        Event::NodeCompleted {
            node,
            outputs,
            duration_ms,
            untrusted,
            ..
        } => {
            out.node(node);
            out.set("outputs", masked_outputs(node, outputs, sensitivity));
            out.set("durationMs", duration_ms);
            out.untrusted(*untrusted);
        }
        Event::NodeFailed {
            node,
            error: failure,
            attempts,
            ..
        } => {
            out.node(node);
            let visible = sensitivity.visible_error(Some(node), failure);
            out.set("error", error(&visible));
            out.set("attempts", attempts);
        }
        Event::OutputChunk(event) => chunk_payload(run, event, sensitivity, out),
        Event::NodeRetried {
            node,
            attempt,
            delay_ms,
            last_error,
        } => {
            out.node(node);
            out.set("attempt", attempt);
            out.set("delayMs", delay_ms);
            let visible = sensitivity.visible_error(Some(node), last_error);
            out.set("lastError", error(&visible));
        }
        Event::NodeSkipped { node, reason } | Event::NodeCancelled { node, reason, .. } => {
            out.node(node);
            out.set("reason", reason);
        }
        Event::NodeDispatched {
            child, workflow_id, ..
        } => {
            out.set("childRunId", child);
            out.set("childWorkflowId", workflow_id);
        }
        Event::InterruptRequested { node, interrupt } => {
            out.set("runId", run);
            out.node(node);
            out.set("interruptId", &interrupt.id);
            out.set("kind", &interrupt.kind);
            out.set("key", &interrupt.key);
            out.set("data", public_data(&interrupt.kind, &interrupt.data));
            out.opt("resumeSchema", interrupt.resume_schema.as_ref());
            out.opt("timeoutMs", interrupt.timeout_ms);
            out.set("requestedAt", rfc3339(interrupt.requested_at));
        }
        Event::NodeSuspended {
            node,
            interrupt,
            kind,
            key,
            reason,
            low_confidence,
            ..
        } => {
            out.node(node);
            out.set("interruptId", interrupt);
            out.set("kind", kind);
            out.set("key", key);
            out.opt("reason", reason.as_ref());
            if let Some(low_confidence) = low_confidence {
                out.set("agentId", &low_confidence.agent_id);
                out.set("threshold", low_confidence.threshold);
                out.set("observed", low_confidence.observed);
            }
        }
        Event::InterruptResolved { node, resolution } => {
            out.set("runId", run);
            out.node(node);
            out.set("interruptId", &resolution.interrupt);
            out.set("kind", &resolution.kind);
            out.set("resumeValue", &resolution.value);
            out.set("resolvedAt", rfc3339(at));
            out.opt("resolvedBy", resolution.by.as_ref());
            decider_fields(&resolution.decider, out);
            out.opt("eventId", resolution.event_id.as_ref());
            out.opt("outcome", resolution.outcome.as_ref());
            out.opt("reason", resolution.reason.as_ref());
        }
        Event::NodeResumed {
            node,
            interrupt,
            value,
        } => {
            out.node(node);
            out.opt("interruptId", interrupt.as_ref());
            out.opt("resumeValue", value.as_ref());
        }
        Event::Agent(_)
        | Event::OrchestratorDecided { .. }
        | Event::ConfidenceEscalated { .. }
        | Event::Handoff(_)
        | Event::VerificationRequested(_)
        | Event::FanOut { .. }
        | Event::FanIn { .. } => agent::payload(run, event, sensitivity, out),
        other => interrupt_or_data_payload(other, at, sensitivity, out),
    }
}

/// Payloads of interrupts, their answers, and data.
fn interrupt_or_data_payload(
    event: &Event,
    at: Timestamp,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    match event {
        Event::ApprovalRequested { .. }
        | Event::ClarificationRequested { .. }
        | Event::ApprovalReceived { .. }
        | Event::ClarificationResolved { .. }
        | Event::ApprovalQuestioned { .. }
        | Event::InterruptEscalated { .. }
        | Event::InterruptReminded { .. }
        | Event::DecisionDenied { .. }
        | Event::ConversationOpened { .. }
        | Event::ConversationExchanged { .. }
        | Event::ConversationClosed { .. }
        | Event::ExternalEventReceived { .. } => interrupt_payload(event, at, out),
        other => data_payload(other, at, sensitivity, out),
    }
}

fn data_payload(
    event: &Event,
    at: Timestamp,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    match event {
        Event::VariableChanged {
            name,
            previous,
            next,
            node,
            untrusted,
        } => {
            out.untrusted(*untrusted);
            let secret = sensitivity.variables.contains(name);
            let shown = |value: &Option<Value>| match value {
                Some(value) if secret => sensitivity.mode.mask_value(value),
                other => other.clone(),
            };
            out.set("name", name);
            out.opt("previous", shown(previous));
            out.opt("next", shown(next));
            out.opt("nodeId", node.as_ref());
        }
        Event::ChannelWritten {
            channel,
            value,
            reducer,
            schema_version,
            node,
            ..
        } => {
            let shown = if sensitivity.channels.contains(channel) {
                sensitivity.mode.mask_value(value).unwrap_or(Value::Null)
            } else {
                value.clone()
            };
            out.set("channel", channel);
            out.set("value", shown);
            out.set("reducer", reducer);
            out.set("writtenAt", rfc3339(at));
            out.set("schemaVersion", schema_version);
            out.opt("nodeId", node.as_ref());
        }
        Event::CapBreached {
            kind,
            limit,
            observed,
            node,
        } => {
            out.set("kind", kind.as_str());
            out.set("limit", limit);
            out.set("observed", observed);
            out.opt("nodeId", node.as_ref());
        }
        Event::ArtifactCreated {
            artifact_id,
            artifact_type,
            node,
            ..
        } => {
            out.set("artifactId", artifact_id);
            out.set("artifactType", artifact_type);
            out.node(node);
        }
        Event::ModelCapabilityInsufficient {
            node,
            provider,
            model,
            missing,
        } => {
            out.node(node);
            out.set("provider", provider);
            out.set("model", model);
            out.set("missingCapabilities", missing);
        }
        Event::LoopbackLimitReached {
            node,
            iterations,
            limit,
        } => {
            out.node(node);
            out.set("iterations", iterations);
            out.set("limit", limit);
        }
        Event::MemoryWritten { .. }
        | Event::MemoryDeleted { .. }
        | Event::MemoryCompacted { .. }
        | Event::ReplayDiverged { .. } => memory_payload(event, out),
        Event::ReplayDivergedAtRefusal(_)
        | Event::ModelAnswered(_)
        | Event::ModelRetried(_)
        | Event::Envelope(_) => model_payload(event, sensitivity, out),
        Event::TriggerArmed { trigger, due } => {
            out.set("triggerId", trigger);
            out.set("dueAt", rfc3339(*due));
        }
        Event::LogAppended {
            level,
            message,
            node,
            fields,
        } => {
            out.set("level", level);
            out.set("message", message);
            out.opt("nodeId", node.as_ref());
            out.opt("fields", fields.as_ref());
        }
        Event::Flow(record) => flow_record::payload(record, out),
        Event::RunStarted { .. }
        | Event::RunPauseRequested { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::RunCancelRequested { .. }
        | Event::RunCompleted { .. }
        | Event::RunFailed { .. }
        | Event::RunCancelled { .. }
        | Event::NodeStarted { .. }
        | Event::NodeCompleted { .. }
        | Event::NodeFailed { .. }
        | Event::NodeRetried { .. }
        | Event::NodeSkipped { .. }
        | Event::NodeCancelled { .. }
        | Event::NodeDispatched { .. }
        | Event::OutputChunk(_)
        | Event::Agent(_)
        | Event::OrchestratorDecided { .. }
        | Event::ConfidenceEscalated { .. }
        | Event::Handoff(_)
        | Event::VerificationRequested(_)
        | Event::FanOut { .. }
        | Event::FanIn { .. }
        | Event::InterruptRequested { .. }
        | Event::ApprovalRequested { .. }
        | Event::ClarificationRequested { .. }
        | Event::ApprovalReceived { .. }
        | Event::ClarificationResolved { .. }
        | Event::ApprovalQuestioned { .. }
        | Event::InterruptEscalated { .. }
        | Event::InterruptReminded { .. }
        | Event::DecisionDenied { .. }
        | Event::ConversationOpened { .. }
        | Event::ConversationExchanged { .. }
        | Event::ConversationClosed { .. }
        | Event::ExternalEventReceived { .. }
        | Event::NodeSuspended { .. }
        | Event::InterruptResolved { .. }
        | Event::NodeResumed { .. } => unreachable!("handled by an earlier match"),
    }
}

pub(super) fn error(error: &ErrorInfo) -> Value {
    let mut out = Fields::default();
    out.set("code", &error.code);
    out.set("message", &error.message);
    out.opt("details", error.details.as_ref());
    out.set("retryable", error.retryable);
    Value::Object(out.0)
}
