//! What code sees of a session: `ctx.user`, `ctx.session`, `ctx.inbound`, and the reserved keys.

use super::state::ChatSession;
use super::turn_state::{PendingReport, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{AdminActor, FlowPause, InboundMessage};
use tandem_record::{EffectId, Object};

/// Keys the host writes. Code may read them.
pub const RESERVED_PREFIX: &str = "__zupa.";

/// The session key in which an agent keeps what the session is about.
const SUMMARY: &str = "summary";
/// Characters of a summary that are read.
const MAX_SUMMARY_CHARS: usize = 2_000;

/// Members of a flow's `ctx` that a turn sets anew.
pub const SEGMENT_MEMBERS: [&str; 8] = [
    "user",
    "session",
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
    /// What a flow sees from its beginning.
    pub(super) fn flow_context(&self, turn: &Turn, attempt: u32) -> Object {
        let mut context = self.code_context();
        context.extend(self.segment_context(turn));
        context.insert("attempt".to_owned(), json!(attempt));
        let schedule = turn.schedule_data(&self.start.user.external_user_id);
        context.extend(schedule.map(|schedule| ("schedule".to_owned(), schedule)));
        context
    }

    /// The members of `ctx` that change with the turn that goes on with a flow: [`SEGMENT_MEMBERS`].
    pub(super) fn segment_context(&self, turn: &Turn) -> Object {
        let mut context = Object::new();
        let mut put = |name: &str, value: Value| context.insert(name.to_owned(), value);
        put("user", json!(self.start.user));
        put("session", self.session_data());
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

    /// What a function sees that this piece of work calls: a report is about a turn that is over.
    pub fn work_context(&self, effect: &EffectId) -> Object {
        let mut context = self.code_context();
        context.insert("activeFlow".to_owned(), self.active_flow_state());
        let report = self.report(effect);
        let (number, inbound) = match (report, self.turn_of_work(effect)) {
            (Some(report), _) => (report.turn, report.inbound.clone()),
            (None, Some(turn)) => {
                let schedule = turn.schedule_data(&self.start.user.external_user_id);
                context.extend(schedule.map(|schedule| ("schedule".to_owned(), schedule)));
                (turn.number, turn.inbound())
            }
            (None, None) => return context,
        };
        context.extend(inbound.map(|inbound| ("inbound".to_owned(), inbound)));
        context.insert("turnId".to_owned(), json!(self.turn_id(number)));
        context.insert("requestId".to_owned(), json!(self.request_id(number)));
        context
    }

    /// The admin for whom this piece of work is done.
    pub fn work_actor(&self, effect: &EffectId) -> Option<&AdminActor> {
        let turn = self
            .turn_of_work(effect)
            .filter(|_| !self.is_report(effect));
        turn?.actor.as_ref()
    }

    fn report(&self, effect: &EffectId) -> Option<&PendingReport> {
        let started = self.reporting.as_ref();
        let started = started.filter(|started| started.effect == *effect);
        started.map(|started| &started.report)
    }

    /// Whether this piece of work reports the response of a turn.
    pub(super) fn is_report(&self, effect: &EffectId) -> bool {
        self.report(effect).is_some()
    }

    fn session_data(&self) -> Value {
        let start = &self.start;
        json!({
            "id": start.session_id,
            "agentId": start.agent_id,
            "userId": start.user.id,
            "startedAt": self.started_at.rfc3339(),
            "lastActiveAt": self.last_active_at.rfc3339(),
            "endedAt": self.ended.map(|(at, _)| at.rfc3339()),
            "summary": self.summary(),
            "messageCount": self.message_count,
            "earlier": start.earlier.iter().map(|session| json!({
                "id": session.id,
                "startedAt": session.started_at.rfc3339(),
                "endedAt": session.ended_at.rfc3339(),
                "summary": session.summary,
            })).collect::<Vec<_>>(),
        })
    }

    /// What the session is about: the text its agent keeps under the key `summary`.
    pub(super) fn summary(&self) -> Option<String> {
        let text = self.kv.get(SUMMARY)?.as_str()?.trim();
        let text: String = text.chars().take(MAX_SUMMARY_CHARS).collect();
        (!text.is_empty()).then_some(text)
    }

    /// What every function of the agent sees.
    pub fn code_context(&self) -> Object {
        let start = &self.start;
        let context = json!({
            "user": start.user,
            "session": self.session_data(),
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
        if let Some(escalation) = self.shown_escalation() {
            put("hitl.escalationId", json!(escalation.id));
        }
        if let Some(bridge) = self.bridge() {
            put("hitl.proxyId", json!(bridge.id));
            put("hitl.proxyTarget", json!(bridge.target));
            put("hitl.proxyMode", json!(bridge.mode));
        }
        if let Some(last) = self.last_hitl {
            put("hitl.lastEventId", json!(self.event_id(last)));
        }
        keys
    }
}
