//! The state of a run: the fold of its log. Plain data; only [`crate::run::evolve`] changes it.

use crate::definition::Definition;
pub(crate) use crate::run::agents::{Dispatching, Verifying, WorkerState, WorkerStep};
use crate::run::lifecycle::StateSize;
use crate::run::shared_state::SharedState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tandem_record::{
    AgentEvent, ClosedInterrupt, ErrorInfo, Interrupt, NodeId, NodeStatus, Object, Principal,
    RunId, RunRequest, RunStatus, Sensitivity, Seq, Timestamp, Vote, Work, WorkflowId,
};

/// A run with the definition it is pinned to.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) def: Arc<Definition>,
    pub(crate) state: SharedState,
    pub(super) size: StateSize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) run_id: RunId,
    pub(crate) phase: Phase,
    pub(crate) head: Option<Seq>,
    /// Time of the last event. If the clock steps back, later events use this time.
    pub(crate) last_at: Timestamp,
    pub(crate) request: Option<Box<RunRequest>>,
    pub(crate) engine_version: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) paused_at: Option<Timestamp>,
    /// Time spent paused so far; no time limit counts it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) paused_ms: u64,
    /// A pause waits for running nodes.
    pub(crate) draining: Option<Draining>,
    pub(crate) cancelling: Option<Cancelling>,
    pub(crate) variables: Object,
    pub(crate) channels: BTreeMap<String, ChannelState>,
    /// By the definition's node index.
    pub(crate) nodes: Vec<NodeState>,
    /// Transitions into started, the counter for the limit of node executions.
    pub(crate) executions: u64,
    pub(crate) children: Vec<Child>,
    /// Runs started or granted to children, and not returned.
    #[serde(default)]
    pub(crate) descendants: u64,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) error: Option<ErrorInfo>,
    /// The node at which the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed_node: Option<NodeId>,
    pub(crate) outputs: Option<Object>,
    /// How often each channel trigger fired.
    pub(crate) fired: BTreeMap<String, u32>,
    /// Interrupts that were answered or closed, newest last.
    pub(crate) closed: Vec<ClosedInterrupt>,
    /// Requested changes, by the node that has to make them.
    pub(crate) feedback: BTreeMap<NodeId, Value>,
    /// Triggers inside their debounce window.
    pub(crate) armed: BTreeMap<String, Timestamp>,
    pub(crate) agent: Option<Value>,
    #[serde(default)]
    pub(crate) agents: Agents,
    pub(crate) cost: Object,
    /// External events that no node has waited for yet, in order of arrival.
    #[serde(default)]
    pub(crate) early: Vec<EarlyEvent>,
    /// Variables and channels that contain data from a tool server.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) untrusted: BTreeSet<String>,
    /// Ids of all external events, to recognise repetitions.
    #[serde(default)]
    pub(crate) event_ids: BTreeSet<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EarlyEvent {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) payload: Object,
    pub(crate) by: Option<Principal>,
    pub(crate) received: Seq,
}

/// What the run's agents have decided so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agents {
    /// The supervising agent, as its author pinned it or as it named itself first.
    pub(crate) orchestrator: Option<Value>,
    pub(crate) decided: Option<PublishedDecision>,
    /// Decisions published so far.
    pub(crate) decisions: u32,
    /// The agent of the worker that got the last handoff.
    pub(crate) worker: Option<String>,
    /// The supervisor's reasoning about its decision in this iteration.
    #[serde(default)]
    pub(crate) reasoning: Option<String>,
    /// The start of each supervisor's current iteration.
    #[serde(rename = "turns", default)]
    pub(crate) iteration_starts: BTreeMap<NodeId, Seq>,
    /// Verdicts of verifiers so far.
    #[serde(default)]
    pub(crate) verdicts: u32,
    /// The newest verdict on the newest decision or its results.
    #[serde(default)]
    pub(crate) verdict: Option<AgentEvent>,
}

/// The newest decision of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublishedDecision {
    pub(crate) seq: Seq,
    pub(crate) node: NodeId,
    pub(crate) agent_id: String,
    pub(crate) decision: Value,
    pub(crate) iteration: u32,
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
pub(crate) enum Phase {
    Pending,
    Running,
    Paused,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
}

impl Phase {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draining {
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cancelling {
    pub(crate) reason: Option<String>,
    pub(crate) by: Option<Principal>,
    pub(crate) by_parent: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChannelState {
    pub(crate) value: Value,
    /// The channel is shown among the variables too.
    pub(crate) mirrored: bool,
}

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
    pub(crate) suspended: Option<Suspension>,
    /// Further waiting children of the node, besides the one it mirrors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also_waiting: Vec<Suspension>,
    /// The workers of a dispatch node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dispatching: Option<Dispatching>,
    /// The subject of the node's verification, with a verdict that has not been acted on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verifying: Option<Box<Verifying>>,
    /// Why it was skipped.
    pub(crate) skipped: Option<String>,
    /// Its outputs come from a tool server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) untrusted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Suspension {
    pub(crate) interrupt: Interrupt,
    /// The status of the run while only such interrupts are open.
    pub(crate) status: RunStatus,
    pub(crate) since: Seq,
    pub(crate) votes: Vec<Vote>,
    /// The original proposal, once a voter accepted it with changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proposed: Option<Value>,
    /// When the timeout action runs if nobody answers.
    pub(crate) due: Option<Timestamp>,
    /// Number of escalations so far.
    pub(crate) level: u32,
    pub(crate) reminders: u32,
    pub(crate) denials: u32,
    /// The turns, if it is a conversation.
    pub(crate) turns: Vec<Value>,
    /// The child run and node that own the interrupt.
    pub(crate) mirrors: Option<(RunId, NodeId)>,
    /// The direct child that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) child: Option<RunId>,
}

impl Suspension {
    /// An interrupt that was just opened.
    pub(crate) fn new(interrupt: Interrupt, since: Seq) -> Self {
        let timeout = interrupt.timeout_ms;
        let simply = timeout.map(|ms| interrupt.requested_at.plus_ms(ms));
        Self {
            due: interrupt.due.or(simply),
            interrupt,
            status: RunStatus::WaitingInput,
            since,
            votes: Vec::new(),
            proposed: None,
            level: 0,
            reminders: 0,
            denials: 0,
            turns: Vec::new(),
            mirrors: None,
            child: None,
        }
    }
}

impl NodeState {
    fn new() -> Self {
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
            suspended: None,
            also_waiting: Vec::new(),
            dispatching: None,
            verifying: None,
            skipped: None,
            untrusted: false,
        }
    }

    /// Children the node waits for, and whether each is cancelled with it.
    pub(crate) fn awaited_children(&self) -> impl Iterator<Item = (&RunId, bool)> {
        let own = match &self.work {
            Some(Work::Child {
                child,
                propagate_cancel,
                ..
            }) => Some((child, *propagate_cancel)),
            _ => None,
        };
        let workers = self.dispatching.iter().flat_map(|d| &d.workers);
        let live = workers.filter(|w| w.step == WorkerStep::Running);
        own.into_iter()
            .chain(live.filter_map(|w| Some((w.child.as_ref()?, true))))
    }

    pub(crate) fn awaits(&self, child: &RunId) -> bool {
        self.awaited_children().any(|(awaited, _)| awaited == child)
    }

    /// Whether a cancel of the run has to wait for children of this node.
    pub(crate) fn holds_up_cancel(&self) -> bool {
        let open = matches!(self.status, NodeStatus::Running | NodeStatus::Suspended);
        open && self.awaited_children().any(|(_, goes_down)| goes_down)
    }

    /// A loop head between two rounds.
    pub(crate) fn between_rounds(&self) -> bool {
        let outputs = self.outputs.as_ref();
        let done = outputs.and_then(|o| o.get("done"));
        self.status == NodeStatus::Completed && done == Some(&Value::Bool(false))
    }

    /// A pause removes its work; the next start, or verification request, is another attempt.
    pub(crate) fn mark_cut_off(&mut self) {
        // A node that waits for a retry has not started that attempt.
        if self.retry_at.is_none() {
            self.attempt += 1;
        }
        self.drop_work();
        if self.verifying.is_some() {
            return;
        }
        self.status = NodeStatus::Pending;
        self.cut_off = true;
        self.deadline = None;
        self.retry_at = None;
    }

    /// Resets the node to pending and keeps its number of executions.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            execution: self.execution,
            last: self.last,
            ..Self::new()
        };
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) run_id: RunId,
    pub(crate) workflow_id: WorkflowId,
    pub(crate) node: NodeId,
    pub(crate) status: RunStatus,
    /// The event that recorded its end; its writes are visible from the next event on.
    #[serde(default)]
    pub(crate) ended: Option<Seq>,
    /// Started by the run this one was forked from; this run does not cancel it.
    #[serde(default)]
    pub(crate) inherited: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) node: NodeId,
    pub(crate) created_at: Timestamp,
    pub(crate) content: Value,
}

impl Run {
    /// A run before its first event.
    pub fn new(run_id: RunId, def: Arc<Definition>) -> Self {
        let nodes = vec![NodeState::new(); def.nodes.len()];
        Self {
            size: StateSize::of_new(def.nodes.len()),
            def,
            state: SharedState::from(State {
                run_id,
                phase: Phase::Pending,
                head: None,
                last_at: Timestamp::default(),
                request: None,
                engine_version: crate::ENGINE_VERSION,
                created_at: Timestamp::default(),
                ended_at: None,
                paused_at: None,
                paused_ms: 0,
                draining: None,
                cancelling: None,
                variables: Object::new(),
                channels: BTreeMap::new(),
                nodes,
                executions: 0,
                children: Vec::new(),
                descendants: 0,
                artifacts: Vec::new(),
                error: None,
                failed_node: None,
                outputs: None,
                fired: BTreeMap::new(),
                closed: Vec::new(),
                feedback: BTreeMap::new(),
                armed: BTreeMap::new(),
                agent: None,
                agents: Agents::default(),
                cost: Object::new(),
                early: Vec::new(),
                untrusted: BTreeSet::new(),
                event_ids: BTreeSet::new(),
            }),
        }
    }

    /// Restores a folded state from a snapshot.
    pub fn restore(def: Arc<Definition>, state: State) -> Option<Self> {
        if state.nodes.len() != def.nodes.len() {
            return None;
        }
        let mut run = Self {
            size: StateSize::of_new(0),
            def,
            state: SharedState::from(state),
        };
        run.recount_size();
        Some(run)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn definition(&self) -> &Arc<Definition> {
        &self.def
    }

    /// What is masked where the run is shown.
    pub fn sensitivity(&self) -> Arc<Sensitivity> {
        match &self.state.request {
            Some(request) => self.def.sensitivity_for(request),
            None => Arc::clone(&self.def.sensitivity),
        }
    }

    pub fn id(&self) -> &RunId {
        &self.state.run_id
    }

    /// The last event folded in.
    pub fn head(&self) -> Option<Seq> {
        self.state.head
    }

    pub(crate) fn next_seq(&self) -> Seq {
        self.state.head.map_or(Seq(0), Seq::next)
    }

    /// The request that created the run. Call on a started run only.
    pub fn request(&self) -> &RunRequest {
        self.state
            .request
            .as_ref()
            .expect("a started run has its request")
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

    pub(crate) fn has_running(&self) -> bool {
        self.state
            .nodes
            .iter()
            .any(|n| n.status == NodeStatus::Running)
    }

    pub fn status(&self) -> RunStatus {
        match self.state.phase {
            Phase::Pending => RunStatus::Pending,
            Phase::Paused => RunStatus::Paused,
            Phase::Cancelling => RunStatus::Cancelling,
            Phase::Completed => RunStatus::Completed,
            Phase::Failed => RunStatus::Failed,
            Phase::Cancelled => RunStatus::Cancelled,
            Phase::Running if self.has_running() => RunStatus::Running,
            Phase::Running => self
                .first_suspended()
                .map_or(RunStatus::Running, |(_, s)| s.status),
        }
    }

    /// The open interrupt that has waited longest.
    pub(crate) fn first_suspended(&self) -> Option<(usize, &Suspension)> {
        let open = self.state.nodes.iter().enumerate();
        open.filter(|(_, n)| n.status == NodeStatus::Suspended)
            .filter_map(|(ix, n)| n.suspended.as_ref().map(|s| (ix, s)))
            .min_by_key(|(_, s)| s.since)
    }
}
