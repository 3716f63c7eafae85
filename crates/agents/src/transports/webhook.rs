//! A network that speaks HTTP: signed requests in both directions.
//!
//! Out: one POST for each message and sign of life. In: one POST for each message, to the route of the transport.
//! Both carry the time and a signature over time and body, made with a secret that both sides have. The layout is
//! described in `docs/guide/transports.md`.

use super::common_settings::{
    CommonSettings, Delivery, MessageTemplate, SecretVariable, check_url, read_own,
};
use super::{ChatTransport, NetworkLimits, TransportKind, TransportResources};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tandem_access::{is_signed, signature, signed_time};
use tandem_nodes::HttpCaller;
use tandem_record::conversation::CandidateOrigin;
use tandem_record::{EffectId, EffectOutcome, ErrorInfo, HttpRequest, Object, Timestamp};
use tandem_runtime::Clock;
use tandem_runtime::conversation::{
    LifeSign, LifeSignKind, OutgoingMessage, SendError, TransportDelivery, TransportMessage,
    TransportRefusal, TransportRequest,
};

pub(super) const KIND: TransportKind = TransportKind {
    name: "webhook",
    limits: NetworkLimits::NONE,
    takes_decisions: false,
    has_templates: true,
    check,
    open,
};

const TIMESTAMP: &str = "x-tandem-timestamp";
const SIGNATURE: &str = "x-tandem-signature";
/// How far the time of a request may be from now, in either direction.
const REPLAY_WINDOW_MS: i64 = 5 * 60 * 1000;
const MIN_SECRET_CHARS: usize = 16;
const MAX_RECEIVED_ID_CHARS: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(rename = "kind")]
    _kind: String,
    url: String,
    /// The environment variable with the secret.
    secret_env: String,
    #[serde(default)]
    typing: bool,
    #[serde(default)]
    mark_read: bool,
}

fn check(settings: &Value) -> Result<(), String> {
    let read: Settings = read_own(settings)?;
    check_url("url", &read.url)
}

fn open(
    settings: &Value,
    common: &CommonSettings,
    resources: &TransportResources,
) -> Result<Arc<dyn ChatTransport>, String> {
    let settings: Settings = read_own(settings)?;
    let secret = SecretVariable::named(&settings.secret_env);
    Ok(Arc::new(WebhookTransport {
        secret: secret.read(resources.environment, MIN_SECRET_CHARS)?,
        http: Arc::clone(&resources.http),
        clock: Arc::clone(&resources.clock),
        common: common.clone(),
        settings,
    }))
}

/// Without `Debug`: it holds a secret.
struct WebhookTransport {
    settings: Settings,
    common: CommonSettings,
    secret: String,
    http: Arc<HttpCaller>,
    clock: Arc<dyn Clock>,
}

impl WebhookTransport {
    async fn post(&self, body: &Value, key: &EffectId) -> Result<Value, ErrorInfo> {
        let time = signed_time(self.clock.now());
        // As it is sent.
        let signed = signature(&self.secret, &time, body.to_string().as_bytes());
        let headers = [
            ("content-type", "application/json".to_owned()),
            (TIMESTAMP, time),
            (SIGNATURE, signed),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), json!(value)));
        let request = HttpRequest {
            method: "POST".to_owned(),
            url: self.settings.url.clone(),
            headers: Object::from_iter(headers),
            body: Some(body.clone()),
            timeout_ms: self.common.timeout_ms(),
        };
        match self.http.call(&request, key, None).await {
            EffectOutcome::Done { mut outputs } => Ok(outputs.remove("body").unwrap_or_default()),
            EffectOutcome::Failed { error } => Err(error),
            _ => Err(ErrorInfo::new("internal_error", "The call has no outcome.")),
        }
    }

    /// Whether another attempt may succeed, and may be made.
    fn may_try_again(&self, error: &ErrorInfo) -> bool {
        // With a status the receiver has said that it did not take the message.
        let is_answered = error.details.as_ref().is_some_and(|d| d["status"].is_u64());
        error.retryable && (is_answered || self.common.delivery == Delivery::AtLeastOnce)
    }

    async fn post_message(
        &self,
        body: &Value,
        key: &EffectId,
    ) -> Result<Option<String>, SendError> {
        let answer = self.post(body, key).await;
        let answer = answer.map_err(|error| SendError {
            is_transient: self.may_try_again(&error),
            retry_after_ms: error
                .details
                .as_ref()
                .and_then(|details| details["retryAfterMs"].as_u64()),
            ..SendError::permanent(error.message)
        })?;
        let id = answer["messageId"].as_str();
        let id = id.filter(|id| id.chars().count() <= MAX_RECEIVED_ID_CHARS);
        Ok(id.map(str::to_owned))
    }
}

#[async_trait]
impl ChatTransport for WebhookTransport {
    fn takes_speech(&self) -> bool {
        true
    }

    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        let mut body = json!({
            "type": "message",
            "id": message.key,
            "transport": message.transport,
            "to": message.to,
            "text": message.text,
        });
        if message.origin == Some(CandidateOrigin::Proxy) {
            body["relayed"] = json!(true);
        }
        if let Some(speech) = message.speech {
            body["speech"] = json!({
                "contentType": speech.content_type,
                "data": speech.to_base64(),
            });
        }
        self.post_message(&body, message.key).await
    }

    async fn send_template(
        &self,
        message: &OutgoingMessage<'_>,
        template: &MessageTemplate,
    ) -> Result<Option<String>, SendError> {
        let body = json!({
            "type": "template",
            "id": message.key,
            "transport": message.transport,
            "to": message.to,
            "template": {
                "name": template.name,
                "language": template.language,
                "parameters": template.parameters(message.text),
            },
        });
        self.post_message(&body, message.key).await
    }

    fn offers(&self, sign: &LifeSign) -> bool {
        match sign.kind {
            LifeSignKind::Typing { .. } => self.settings.typing,
            LifeSignKind::Read { .. } => self.settings.mark_read,
        }
    }

    async fn show(&self, sign: &LifeSign) {
        let mut body = json!({"transport": sign.transport, "to": sign.to});
        match &sign.kind {
            LifeSignKind::Typing { active } => {
                body["type"] = json!("typing");
                body["active"] = json!(active);
            }
            LifeSignKind::Read { message_ids } => {
                body["type"] = json!("read");
                body["messageIds"] = json!(message_ids);
            }
        }
        let key = EffectId::from(format!("sign-{:032x}", rand::random::<u128>()));
        if let Err(error) = self.post(&body, &key).await {
            let transport = &sign.transport;
            tracing::debug!(
                transport,
                reason = error.message,
                "a sign of life was not taken"
            );
        }
    }

    fn receive(
        &self,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        let header = |name| request.headers.get(name).map(String::as_str);
        let refused = || TransportRefusal::Unauthenticated;
        let time = header(TIMESTAMP).ok_or_else(refused)?;
        let given = header(SIGNATURE).ok_or_else(refused)?;
        if !is_signed(&self.secret, time, request.body, given) {
            return Err(refused());
        }
        let seconds: i64 = time.parse().map_err(|_| refused())?;
        let signed_at = Timestamp(seconds.saturating_mul(1000));
        let age = request.now.0.saturating_sub(signed_at.0);
        if age.saturating_abs() > REPLAY_WINDOW_MS {
            return Err(refused());
        }
        let invalid = |error: serde_json::Error| TransportRefusal::Invalid(error.to_string());
        // From a map, not from the bytes: a list of values would be taken for the fields in their order.
        let fields: Map<String, Value> = serde_json::from_slice(request.body).map_err(invalid)?;
        let message: Inbound = serde_json::from_value(Value::Object(fields)).map_err(invalid)?;
        Ok(TransportDelivery {
            messages: vec![TransportMessage {
                message_id: message.message_id,
                from: message.from,
                body: message.body,
                kind: message.kind,
                display_name: message.sender_profile.and_then(|p| p.display_name),
                media: message.media,
                quoted_id: message.quoted_message_id,
                relayed: message.relayed,
                // A copy of the request is the same message.
                sent_at: signed_at,
            }],
            ..TransportDelivery::nothing(self.common.owner())
        })
    }
}

/// A message as it is delivered: that of `POST /agents/{agentId}/inbound`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Inbound {
    message_id: Option<String>,
    from: String,
    #[serde(default)]
    body: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    sender_profile: Option<InboundProfile>,
    media: Option<Value>,
    quoted_message_id: Option<String>,
    #[serde(default)]
    relayed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InboundProfile {
    display_name: Option<String>,
}
