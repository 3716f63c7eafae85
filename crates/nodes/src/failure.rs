//! Errors of failed calls: a code, a message a person can act on, and whether a retry can help.
//!
//! Messages name only method and origin. A path or query may contain a token, so the client's own
//! messages, which quote the URL, are not passed on.

use crate::guard::Rejected;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::json;
use std::error::Error;
use tandem_record::ErrorInfo;

const FAILED: &str = "external_call_failed";

pub(crate) fn rejected(rejected: &Rejected) -> ErrorInfo {
    ErrorInfo::new(
        "url_rejected",
        format!("The URL may not be called: {rejected}."),
    )
}

/// The workflow's request is not a valid HTTP request.
pub(crate) fn invalid(reason: impl std::fmt::Display) -> ErrorInfo {
    ErrorInfo::new(
        "validation_error",
        format!("Not an HTTP request: {reason}."),
    )
}

pub(crate) fn too_large(call: &str, limit_bytes: usize) -> ErrorInfo {
    ErrorInfo::new(
        "response_too_large",
        format!("{call}: the response is larger than {limit_bytes} bytes."),
    )
    .with_details(json!({ "limitBytes": limit_bytes }))
}

pub(crate) fn status(call: &str, status: StatusCode, body: &str) -> ErrorInfo {
    let info = ErrorInfo::new(FAILED, format!("{call} answered {status}."))
        .with_details(json!({ "status": status.as_u16(), "body": body }));
    if matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504) {
        info.retryable()
    } else {
        info
    }
}

/// An error before the whole response arrived.
pub(crate) fn transport(call: &str, error: &reqwest::Error, timeout_ms: u64) -> ErrorInfo {
    let refusal = chain(error).find_map(|cause| cause.downcast_ref::<Rejected>());
    if let Some(refusal) = refusal {
        return rejected(refusal);
    }
    if error.is_builder() {
        return invalid("method, URL and headers do not make a request");
    }
    if error.is_timeout() {
        let what = if error.is_connect() {
            "could not be reached in time".to_owned()
        } else {
            format!("did not answer within {timeout_ms} ms")
        };
        return ErrorInfo::new("external_call_timeout", format!("{call} {what}.")).retryable();
    }
    let what = if error.is_connect() {
        "could not be reached"
    } else {
        "broke off"
    };
    ErrorInfo::new(FAILED, format!("{call} {what}: {}.", innermost(error))).retryable()
}

/// An error and its causes, outermost first.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The message of the operating system or the TLS library; the layers above repeat the URL.
fn innermost(error: &reqwest::Error) -> String {
    match chain(error).skip(1).last() {
        Some(cause) => cause.to_string(),
        None => "the connection failed".to_owned(),
    }
}

/// The `Retry-After` of a service in seconds. A date is ignored; the node's own backoff applies
/// then.
pub(crate) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: f64 = text.trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded right before"
    )]
    (0.0..=86_400.0)
        .contains(&seconds)
        .then_some((seconds * 1000.0) as u64)
}
