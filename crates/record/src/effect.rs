//! What a run asks of the world. An effect is written to the outbox in the commit that decided
//! it, under an id that never changes, and only then attempted.

use crate::{
    ChildOutcome, EffectId, InterruptId, ModelRequest, NodeId, Object, PackCall, RunId, ToolRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub id: EffectId,
    pub run_id: RunId,
    pub kind: EffectKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum EffectKind {
    /// One HTTP call of a node; its outcome returns as a command.
    Http {
        node: NodeId,
        attempt: u32,
        request: HttpRequest,
    },
    /// One call of a model; its answer returns as a command.
    Model {
        node: NodeId,
        attempt: u32,
        request: Box<ModelRequest>,
        timeout_ms: u64,
    },
    /// One question to a tool server; its answer returns as a command.
    Tool {
        node: NodeId,
        attempt: u32,
        request: Box<ToolRequest>,
    },
    /// One call of a node that a pack brings; its answer returns as a command.
    Pack {
        node: NodeId,
        attempt: u32,
        call: Box<PackCall>,
    },
    /// A test-only node proves it can resolve a secret without ever showing it.
    SecretEcho {
        node: NodeId,
        attempt: u32,
        secret_id: String,
        /// The secret itself is wanted, by a test-only node that tries to make memory keep it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reveal: bool,
    },
    /// Tell the parent how a child ended or that it waits for a person.
    NotifyParent {
        parent: RunId,
        node: NodeId,
        outcome: ChildOutcome,
    },
    /// The parent ended or was cancelled.
    CancelChild { child: RunId },
    /// Tell the run's `callbackUrl` that a question of it waits for somebody. What is said is read from
    /// the run when it is said: nothing of it, and no link, is kept here.
    #[serde(rename = "announce")]
    NotifyCallback {
        interrupt: InterruptId,
        /// Attempts that failed.
        #[serde(default)]
        tries: u32,
    },
    /// The run was born in its parent's commit, or a decision was cut short to keep commits bounded;
    /// go on.
    Continue,
}

impl EffectKind {
    /// A short stable name for metrics and rows.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Model { .. } => "model",
            Self::Tool { .. } => "tool",
            Self::Pack { .. } => "pack",
            Self::SecretEcho { .. } => "secret_echo",
            Self::NotifyParent { .. } => "notify_parent",
            Self::CancelChild { .. } => "cancel_child",
            Self::NotifyCallback { .. } => "announce",
            Self::Continue => "continue",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub headers: Object,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub body: Option<Value>,
    pub timeout_ms: u64,
}
