//! Calls of language models: requests, answers, and the results of checking them.
//!
//! A request contains everything that can change the answer and nothing else: no credential, no
//! time limit, no address. Its content key is derived from it (`engine::model`).

use crate::{NodeId, RunId, Seq, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request to a model, independent of how the provider is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The operator's name of the provider.
    pub provider: String,
    pub model: String,
    pub messages: Vec<ModelMessage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The answer has to be JSON of this schema; absent for plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMessage {
    pub role: ModelRole,
    pub content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelRole {
    System,
    User,
    Assistant,
}

impl ModelRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A provider's answer to one call, in one shape for all providers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The object, if the provider returns it as one.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub data: Option<Value>,
    pub stop: ModelStop,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<ModelRefusal>,
    /// Absent when the provider did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ModelUsage>,
}

/// Why the model stopped, apart from refusing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStop {
    /// The answer is complete.
    End,
    /// The output budget was used up.
    MaxTokens,
    /// Some other limit of length.
    Length,
    StopSequence,
    Unknown,
}

impl ModelStop {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::End => "stop",
            Self::MaxTokens => "max_tokens",
            Self::Length => "length",
            Self::StopSequence => "stop_sequence",
            Self::Unknown => "unknown",
        }
    }
}

/// The provider's safety rules stopped the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRefusal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// Tokens as the provider counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

/// One answer in the log. Clients see its cost; its content is stored for replays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswered {
    pub node: NodeId,
    /// Content key of the request it answers.
    pub key: String,
    /// Which call of this execution it answers, from 1.
    pub round: u32,
    pub provider: String,
    pub model: String,
    pub answer: ModelAnswer,
}

/// An answer could not be used; the model is called again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRetry {
    pub node: NodeId,
    /// 2 for the first retry.
    pub attempt: u32,
    pub reason: EnvelopeFault,
    /// What was wrong, without quoting the prompt or the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub work: Work,
}

/// The result for an answer that had to be JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeEvent {
    pub node: NodeId,
    pub provider: String,
    pub model: String,
    #[serde(rename = "what")]
    pub kind: EnvelopeEventKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum EnvelopeEventKind {
    Refused(ModelRefusal),
    Truncated {
        stop: ModelStop,
        output_tokens: Option<u64>,
    },
    /// JSON was found in an answer that was not JSON alone.
    Recovered {
        path: RecoveryPath,
        byte_offset: u64,
    },
    /// No attempt is left.
    Exhausted {
        attempts: u32,
        reason: EnvelopeFault,
        error: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryPath {
    MarkdownFence,
    BraceWalker,
}

impl RecoveryPath {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MarkdownFence => "markdown-fence",
            Self::BraceWalker => "brace-walker",
        }
    }
}

/// What was wrong with an answer that may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnvelopeFault {
    Truncation,
    ParseError,
    SchemaViolation,
}

impl EnvelopeFault {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Truncation => "truncation",
            Self::ParseError => "parse-error",
            Self::SchemaViolation => "schema-violation",
        }
    }
}

/// Exactly one of a replay and its source was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusalDivergence {
    pub node: NodeId,
    pub source: RunId,
    /// The source's event that contains the answer.
    pub sequence: Seq,
    /// Whether the source was refused; the replay then was not.
    pub source_refused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RefusalDivergence {
    /// The results of the source and of the replay, in the protocol's words.
    pub fn kinds(&self) -> (&'static str, &'static str) {
        if self.source_refused {
            ("refusal", "valid")
        } else {
            ("valid", "refusal")
        }
    }
}
