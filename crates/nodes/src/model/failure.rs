//! Failures of calls to a model provider. Messages contain the operator's name of the provider: not
//! its address, not what it wrote. An error page may repeat the prompt or a key.

use crate::failure::retry_after_ms;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tandem_record::ErrorInfo;

pub(crate) const UNAVAILABLE: &str = "provider_unavailable";

/// Why one attempt gave no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) reason: CallErrorReason,
    /// The HTTP status, if it was an error.
    status: Option<StatusCode>,
    /// When the provider asked to be called again.
    pub(crate) retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallErrorReason {
    QuotaExhausted,
    /// An error status that may go away.
    Busy,
    KeyRejected,
    UnknownModel,
    InputTooLong,
    SchemaRejected,
    RequestRejected,
    /// The guard does not allow the provider's address.
    AddressRejected,
    TimedOut,
    Unreachable,
    BrokenOff,
    TooLarge {
        limit_bytes: usize,
    },
    /// Not in the format of the API.
    Unreadable,
    /// A stream that ended before the answer did.
    CutOff,
    /// The answer has neither text nor anything else.
    Empty,
    /// The provider ended the answer for a reason nobody knows.
    UnknownFinish,
    /// The output limit was reached where half an answer is of no use.
    Truncated,
    /// The model or a filter refused to answer.
    Refused,
}

use CallErrorReason as Reason;

impl From<CallErrorReason> for CallError {
    fn from(reason: CallErrorReason) -> Self {
        Self {
            reason,
            status: None,
            retry_after_ms: None,
        }
    }
}

impl CallError {
    /// The provider returned an error status. `body` is the response body, if it was JSON.
    pub(crate) fn from_status(status: StatusCode, headers: &HeaderMap, body: &Value) -> Self {
        let reason = match status.as_u16() {
            429 => Reason::QuotaExhausted,
            408 | 409 | 425 | 500..=599 => Reason::Busy,
            401 | 403 => Reason::KeyRejected,
            404 => Reason::UnknownModel,
            413 => Reason::InputTooLong,
            _ if mentions(body, &["context_length_exceeded", "too long"]) => Reason::InputTooLong,
            _ if mentions(body, &["response_format", "input_schema", "json_schema"]) => {
                Reason::SchemaRejected
            }
            _ => Reason::RequestRejected,
        };
        Self {
            reason,
            status: Some(status),
            retry_after_ms: retry_after_ms(headers),
        }
    }

    /// The response did not arrive completely.
    pub(crate) fn from_transport(error: &reqwest::Error) -> Self {
        let reason = if error.is_timeout() {
            Reason::TimedOut
        } else if error.is_connect() {
            Reason::Unreachable
        } else {
            Reason::BrokenOff
        };
        reason.into()
    }

    /// Whether another attempt may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self.reason {
            Reason::QuotaExhausted
            | Reason::Busy
            | Reason::TimedOut
            | Reason::Unreachable
            | Reason::BrokenOff
            | Reason::Unreadable
            | Reason::CutOff => true,
            Reason::KeyRejected
            | Reason::UnknownModel
            | Reason::InputTooLong
            | Reason::SchemaRejected
            | Reason::RequestRejected
            | Reason::AddressRejected
            | Reason::TooLarge { .. }
            | Reason::Empty
            | Reason::UnknownFinish
            | Reason::Truncated
            | Reason::Refused => false,
        }
    }

    /// The code where the protocol of workflows names them: everything about an answer is one code.
    pub(crate) fn protocol_code(&self) -> &'static str {
        match self.reason {
            Reason::QuotaExhausted => "provider_quota_exhausted",
            Reason::UnknownModel => "model_not_supported",
            Reason::InputTooLong => "content_too_long",
            Reason::SchemaRejected => "response_schema_invalid",
            _ => UNAVAILABLE,
        }
    }

    /// A sentence about the provider of this name.
    pub(crate) fn message(&self, provider: &str) -> String {
        let what = match self.reason {
            Reason::QuotaExhausted => "takes no more calls for now",
            Reason::Busy => "cannot answer for now",
            Reason::KeyRejected => "does not accept this host's key",
            Reason::UnknownModel => "does not know the model",
            Reason::InputTooLong => "got a request that is too long for it",
            Reason::SchemaRejected => "cannot use the schema",
            Reason::RequestRejected => "did not take the request",
            Reason::AddressRejected => "is at an address this host may not call",
            Reason::TimedOut => "did not answer in time",
            Reason::Unreachable => "could not be reached",
            Reason::BrokenOff => "broke off",
            Reason::TooLarge { limit_bytes } => {
                return format!(
                    "The answer of the model provider `{provider}` is larger than {limit_bytes} bytes."
                );
            }
            Reason::Unreadable => "answered in a shape nobody knows",
            Reason::CutOff => "ended the stream before the answer was complete",
            Reason::Empty => "gave an empty answer",
            Reason::UnknownFinish => "ended its answer for an unknown reason",
            Reason::Truncated => "reached its output limit before the answer was complete",
            Reason::Refused => "refused to answer",
        };
        match self.status {
            Some(status) => format!("The model provider `{provider}` {what} ({status})."),
            None => format!("The model provider `{provider}` {what}."),
        }
    }

    /// The error of a node.
    pub(crate) fn into_error_info(self, provider: &str) -> ErrorInfo {
        let mut error = ErrorInfo::new(self.protocol_code(), self.message(provider));
        if self.is_transient() {
            error = error.retryable();
        }
        let Some(status) = self.status else {
            return error;
        };
        let mut details = json!({ "status": status.as_u16() });
        if let Some(ms) = self.retry_after_ms {
            details["retryAfterMs"] = json!(ms);
        }
        error.with_details(details)
    }
}

/// Whether the provider's error mentions one of these terms.
fn mentions(body: &Value, terms: &[&str]) -> bool {
    let error = body.get("error").unwrap_or(body);
    ["code", "type", "param", "message"]
        .iter()
        .filter_map(|member| error.get(member)?.as_str())
        .any(|text| terms.iter().any(|term| text.contains(term)))
}
