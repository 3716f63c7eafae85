//! One event of a session as its readers see it: the common fields outside, the event's own inside
//! `payload`.

use super::event_name::event_name;
use super::event_payload::write_payload;
use super::response_payload::write_response_meta;
use crate::fields::{Fields, WriteFields};
use serde::Serialize;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminActor, SessionEvent, SessionEventBody as Body, SessionStart,
};
use tandem_record::{Cause, Masking, Object, Recorded};

/// Who reads the events of a session.
#[derive(Clone, Copy)]
pub struct EventReader<'a> {
    /// The session the events belong to.
    pub session: &'a SessionStart,
    /// What stands in place of texts and data of people: [`Masking::Passthrough`] shows them,
    /// [`Masking::Hash`] their hashes, [`Masking::Omit`] nothing.
    pub texts: Masking,
}

/// Where an event is in the log of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLogPosition(pub u64);

/// One event. `position` is given where the events of an agent are read.
pub fn event(
    recorded: &Recorded<SessionEvent>,
    reader: EventReader<'_>,
    position: Option<AgentLogPosition>,
) -> Value {
    let start = reader.session;
    let session = &start.session_id;
    let SessionEvent {
        turn,
        flow,
        actor,
        response,
        body,
    } = &recorded.event;
    let mut out = Fields::default();
    out.set("eventId", session.event_id(recorded.seq));
    out.set("type", event_name(body));
    out.set("at", recorded.at.rfc3339());
    out.set("sequence", recorded.seq);
    out.opt("position", position.map(|AgentLogPosition(number)| number));
    out.set("agentId", &start.agent_id);
    out.set("sessionId", session);
    out.set("userId", &start.user.id);
    out.set("requestId", turn.map(|turn| session.request_id(turn)));
    out.set("turnId", turn.map(|turn| session.turn_id(turn)));
    out.set("flowId", flow.as_ref().map(|flow| &flow.flow_id));
    out.set("flowRunId", flow.as_ref().map(|flow| &flow.flow_run_id));
    let cause = recorded.cause.as_ref().map(|cause| match cause {
        Cause::Event(seq) => session.event_id(*seq),
        Cause::External(id) | Cause::Foreign { event: id, .. } => id.clone(),
    });
    out.set("causationId", cause);
    let channel = actor
        .as_ref()
        .map_or(&start.transport, |actor| &actor.channel);
    out.set("channel", channel);
    out.set("actor", actor.as_ref().map(shown_actor));
    let mut payload = Payload::new(reader.texts);
    write_payload(body, &mut payload);
    if let Body::ScheduleScopeDenied { .. } = body {
        payload.set("userExternalId", &start.user.external_user_id);
        payload.set("sessionId", session);
        payload.set("requestId", turn.map(|turn| session.request_id(turn)));
    }
    if let Some(meta) = response {
        write_response_meta(meta, &mut payload);
    }
    out.set("payload", payload.into_fields());
    Value::Object(out.0)
}

/// The same as text.
pub fn event_text(
    recorded: &Recorded<SessionEvent>,
    reader: EventReader<'_>,
    position: Option<AgentLogPosition>,
) -> String {
    event(recorded, reader, position).to_string()
}

/// Who acted. What the agent's rules know of them beyond this is not shown.
pub(super) fn shown_actor(actor: &AdminActor) -> Value {
    let mut out = Fields::default();
    out.set("id", &actor.id);
    out.opt("role", actor.role.as_ref());
    out.set("channel", &actor.channel);
    json!(out.0)
}

/// The payload of one event under construction.
pub(super) struct Payload {
    fields: Fields,
    texts: Masking,
}

impl Payload {
    pub(super) fn set(&mut self, key: &'static str, value: impl Serialize) {
        self.fields.set(key, value);
    }

    pub(super) fn opt(&mut self, key: &'static str, value: Option<impl Serialize>) {
        self.fields.opt(key, value);
    }

    /// A text or data of a person, an author or a called service.
    pub(super) fn text(&mut self, key: &'static str, value: impl Serialize) {
        let shown = self.texts.mask_value(&json!(value));
        self.fields.opt(key, shown);
    }

    pub(super) fn opt_text(&mut self, key: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(super) fn into_fields(self) -> Object {
        self.fields.0
    }

    pub(super) fn new(texts: Masking) -> Self {
        Self {
            fields: Fields::default(),
            texts,
        }
    }
}
