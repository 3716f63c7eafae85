//! What code sees of a session: `ctx.user`, `ctx.session`, `ctx.inbound`, and the reserved keys.

use super::state::{ChatSession, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::Object;
use tandem_record::conversation::{FlowPause, InboundMessage};

/// Keys the host writes. Code may read them.
pub const RESERVED_PREFIX: &str = "__zupa.";

/// A message as code sees it.
pub fn inbound(message: &InboundMessage) -> Value {
    let mut value = json!({
        "messageId": message.message_id,
        "from": message.from,
        "body": message.body,
        "type": message.kind.as_deref().unwrap_or("text"),
        "source": match message.client_id {
            Some(_) => "ui_channel",
            None => "transport",
        },
        "receivedAt": message.received_at.rfc3339(),
    });
    if let Some(profile) = &message.sender_profile {
        value["senderProfile"] = json!(profile);
    }
    if let Some(client) = &message.client_id {
        value["clientId"] = json!(client);
    }
    if let Some(media) = &message.media {
        value["media"] = media.clone();
        value["hasMedia"] = json!(true);
    }
    value
}

impl ChatSession {
    /// What does not change while a flow runs.
    pub(super) fn flow_context(&self, turn: &Turn) -> Object {
        let mut context = self.code_context();
        if let Some(message) = turn.cause.message() {
            context.insert("inbound".to_owned(), inbound(message));
        }
        context.insert("turnId".to_owned(), json!(self.turn_id(turn.number)));
        context.insert("requestId".to_owned(), json!(self.request_id(turn.number)));
        context
    }

    /// What a function sees that the turn under way calls.
    pub fn turn_context(&self) -> Object {
        match &self.turn {
            Some(turn) => self.flow_context(turn),
            None => self.code_context(),
        }
    }

    /// What every function of the agent sees.
    pub fn code_context(&self) -> Object {
        let start = &self.start;
        let context = json!({
            "user": start.user,
            "session": {
                "id": start.session_id,
                "agentId": start.agent_id,
                "userId": start.user.id,
                "startedAt": self.started_at.rfc3339(),
            },
            "replyTarget": start.address,
        });
        match context {
            Value::Object(fields) => fields,
            _ => Object::new(),
        }
    }

    /// All keys of the session, those of the host included.
    pub fn all_keys(&self) -> BTreeMap<String, Value> {
        let mut keys = self.kv.clone();
        keys.extend(self.reserved_keys());
        keys
    }

    pub fn key(&self, key: &str) -> Option<Value> {
        if key.starts_with(RESERVED_PREFIX) {
            return self.reserved_keys().remove(key);
        }
        self.kv.get(key).cloned()
    }

    /// The keys of the host. They follow from the state.
    pub fn reserved_keys(&self) -> BTreeMap<String, Value> {
        let mut keys = BTreeMap::new();
        let mut put = |name: &str, value: Value| {
            keys.insert(format!("{RESERVED_PREFIX}{name}"), value);
        };
        if let Some(flow) = &self.flow {
            put("flow.activeFlowId", json!(flow.flow));
            let last = flow.current.as_ref().and_then(|effect| effect.get("type"));
            put(
                "flow.flowFrame",
                json!({
                    "flowRunId": flow.run,
                    "step": flow.steps,
                    "lastYield": last,
                    "vars": flow.answers,
                }),
            );
            if let Some(FlowPause::Ask { key, .. }) = &flow.pause {
                put("flow.pendingAskKey", json!(key));
            }
            if let Some(id) = &flow.last_message {
                put("flow.lastFlowEventId", json!(id));
            }
        }
        if let Some(mode) = self.hitl_mode() {
            put("hitl.mode", json!(mode));
            if let Some(since) = self.pending_since {
                put("hitl.pendingSince", json!(since.rfc3339()));
            }
        }
        if let Some(escalation) = self.attached_escalation() {
            put("hitl.escalationId", json!(escalation.id));
        }
        keys
    }
}
