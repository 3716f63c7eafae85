//! One event of an agent that belongs to no session, in the form of all events.

use super::event::{AgentLogPosition, Payload, shown_actor};
use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AgentLevelEvent, AgentLevelEventBody as Body, InboundRefusal, ProviderCircuit, SessionEventBody,
};
use tandem_record::{AgentId, Masking, Recorded, Timestamp};

/// Fields that say what of a session an event belongs to.
const OF_SESSIONS: [&str; 7] = [
    "sessionId",
    "userId",
    "requestId",
    "turnId",
    "flowId",
    "flowRunId",
    "causationId",
];

pub fn agent_level_event(
    recorded: &Recorded<AgentLevelEvent>,
    agent: &AgentId,
    AgentLogPosition(position): AgentLogPosition,
) -> Value {
    let AgentLevelEvent {
        workspace: _,
        actor,
        body,
    } = &recorded.event;
    let mut out = Fields::default();
    out.set("eventId", format!("evt-agent-{agent}-{}", recorded.seq));
    out.set("type", name(body));
    out.set("at", recorded.at.rfc3339());
    out.set("sequence", recorded.seq);
    out.set("position", position);
    out.set("agentId", agent);
    for field in OF_SESSIONS {
        out.set(field, Value::Null);
    }
    let channel = match (actor, body) {
        (Some(actor), _) => Some(&actor.channel),
        (None, Body::InboundRefused { transport, .. }) => Some(transport),
        (None, _) => None,
    };
    out.set("channel", channel);
    out.set("actor", actor.as_ref().map(shown_actor));
    let mut payload = Payload::new(Masking::Passthrough);
    write_payload(body, &mut payload);
    out.set("payload", payload.into_fields());
    json!(out.0)
}

fn name(body: &Body) -> &'static str {
    match body {
        Body::InboundRefused { refusal, .. } => match refusal {
            InboundRefusal::RateLimited => "transport:inbound:ratelimited",
            InboundRefusal::Overloaded => "transport:inbound:overload",
        },
        Body::AuthorizationDecided(decision) => {
            super::event_name(&SessionEventBody::AuthorizationDecided(decision.clone()))
        }
        Body::CircuitChanged(change) => match change.to {
            ProviderCircuit::Closed => "model:circuit:closed",
            ProviderCircuit::Open => "model:circuit:open",
            ProviderCircuit::HalfOpen => "model:circuit:half_open",
        },
    }
}

fn write_payload(body: &Body, out: &mut Payload) {
    match body {
        Body::InboundRefused {
            refusal: _,
            transport: _,
            from,
            message_id,
            unlisted,
        } => {
            out.set("from", from);
            out.opt("messageId", message_id.as_ref());
            out.opt("unlisted", Some(*unlisted).filter(|count| *count > 0));
        }
        Body::AuthorizationDecided(decision) => super::audit::write_decision(decision, out),
        Body::CircuitChanged(change) => {
            out.set("provider", &change.provider);
            out.set("from", change.from.as_str());
            out.set("to", change.to.as_str());
            out.opt("until", change.until.map(Timestamp::rfc3339));
        }
    }
}
