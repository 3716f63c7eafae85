//! The state of one node. Its questions and its workers are not part of it: see `questions/` and
//! `agents/`.

use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{ErrorInfo, NodeStatus, Object, Seq, Timestamp, Work};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeState {
    pub(crate) status: NodeStatus,
    pub(crate) attempt: u32,
    /// Executions so far; the current one is `execution - 1`.
    pub(crate) execution: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) outputs: Option<Arc<Object>>,
    pub(crate) error: Option<ErrorInfo>,
    /// The newest event about this node, the cause of what follows from it.
    pub(crate) last: Option<Seq>,
    pub(crate) work: Option<Work>,
    pub(crate) deadline: Option<Timestamp>,
    /// When a failed attempt is retried.
    pub(crate) retry_at: Option<Timestamp>,
    /// Cut off by a pause: the next start is this attempt.
    pub(crate) cut_off: bool,
    /// Why it was skipped.
    pub(crate) skipped: Option<String>,
    /// Its outputs come from a tool server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) untrusted: bool,
}

impl NodeState {
    pub(super) fn new() -> Self {
        Self {
            status: NodeStatus::Pending,
            attempt: 0,
            execution: 0,
            started_at: None,
            ended_at: None,
            outputs: None,
            error: None,
            last: None,
            work: None,
            deadline: None,
            retry_at: None,
            cut_off: false,
            skipped: None,
            untrusted: false,
        }
    }

    /// Running or suspended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status, NodeStatus::Running | NodeStatus::Suspended)
    }

    /// A loop head between two rounds.
    pub(crate) fn between_rounds(&self) -> bool {
        let outputs = self.outputs.as_ref();
        let done = outputs.and_then(|o| o.get("done"));
        self.status == NodeStatus::Completed && done == Some(&Value::Bool(false))
    }

    /// Stops waiting. A model call is kept: it is made again when the node continues, and the
    /// answers before it stay valid.
    pub(super) fn drop_work(&mut self) {
        self.work = self.work.take().filter(|w| matches!(w, Work::Model { .. }));
    }

    /// Resets the node to pending and keeps its number of executions.
    pub(super) fn reset(&mut self) {
        *self = Self {
            execution: self.execution,
            last: self.last,
            ..Self::new()
        };
    }
}

impl Run {
    /// The state of a node, by the definition's node index.
    pub(crate) fn node(&self, ix: usize) -> &NodeState {
        &self.state.scheduling.nodes[ix]
    }

    /// The states of all nodes, in the order of the definition.
    pub(crate) fn nodes(&self) -> &[NodeState] {
        &self.state.scheduling.nodes
    }

    pub(in crate::run) fn has_running(&self) -> bool {
        let mut nodes = self.nodes().iter();
        nodes.any(|n| n.status == NodeStatus::Running)
    }
}
