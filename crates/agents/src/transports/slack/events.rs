//! Events of the Events API: direct messages to the bot, and messages of channels that mention it.

use super::address::{in_thread, unescape};
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_runtime::conversation::TransportMessage;

/// Subtypes of messages that a person wrote. All others are of bots or of the network, or change a message.
const WRITTEN: [&str; 2] = ["file_share", "thread_broadcast"];

/// The message of an event; `None` for what no person wrote to the bot, such as its own messages.
pub(super) fn read_message(callback: &Value) -> Option<TransportMessage> {
    let event = &callback["event"];
    let is_direct = event["type"] == "message" && event["channel_type"] == "im";
    let is_mention = event["type"] == "app_mention";
    let by_person = match event["subtype"].as_str() {
        None => true,
        Some(subtype) => WRITTEN.contains(&subtype),
    };
    let is_of_bot = !event["bot_id"].is_null() || !event["app_id"].is_null();
    if !(is_direct || is_mention) || !by_person || is_of_bot {
        return None;
    }
    let bot = callback.pointer("/authorizations/0/user_id");
    let bot = bot.and_then(Value::as_str).unwrap_or_default();
    let (user, channel) = (event["user"].as_str()?, event["channel"].as_str()?);
    if user == bot {
        return None;
    }
    let ts = event["ts"].as_str()?;
    let thread = event["thread_ts"].as_str().unwrap_or(ts);
    let text = event["text"].as_str().unwrap_or_default();
    let text = match text.strip_prefix(&format!("<@{bot}>")) {
        Some(rest) if is_mention => rest,
        _ => text,
    };
    let file = &event["files"][0];
    let media = file["id"]
        .as_str()
        .map(|id| json!({"fileId": id, "contentType": file["mimetype"], "fileName": file["name"]}));
    Some(TransportMessage {
        // The network's own identity of a message: the same in every event about it.
        message_id: Some(format!("{channel}:{ts}")),
        from: match is_direct {
            true => user.to_owned(),
            false => in_thread(user, channel, thread),
        },
        body: unescape(text.trim()),
        kind: media.is_some().then(|| "document".to_owned()),
        display_name: None,
        media,
        // An answer in a thread is about the message that began it.
        quoted_id: event["thread_ts"]
            .as_str()
            .map(|began| format!("{channel}:{began}")),
        relayed: false,
        sent_at: written_at(ts),
    })
}

/// Seconds since 1970, a dot, and a number that makes it unique.
fn written_at(ts: &str) -> Timestamp {
    let seconds = ts.split('.').next().and_then(|text| text.parse().ok());
    Timestamp(seconds.unwrap_or(0_i64).saturating_mul(1_000))
}
