//! The own fields of events about escalations and messages that arrive while one is pending.

use super::event::Payload;
use tandem_record::Timestamp;
use tandem_record::conversation::{EscalationRecord, RestartedTimeout, SessionEventBody as Body};

pub(super) fn escalation_payload(body: &Body, out: &mut Payload) {
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
                queue,
                assignee,
                ..
            } = &**escalation;
            out.set("escalationId", id);
            out.set("mode", mode);
            out.set("reason", reason);
            out.set("priority", priority);
            out.opt_text("metadata", metadata.as_ref());
            out.opt("clientId", client_id.as_ref());
            out.opt("deadline", deadline.map(Timestamp::rfc3339));
            out.opt("queue", queue.as_ref());
            out.opt("assignee", assignee.as_ref());
        }
        Body::EscalationVoted {
            escalation_id,
            vote,
        } => {
            out.set("escalationId", escalation_id);
            out.set("by", &vote.by);
            out.opt_text("message", vote.message.as_ref());
        }
        Body::EscalationClaimed {
            escalation_id,
            by,
            stopped,
            wait_left_ms: _,
        } => {
            out.set("escalationId", escalation_id);
            out.set("assignee", by);
            out.set("timeoutStopped", stopped.is_some());
        }
        Body::EscalationReleased {
            escalation_id,
            restarted,
        } => {
            out.set("escalationId", escalation_id);
            write_restart(restarted.as_ref(), out);
        }
        Body::EscalationAssigned {
            escalation_id,
            assignee,
            restarted,
        } => {
            out.set("escalationId", escalation_id);
            out.set("assignee", assignee);
            write_restart(restarted.as_ref(), out);
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

/// The deadline of an escalation whose time runs again.
fn write_restart(restarted: Option<&RestartedTimeout>, out: &mut Payload) {
    let deadline = restarted.and_then(|restarted| restarted.deadline);
    out.opt("deadline", deadline.map(Timestamp::rfc3339));
}
