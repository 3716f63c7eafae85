//! How a session names its flow runs and what they wait for.

use super::OnActiveFlow;
use crate::{
    AgentId, EscalationId, FlowId, InterruptId, NodeId, Principal, ProxyId, RunId, Seq, SessionId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The flow run an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowRef {
    pub flow_id: FlowId,
    pub flow_run_id: RunId,
}

/// What started a flow run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowOrigin {
    Router,
    BeforeLlm,
    Handoff,
    Tool,
    Api,
    Command,
    Schedule,
    Workflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    AdminResolution,
    LiveHandback,
    ConfirmResponse,
    Timeout,
}

impl WaitFor {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AdminResolution => "admin_resolution",
            Self::LiveHandback => "live_handback",
            Self::ConfirmResponse => "confirm_response",
            Self::Timeout => "timeout",
        }
    }
}

/// What a flow run is paused on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FlowPause {
    #[serde(rename_all = "camelCase")]
    Ask {
        interrupt_id: InterruptId,
        key: String,
        asked_at: Timestamp,
        /// Reminders sent so far.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        reminded: u32,
    },
    #[serde(rename_all = "camelCase")]
    Confirm {
        interrupt_id: InterruptId,
        /// Questions sent so far, without the first.
        attempts: u32,
        deadline: Timestamp,
        /// The event of the question: a message received before it does not answer it.
        asked: Seq,
        asked_at: Timestamp,
        /// Reminders sent so far.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        reminded: u32,
    },
    #[serde(rename_all = "camelCase")]
    Wait {
        interrupt_id: InterruptId,
        wait_for: WaitFor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        escalation_id: Option<EscalationId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// What is left of its own time while a claim of the escalation stops it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_ms: Option<u64>,
        since: Timestamp,
        /// Replies that could not be read, where a reply is awaited.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        attempts: u32,
    },
    #[serde(rename_all = "camelCase")]
    Workflow {
        interrupt_id: InterruptId,
        run_id: RunId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        since: Timestamp,
    },
    /// For input of an admin over the session's bridge.
    #[serde(rename_all = "camelCase")]
    ProxyWait {
        interrupt_id: InterruptId,
        proxy_id: ProxyId,
        /// The target of the bridge.
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        since: Timestamp,
    },
}

impl FlowPause {
    pub fn interrupt_id(&self) -> &InterruptId {
        match self {
            Self::Ask { interrupt_id, .. }
            | Self::Confirm { interrupt_id, .. }
            | Self::Wait { interrupt_id, .. }
            | Self::Workflow { interrupt_id, .. }
            | Self::ProxyWait { interrupt_id, .. } => interrupt_id,
        }
    }

    /// The escalation that is waited for.
    pub fn escalation_id(&self) -> Option<&EscalationId> {
        match self {
            Self::Wait { escalation_id, .. } => escalation_id.as_ref(),
            Self::Ask { .. }
            | Self::Confirm { .. }
            | Self::Workflow { .. }
            | Self::ProxyWait { .. } => None,
        }
    }

    /// Names the interrupt after another run.
    pub fn rename_run(&mut self, from: &RunId, to: &RunId) {
        let (Self::Ask { interrupt_id, .. }
        | Self::Confirm { interrupt_id, .. }
        | Self::Wait { interrupt_id, .. }
        | Self::Workflow { interrupt_id, .. }
        | Self::ProxyWait { interrupt_id, .. }) = self;
        interrupt_id.rename_run(from, to);
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Ask { .. } => None,
            Self::Confirm { deadline, .. } => Some(*deadline),
            Self::Wait { deadline, .. }
            | Self::Workflow { deadline, .. }
            | Self::ProxyWait { deadline, .. } => *deadline,
        }
    }

    /// The name readers see as `pausedOn`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "ask",
            Self::Confirm { .. } => "confirm",
            Self::Wait { wait_for, .. } => wait_for.as_str(),
            Self::Workflow { .. } => "workflow",
            Self::ProxyWait { .. } => "proxy_input",
        }
    }

    /// Whether it ends at its time and by nothing else.
    pub fn is_sleep(&self) -> bool {
        matches!(self, Self::Wait { wait_for, .. } if *wait_for == WaitFor::Timeout)
    }

    /// Whether a person's decision is pending that scheduled work and hooks must not disturb.
    pub fn is_interrupt(&self) -> bool {
        !matches!(self, Self::Ask { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumedBy {
    UserReply,
    AdminResolution,
    LiveHandback,
    AdminInput,
    Timeout,
    Stopped,
    Canceled,
    Workflow,
}

impl ResumedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserReply => "user_reply",
            Self::AdminResolution => "admin_resolution",
            Self::LiveHandback => "live_handback",
            Self::AdminInput => "admin_input",
            Self::Timeout => "timeout",
            Self::Stopped => "stopped",
            Self::Canceled => "canceled",
            Self::Workflow => "workflow",
        }
    }
}

/// The node of a workflow that a flow run was started for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentNode {
    pub run_id: RunId,
    pub node_id: NodeId,
    /// The run of the flow as the workflow named it: a node may start several, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_run_id: Option<RunId>,
    /// The event of the workflow that named the flow run.
    #[serde(default)]
    pub dispatched_at: Seq,
}

/// A flow that a node of a workflow starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowCall {
    pub agent_id: AgentId,
    pub flow_id: FlowId,
    pub target: FlowTarget,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
    /// A user without an active session gets one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_session_bootstrap: bool,
    #[serde(default)]
    pub on_active_flow: OnActiveFlow,
}

/// Whose conversation a flow of a workflow is held in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlowTarget {
    /// The active session of this user.
    UserExternalId(String),
    SessionId(SessionId),
}

/// The conversation that waits for the end of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingSession {
    pub session_id: SessionId,
    /// The wait of its flow.
    pub interrupt_id: InterruptId,
    /// Questions of the workflow are put to the user or to the admins of this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surfaces_questions: bool,
}

/// A question of a workflow that a conversation shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowQuestion {
    pub run_id: RunId,
    pub node_id: NodeId,
    pub interrupt_id: InterruptId,
    /// `clarification` or `approval`.
    pub kind: String,
    /// What the question shows.
    pub data: Value,
}

/// How a question of a workflow ended that a conversation showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClosedWorkflowQuestion {
    pub interrupt_id: InterruptId,
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
}

/// An answer for a workflow that was given in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowAnswer {
    pub run_id: RunId,
    pub node_id: NodeId,
    pub interrupt_id: InterruptId,
    pub value: Value,
    /// Whose answer it is. Where several people approved, the others come before the last one.
    pub by: Vec<Principal>,
}

/// How a workflow ended that a flow started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowResult {
    pub run_id: RunId,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub output: Option<Value>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub error: Option<Value>,
}

/// How the last confirmation of a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmOutcome {
    Positive,
    Negative,
    TimedOut,
    Unrecognized,
}

/// Why a flow run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowFailure {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
