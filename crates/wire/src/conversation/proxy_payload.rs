//! The own fields of events about bridges, and bridges as readers see them.

use super::event::{Payload, shown_actor};
use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::conversation::{BridgeMessage, ProxyBridge, SessionEventBody as Body};
use tandem_record::{AgentId, Masking, SessionId, Timestamp};

pub(super) fn proxy_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::ProxyStarted { bridge, replaces } => {
            out.set("proxyId", &bridge.id);
            out.set("target", &bridge.target);
            out.set("mode", bridge.mode);
            out.set("flags", bridge.flags);
            out.opt("deadline", bridge.deadline.map(Timestamp::rfc3339));
            out.opt("replaces", replaces.as_ref());
        }
        Body::ProxyInputReceived {
            proxy_id,
            target,
            input,
            kept,
        } => {
            out.set("proxyId", proxy_id);
            out.set("target", target);
            out.set("inputId", &input.id);
            out.text("text", &input.text);
            out.opt("kept", kept.then_some(true));
        }
        Body::ProxyInputTaken { proxy_id, input_id } => {
            out.set("proxyId", proxy_id);
            out.set("inputId", input_id);
        }
        Body::ProxyForwarded {
            proxy_id,
            direction,
            source_message_id,
            modified,
            effect_id,
        } => {
            out.set("proxyId", proxy_id);
            out.set("direction", direction);
            out.set("sourceMessageId", source_message_id);
            out.set("modified", modified);
            out.set("messageId", effect_id);
        }
        Body::ProxyTimedOut {
            proxy_id,
            scope,
            behavior,
        } => {
            out.set("proxyId", proxy_id);
            out.set("scope", scope);
            out.opt("behavior", *behavior);
        }
        Body::ProxyStopped { proxy_id, reason } => {
            out.set("proxyId", proxy_id);
            out.set("reason", reason);
        }
        _ => {}
    }
}

/// A bridge with the conversation it belongs to. The address of its desk is not shown: it is a setting of the agent.
pub fn proxy(
    bridge: &ProxyBridge,
    session: &SessionId,
    agent: &AgentId,
    user_external_id: &str,
) -> Value {
    let ProxyBridge {
        id,
        target,
        transport,
        address: _,
        label,
        mode,
        flags,
        flow_id,
        flow_run_id,
        started_at,
        deadline,
        status,
        stopped_at,
        stop_reason,
    } = bridge;
    let mut out = Fields::default();
    out.set("id", id);
    out.set("proxyId", id);
    out.set("agentId", agent);
    out.set("sessionId", session);
    out.set("userExternalId", user_external_id);
    out.set("flowId", flow_id);
    out.set("flowRunId", flow_run_id);
    out.set("target", target);
    out.set("transport", transport);
    out.opt("label", label.as_ref());
    out.set("mode", mode);
    out.set("flags", flags);
    out.set("status", status);
    out.set("startedAt", started_at.rfc3339());
    out.set("deadline", deadline.map(Timestamp::rfc3339));
    out.opt("stoppedAt", stopped_at.map(Timestamp::rfc3339));
    out.opt("stopReason", stop_reason.as_ref());
    json!(out.0)
}

/// One text that passed over a bridge.
pub fn proxy_message(message: &BridgeMessage, texts: Masking) -> Value {
    let mut out = Payload::new(texts);
    out.set("id", &message.id);
    out.set("from", message.from);
    out.text("text", &message.text);
    out.set("at", message.at.rfc3339());
    out.opt("actor", message.actor.as_ref().map(shown_actor));
    out.set("outcome", message.outcome);
    out.opt("decidedAt", message.decided_at.map(Timestamp::rfc3339));
    out.opt_text("reason", message.reason.as_ref());
    out.opt_text("forwardedText", message.forwarded_text.as_ref());
    out.opt("modified", message.is_modified.then_some(true));
    out.opt("delivery", message.delivery);
    Value::Object(out.into_fields())
}
