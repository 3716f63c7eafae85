//! Errors of model calls. Messages contain the operator's name of the provider: not its address,
//! not what it wrote. An error page may repeat the prompt or a key.

use crate::failure::retry_after_ms;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tandem_record::ErrorInfo;

pub(super) const UNAVAILABLE: &str = "provider_unavailable";

/// The provider returned an error status. `body` is the response body, if it was JSON.
pub(super) fn status(
    provider: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &Value,
) -> ErrorInfo {
    let message = |what: &str| format!("The model provider `{provider}` {what} ({status}).");
    let code = status.as_u16();
    let error = match code {
        429 => ErrorInfo::new(
            "provider_quota_exhausted",
            message("takes no more calls for now"),
        )
        .retryable(),
        408 | 409 | 425 | 500..=599 => {
            ErrorInfo::new(UNAVAILABLE, message("cannot answer for now")).retryable()
        }
        401 | 403 => ErrorInfo::new(UNAVAILABLE, message("does not accept this host's key")),
        404 => ErrorInfo::new("model_not_supported", message("does not know the model")),
        413 => ErrorInfo::new(
            "content_too_long",
            message("got a request that is too long for it"),
        ),
        _ if mentions(body, &["context_length_exceeded", "too long"]) => ErrorInfo::new(
            "content_too_long",
            message("got a request that is too long for it"),
        ),
        _ if mentions(body, &["response_format", "input_schema", "json_schema"]) => {
            ErrorInfo::new("response_schema_invalid", message("cannot use the schema"))
        }
        _ => ErrorInfo::new(UNAVAILABLE, message("did not take the request")),
    };
    let mut details = json!({ "status": code });
    if let Some(ms) = retry_after_ms(headers) {
        details["retryAfterMs"] = json!(ms);
    }
    error.with_details(details)
}

/// Whether the provider's error mentions one of these terms.
fn mentions(body: &Value, terms: &[&str]) -> bool {
    let error = body.get("error").unwrap_or(body);
    ["code", "type", "param", "message"]
        .iter()
        .filter_map(|member| error.get(member)?.as_str())
        .any(|text| terms.iter().any(|term| text.contains(term)))
}

/// The response did not arrive completely.
pub(super) fn transport(provider: &str, error: &reqwest::Error) -> ErrorInfo {
    let what = if error.is_timeout() {
        "did not answer in time"
    } else if error.is_connect() {
        "could not be reached"
    } else {
        "broke off"
    };
    let message = format!("The model provider `{provider}` {what}.");
    ErrorInfo::new(UNAVAILABLE, message).retryable()
}

pub(super) fn too_large(provider: &str, limit_bytes: usize) -> ErrorInfo {
    let message = format!(
        "The answer of the model provider `{provider}` is larger than {limit_bytes} bytes."
    );
    ErrorInfo::new(UNAVAILABLE, message)
}

pub(super) fn unreadable(provider: &str) -> ErrorInfo {
    let message = format!("The model provider `{provider}` answered in a shape nobody knows.");
    ErrorInfo::new(UNAVAILABLE, message).retryable()
}
