//! The folded state of a flow run. [`super::fold`] is the only place that changes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::conversation::{FlowPause, FlowRunStart, ResumedBy};
use tandem_record::{
    AgentId, ClosedInterrupt, ErrorInfo, FlowId, Interrupt, InterruptId, NodeId, NodeStatus,
    Object, RunId, RunRequest, RunStatus, Seq, TenantId, Timestamp, WorkflowId,
};

/// One run of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRun {
    pub(super) id: RunId,
    pub(super) state: FlowRunState,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRunState {
    pub(super) head: Option<Seq>,
    pub(super) last_at: Timestamp,
    /// Absent before the first event.
    pub(super) start: Option<Box<FlowRunStart>>,
    /// The same in the form of runs.
    pub(super) request: Option<Box<RunRequest>>,
    pub(super) tenant: TenantId,
    pub(super) status: RunStatus,
    pub(super) created_at: Timestamp,
    pub(super) paused_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) error: Option<ErrorInfo>,
    /// Effects in the order of their steps.
    pub(super) steps: Vec<FlowStep>,
    pub(super) open: Option<OpenPause>,
    /// The wait is over, but its result is not in the journal yet.
    pub(super) resumed: Option<(ResumedBy, String)>,
    /// Who answered it.
    #[serde(default)]
    pub(super) answered_by: Option<String>,
    pub(super) closed: Vec<Arc<ClosedInterrupt>>,
    /// Answers to `ask`, by key.
    pub(super) answers: Object,
    /// What the run gave, once it has completed.
    pub(super) outputs: Option<Object>,
    /// The last `interrupt.escalate`, for the wait that follows it.
    pub(super) escalate: Option<Value>,
    /// The last `interrupt.confirm`, for a later wait for its answer.
    pub(super) confirm: Option<Value>,
    /// About how much memory all of this takes.
    pub(super) bytes: usize,
}

/// An effect as a node of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FlowStep {
    pub(super) status: NodeStatus,
    /// The event of the effect.
    pub(super) seq: Seq,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) error: Option<ErrorInfo>,
}

/// What the flow waits for, and the question that readers of the run see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenPause {
    pub(super) step: u32,
    pub(super) pause: FlowPause,
    /// Absent until the event of the question is folded.
    pub(super) interrupt: Option<Interrupt>,
}

impl FlowRun {
    /// The run before its first event.
    pub fn unstarted(id: RunId) -> Self {
        let state = FlowRunState {
            head: None,
            last_at: Timestamp(0),
            start: None,
            request: None,
            tenant: TenantId::new(""),
            status: RunStatus::Pending,
            created_at: Timestamp(0),
            paused_at: None,
            ended_at: None,
            error: None,
            steps: Vec::new(),
            open: None,
            resumed: None,
            answered_by: None,
            closed: Vec::new(),
            answers: Object::new(),
            outputs: None,
            escalate: None,
            confirm: None,
            bytes: 0,
        };
        Self { id, state }
    }

    /// The run as a snapshot stored it.
    pub fn restored(id: RunId, state: FlowRunState) -> Self {
        Self { id, state }
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    pub fn status(&self) -> RunStatus {
        self.state.status
    }

    /// What the run was started with; `None` before its first event.
    pub fn start(&self) -> Option<&FlowRunStart> {
        self.state.start.as_deref()
    }

    pub fn pause(&self) -> Option<&FlowPause> {
        self.state.open.as_ref().map(|open| &open.pause)
    }

    pub fn created_at(&self) -> Timestamp {
        self.state.created_at
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        self.state.ended_at
    }

    pub fn error(&self) -> Option<&ErrorInfo> {
        self.state.error.as_ref()
    }

    /// What the run gave, once it has completed.
    pub fn outputs(&self) -> Option<&Object> {
        self.state.outputs.as_ref()
    }

    /// How a question ended, if it did.
    pub fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt> {
        let mut closed = self.state.closed.iter().rev();
        closed.find(|c| c.interrupt == *id).map(|c| &**c)
    }

    /// The workflow that flow runs of this flow belong to. Ids of workflows have no `:` or `/`.
    pub fn workflow_id(&self) -> WorkflowId {
        match &self.state.start {
            None => WorkflowId::new("flow"),
            Some(start) => workflow_id(start),
        }
    }
}

pub(super) fn workflow_id(start: &FlowRunStart) -> WorkflowId {
    workflow_id_of(&start.agent_id, &start.flow_id)
}

/// The workflow that runs of a flow belong to. Ids of workflows have no `:` or `/`.
pub(crate) fn workflow_id_of(agent: &AgentId, flow: &FlowId) -> WorkflowId {
    let name = format!("flow.{agent}.{flow}");
    WorkflowId::from(name.replace([':', '/'], "_"))
}

/// The node of a step.
pub(super) fn node_of(step: u32) -> NodeId {
    NodeId::from(format!("s{step}"))
}

/// The step of a node.
pub(super) fn step_of(node: &NodeId) -> Option<usize> {
    node.as_str().strip_prefix('s')?.parse().ok()
}
