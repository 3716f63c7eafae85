//! Escalations in Slack: a message with two buttons, what arrives when one is pressed, and what is shown afterwards.

use super::super::requested_action;
use super::address::escape;
use serde_json::{Value, json};
use std::borrow::Cow;
use tandem_record::EscalationId;
use tandem_runtime::conversation::{EscalationNotice, NetworkDecision, ShownDecision};
use url::form_urlencoded;

const APPROVE: &str = "tandem_approve";
const REJECT: &str = "tandem_reject";
/// The network takes up to 3,000 in a block.
const MAX_REASON_CHARS: usize = 1_000;
const MAX_USER_CHARS: usize = 100;

pub(super) fn of_escalation(notice: &EscalationNotice<'_>) -> Value {
    let escalation = notice.escalation;
    let reason: String = escalation.reason.chars().take(MAX_REASON_CHARS).collect();
    let user: String = notice.user.chars().take(MAX_USER_CHARS).collect();
    let mut text = format!(
        "*{} {}*\n{}\nPriority: {}",
        escape(&user),
        requested_action(escalation),
        escape(&reason),
        escalation.priority.as_str()
    );
    if let Some(deadline) = escalation.deadline {
        text.push_str(&format!("\nUntil: {}", deadline.rfc3339()));
    }
    let button = |action: &str, label: &str, style: &str| {
        json!({
            "type": "button", "action_id": action, "value": escalation.id, "style": style,
            "text": {"type": "plain_text", "text": label},
        })
    };
    if escalation.is_takeover() {
        text.push_str("\nTake over in the console.");
    }
    let mut blocks = vec![json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})];
    // A takeover is handed back, not decided.
    if !escalation.is_takeover() {
        blocks.push(json!({"type": "actions", "elements": [
            button(APPROVE, "Approve", "primary"),
            button(REJECT, "Reject", "danger"),
        ]}));
    }
    let action = requested_action(escalation);
    json!({
        // What notifications show.
        "text": format!("{} {action}: {}", escape(&user), escape(&reason)),
        "blocks": blocks,
    })
}

/// The payload of an interaction: those come as a form, and events as JSON.
pub(super) fn form_payload(body: &[u8]) -> Option<Cow<'_, str>> {
    if !body.starts_with(b"payload=") {
        return None;
    }
    let mut fields = form_urlencoded::parse(body);
    fields.find_map(|(name, value)| (name == "payload").then_some(value))
}

/// What somebody decided; `None` for other interactions.
pub(super) fn read_decision(payload: &Value) -> Option<NetworkDecision> {
    if payload["type"] != "block_actions" {
        return None;
    }
    let action = &payload["actions"][0];
    let approved = match action["action_id"].as_str()? {
        APPROVE => true,
        REJECT => false,
        _ => return None,
    };
    let container = &payload["container"];
    Some(NetworkDecision {
        escalation_id: EscalationId::from(action["value"].as_str()?),
        by: payload["user"]["id"].as_str()?.to_owned(),
        approved,
        notice: json!({
            "channel": container["channel_id"],
            "ts": container["message_ts"],
            "text": payload["message"]["blocks"][0]["text"]["text"],
        }),
    })
}

/// The notice without its buttons, and with who decided.
pub(super) fn decided(shown: &ShownDecision) -> Value {
    let section = |text: &str| json!({"type": "section", "text": {"type": "mrkdwn", "text": text}});
    let outcome = escape(&shown.text);
    let before = shown.notice["text"].as_str().unwrap_or_default();
    let mut blocks = vec![section(&outcome)];
    if !before.is_empty() {
        blocks.insert(0, section(before));
    }
    json!({
        "channel": shown.notice["channel"],
        "ts": shown.notice["ts"],
        "text": outcome,
        "blocks": blocks,
    })
}

/// A message that only they see.
pub(super) fn answer_to_one(shown: &ShownDecision) -> Value {
    json!({
        "channel": shown.notice["channel"],
        "user": shown.by,
        "text": escape(&shown.text),
    })
}
