//! Why a turn exists, and what a turn waits for.

use super::{
    AdminActor, Candidate, ChatToolCall, FlowOrigin, InboundMessage, ModelPurpose, ParentNode,
    ProxyInput, ScheduledTurn, SessionWork, TakeoverEnding, TurnTrigger, WorkflowQuestion,
    WorkflowResult,
};
use crate::{EffectId, EscalationId, FlowId, InterruptId, MessageId, ProxyId, Seq};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a turn exists, with what it brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum TurnCause {
    Message {
        message: Box<InboundMessage>,
        /// The event that accepted it, or the first of several that became one turn.
        received: Seq,
        /// All messages of the turn where it answers several, in order of arrival. `message` then
        /// has the texts of all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        joined: Vec<MessageId>,
    },
    /// A queued message is processed now that nothing waits any more.
    QueueReplay { message: Box<QueuedMessage> },
    /// The deadline of the interrupt a flow waits at has passed.
    Deadline { interrupt: InterruptId },
    /// An escalation was closed; the flow that waits for it goes on.
    EscalationClosed { escalation: EscalationId },
    /// An admin, an operator or a workflow starts a flow.
    StartFlow(Box<FlowStartRequest>),
    /// An admin wrote a command that acts on this session.
    AdminCommand {
        message: Box<InboundMessage>,
        /// The transport the admin writes by.
        transport: String,
        /// The word that named this session; the handler does not see it.
        target: String,
    },
    /// A schedule begins it.
    Scheduled(Box<ScheduledTurn>),
    /// A reminder of an open question is due.
    Reminder { interrupt: InterruptId, index: u32 },
    /// Somebody with the right answers the open question for the user.
    Answered {
        interrupt: InterruptId,
        value: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<AdminActor>,
    },
    /// A live takeover ends.
    EndTakeover(Box<TakeoverEnding>),
    /// A workflow that a flow waits for asks something.
    WorkflowAsked {
        interrupt: InterruptId,
        question: Box<WorkflowQuestion>,
    },
    /// A workflow ended that a flow waits for.
    WorkflowFinished {
        interrupt: InterruptId,
        result: Box<WorkflowResult>,
    },
    /// An admin wrote for the session's bridge.
    ProxyInput {
        proxy: ProxyId,
        input: Box<ProxyInput>,
    },
    /// The bridge was stopped at which a flow waits.
    ProxyClosed {
        interrupt: InterruptId,
        proxy: ProxyId,
        reason: String,
        /// Its own time was over.
        timed_out: bool,
    },
    /// A bridge is to end after the input that was accepted before, or after a takeover.
    ProxyEnding(Box<BridgeEnding>),
}

/// The end of a bridge that waits for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeEnding {
    pub proxy: ProxyId,
    pub reason: String,
    /// Its own time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The admin who stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
}

/// A flow that a turn starts on its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowStartRequest {
    pub flow: FlowId,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
    pub origin: FlowOrigin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentNode>,
    pub attempt: u32,
    /// A flow that merely asks is ended for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preempts: bool,
}

impl TurnCause {
    pub fn trigger(&self) -> TurnTrigger {
        match self {
            Self::Message { .. } => TurnTrigger::Inbound,
            Self::QueueReplay { .. } => TurnTrigger::QueueReplay,
            Self::Deadline { .. } => TurnTrigger::Timer,
            Self::EscalationClosed { .. } => TurnTrigger::Resolution,
            Self::StartFlow(request) => match request.origin {
                FlowOrigin::Workflow => TurnTrigger::Workflow,
                _ => TurnTrigger::Admin,
            },
            Self::Scheduled(_) => TurnTrigger::Scheduled,
            Self::AdminCommand { .. } | Self::Answered { .. } => TurnTrigger::Admin,
            Self::Reminder { .. } => TurnTrigger::Timer,
            Self::EndTakeover(_) => TurnTrigger::Handback,
            Self::WorkflowAsked { .. } | Self::WorkflowFinished { .. } => TurnTrigger::Workflow,
            Self::ProxyInput { .. } => TurnTrigger::ProxyInput,
            Self::ProxyClosed {
                timed_out: true, ..
            } => TurnTrigger::Timer,
            Self::ProxyClosed { .. } => TurnTrigger::ProxyInput,
            Self::ProxyEnding(ending) if ending.timed_out => TurnTrigger::Timer,
            Self::ProxyEnding(_) => TurnTrigger::ProxyInput,
        }
    }

    pub fn message(&self) -> Option<&InboundMessage> {
        match self {
            Self::Message { message, .. } => Some(message),
            Self::QueueReplay { message } => Some(&message.message),
            Self::AdminCommand { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether the user wrote something.
    pub fn is_of_user(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::QueueReplay { .. })
    }

    /// What a schedule begins with the turn.
    pub fn scheduled(&self) -> Option<&ScheduledTurn> {
        match self {
            Self::Scheduled(turn) => Some(turn),
            _ => None,
        }
    }

    /// The messages the turn answers, in order of arrival, or the id that lets it take place once.
    pub fn message_ids(&self) -> Vec<MessageId> {
        match self {
            Self::Message { joined, .. } if !joined.is_empty() => joined.clone(),
            Self::Scheduled(turn) => vec![turn.dedup_id.clone()],
            other => {
                let message = other.message();
                message.map(|m| m.message_id.clone()).into_iter().collect()
            }
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
    /// Who the sender of an admin command is.
    CommandActor,
    /// Whether that admin may.
    CommandRight {
        actor: AdminActor,
    },
    /// Who wrote for the session's bridge.
    ProxyActor,
    /// Whether that admin may.
    ProxyRight {
        actor: AdminActor,
    },
    /// Which admin commands `/help` lists: who the sender is.
    HelpActor,
    /// The first of `rest` is asked about; `allowed` are those the sender may use.
    HelpRight {
        actor: AdminActor,
        allowed: Vec<String>,
        rest: Vec<String>,
    },
    /// Whether that admin may start or end a takeover, which the handler of their command does.
    TakeoverRight {
        actor: AdminActor,
        starts: bool,
    },
    /// The open escalations an admin asked for.
    Escalations,
    /// What was said in the message.
    Transcript,
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
    /// Whether a call of the model loop needs somebody's consent.
    ApprovalRule {
        call: ChatToolCall,
    },
    FlowTool,
    /// A flow starts a workflow.
    FlowWorkflow,
    /// The model starts a workflow.
    LoopWorkflow {
        call: ChatToolCall,
    },
    /// A flow manages the schedules of its user.
    FlowSchedule,
    /// The model does.
    LoopSchedule {
        call: ChatToolCall,
    },
    /// The response of a finished turn is reported.
    Report {
        turn: u64,
    },
}
