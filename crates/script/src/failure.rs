//! Errors that cross the border of a realm: what the host throws into code, and why code stopped.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// An error as data. Inside a realm it is an `Error` with these properties.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorData {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub message: String,
    /// Further properties, for example the `proxyId` of a `FlowEffectError`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl ErrorData {
    pub fn new(name: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            code: Some(code.to_owned()),
            message: message.into(),
            fields: Map::new(),
        }
    }
}

/// Why code stopped, as `flow.failed` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// An exception that the code did not catch.
    Exception,
    /// A limit of [`ScriptLimits`](crate::ScriptLimits) (Z-209). The realm is unusable afterwards.
    FlowLimit,
    /// The code waits for something that nobody will ever settle (Z-210).
    ForeignAwait,
    /// A helper made an effect that was not yielded (Z-116).
    EffectNotYielded,
}

impl FailureCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exception => "exception",
            Self::FlowLimit => "flow_limit",
            Self::ForeignAwait => "foreign_await",
            Self::EffectNotYielded => "effect_not_yielded",
        }
    }
}

/// A place in a file as its author wrote it. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptFailure {
    pub code: FailureCode,
    /// Begins with the error's own code when the host threw it into the code.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<SourcePosition>,
    /// The exception, for [`FailureCode::Exception`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ErrorData>>,
}

impl ScriptFailure {
    pub(crate) fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            position: None,
            error: None,
        }
    }
}

impl fmt::Display for ScriptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}
