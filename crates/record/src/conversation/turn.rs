//! Why a turn exists, and what a turn waits for.

use super::{Candidate, ChatToolCall, InboundMessage, ModelPurpose, SessionWork, TurnTrigger};
use crate::{EffectId, EscalationId, FlowId, InterruptId, Seq};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a turn exists, with what it brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum TurnCause {
    Message {
        message: Box<InboundMessage>,
        /// The event that accepted it.
        received: Seq,
    },
    /// A queued message is processed now that nothing waits any more.
    QueueReplay { message: Box<QueuedMessage> },
    /// The deadline of the interrupt a flow waits at has passed.
    Deadline { interrupt: InterruptId },
    /// An escalation was closed; the flow that waits for it goes on.
    EscalationClosed { escalation: EscalationId },
    /// An admin starts a flow.
    StartFlow { flow: FlowId, input: Option<Value> },
}

impl TurnCause {
    pub fn trigger(&self) -> TurnTrigger {
        match self {
            Self::Message { .. } => TurnTrigger::Inbound,
            Self::QueueReplay { .. } => TurnTrigger::QueueReplay,
            Self::Deadline { .. } => TurnTrigger::Timer,
            Self::EscalationClosed { .. } => TurnTrigger::Resolution,
            Self::StartFlow { .. } => TurnTrigger::Admin,
        }
    }

    pub fn message(&self) -> Option<&InboundMessage> {
        match self {
            Self::Message { message, .. } => Some(message),
            Self::QueueReplay { message } => Some(&message.message),
            _ => None,
        }
    }
}

/// A message that arrived while an admin's decision was pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub message: InboundMessage,
    pub received: Seq,
}

/// A piece of work that a turn requested and waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedWork {
    pub effect_id: EffectId,
    pub purpose: WorkPurpose,
    pub work: SessionWork,
}

/// What the outcome of a piece of work is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum WorkPurpose {
    Command {
        name: String,
    },
    /// The hook before anything else.
    BeforeLlm,
    /// The hook decides about this candidate.
    Candidate {
        candidate: Candidate,
    },
    Model {
        purpose: ModelPurpose,
    },
    /// A call of the model loop.
    LoopTool {
        call: ChatToolCall,
    },
    FlowTool,
    /// The response of a finished turn is reported.
    Report {
        turn: u64,
    },
}
