//! Calls of a network's JSON API: guarded, bounded in time, and with no secret in what is said about failures.

use super::TransportResources;
use super::common_settings::{CommonSettings, Delivery};
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_nodes::HttpCaller;
use tandem_record::{EffectId, EffectOutcome, ErrorInfo, HttpRequest, Object};
use tandem_runtime::conversation::SendError;

const MAX_DESCRIPTION_CHARS: usize = 300;

/// Without `Debug`: it holds secrets.
pub(super) struct NetworkApi {
    http: Arc<HttpCaller>,
    base: String,
    timeout_ms: u64,
    delivery: Delivery,
    /// Never part of a message.
    secrets: Vec<String>,
}

/// Why a call gave no result.
pub(super) struct ApiFailure {
    /// What the API answered, if it answered.
    pub(super) body: Value,
    pub(super) error: SendError,
}

impl NetworkApi {
    pub(super) fn new(
        base: &str,
        common: &CommonSettings,
        resources: &TransportResources,
        secrets: Vec<String>,
    ) -> Self {
        Self {
            http: Arc::clone(&resources.http),
            base: base.trim_end_matches('/').to_owned(),
            timeout_ms: common.timeout_ms(),
            delivery: common.delivery,
            secrets,
        }
    }

    /// One POST. `key` is the same at every attempt.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: &Value,
        key: &EffectId,
    ) -> Result<Value, ApiFailure> {
        let json_type = ("content-type", "application/json; charset=utf-8".to_owned());
        let headers = headers.iter().chain([&json_type]);
        let headers = headers.map(|(name, value)| ((*name).to_owned(), json!(value)));
        let request = HttpRequest {
            method: "POST".to_owned(),
            url: format!("{}{path}", self.base),
            headers: Object::from_iter(headers),
            body: Some(body.clone()),
            timeout_ms: self.timeout_ms,
        };
        match self.http.call(&request, key, None).await {
            EffectOutcome::Done { mut outputs } => Ok(outputs.remove("body").unwrap_or_default()),
            EffectOutcome::Failed { error } => Err(self.failure(&error)),
            EffectOutcome::Pack(_) => Err(ApiFailure {
                body: Value::Null,
                error: SendError::permanent("the call has no outcome"),
            }),
        }
    }

    /// The same for signs, which nobody waits for.
    pub(super) async fn post_sign(&self, path: &str, headers: &[(&str, String)], body: &Value) {
        let key = EffectId::from(format!("sign-{:032x}", rand::random::<u128>()));
        if let Err(failure) = self.post(path, headers, body, &key).await {
            tracing::debug!(reason = failure.error.message, "a sign was not taken");
        }
    }

    fn failure(&self, error: &ErrorInfo) -> ApiFailure {
        let details = error.details.clone().unwrap_or_default();
        let body = details["body"].as_str().unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        // With a status the network has said that it did not take the message.
        let is_answered = details["status"].is_u64();
        let may_repeat = is_answered || self.delivery == Delivery::AtLeastOnce;
        let mut failed = SendError::permanent(self.without_secrets(&error.message));
        failed.is_transient = error.retryable && may_repeat;
        failed.retry_after_ms = details["retryAfterMs"].as_u64();
        ApiFailure {
            body,
            error: failed,
        }
    }

    /// The error with what the network says about it.
    pub(super) fn described(&self, mut error: SendError, description: &str) -> SendError {
        if !description.is_empty() {
            let short: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
            let short = self.without_secrets(&short);
            error.message = format!("{} {short}", error.message);
        }
        error
    }

    fn without_secrets(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            clean = clean.replace(secret.as_str(), "[secret]");
        }
        clean
    }
}
