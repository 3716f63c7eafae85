//! Decisions about the rights of admins: as the payload of their event, and as entries of the audit list.

use super::event::{Payload, shown_actor};
use serde_json::{Value, json};
use tandem_record::conversation::{AuthorizationDecision, SessionEventBody};
use tandem_record::{Masking, SessionId, Timestamp};

pub(super) fn write_decision(decision: &AuthorizationDecision, out: &mut Payload) {
    out.set("action", &decision.action);
    out.opt("escalationId", decision.escalation_id.as_ref());
    out.opt("proxyId", decision.proxy_id.as_ref());
    out.opt("reason", decision.reason.as_ref());
    out.opt("signal", decision.signal.as_ref());
    out.set("adapter", &decision.adapter);
}

/// The authorization event with its payload's fields beside `type`, `at`, `sessionId` and `actor`. A
/// denial without a session has none.
pub fn audit_entry(
    decision: &AuthorizationDecision,
    session: Option<&SessionId>,
    at: Timestamp,
) -> Value {
    let mut out = Payload::new(Masking::Passthrough);
    let body = SessionEventBody::AuthorizationDecided(Box::new(decision.clone()));
    out.set("type", super::event_name(&body));
    out.set("at", at.rfc3339());
    out.set("sessionId", session);
    out.set("actor", decision.actor.as_ref().map(shown_actor));
    write_decision(decision, &mut out);
    json!(out.into_fields())
}
