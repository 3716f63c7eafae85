//! What code sees of a session: `ctx.user`, `ctx.session`, `ctx.inbound`, and the reserved keys.

use super::state::ChatSession;
use super::turn_state::Turn;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::Object;
use tandem_record::conversation::{FlowPause, InboundMessage};

/// Keys the host writes. Code may read them.
pub const RESERVED_PREFIX: &str = "__zupa.";

/// Members of a flow's `ctx` that a turn sets anew.
pub const SEGMENT_MEMBERS: [&str; 6] = [
    "inbound",
    "turnId",
    "requestId",
    "trigger",
    "answers",
    "lastInterrupt",
];

/// A message as code sees it.
pub fn inbound(message: &InboundMessage) -> Value {
    let mut value = json!({
        "messageId": message.message_id,
        "from": message.from,
        "body": message.body,
        "type": message.kind.as_deref().unwrap_or("text"),
        "source": "transport",
        "receivedAt": message.received_at.rfc3339(),
    });
    if let Some(profile) = &message.sender_profile {
        value["senderProfile"] = json!(profile);
    }
    if let Some(media) = &message.media {
        value["media"] = media.clone();
        value["hasMedia"] = json!(true);
    }
    value
}

impl ChatSession {
    /// What a flow sees from its beginning.
    pub(super) fn flow_context(&self, turn: &Turn, attempt: u32) -> Object {
        let mut context = self.code_context();
        context.extend(self.segment_context(turn));
        context.insert("attempt".to_owned(), json!(attempt));
        context
    }

    /// The members of `ctx` that change with the turn that goes on with a flow: [`SEGMENT_MEMBERS`].
    pub(super) fn segment_context(&self, turn: &Turn) -> Object {
        let mut context = Object::new();
        let mut put = |name: &str, value: Value| context.insert(name.to_owned(), value);
        put("inbound", turn.inbound().unwrap_or_default());
        put("turnId", json!(self.turn_id(turn.number)));
        put("requestId", json!(self.request_id(turn.number)));
        put("trigger", json!(turn.trigger()));
        let flow = self.flow.as_ref();
        put("answers", flow.map_or(json!({}), |f| json!(f.answers)));
        if let Some(last) = flow.and_then(|flow| flow.last_interrupt.clone()) {
            put("lastInterrupt", last);
        }
        context
    }

    /// What a function sees that the turn under way calls.
    pub fn turn_context(&self) -> Object {
        let mut context = self.code_context();
        if let Some(turn) = &self.turn {
            context.extend(
                turn.inbound()
                    .map(|inbound| ("inbound".to_owned(), inbound)),
            );
            context.insert("turnId".to_owned(), json!(self.turn_id(turn.number)));
            context.insert("requestId".to_owned(), json!(self.request_id(turn.number)));
        }
        context
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

    /// The public id of one of the session's events.
    pub fn event_id(&self, seq: tandem_record::Seq) -> String {
        format!("evt-{}-{seq}", self.id())
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
        if let Some(last) = self.last_hitl {
            put("hitl.lastEventId", json!(self.event_id(last)));
        }
        keys
    }
}
