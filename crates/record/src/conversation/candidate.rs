//! Texts on their way to the user.

use super::ScheduleRef;
use crate::{EscalationId, ProxyId};
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
    /// Written by a person.
    Human,
    /// A message of the user on its way to a desk.
    Forward,
    /// Relayed by a bridge, or about one.
    Proxy,
}

impl CandidateOrigin {
    /// As it is written in events and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Say => "say",
            Self::Ask => "ask",
            Self::Confirm => "confirm",
            Self::TimeoutText => "timeout_text",
            Self::Ack => "ack",
            Self::Draft => "draft",
            Self::Command => "command",
            Self::Side => "side",
            Self::Fallback => "fallback",
            Self::Human => "human",
            Self::Forward => "forward",
            Self::Proxy => "proxy",
        }
    }

    /// Whether the hook before a response sees it.
    pub fn passes_before_response(self) -> bool {
        !matches!(
            self,
            Self::Command | Self::Side | Self::Human | Self::Forward | Self::Proxy
        )
    }

    /// Whether the model remembers it.
    pub fn enters_working_memory(self) -> bool {
        !matches!(self, Self::Command | Self::Side | Self::Forward)
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

/// Where a response comes from and how it was decided about, beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseMeta {
    pub source: ResponseSource,
    /// What the hook before the model decided, if it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_llm_action: Option<String>,
    /// What the hook before the response decided, if it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_response_action: Option<String>,
    /// What a person has to do after the turn, or what the turn used of it.
    pub hitl_state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_id: Option<EscalationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_id: Option<ProxyId>,
    /// For turns that a schedule began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<ScheduleRef>>,
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
    /// The network does not let anybody write to the user any more.
    WindowClosed,
    Suppressed,
    Canceled,
}
