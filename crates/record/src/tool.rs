//! Questions to tool servers: what is asked of whom, recorded whole before it is asked.
//!
//! A request names the server as the operator does. Where it is reached and with which key stays
//! out of the log.

use crate::Object;
use serde::{Deserialize, Serialize};

/// What a tool server is asked, free of how it is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The operator's name of the server.
    pub server: String,
    #[serde(rename = "ask")]
    pub operation: ToolOperation,
    /// How long everything about the call may take.
    pub timeout_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ToolOperation {
    /// Use a tool.
    Call { tool: String, arguments: Object },
    /// One page of the tools there are.
    List {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// Read a resource.
    Read { uri: String },
}

/// How a tool was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolTransport {
    Mcp,
}
