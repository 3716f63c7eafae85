//! Payloads of agent events and handoffs.

#[cfg(test)]
mod tests;

use super::mask::mask_text;
use super::payload::error as full;
use crate::fields::WriteFields;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tandem_record::{
    AgentEvent, AgentEventKind, ErrorInfo, Event, HandoffStep, RunId, Sensitivity,
    VerificationSubject,
};

pub(super) fn type_name(kind: &AgentEventKind) -> &'static str {
    match kind {
        AgentEventKind::Reasoned { .. } => "agent.reasoned",
        AgentEventKind::ReasoningDelta { .. } => "agent.reasoning.delta",
        AgentEventKind::ToolCalled { .. } => "agent.toolCalled",
        AgentEventKind::ToolReturned { .. } => "agent.toolReturned",
        AgentEventKind::HandedOff { .. } => "agent.handoff",
        AgentEventKind::Decided { .. } => "agent.decided",
        AgentEventKind::Verified { .. } => "agent.verified",
    }
}

/// Whether the payload names the host of a cause on another host.
pub(super) fn names_foreign_hosts(event: &Event) -> bool {
    match event {
        Event::Agent(event) => !matches!(event.kind, AgentEventKind::ReasoningDelta { .. }),
        Event::OrchestratorDecided { .. }
        | Event::ConfidenceEscalated { .. }
        | Event::Handoff(_) => true,
        _ => false,
    }
}

pub(super) fn payload(
    run: &RunId,
    event: &Event,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    match event {
        Event::Agent(fact) => agent_event_payload(run, fact, sensitivity, out),
        Event::OrchestratorDecided {
            node,
            agent_id,
            decision,
            iteration,
            unnumbered,
        } => {
            out.set("agentId", agent_id);
            out.set("decision", sensitivity.visible_decision(node, decision));
            out.opt("iteration", (!unnumbered).then_some(iteration));
        }
        Event::ConfidenceEscalated {
            node,
            confidence,
            floor,
            kind,
            worker,
            decision,
        } => {
            out.set("confidence", confidence);
            out.set("floor", floor);
            out.set("escalationKind", kind);
            out.set("parentRunId", run);
            let hidden = sensitivity.hides_decision_of(node);
            out.opt("workerId", worker.as_ref().filter(|_| !hidden));
            let decision = sensitivity.visible_decision(node, decision);
            out.set("originalDecision", decision);
        }
        Event::Handoff(handoff) => {
            out.set("phase", handoff.step.phase());
            out.set("workerId", &handoff.worker);
            out.set("parentRunId", run);
            out.opt("childRunId", handoff.step.child());
            match &handoff.step {
                HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } => {
                    let visible = sensitivity.visible_error(Some(&handoff.node), error);
                    out.set("error", brief(&visible));
                }
                HandoffStep::ChildCancelled { .. } => {
                    let error = ErrorInfo::new("child_cancelled", "the child run was cancelled");
                    out.set("error", brief(&error));
                }
                HandoffStep::Harvested { keys, .. } => out.set("harvestedKeys", keys),
                HandoffStep::Began
                | HandoffStep::Succeeded { .. }
                | HandoffStep::ChildCompleted { .. } => {}
            }
        }
        Event::VerificationRequested(request) => {
            out.set("agentId", &request.agent_id);
            out.set("target", target(run, &request.verification_subject));
        }
        Event::FanOut {
            children,
            max_concurrency,
            join,
            ..
        } => {
            out.set("fanOutPolicy", "parallel");
            out.set("childCount", children);
            out.opt("maxConcurrency", max_concurrency.as_ref());
            out.set("joinMode", join);
        }
        Event::FanIn {
            outcome,
            completed,
            failed,
            cancelled,
            merge_order,
            ..
        } => {
            out.set("joinOutcome", outcome);
            out.set("completedCount", completed);
            out.set("failedCount", failed);
            out.set("cancelledCount", cancelled);
            out.set("mergeOrder", merge_order);
        }
        other => unreachable!("{other:?} is not an agent event"),
    }
}

fn agent_event_payload(
    run: &RunId,
    event: &AgentEvent,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    let agent = match event.kind {
        AgentEventKind::HandedOff { .. } => "fromAgentId",
        _ => "agentId",
    };
    out.set(agent, &event.agent_id);
    match &event.kind {
        AgentEventKind::Reasoned {
            reasoning,
            verbosity,
            token_count,
        } => {
            out.set("reasoning", spoken(event, reasoning, sensitivity));
            out.set("verbosity", verbosity);
            out.opt("tokenCount", token_count.as_ref());
        }
        AgentEventKind::ReasoningDelta { delta, sequence } => {
            out.set("delta", spoken(event, delta, sensitivity));
            out.set("sequence", sequence);
        }
        AgentEventKind::ToolCalled {
            tool,
            call,
            inputs,
            transport,
            principal,
        } => {
            out.set("toolName", tool);
            out.set("callId", call);
            match transport {
                // Arguments of an outbound call may hold anything, so only their hash is shown.
                Some(transport) => {
                    out.opt("argsHash", inputs.as_ref().map(canonical_hash));
                    out.opt("principal", principal.as_ref());
                    out.set("transport", transport);
                }
                None => out.opt("inputs", inputs.as_ref()),
            }
        }
        AgentEventKind::ToolReturned {
            tool,
            call,
            outcome,
            error,
            duration_ms,
            untrusted,
        } => {
            out.set("toolName", tool);
            out.set("callId", call);
            out.opt("outcome", outcome.as_ref());
            let error = error.as_ref();
            let visible = error.map(|error| sensitivity.visible_error(Some(&event.node), error));
            out.opt("error", visible.as_deref().map(full));
            out.set("status", if error.is_some() { "error" } else { "ok" });
            out.opt("durationMs", duration_ms.as_ref());
            out.untrusted(*untrusted);
        }
        AgentEventKind::HandedOff {
            to,
            reason,
            context,
        } => {
            out.set("toAgentId", to);
            out.opt("reason", reason.as_ref());
            out.opt("context", context.as_ref());
        }
        AgentEventKind::Decided {
            decision,
            confidence,
            reasoning,
        } => {
            let hidden = sensitivity.hides_decision_of(&event.node);
            match hidden {
                true => out.opt("decision", sensitivity.mode.mask_value(decision)),
                false => out.set("decision", decision),
            }
            out.opt("confidence", confidence.as_ref());
            out.opt("reasoning", reasoning.as_ref().filter(|_| !hidden));
        }
        // Only the verdict is shown, never the checked content or the feedback.
        AgentEventKind::Verified {
            verification_subject,
            verdict,
            criteria,
            confidence,
            ..
        } => {
            out.set("target", target(run, verification_subject));
            out.set("verdict", verdict);
            out.opt("criteria", (!criteria.is_empty()).then_some(criteria));
            out.opt("confidence", confidence.as_ref());
        }
    }
}

/// What an agent says about a result, which is as sensitive as the result.
fn spoken(event: &AgentEvent, text: &str, sensitivity: &Sensitivity) -> Value {
    match sensitivity.outputs.contains_key(&event.node) {
        true => mask_text(text, sensitivity.mode),
        false => json!(text),
    }
}

/// What a verifier's verdict is about, by its public id.
fn target(run: &RunId, verification_subject: &VerificationSubject) -> String {
    match verification_subject {
        VerificationSubject::Decision { decided } => run.event_id(*decided),
        VerificationSubject::Output { child, .. } => child.to_string(),
    }
}

/// SHA-256 over the canonical JSON (RFC 8785), as lower-case hexadecimal digits.
fn canonical_hash(value: &Value) -> String {
    let canonical = serde_jcs::to_vec(value).expect("stored JSON has a canonical form");
    let digest = Sha256::digest(&canonical);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn brief(error: &ErrorInfo) -> Value {
    json!({"code": error.code, "message": error.message})
}
