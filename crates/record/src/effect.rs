//! Side effects of a machine, and those of a run. An effect is written to the outbox in the commit
//! that decided it, under an id that never changes. It is attempted only after that.

use crate::conversation::{
    ClosedWorkflowQuestion, FlowCall, WaitingSession, WorkflowQuestion, WorkflowResult,
};
use crate::{
    AgentId, ChildOutcome, EffectId, InterruptId, ModelRequest, NodeId, Object, PackCall, RunId,
    Seq, ToolRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One effect. `K` says what is to be done; each machine has its own kinds. The stream it belongs to
/// is that of its outbox entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect<K = EffectKind> {
    pub id: EffectId,
    pub kind: K,
}

/// What a run does.

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
    /// One request to a tool server; its answer returns as a command.
    Tool {
        node: NodeId,
        attempt: u32,
        request: Box<ToolRequest>,
    },
    /// One call of a pack's node; its answer returns as a command.
    Pack {
        node: NodeId,
        attempt: u32,
        call: Box<PackCall>,
    },
    /// A test-only node proves that it can resolve a secret without ever showing it.
    SecretEcho {
        node: NodeId,
        attempt: u32,
        secret_id: String,
        /// The secret itself is returned, for a test-only node that tries to store it in memory.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reveal: bool,
    },
    /// Notify the parent that a child ended or that it waits for a person.
    NotifyParent {
        parent: RunId,
        node: NodeId,
        outcome: ChildOutcome,
    },
    /// Tell the conversation that started the run how it ended.
    NotifySession {
        to: WaitingSession,
        result: Box<WorkflowResult>,
    },
    /// Show the conversation a question of the run.
    AskSession {
        to: WaitingSession,
        question: Box<WorkflowQuestion>,
    },
    /// Tell the conversation that a question it shows is closed.
    CloseSessionQuestion {
        to: WaitingSession,
        closed: Box<ClosedWorkflowQuestion>,
    },
    /// The parent ended or was cancelled.
    CancelChild { child: RunId },
    /// Start a flow in a conversation, for a node that waits for its end.
    StartFlow {
        node: NodeId,
        flow_run: RunId,
        /// The event that named it.
        dispatched: Seq,
        call: Box<FlowCall>,
    },
    /// The node does not wait for the flow any more.
    CancelFlow {
        node: NodeId,
        flow_run: RunId,
        /// The event that named it.
        dispatched: Seq,
        call: Box<FlowCall>,
    },
    /// Notify the run's `callbackUrl` that an interrupt is open. The message is built from the run
    /// when it is sent: none of it, and no link, is stored here.
    #[serde(rename = "announce")]
    NotifyCallback {
        interrupt: InterruptId,
        /// Attempts that failed.
        #[serde(default)]
        tries: u32,
    },
    /// Tell somebody outside of an open interrupt, by a transport of an agent. What the notice says is read when it is
    /// sent.
    NotifyPeople {
        interrupt: InterruptId,
        agent: AgentId,
        transport: String,
        to: String,
        /// Attempts that failed.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        attempts: u32,
    },
    /// Continue a run that was created in its parent's commit, or whose decision was split to keep
    /// commits small.
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
            Self::NotifySession { .. } => "notify_session",
            Self::AskSession { .. } => "ask_session",
            Self::CloseSessionQuestion { .. } => "close_session_question",
            Self::CancelChild { .. } => "cancel_child",
            Self::StartFlow { .. } => "start_flow",
            Self::CancelFlow { .. } => "cancel_flow",
            Self::NotifyCallback { .. } => "announce",
            Self::NotifyPeople { .. } => "notify_people",
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
