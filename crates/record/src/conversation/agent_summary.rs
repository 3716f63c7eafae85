//! What a reader is shown of an agent.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// There is a good version, possibly not that of the files.
    Ready,
    /// There was never a good version. Messages are refused.
    Invalid,
}

/// The body of `GET /agents/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    pub id: String,
    pub status: AgentStatus,
    pub flows: Vec<FlowSummary>,
    pub errors: Vec<AgentFileError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowSummary {
    pub flow_id: String,
    /// Hash of the code that new runs use; of a flow in Rust the declared version.
    pub version: String,
    /// Relative to the agent's folder; absent for a flow in Rust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What is wrong with a file of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFileError {
    pub file: String,
    /// Counts from 1, as does `column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    pub message: String,
}

impl AgentFileError {
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: None,
            column: None,
            message: message.into(),
        }
    }
}
