//! How a session names its flow runs and what they wait for.

use crate::{EscalationId, FlowId, InterruptId, NodeId, RunId, Seq, Timestamp};
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
        since: Timestamp,
    },
    #[serde(rename_all = "camelCase")]
    Workflow {
        interrupt_id: InterruptId,
        run_id: RunId,
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
            | Self::Workflow { interrupt_id, .. } => interrupt_id,
        }
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Ask { .. } => None,
            Self::Confirm { deadline, .. } => Some(*deadline),
            Self::Wait { deadline, .. } | Self::Workflow { deadline, .. } => *deadline,
        }
    }

    /// The name readers see as `pausedOn`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "ask",
            Self::Confirm { .. } => "confirm",
            Self::Wait { wait_for, .. } => wait_for.as_str(),
            Self::Workflow { .. } => "workflow",
        }
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

/// The node of a workflow that a flow run was started for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentNode {
    pub run_id: RunId,
    pub node_id: NodeId,
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
