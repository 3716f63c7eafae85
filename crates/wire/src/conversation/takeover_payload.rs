//! The own fields of events about live takeovers.

use super::event::Payload;
use tandem_record::conversation::SessionEventBody as Body;

pub(super) fn takeover_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::LiveTakeoverStarted {
            escalation_id,
            by,
            idle_handback_ms,
        } => {
            out.set("escalationId", escalation_id);
            out.set("by", by);
            let seconds = idle_handback_ms.map(|ms| ms.div_ceil(1_000));
            out.opt("idleHandbackSeconds", seconds);
        }
        Body::LiveTakeoverMessage {
            direction,
            message_id,
        } => {
            out.set("direction", direction);
            out.set("messageId", message_id);
        }
        Body::LiveTakeoverForwarded(forwarded) => {
            out.set("messageId", &forwarded.effect_id);
            out.set("transport", &forwarded.transport);
            out.set("to", &forwarded.to);
            out.text("text", &forwarded.text);
        }
        Body::LiveTakeoverEnded(ended) => {
            out.set("escalationId", &ended.escalation_id);
            out.set("reason", ended.reason);
            out.opt_text("note", ended.note.as_ref());
            out.set("heldItems", ended.held_items);
        }
        Body::ExternalReplyRecorded {
            message_id,
            message,
        } => {
            out.set("messageId", message_id);
            out.text("text", &message.text);
        }
        _ => {}
    }
}
