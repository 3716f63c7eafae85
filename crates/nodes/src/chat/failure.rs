//! Failures of chat and speech calls.

use crate::model::failure::{CallError, CallErrorReason as Reason, UNAVAILABLE};
use tandem_record::conversation::CodeError;

const TIMEOUT: &str = "timeout";

/// Scripted failures that another attempt may not meet, as real providers have them. Every other one
/// is permanent.
const TRANSIENT: [&str; 4] = ["overloaded", "unavailable", "rate_limited", TIMEOUT];

/// Why a provider gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", error.message)]
pub struct ProviderFailure {
    pub error: CodeError,
    /// Whether another attempt may succeed.
    pub is_transient: bool,
    /// When the provider asked to be called again.
    pub retry_after_ms: Option<u64>,
}

impl ProviderFailure {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            error: CodeError {
                code: code.to_owned(),
                message: message.into(),
            },
            is_transient: false,
            retry_after_ms: None,
        }
    }

    pub(super) fn transient(self) -> Self {
        Self {
            is_transient: true,
            ..self
        }
    }

    /// A failure that a script asks for.
    pub(super) fn scripted(why: &str) -> Self {
        let code = match why {
            TIMEOUT => TIMEOUT,
            "rate_limited" => "provider_quota_exhausted",
            _ => UNAVAILABLE,
        };
        Self {
            is_transient: TRANSIENT.contains(&why),
            ..Self::new(
                code,
                format!("The script of the agent's model fails: {why}."),
            )
        }
    }

    pub(super) fn from_call(error: &CallError, provider: &str) -> Self {
        Self {
            is_transient: error.is_transient(),
            retry_after_ms: error.retry_after_ms,
            ..Self::new(code(error), error.message(provider))
        }
    }
}

fn code(error: &CallError) -> &'static str {
    match error.reason {
        Reason::TimedOut => TIMEOUT,
        Reason::TooLarge { .. } => "answer_too_large",
        Reason::Unreadable | Reason::UnknownFinish => "answer_invalid",
        Reason::CutOff => "answer_cut_off",
        Reason::Empty => "answer_empty",
        Reason::Truncated => "answer_truncated",
        Reason::Refused => "answer_refused",
        Reason::QuotaExhausted
        | Reason::Busy
        | Reason::KeyRejected
        | Reason::UnknownModel
        | Reason::InputTooLong
        | Reason::SchemaRejected
        | Reason::RequestRejected
        | Reason::AddressRejected
        | Reason::Unreachable
        | Reason::BrokenOff => error.protocol_code(),
    }
}
