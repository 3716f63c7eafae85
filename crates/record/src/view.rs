//! A run as a reader sees it: the state folded from its log, without the engine's bookkeeping. Not
//! masked: the wire's projection masks it before it leaves the process.

use crate::{
    ClaimedParent, DecisionPolicy, DefinitionHash, ErrorInfo, ForkedFrom, Interrupt, InterruptId,
    NodeId, Object, Owner, ParentLink, Principal, RunId, RunOptions, RunStatus, Seq, Timestamp,
    TraceContext, Vote, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    Pending,
    Running,
    Suspended,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl NodeStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Skipped | Self::Cancelled
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    pub node: NodeId,
    pub status: NodeStatus,
    pub attempt: u32,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub error: Option<ErrorInfo>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildView {
    pub run_id: RunId,
    pub workflow_id: WorkflowId,
    pub node: NodeId,
    /// As last reported to the parent.
    pub status: RunStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InterruptView {
    pub node: NodeId,
    pub interrupt: Interrupt,
    pub status: RunStatus,
    pub votes: Vec<Vote>,
    /// The original proposal, once a voter accepted it with changes; the interrupt shows the
    /// changes.
    pub proposed: Option<Value>,
    /// Until when the current deciders can decide.
    pub deadline: Option<Timestamp>,
    /// From when on answers are refused, also while a pause keeps its timer from firing.
    pub expires_at: Option<Timestamp>,
    /// Who may decide it, after every time it was handed on.
    pub policy: DecisionPolicy,
    /// Number of escalations so far.
    pub level: u32,
    pub reminders: u32,
    /// The child run and node that own the interrupt, when this node only waits for them.
    pub mirrors: Option<(RunId, NodeId)>,
}

/// An interrupt that was answered, or was closed with its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedInterrupt {
    pub interrupt: InterruptId,
    pub node: NodeId,
    pub outcome: String,
    pub by: Option<Principal>,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// It was closed by its timeout; nobody decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
}

impl ClosedInterrupt {
    /// The end of an interrupt whose node or run ended first.
    pub fn cancelled(interrupt: &Interrupt, node: &NodeId, at: Timestamp) -> Self {
        Self {
            interrupt: interrupt.id.clone(),
            node: node.clone(),
            outcome: "cancelled".to_owned(),
            by: None,
            at,
            asked_at: Some(interrupt.requested_at),
            overdue: false,
        }
    }

    /// A short name of the decider; a signed link has no other name.
    pub fn decided_by(&self) -> Option<&str> {
        let nobody = self.overdue || self.outcome == "cancelled";
        let by = self.by.as_ref().map(Principal::as_str);
        by.or_else(|| (!nobody).then_some("link"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactView {
    pub artifact_id: String,
    pub artifact_type: String,
    pub node: NodeId,
    pub created_at: Timestamp,
    pub content: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    pub run_id: RunId,
    pub workflow_id: WorkflowId,
    pub definition: DefinitionHash,
    pub owner: Owner,
    pub status: RunStatus,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub paused_at: Option<Timestamp>,
    /// The last event folded in.
    pub head: Seq,
    pub inputs: Object,
    pub variables: Object,
    /// Present when the workflow is channel-aware or wrote a channel.
    pub channels: Option<Object>,
    pub nodes: Vec<NodeView>,
    pub current_node: Option<NodeId>,
    pub error: Option<ErrorInfo>,
    /// The node at which the run failed.
    pub failed_node: Option<NodeId>,
    pub options: RunOptions,
    pub parent: Option<ParentLink>,
    pub forked_from: Option<ForkedFrom>,
    pub children: Vec<ChildView>,
    pub interrupts: Vec<InterruptView>,
    pub agent: Option<Value>,
    /// The supervising agent, once there was a decision.
    pub orchestrator: Option<Value>,
    pub claimed_parent: Option<ClaimedParent>,
    pub trace: Option<TraceContext>,
    pub engine_version: u32,
    /// Sum of allow-listed cost attributes, if any node reported some.
    pub cost: Option<Object>,
}
