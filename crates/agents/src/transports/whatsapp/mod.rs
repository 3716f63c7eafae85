//! WhatsApp, by the Cloud API: messages of users in, texts and templates out.
//!
//! The network signs the bytes of each request with the secret of the app. It may send one request several times, in
//! any order, with many messages: their ids decide what is new. It lets nobody write to a user whose last message is
//! older than a day, except with a template (Z-240).

mod inbound;

use super::common_settings::{
    CommonSettings, MessageTemplate, SecretVariable, check_url, read_own,
};
use super::network_api::{ApiFailure, NetworkApi};
use super::send_rate::Rate;
use super::text_parts::TextLimit;
use super::{ChatTransport, NetworkLimits, TransportKind, TransportResources};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_access::{is_hmac_of, is_secret};
use tandem_record::{EffectId, Owner};
use tandem_runtime::conversation::{
    LifeSign, LifeSignKind, OutgoingMessage, SendError, TransportDelivery, TransportRefusal,
    TransportRequest,
};

pub(super) const KIND: TransportKind = TransportKind {
    name: "whatsapp",
    limits: NetworkLimits {
        reply_window_seconds: Some(24 * 60 * 60),
        text: Some(TextLimit::Chars(4096)),
        // Of its documentation: 80 messages in a second; to one user one in six seconds, with 45 at once.
        rate: Some(Rate::new(80, 1_000)),
        rate_per_address: Some(Rate::new(45, 270_000)),
    },
    takes_decisions: false,
    has_templates: true,
    check,
    open,
};

const API: &str = "https://graph.facebook.com/v23.0";
const SIGNATURE_HEADER: &str = "x-hub-signature-256";
const MIN_SECRET_CHARS: usize = 16;
const MAX_CHALLENGE_CHARS: usize = 256;
/// Errors after which another attempt may succeed, although the status says otherwise: the service has a fault, or
/// too much was sent.
const TRANSIENT_ERRORS: [i64; 9] = [1, 2, 4, 80_007, 130_429, 131_000, 131_016, 131_048, 131_056];
/// Too many messages to one user.
const PAIR_RATE_ERROR: i64 = 131_056;
const PAIR_RATE_PAUSE_MS: u64 = 6_000;
/// More than a day has passed since the user wrote.
const WINDOW_ERROR: i64 = 131_047;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(rename = "kind")]
    _kind: String,
    phone_number_id: String,
    token: SecretVariable,
    /// Signs what the network delivers.
    app_secret: SecretVariable,
    /// The network asks with it whether the route is ours.
    verify_token: SecretVariable,
    api_url: Option<String>,
    #[serde(default)]
    typing: bool,
    #[serde(default)]
    mark_read: bool,
}

fn check(settings: &Value) -> Result<(), String> {
    let read: Settings = read_own(settings)?;
    let is_id =
        |text: &str| (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !is_id(&read.phone_number_id) {
        return Err("has a phoneNumberId that is not digits".to_owned());
    }
    if read.typing && !read.mark_read {
        return Err("has typing without markRead: the network shows both or none".to_owned());
    }
    check_url("apiUrl", read.api_url.as_deref().unwrap_or(API))
}

fn open(
    settings: &Value,
    common: &CommonSettings,
    resources: &TransportResources,
) -> Result<Arc<dyn ChatTransport>, String> {
    let settings: Settings = read_own(settings)?;
    let secret = |of: &SecretVariable| of.read(resources.environment, MIN_SECRET_CHARS);
    let (token, app_secret) = (secret(&settings.token)?, secret(&settings.app_secret)?);
    let verify_token = secret(&settings.verify_token)?;
    let base = settings.api_url.as_deref().unwrap_or(API);
    let secrets = vec![token.clone(), app_secret.clone(), verify_token.clone()];
    Ok(Arc::new(WhatsApp {
        api: NetworkApi::new(base, common, resources, secrets),
        owner: common.owner(),
        settings,
        token,
        app_secret,
        verify_token,
    }))
}

/// Without `Debug`: it holds secrets.
struct WhatsApp {
    api: NetworkApi,
    settings: Settings,
    owner: Owner,
    token: String,
    app_secret: String,
    verify_token: String,
}

impl WhatsApp {
    fn path(&self) -> String {
        format!("/{}/messages", self.settings.phone_number_id)
    }

    fn headers(&self) -> [(&'static str, String); 1] {
        [("authorization", format!("Bearer {}", self.token))]
    }

    /// `what` is the message as its type has it.
    async fn post_message(
        &self,
        to: &str,
        key: &EffectId,
        (kind, what): (&str, Value),
    ) -> Result<Option<String>, SendError> {
        let body = json!({
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            // The network's own form has no plus.
            "to": to.trim_start_matches('+'),
            "type": kind,
            (kind): what,
            // The network's place for an id of the client: it comes back with every status.
            "biz_opaque_callback_data": key,
        });
        let answer = self
            .api
            .post(&self.path(), &self.headers(), &body, key)
            .await;
        let answer = answer.map_err(|failure| self.send_error(failure))?;
        Ok(answer["messages"][0]["id"].as_str().map(str::to_owned))
    }

    fn send_error(&self, failure: ApiFailure) -> SendError {
        let ApiFailure { body, mut error } = failure;
        let code = body["error"]["code"].as_i64().unwrap_or_default();
        error.is_window_closed = code == WINDOW_ERROR;
        error.is_transient |= TRANSIENT_ERRORS.contains(&code);
        if code == PAIR_RATE_ERROR {
            error.retry_after_ms = error.retry_after_ms.or(Some(PAIR_RATE_PAUSE_MS));
        }
        let description = body["error"]["message"].as_str().unwrap_or_default();
        self.api.described(error, description)
    }
}

#[async_trait]
impl ChatTransport for WhatsApp {
    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        let text = json!({"body": message.text, "preview_url": false});
        self.post_message(message.to, message.key, ("text", text))
            .await
    }

    async fn send_template(
        &self,
        message: &OutgoingMessage<'_>,
        template: &MessageTemplate,
    ) -> Result<Option<String>, SendError> {
        let parameters = template.parameters(message.text).into_iter();
        let parameters: Vec<Value> = parameters
            .map(|text| json!({"type": "text", "text": text}))
            .collect();
        let components = match parameters.is_empty() {
            true => json!([]),
            false => json!([{"type": "body", "parameters": parameters}]),
        };
        let template = json!({
            "name": template.name,
            "language": {"code": template.language},
            "components": components,
        });
        self.post_message(message.to, message.key, ("template", template))
            .await
    }

    /// The network shows typing only together with the mark of a message.
    fn offers(&self, sign: &LifeSign) -> bool {
        self.settings.mark_read && matches!(sign.kind, LifeSignKind::Read { .. })
    }

    /// Marking a message marks those before it.
    async fn show(&self, sign: &LifeSign) {
        let LifeSignKind::Read { message_ids } = &sign.kind else {
            return;
        };
        let Some(last) = message_ids.last() else {
            return;
        };
        let mut body = json!({
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": last,
        });
        if self.settings.typing {
            body["typing_indicator"] = json!({"type": "text"});
        }
        self.api
            .post_sign(&self.path(), &self.headers(), &body)
            .await;
    }

    fn verify_address(&self, query: &BTreeMap<String, String>) -> Result<String, TransportRefusal> {
        let given = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        if given("hub.mode") != "subscribe"
            || !is_secret(&self.verify_token, given("hub.verify_token"))
        {
            return Err(TransportRefusal::Unauthenticated);
        }
        let challenge = given("hub.challenge");
        let is_plain = challenge.bytes().all(|b| b.is_ascii_alphanumeric());
        match (1..=MAX_CHALLENGE_CHARS).contains(&challenge.len()) && is_plain {
            true => Ok(challenge.to_owned()),
            false => Err(TransportRefusal::Invalid("has no challenge".to_owned())),
        }
    }

    fn receive(
        &self,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        let given = request.headers.get(SIGNATURE_HEADER);
        let given = given.and_then(|given| given.strip_prefix("sha256="));
        let is_signed = |given: &str| is_hmac_of(&self.app_secret, &[request.body], given);
        if !given.is_some_and(is_signed) {
            return Err(TransportRefusal::Unauthenticated);
        }
        let (messages, own_account) =
            inbound::read(request.body, &self.settings.phone_number_id)
                .map_err(|error| TransportRefusal::Invalid(error.to_string()))?;
        Ok(TransportDelivery {
            messages,
            own_account,
            redelivers: true,
            ..TransportDelivery::nothing(self.owner.clone())
        })
    }
}
