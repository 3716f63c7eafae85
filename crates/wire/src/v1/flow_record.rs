//! Records of a flow run's journal as events of this host. What the code was started with beside its
//! input is not shown: the generic events name the session, and the rest belongs to the conversation.

use super::time::rfc3339;
use crate::fields::WriteFields;
use tandem_record::conversation::{FlowPause, FlowRecord};

pub(super) fn type_name(record: &FlowRecord) -> &'static str {
    match record {
        FlowRecord::Started(_) => "tandem.flow.started",
        FlowRecord::Segment { .. } => "tandem.flow.segment",
        FlowRecord::Effect { .. } => "tandem.flow.effect",
        FlowRecord::Result { .. } => "tandem.flow.result",
        FlowRecord::Host { .. } => "tandem.flow.host",
        FlowRecord::Hook { .. } => "tandem.flow.hook",
        FlowRecord::Paused { .. } => "tandem.flow.paused",
        FlowRecord::Resumed { .. } => "tandem.flow.resumed",
        FlowRecord::Ended { .. } => "tandem.flow.ended",
        FlowRecord::Failed { .. } => "tandem.flow.failed",
        FlowRecord::Diverged { .. } => "tandem.flow.diverged",
    }
}

pub(super) fn payload(record: &FlowRecord, out: &mut impl WriteFields) {
    match record {
        FlowRecord::Started(start) => {
            out.set("agentId", &start.agent_id);
            out.set("flowId", &start.flow_id);
            out.opt("sessionId", start.session_id.as_ref());
            out.set("codeHash", &start.version);
            out.set("origin", start.origin);
            out.opt("input", start.input.as_ref());
        }
        FlowRecord::Segment { turn, trigger, .. } => {
            out.set("turn", turn);
            out.set("trigger", trigger);
        }
        FlowRecord::Effect {
            step,
            fingerprint,
            effect,
        } => {
            out.set("step", step);
            out.set("fingerprint", fingerprint);
            out.set("effect", effect);
        }
        FlowRecord::Result { step, value, error } => {
            out.set("step", step);
            out.opt("result", value.as_ref());
            out.opt("error", error.as_ref());
        }
        FlowRecord::Host {
            index,
            name,
            fingerprint,
            value,
            error,
        } => {
            out.set("index", index);
            out.set("name", name);
            out.set("fingerprint", fingerprint);
            out.opt("result", value.as_ref());
            out.opt("error", error.as_ref());
        }
        FlowRecord::Hook {
            step,
            input,
            decision,
        } => {
            out.set("step", step);
            out.set("input", input);
            out.set("decision", decision);
        }
        FlowRecord::Paused { pause, .. } => write_pause(pause, out),
        FlowRecord::Resumed {
            interrupt_id,
            by,
            outcome,
            answered_by: _,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("by", by);
            out.set("outcome", outcome);
        }
        FlowRecord::Ended { reason, cancelled } => {
            out.opt("reason", reason.as_ref());
            out.set("cancelled", cancelled);
        }
        FlowRecord::Failed { failure } => out.set("error", failure),
        FlowRecord::Diverged {
            step,
            expected,
            actual,
        } => {
            out.set("step", step);
            out.set("expected", expected);
            out.set("actual", actual);
        }
    }
}

fn write_pause(pause: &FlowPause, out: &mut impl WriteFields) {
    out.set("kind", pause.name());
    out.set("interruptId", pause.interrupt_id());
    out.opt("deadline", pause.deadline().map(rfc3339));
    if let FlowPause::Ask { key, .. } = pause {
        out.set("key", key);
    }
}
