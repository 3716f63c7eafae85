//! Texts on their way to the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a candidate's text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateOrigin {
    Classic,
    Say,
    Ask,
    Confirm,
    TimeoutText,
    Ack,
    Draft,
    /// The answer of a command.
    Command,
    /// Sent by code beside the response.
    Side,
    /// Sent because a turn or a flow failed.
    Fallback,
}

impl CandidateOrigin {
    /// Whether the hook before a response sees it.
    pub fn passes_before_response(self) -> bool {
        !matches!(self, Self::Command | Self::Side)
    }

    /// Whether the model remembers it.
    pub fn enters_working_memory(self) -> bool {
        !matches!(self, Self::Command | Self::Side)
    }
}

/// What produced the response of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseSource {
    Classic,
    Flow,
    ShortCircuit,
    Scheduled,
}

/// How a text reaches the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    #[default]
    Text,
    Voice,
}

impl Modality {
    pub fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// A text that may be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its position among the candidates of its turn.
    pub index: u32,
    pub text: String,
    pub origin: CandidateOrigin,
    #[serde(default, skip_serializing_if = "Modality::is_text")]
    pub modality: Modality,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

/// How far the delivery of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    Pending,
    Sent,
    Failed,
    Suppressed,
    Canceled,
}
