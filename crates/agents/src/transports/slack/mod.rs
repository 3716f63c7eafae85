//! Slack: direct messages and mentions in, texts out, and questions that are decided with buttons.
//!
//! The network signs the bytes and the time of each request. Events and decisions arrive at one route. An address is
//! a user (`U1`), whom the bot writes to directly, or a user in a thread of a channel (`U1@C1:1712.0001`). A notice
//! goes to a user or a channel (`C1`).

mod address;
mod events;
mod notices;

use super::common_settings::{CommonSettings, SecretVariable, check_url, read_own};
use super::network_api::{ApiFailure, NetworkApi};
use super::send_rate::Rate;
use super::text_parts::TextLimit;
use super::{ChatTransport, NetworkLimits, TransportKind, TransportResources};
use address::Address;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::is_hmac_of;
use tandem_record::{EffectId, Owner, Timestamp};
use tandem_runtime::conversation::{
    OutgoingMessage, QuestionNotice, SendError, ShownDecision, TransportDelivery, TransportRefusal,
    TransportRequest,
};

pub(super) const KIND: TransportKind = TransportKind {
    name: "slack",
    limits: NetworkLimits {
        reply_window_seconds: None,
        text: Some(TextLimit::Chars(4_000)),
        // Of its documentation: several hundred messages in a minute, and one in a second to one channel but for
        // short bursts.
        rate: Some(Rate::new(300, 60_000)),
        rate_per_address: Some(Rate::new(3, 3_000)),
    },
    takes_decisions: true,
    has_templates: false,
    check,
    open,
};

const API: &str = "https://slack.com/api";
const TIMESTAMP_HEADER: &str = "x-slack-request-timestamp";
const SIGNATURE_HEADER: &str = "x-slack-signature";
const REPLAY_WINDOW_MS: i64 = 5 * 60 * 1000;
const MIN_SECRET_CHARS: usize = 16;
/// Errors after which another attempt may succeed.
const TRANSIENT_ERRORS: [&str; 6] = [
    "ratelimited",
    "rate_limited",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(rename = "kind")]
    _kind: String,
    /// Of the bot.
    token: SecretVariable,
    /// Signs what the network delivers.
    signing_secret: SecretVariable,
    api_url: Option<String>,
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
    let secret = |of: &SecretVariable| of.read(resources.environment, MIN_SECRET_CHARS);
    let token = secret(&settings.token)?;
    let signing_secret = secret(&settings.signing_secret)?;
    let base = settings.api_url.as_deref().unwrap_or(API);
    let secrets = vec![token.clone(), signing_secret.clone()];
    Ok(Arc::new(Slack {
        api: NetworkApi::new(base, common, resources, secrets),
        owner: common.owner(),
        token,
        signing_secret,
    }))
}

/// Without `Debug`: it holds secrets.
struct Slack {
    api: NetworkApi,
    owner: Owner,
    token: String,
    signing_secret: String,
}

impl Slack {
    fn headers(&self) -> [(&'static str, String); 1] {
        [("authorization", format!("Bearer {}", self.token))]
    }

    /// Posts a message. The network has no ids of clients; the key is part of the message for whoever looks for it.
    async fn post_message(
        &self,
        to: &str,
        key: &EffectId,
        mut message: Value,
    ) -> Result<Option<String>, SendError> {
        let address = Address::parse(to);
        message["channel"] = json!(address.channel());
        if let Some(thread) = address.thread() {
            message["thread_ts"] = json!(thread);
        }
        message["metadata"] = json!({
            "event_type": "tandem_message",
            "event_payload": {"key": key},
        });
        let headers = self.headers();
        let answer = self.api.post("/chat.postMessage", &headers, &message, key);
        let answer = answer.await.map_err(|failure| self.failed_call(failure))?;
        if answer["ok"] != true {
            return Err(self.refused(&answer));
        }
        let (channel, ts) = (answer["channel"].as_str(), answer["ts"].as_str());
        Ok(channel
            .zip(ts)
            .map(|(channel, ts)| format!("{channel}:{ts}")))
    }

    fn failed_call(&self, failure: ApiFailure) -> SendError {
        let ApiFailure { body, error } = failure;
        let description = body["error"].as_str().unwrap_or_default();
        self.api.described(error, description)
    }

    /// A refusal has the status of a success.
    fn refused(&self, answer: &Value) -> SendError {
        let code = answer["error"].as_str().unwrap_or("no reason");
        let error = match TRANSIENT_ERRORS.contains(&code) {
            true => SendError::transient("Slack refused the message:"),
            false => SendError::permanent("Slack refused the message:"),
        };
        self.api.described(error, code)
    }

    /// Whether the network made the request, not long ago.
    fn is_authentic(&self, request: &TransportRequest<'_>) -> bool {
        let header = |name| request.headers.get(name).map(String::as_str);
        let (Some(time), Some(given)) = (header(TIMESTAMP_HEADER), header(SIGNATURE_HEADER)) else {
            return false;
        };
        let Some(given) = given.strip_prefix("v0=") else {
            return false;
        };
        let parts = [b"v0:", time.as_bytes(), b":", request.body];
        if !is_hmac_of(&self.signing_secret, &parts, given) {
            return false;
        }
        let Ok(seconds) = time.parse::<i64>() else {
            return false;
        };
        let signed_at = Timestamp(seconds.saturating_mul(1_000));
        let age = request.now.0.saturating_sub(signed_at.0);
        age.saturating_abs() <= REPLAY_WINDOW_MS
    }
}

#[async_trait]
impl ChatTransport for Slack {
    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        let text = json!({"text": address::escape(message.text)});
        self.post_message(message.to, message.key, text).await
    }

    async fn notify(&self, notice: &QuestionNotice<'_>) -> Result<(), SendError> {
        let message = notices::of_question(notice);
        self.post_message(notice.to, notice.key, message)
            .await
            .map(drop)
    }

    /// A final decision takes the buttons away; anything else is told to whoever pressed one.
    async fn show_decision(&self, shown: &ShownDecision) {
        let headers = self.headers();
        let (path, body) = match shown.is_final {
            true => ("/chat.update", notices::decided(shown)),
            false => ("/chat.postEphemeral", notices::answer_to_one(shown)),
        };
        self.api.post_sign(path, &headers, &body).await;
    }

    fn receive(
        &self,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        if !self.is_authentic(request) {
            return Err(TransportRefusal::Unauthenticated);
        }
        let invalid = |error: serde_json::Error| TransportRefusal::Invalid(error.to_string());
        let mut delivery = TransportDelivery {
            redelivers: true,
            ..TransportDelivery::nothing(self.owner.clone())
        };
        if let Some(payload) = notices::form_payload(request.body) {
            let payload: Value = serde_json::from_str(&payload).map_err(invalid)?;
            delivery.decision = notices::read_decision(&payload);
            // Nothing is said in the answer: the notice shows what became of it.
            delivery.reply = Some(String::new());
            return Ok(delivery);
        }
        let event: Value = serde_json::from_slice(request.body).map_err(invalid)?;
        match event["type"].as_str() {
            Some("url_verification") => {
                let challenge = event["challenge"].as_str().unwrap_or_default();
                delivery.reply = Some(challenge.to_owned());
            }
            Some("event_callback") => delivery.messages.extend(events::read_message(&event)),
            _ => {}
        }
        Ok(delivery)
    }
}
