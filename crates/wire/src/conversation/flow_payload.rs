//! The own fields of events about flow runs.

use super::event::Payload;
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_record::conversation::{FlowFailure, FlowPause, ParentNode, SessionEventBody as Body};

/// The node of a workflow that a flow was started for.
fn shown_parent(parent: &ParentNode) -> Value {
    json!({"runId": parent.run_id, "nodeId": parent.node_id})
}

pub(super) fn flow_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::FlowStarted {
            origin,
            input,
            version,
            parent,
            attempt,
        } => {
            out.set("origin", origin);
            out.opt_text("input", input.as_ref());
            out.set("codeHash", version);
            out.opt("parent", parent.as_ref().map(shown_parent));
            out.opt("attempt", Some(attempt).filter(|attempt| **attempt > 1));
        }
        Body::FlowStartRefused { reason } => out.set("reason", reason),
        Body::FlowEffectStarted { step, effect, .. } => {
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
        }
        | Body::FlowNondeterministic {
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
        Body::DivergenceSettled {
            flow_run_id,
            retried,
        } => {
            out.set("divergedRunId", flow_run_id);
            out.set("retried", retried);
        }
        Body::FlowStartDeferred {
            flow_id,
            input,
            parent,
        } => {
            out.set("deferredFlowId", flow_id);
            out.opt_text("input", input.as_ref());
            out.set("parent", shown_parent(parent));
        }
        Body::FlowStartWithdrawn { parent } => out.set("parent", shown_parent(parent)),
        Body::WorkflowFinishedEarly {
            interrupt_id,
            result,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("runId", &result.run_id);
            out.set("status", &result.status);
        }
        Body::WorkflowQuestionOpened {
            wait,
            question,
            escalation_id,
        } => {
            out.set("interruptId", wait);
            out.set("runId", &question.run_id);
            out.set("nodeId", &question.node_id);
            out.set("questionId", &question.interrupt_id);
            out.set("kind", &question.kind);
            out.opt("escalationId", escalation_id.as_ref());
            out.text("data", &question.data);
        }
        Body::WorkflowQuestionAnswered {
            interrupt_id,
            key,
            value,
        } => {
            out.set("questionId", interrupt_id);
            out.set("key", key);
            out.text("value", value);
        }
        Body::WorkflowAnswerRefused {
            interrupt_id,
            reason,
        } => {
            out.set("questionId", interrupt_id);
            out.set("reason", reason);
        }
        Body::WorkflowQuestionClosed {
            interrupt_id,
            outcome,
        } => {
            out.set("questionId", interrupt_id);
            out.set("outcome", outcome);
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
        FlowPause::ProxyWait { .. } => "proxy_wait",
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
        FlowPause::ProxyWait { proxy_id, .. } => out.set("proxyId", proxy_id),
        FlowPause::Confirm { .. } => {}
    }
    out.opt("deadline", pause.deadline().map(Timestamp::rfc3339));
}
