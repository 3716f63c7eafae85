//! Errors thrown into a flow at the effect it yielded.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The class of a thrown error, as the flow's code sees it in `error.name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowErrorName {
    FlowEffectError,
    ToolError,
    InterruptTimeout,
}

impl FlowErrorName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FlowEffectError => "FlowEffectError",
            Self::ToolError => "ToolError",
            Self::InterruptTimeout => "InterruptTimeout",
        }
    }
}

/// An error as it is thrown. `extra` holds further fields of the error object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowError {
    pub name: FlowErrorName,
    pub code: String,
    pub message: String,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl FlowError {
    /// The runtime does not perform an effect.
    pub fn effect(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FlowErrorName::FlowEffectError, code, message)
    }

    /// A tool gave no result.
    pub fn tool(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FlowErrorName::ToolError, code, message)
    }

    /// A confirmation with `timeoutBehavior: throw` was not answered.
    pub fn interrupt_timeout(message: impl Into<String>) -> Self {
        Self::new(FlowErrorName::InterruptTimeout, "timed_out", message)
    }

    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(field.to_owned(), value.into());
        self
    }

    fn new(name: FlowErrorName, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name,
            code: code.into(),
            message: message.into(),
            extra: Map::new(),
        }
    }
}

/// A yielded value is not an effect. Nothing of it is performed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("; "))]
pub struct BadEffect {
    pub problems: Vec<String>,
}

impl From<BadEffect> for FlowError {
    fn from(bad: BadEffect) -> Self {
        Self::effect("bad_effect", bad.to_string()).with("problems", json!(bad.problems))
    }
}
