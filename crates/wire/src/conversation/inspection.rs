//! What operators inspect of a session: its messages, its outbox and the journals of its flows.

use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::conversation::{FlowRecord, LedgerMessage, OutboxIntent};
use tandem_record::{Object, Recorded, RunId, SessionId};

/// One message of the conversation.
pub fn message(message: &LedgerMessage) -> Value {
    let mut out = Fields::default();
    out.set("id", &message.id);
    out.set("role", message.role);
    out.set("text", &message.text);
    out.opt("author", message.author.as_ref());
    out.set("at", message.at.rfc3339());
    json!(out.0)
}

/// One text on its way to a transport, or delivered.
pub fn outbox_entry(session: &SessionId, intent: &OutboxIntent) -> Value {
    let mut out = Fields::default();
    out.set("key", &intent.key);
    out.set("sessionId", session);
    out.set("turnId", intent.turn.map(|turn| session.turn_id(turn)));
    out.set("to", &intent.to);
    out.set("transport", &intent.transport);
    out.set("text", &intent.text);
    out.set("origin", intent.origin);
    out.set("status", intent.status);
    out.opt("providerMessageId", intent.provider_message_id.as_ref());
    out.opt("template", intent.template.as_ref());
    out.opt("reason", intent.reason.as_ref());
    out.set("at", intent.at.rfc3339());
    json!(out.0)
}

/// One record of the journal of a flow run.
pub fn journal_record(run: &RunId, recorded: &Recorded<FlowRecord>) -> Value {
    let mut out = Fields::default();
    out.set("flowRunId", run);
    out.set("sequence", recorded.seq);
    out.set("type", record_name(&recorded.event));
    out.set("at", recorded.at.rfc3339());
    let record = serde_json::to_value(&recorded.event).unwrap_or_default();
    let fields = record.as_object().cloned().unwrap_or_default();
    // The name is outside.
    let fields: Object = fields.into_iter().filter(|(key, _)| key != "r").collect();
    out.set("record", fields);
    json!(out.0)
}

fn record_name(record: &FlowRecord) -> &'static str {
    match record {
        FlowRecord::Started(_) => "flow.started",
        FlowRecord::Segment { .. } => "flow.segment",
        FlowRecord::Effect { .. } => "flow.effect",
        FlowRecord::Result { .. } => "flow.result",
        FlowRecord::Host { .. } => "flow.host",
        FlowRecord::Hook { .. } => "flow.hook",
        FlowRecord::Paused { .. } => "flow.paused",
        FlowRecord::Resumed { .. } => "flow.resumed",
        FlowRecord::Ended { .. } => "flow.ended",
        FlowRecord::Failed { .. } => "flow.failed",
        FlowRecord::Diverged { .. } => "flow.diverged",
    }
}
