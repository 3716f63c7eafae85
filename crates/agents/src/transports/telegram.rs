//! Telegram, by its Bot API: messages of private chats in, texts out.
//!
//! The network proves itself with a secret that was given to it with the webhook (`setWebhook`, `secret_token`). It
//! knows no message ids of clients: a message whose sending was interrupted may arrive twice. Groups are not read:
//! an address is one person.

use super::common_settings::{CommonSettings, SecretVariable, check_url, read_own};
use super::network_api::{ApiFailure, NetworkApi};
use super::send_rate::Rate;
use super::text_parts::TextLimit;
use super::{ChatTransport, NetworkLimits, TransportKind, TransportResources};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_access::is_secret;
use tandem_record::{Owner, Timestamp};
use tandem_runtime::conversation::{
    LifeSign, LifeSignKind, OutgoingMessage, SendError, TransportDelivery, TransportMessage,
    TransportRefusal, TransportRequest,
};

pub(super) const KIND: TransportKind = TransportKind {
    name: "telegram",
    limits: NetworkLimits {
        reply_window_seconds: None,
        text: Some(TextLimit::Utf16Units(4096)),
        // Of its documentation: 30 messages in a second, and one in a second to one chat but for short bursts.
        rate: Some(Rate::new(30, 1_000)),
        rate_per_address: Some(Rate::new(3, 3_000)),
    },
    takes_decisions: false,
    has_templates: false,
    check,
    open,
};

/// How long the network shows typing.
const TYPING_LASTS: Duration = Duration::from_secs(5);
const API: &str = "https://api.telegram.org";
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// The network takes up to 256; fewer keep nobody out.
const MIN_SECRET_CHARS: usize = 16;
const MIN_TOKEN_CHARS: usize = 16;
/// What the network calls an attachment, and the type of the message that carries it.
const ATTACHMENTS: [(&str, &str); 6] = [
    ("voice", "voice"),
    ("audio", "audio"),
    ("photo", "image"),
    ("video", "video"),
    ("document", "document"),
    ("sticker", "sticker"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(rename = "kind")]
    _kind: String,
    /// Of the bot.
    token: SecretVariable,
    /// Given to the network with the webhook.
    secret: SecretVariable,
    api_url: Option<String>,
    #[serde(default)]
    typing: bool,
}

fn check(settings: &Value) -> Result<(), String> {
    let read: Settings = read_own(settings)?;
    check_url("apiUrl", read.api_url.as_deref().unwrap_or(API))
}

fn open(
    settings: &Value,
    common: &CommonSettings,
    resources: &TransportResources,
) -> Result<Arc<dyn ChatTransport>, String> {
    let settings: Settings = read_own(settings)?;
    let token = settings
        .token
        .read(resources.environment, MIN_TOKEN_CHARS)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
    if !token.chars().all(is_token) {
        return Err("has a token that is none of a Telegram bot".to_owned());
    }
    let secret = settings
        .secret
        .read(resources.environment, MIN_SECRET_CHARS)?;
    let base = settings.api_url.as_deref().unwrap_or(API);
    let secrets = vec![token.clone(), secret.clone()];
    Ok(Arc::new(Telegram {
        api: NetworkApi::new(base, common, resources, secrets),
        owner: common.owner(),
        typing: settings.typing,
        token,
        secret,
    }))
}

/// Without `Debug`: it holds secrets.
struct Telegram {
    api: NetworkApi,
    token: String,
    secret: String,
    owner: Owner,
    typing: bool,
}

impl Telegram {
    fn path(&self, method: &str) -> String {
        format!("/bot{}/{method}", self.token)
    }

    fn send_error(&self, failure: ApiFailure) -> SendError {
        let ApiFailure { body, mut error } = failure;
        let seconds = body["parameters"]["retry_after"].as_u64();
        error.retry_after_ms = seconds
            .map(|s| s.saturating_mul(1_000))
            .or(error.retry_after_ms);
        let description = body["description"].as_str().unwrap_or_default();
        self.api.described(error, description)
    }
}

#[async_trait]
impl ChatTransport for Telegram {
    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        let body = json!({"chat_id": message.to, "text": message.text});
        let path = self.path("sendMessage");
        let answer = self.api.post(&path, &[], &body, message.key).await;
        let answer = answer.map_err(|failure| self.send_error(failure))?;
        let id = answer["result"]["message_id"].as_i64();
        Ok(id.map(|id| format!("{}:{id}", message.to)))
    }

    fn offers(&self, sign: &LifeSign) -> bool {
        self.typing && matches!(sign.kind, LifeSignKind::Typing { .. })
    }

    fn typing_lasts(&self) -> Option<Duration> {
        Some(TYPING_LASTS)
    }

    /// The network ends it after some time, or with the next message; nothing can be said to end it.
    async fn show(&self, sign: &LifeSign) {
        if sign.kind == (LifeSignKind::Typing { active: false }) {
            return;
        }
        let body = json!({"chat_id": sign.to, "action": "typing"});
        let path = self.path("sendChatAction");
        self.api.post_sign(&path, &[], &body).await;
    }

    fn receive(
        &self,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        let given = request.headers.get(SECRET_HEADER).map(String::as_str);
        if !is_secret(&self.secret, given.unwrap_or_default()) {
            return Err(TransportRefusal::Unauthenticated);
        }
        let update: Update = serde_json::from_slice(request.body)
            .map_err(|error| TransportRefusal::Invalid(error.to_string()))?;
        Ok(TransportDelivery {
            messages: update.message.and_then(read_message).into_iter().collect(),
            redelivers: true,
            ..TransportDelivery::nothing(self.owner.clone())
        })
    }
}

/// The network sends each update until it is answered well, in order. What is not a new message is of no use here.
#[derive(Deserialize)]
struct Update {
    message: Option<Value>,
}

/// A message that a person wrote to the bot; `None` for those of groups, of bots and of the network itself.
fn read_message(message: Value) -> Option<TransportMessage> {
    let chat = &message["chat"];
    let sender = &message["from"];
    if chat["type"] != "private" || sender["is_bot"] == true {
        return None;
    }
    let (chat_id, message_id) = (chat["id"].as_i64()?, message["message_id"].as_i64()?);
    let text = message["text"].as_str().or(message["caption"].as_str());
    let attachment = ATTACHMENTS.iter().find_map(|(name, kind)| {
        let found = &message[*name];
        // Of a photo there are several sizes, the largest last.
        let file = found
            .as_array()
            .and_then(|sizes| sizes.last())
            .unwrap_or(found);
        let media = json!({
            "fileId": file["file_id"].as_str()?,
            "contentType": file["mime_type"],
            "fileName": file["file_name"],
        });
        Some((*kind, media))
    });
    if text.is_none() && attachment.is_none() {
        return None;
    }
    let names = ["first_name", "last_name"].map(|name| sender[name].as_str().unwrap_or_default());
    let name = names.join(" ").trim().to_owned();
    let seconds = message["date"].as_i64().unwrap_or_default();
    let (kind, media) = attachment.unzip();
    Some(TransportMessage {
        // Ids are those of one chat.
        message_id: Some(format!("{chat_id}:{message_id}")),
        from: chat_id.to_string(),
        body: text.unwrap_or_default().to_owned(),
        kind: kind.map(str::to_owned),
        display_name: Some(name).filter(|name| !name.is_empty()),
        media,
        quoted_id: message["reply_to_message"]["message_id"]
            .as_i64()
            .map(|quoted| format!("{chat_id}:{quoted}")),
        relayed: false,
        sent_at: Timestamp(seconds.saturating_mul(1_000)),
    })
}
