//! The own fields of events about questions: interrupts, confirmations, reminders and calls that wait for
//! somebody's consent.

use super::event::Payload;
use tandem_record::Timestamp;
use tandem_record::conversation::{ApprovalAsked, ApprovalRequest, SessionEventBody as Body};

pub(super) fn interrupt_payload(body: &Body, out: &mut Payload) {
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
            text: _,
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
        Body::ReminderSent {
            interrupt_id,
            index,
        } => {
            out.set("interruptId", interrupt_id);
            out.set("index", index);
        }
        Body::ApprovalRequested(request) => approval_request(request, out),
        Body::ApprovalDecided { call_id, approved } => {
            out.set("callId", call_id);
            out.set("approved", approved);
        }
        _ => {}
    }
}

fn approval_request(request: &ApprovalRequest, out: &mut Payload) {
    let ApprovalRequest {
        call,
        interrupt_id,
        asked,
    } = request;
    out.set("interruptId", interrupt_id);
    out.set("callId", &call.id);
    out.set("name", &call.name);
    out.text("args", &call.args);
    match asked {
        ApprovalAsked::User {
            question, deadline, ..
        } => {
            out.set("asked", "user");
            out.text("question", question);
            out.set("deadline", deadline.rfc3339());
        }
        ApprovalAsked::Admin { escalation_id } => {
            out.set("asked", "admin");
            out.set("escalationId", escalation_id);
        }
    }
}
