//! Where a run is between its start and its end. Only the fold of an event changes it.

use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use tandem_record::{ErrorInfo, NodeId, Object, Principal, RunId, RunRequest, Seq, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Lifecycle {
    pub(super) phase: Phase,
    pub(super) request: Option<Box<RunRequest>>,
    pub(super) engine_version: u32,
    pub(super) created_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) paused_at: Option<Timestamp>,
    /// Time spent paused so far; no time limit counts it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) paused_ms: u64,
    /// A pause waits for running nodes.
    pub(super) draining: Option<Draining>,
    pub(super) cancelling: Option<Cancelling>,
    pub(super) error: Option<ErrorInfo>,
    /// The node at which the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed_node: Option<NodeId>,
    pub(super) outputs: Option<Object>,
    pub(super) cost: Object,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

/// The phases of a run.
///
/// ```text
/// Pending --started--> Running --paused--> Paused --resumed--> Running
///    |                    |                   |
///    |                    +--cancel requested with live children--> Cancelling
///    +--------------------+-------------------+--> Completed | Failed | Cancelled   (final)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) enum Phase {
    Pending,
    Running,
    Paused,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
}

impl Phase {
    pub(in crate::run) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Draining {
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Cancelling {
    pub(super) reason: Option<String>,
    pub(super) by: Option<Principal>,
    pub(super) by_parent: Option<RunId>,
}

impl Lifecycle {
    pub(in crate::run) fn new() -> Self {
        Self {
            phase: Phase::Pending,
            request: None,
            engine_version: crate::ENGINE_VERSION,
            created_at: Timestamp::default(),
            ended_at: None,
            paused_at: None,
            paused_ms: 0,
            draining: None,
            cancelling: None,
            error: None,
            failed_node: None,
            outputs: None,
            cost: Object::new(),
        }
    }

    /// The first of the run's own events; those below it were copied from the source.
    pub(in crate::run) fn fork_point(&self) -> Seq {
        let fork = self.request.as_ref().and_then(|r| r.forked_from.as_ref());
        fork.map_or(Seq(0), |f| f.from_seq)
    }

    pub(in crate::run) fn is_replay(&self) -> bool {
        self.request.as_ref().is_some_and(|r| r.is_replay())
    }

    /// The start of the run's time. A branch has the time of a new run although its log begins with
    /// its source's. A replay uses the source's time.
    pub(in crate::run) fn begun_at(&self) -> Timestamp {
        let fork = self.request.as_ref().and_then(|r| r.forked_from.as_ref());
        let began_at = fork.and_then(|fork| fork.began_at());
        self.created_at.max(began_at.unwrap_or_default())
    }
}

impl Run {
    pub(in crate::run) fn phase(&self) -> Phase {
        self.state.lifecycle.phase
    }

    /// The request that created the run. Call on a started run only.
    pub fn request(&self) -> &RunRequest {
        self.started_request()
            .expect("a started run has its request")
    }

    /// The request that created the run, once it has started.
    pub(crate) fn started_request(&self) -> Option<&RunRequest> {
        self.state.lifecycle.request.as_deref()
    }

    pub fn created_at(&self) -> Timestamp {
        self.state.lifecycle.created_at
    }

    /// The start of the run's time.
    pub(in crate::run) fn begun_at(&self) -> Timestamp {
        self.state.lifecycle.begun_at()
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        self.state.lifecycle.ended_at
    }

    pub(in crate::run) fn paused_at(&self) -> Option<Timestamp> {
        self.state.lifecycle.paused_at
    }

    /// Whether a pause waits for running nodes.
    pub(in crate::run) fn is_draining(&self) -> bool {
        self.state.lifecycle.draining.is_some()
    }

    /// Why the run is to be paused once no node is running.
    pub(in crate::run) fn drain_reason(&self) -> Option<String> {
        self.state.lifecycle.draining.as_ref()?.reason.clone()
    }

    pub fn error(&self) -> Option<&ErrorInfo> {
        self.state.lifecycle.error.as_ref()
    }

    /// The node at which the run failed, if the log names it.
    pub(in crate::run) fn recorded_failed_node(&self) -> Option<&NodeId> {
        self.state.lifecycle.failed_node.as_ref()
    }

    /// The outputs of a completed run.
    pub fn outputs(&self) -> Option<&Object> {
        self.state.lifecycle.outputs.as_ref()
    }

    pub(in crate::run) fn engine_version(&self) -> u32 {
        self.state.lifecycle.engine_version
    }

    /// What the run cost so far, by attribute.
    pub(in crate::run) fn cost(&self) -> &Object {
        &self.state.lifecycle.cost
    }
}
