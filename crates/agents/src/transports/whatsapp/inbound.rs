//! What the network delivers: many messages in one request, among them those that the business wrote in its own app.

use serde::Deserialize;
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_runtime::conversation::{OwnAccountMessage, TransportMessage};

/// Messages of the business's own app that were not sent by the API (Z-235).
const ECHOES: &str = "smb_message_echoes";
const ATTACHMENTS: [&str; 5] = ["image", "audio", "video", "document", "sticker"];

#[derive(Deserialize)]
struct Notification {
    #[serde(default)]
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    field: String,
    #[serde(default)]
    value: ChangeValue,
}

/// Statuses of sent messages are of no use here: they follow a message that the network took.
#[derive(Default, Deserialize)]
struct ChangeValue {
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    contacts: Vec<Value>,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    message_echoes: Vec<Value>,
}

/// The messages to one of our numbers, in the order in which they were written.
pub(super) fn read(
    body: &[u8],
    phone_number_id: &str,
) -> Result<(Vec<TransportMessage>, Vec<OwnAccountMessage>), serde_json::Error> {
    let notification: Notification = serde_json::from_slice(body)?;
    let changes = notification
        .entry
        .into_iter()
        .flat_map(|entry| entry.changes);
    // An app has one route for all its numbers.
    let own = changes.filter(|change| change.value.metadata["phone_number_id"] == phone_number_id);
    let (mut messages, mut echoes) = (Vec::new(), Vec::new());
    for Change { field, value } in own {
        if field == ECHOES {
            echoes.extend(value.message_echoes.iter().filter_map(read_echo));
            continue;
        }
        let read = |message| read_message(message, &value.contacts);
        messages.extend(value.messages.iter().filter_map(read));
    }
    messages.sort_by_key(|message| message.sent_at);
    echoes.sort_by_key(|echo: &OwnAccountMessage| echo.sent_at);
    Ok((messages, echoes))
}

fn read_message(message: &Value, contacts: &[Value]) -> Option<TransportMessage> {
    let from = message["from"].as_str()?;
    let kind = message["type"].as_str()?;
    let (body, media) = content(message, kind)?;
    let contact = contacts.iter().find(|contact| contact["wa_id"] == from);
    let name = contact.and_then(|contact| contact["profile"]["name"].as_str());
    let is_voice = message["audio"]["voice"] == true;
    let kind = if is_voice { "voice" } else { kind };
    Some(TransportMessage {
        message_id: Some(message["id"].as_str()?.to_owned()),
        from: address_of(from),
        body,
        kind: media.is_some().then(|| kind.to_owned()),
        display_name: name.map(str::to_owned),
        media,
        quoted_id: message["context"]["id"].as_str().map(str::to_owned),
        relayed: false,
        sent_at: written_at(message),
    })
}

/// A number as people write it. The ids of other networks are plain digits too: with the plus nobody is taken for
/// somebody on another network.
fn address_of(number: &str) -> String {
    format!("+{}", number.trim_start_matches('+'))
}

/// The text and the attachment of a message; `None` for what says nothing, such as a reaction.
fn content(message: &Value, kind: &str) -> Option<(String, Option<Value>)> {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let said = match kind {
        "text" => text("/text/body")?,
        "button" => text("/button/text")?,
        "interactive" => text("/interactive/button_reply/title")
            .or_else(|| text("/interactive/list_reply/title"))?,
        kind if ATTACHMENTS.contains(&kind) => {
            let file = &message[kind];
            let media = json!({
                "fileId": file["id"].as_str()?,
                "contentType": file["mime_type"],
                "fileName": file["filename"],
            });
            let caption = file["caption"].as_str().unwrap_or_default();
            return Some((caption.to_owned(), Some(media)));
        }
        _ => return None,
    };
    Some((said.to_owned(), None))
}

fn read_echo(echo: &Value) -> Option<OwnAccountMessage> {
    let (body, _) = content(echo, echo["type"].as_str()?)?;
    Some(OwnAccountMessage {
        message_id: echo["id"].as_str()?.to_owned(),
        to: address_of(echo["to"].as_str()?),
        body,
        sent_at: written_at(echo),
    })
}

/// The network writes seconds as a text.
fn written_at(message: &Value) -> Timestamp {
    let seconds = message["timestamp"]
        .as_str()
        .and_then(|text| text.parse().ok());
    Timestamp(seconds.unwrap_or(0_i64).saturating_mul(1_000))
}
