//! Requests to tool servers, recorded completely before they are sent.
//!
//! A request names the server as the operator does. Its address and its key are not in the log.

use crate::Object;
use serde::{Deserialize, Serialize};

/// A request to a tool server, independent of how it is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The operator's name of the server.
    pub server: String,
    #[serde(rename = "ask")]
    pub operation: ToolOperation,
    /// How long the whole call may take.
    pub timeout_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ToolOperation {
    /// Call a tool.
    Call { tool: String, arguments: Object },
    /// One page of the available tools.
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
