//! The chunks of a streamed model answer, as subscribers see them.

use crate::NodeId;
use serde::{Deserialize, Serialize};

/// One chunk of an answer in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputChunk {
    pub node: NodeId,
    pub piece: ChunkPiece,
    pub model: String,
    /// Set on the last chunk of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ChunkEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChunkPiece {
    Text(String),
    /// The model requests a tool call. `arguments` is JSON as text.
    ToolCall {
        id: String,
        name: String,
        arguments: String,
    },
}

impl ChunkPiece {
    /// The text it adds to the answer.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::ToolCall { .. } => "",
        }
    }
}

/// How an answer ended, and its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEnd {
    pub finish: FinishReason,
    pub usage: ChunkUsage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    #[default]
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

impl FinishReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// Token counts as subscribers see them. The total is copied as the provider gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}
