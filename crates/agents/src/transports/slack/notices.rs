//! Questions in Slack: a message with two buttons, what arrives when one is pressed, and what is shown afterwards.

use super::super::facts;
use super::address::escape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use tandem_record::InterruptId;
use tandem_runtime::conversation::{NetworkDecision, QuestionNotice, ShownDecision};
use url::form_urlencoded;

const APPROVE: &str = "tandem_approve";
const REJECT: &str = "tandem_reject";
/// The network takes up to 3,000 in a block, as it is written there.
const MAX_ABOUT_CHARS: usize = 1_800;
const MAX_HEADLINE_CHARS: usize = 200;
const MAX_SUMMARY_CHARS: usize = 150;

/// What a button carries: the question, and what was shown of it.
#[derive(Serialize, Deserialize)]
struct ButtonValue {
    question: InterruptId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

pub(super) fn of_question(notice: &QuestionNotice<'_>) -> Value {
    let question = notice.question;
    let headline = escaped(&question.headline, MAX_HEADLINE_CHARS);
    let about = escaped(&question.about, MAX_ABOUT_CHARS);
    let mut text = format!("*{headline}*\n{about}");
    for (name, value) in facts(question) {
        text.push_str(&format!("\n{name}: {}", escape(&value)));
    }
    if let Some(link) = notice.link {
        text.push_str(&format!("\n<{link}|Look at it>"));
    }
    if question.decided.is_none() {
        text.push_str(&format!("\n{}", escape(&question.next)));
    }
    let mut blocks = vec![json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})];
    if let Some(decided) = &question.decided {
        let value = ButtonValue {
            question: decided.question.clone(),
            digest: decided.digest.clone(),
        };
        let value = serde_json::to_string(&value).expect("it is plain data");
        let button = |action: &str, label: &str, style: &str| {
            json!({
                "type": "button", "action_id": action, "value": value, "style": style,
                "text": {"type": "plain_text", "text": label},
            })
        };
        blocks.push(json!({"type": "actions", "elements": [
            button(APPROVE, "Approve", "primary"),
            button(REJECT, "Reject", "danger"),
        ]}));
    }
    json!({
        // What notifications show.
        "text": format!("{headline}: {}", escaped(&question.about, MAX_SUMMARY_CHARS)),
        "blocks": blocks,
    })
}

/// A text in its written form, of so many characters at most. One that is cut says so.
fn escaped(text: &str, max: usize) -> String {
    let mut written = String::new();
    let mut count = 0;
    for c in text.chars() {
        let one = escape(c.encode_utf8(&mut [0; 4])).to_string();
        count += one.chars().count();
        if count > max {
            return format!("{written}… (shortened)");
        }
        written.push_str(&one);
    }
    written
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
    let value = action["value"].as_str()?;
    // Notices of earlier releases have the id of an escalation alone.
    let value = serde_json::from_str(value).unwrap_or_else(|_| ButtonValue {
        question: InterruptId::from(value),
        digest: None,
    });
    Some(NetworkDecision {
        question: value.question,
        digest: value.digest,
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
