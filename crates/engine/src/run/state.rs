//! What a run is at one moment: the fold of its log. Plain data; only [`super::evolve`] changes it.

use super::budget::StateSize;
pub(crate) use super::workers::{Dispatching, Verifying, WorkerState, WorkerStep};
use crate::definition::Definition;
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
    /// Boxed: a run is handed on many times between a command and its commit.
    pub(crate) state: Box<State>,
    pub(super) size: StateSize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) run_id: RunId,
    pub(crate) phase: Phase,
    pub(crate) head: Option<Seq>,
    /// Time of the last event; a clock that steps back does not reach the log.
    pub(crate) last_at: Timestamp,
    pub(crate) request: Option<Box<RunRequest>>,
    pub(crate) engine_version: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) paused_at: Option<Timestamp>,
    /// Time spent paused so far, which no time limit counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) paused_ms: u64,
    /// A pause waits for running nodes.
    pub(crate) draining: Option<Draining>,
    pub(crate) cancelling: Option<Cancelling>,
    pub(crate) variables: Object,
    pub(crate) channels: BTreeMap<String, ChannelState>,
    /// By the definition's node index.
    pub(crate) nodes: Vec<NodeState>,
    /// Transitions into started, the counter of the node-execution bound.
    pub(crate) executions: u64,
    pub(crate) children: Vec<Child>,
    /// Runs brought about or granted to children, and not given back.
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
    /// Questions answered or dead, newest last.
    pub(crate) closed: Vec<ClosedInterrupt>,
    /// Changes asked for, by the node that has to make them.
    pub(crate) feedback: BTreeMap<NodeId, Value>,
    /// Triggers inside their debounce window.
    pub(crate) armed: BTreeMap<String, Timestamp>,
    pub(crate) agent: Option<Value>,
    #[serde(default)]
    pub(crate) agents: Agents,
    pub(crate) cost: Object,
    /// Events from outside that nobody waited for yet, in the order they came.
    #[serde(default)]
    pub(crate) early: Vec<EarlyEvent>,
    /// Variables and channels that hold something a tool server said.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) untrusted: BTreeSet<String>,
    /// Ids of every event from outside, so that a repetition is known.
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
    /// Who supervises, as its author pinned it or as it called itself first.
    pub(crate) orchestrator: Option<Value>,
    pub(crate) decided: Option<PublishedDecision>,
    /// Decisions published so far.
    pub(crate) decisions: u32,
    /// The agent of the worker that was handed work last.
    pub(crate) worker: Option<String>,
    /// What the supervisor said this turn about its decision.
    #[serde(default)]
    pub(crate) reasoning: Option<String>,
    /// Where each supervisor's current turn began.
    #[serde(rename = "turns", default)]
    pub(crate) iteration_starts: BTreeMap<NodeId, Seq>,
    /// Verdicts of critics so far.
    #[serde(default)]
    pub(crate) verdicts: u32,
    /// The newest verdict on the newest decision or what came of it.
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

/// The life of a run as a whole.
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
    /// Shows among the variables too.
    pub(crate) mirrored: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeState {
    pub(crate) status: NodeStatus,
    pub(crate) attempt: u32,
    /// Entries so far; the current one is `execution - 1`.
    pub(crate) execution: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) outputs: Option<Arc<Object>>,
    pub(crate) error: Option<ErrorInfo>,
    /// The newest event about this node, the cause of what follows from it.
    pub(crate) last: Option<Seq>,
    pub(crate) work: Option<Work>,
    pub(crate) deadline: Option<Timestamp>,
    /// A failed attempt is tried again then.
    pub(crate) retry_at: Option<Timestamp>,
    /// Cut off by a pause: the next start is this attempt.
    pub(crate) cut_off: bool,
    pub(crate) suspended: Option<Suspension>,
    /// Further children of the node that wait, beside the one it mirrors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also_waiting: Vec<Suspension>,
    /// The workers of a dispatch node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dispatching: Option<Dispatching>,
    /// What the node's critic is asked about, or has said and nobody acted on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verifying: Option<Box<Verifying>>,
    /// Why it was skipped.
    pub(crate) skipped: Option<String>,
    /// What it put out comes from a tool server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) untrusted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Suspension {
    pub(crate) interrupt: Interrupt,
    /// What the run's status is while only such questions are open.
    pub(crate) status: RunStatus,
    pub(crate) since: Seq,
    pub(crate) votes: Vec<Vote>,
    /// What was proposed first, once somebody accepted it with changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proposed: Option<Value>,
    /// When something happens if nobody answers.
    pub(crate) due: Option<Timestamp>,
    /// How often the question was handed on to others.
    pub(crate) level: u32,
    pub(crate) reminders: u32,
    pub(crate) denials: u32,
    /// What was said, if it is talked over.
    pub(crate) turns: Vec<Value>,
    /// The child run and node that really ask.
    pub(crate) mirrors: Option<(RunId, NodeId)>,
    /// The direct child it was reported through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) child: Option<RunId>,
}

impl Suspension {
    /// A question as it is asked.
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

    /// Children the node waits for, and whether each goes down with it.
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

    /// A loop head between two of its rounds.
    pub(crate) fn between_rounds(&self) -> bool {
        let outputs = self.outputs.as_ref();
        let done = outputs.and_then(|o| o.get("done"));
        self.status == NodeStatus::Completed && done == Some(&Value::Bool(false))
    }

    /// A pause takes its work away; the next start, or question to its critic, is another attempt.
    pub(crate) fn mark_cut_off(&mut self) {
        // One that waits to be tried again has not begun that attempt.
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

    /// Back to before it ran, keeping how often it did.
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
    /// The event that told its end; from the next one on its writes are seen.
    #[serde(default)]
    pub(crate) ended: Option<Seq>,
    /// Started by the run this one was forked from; not ours to stop.
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
            state: Box::new(State {
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

    /// Takes up a folded state again, from a snapshot.
    pub fn restore(def: Arc<Definition>, state: State) -> Option<Self> {
        if state.nodes.len() != def.nodes.len() {
            return None;
        }
        let mut run = Self {
            size: StateSize::of_new(0),
            def,
            state: Box::new(state),
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

    /// How the run was asked for. Call on a started run only.
    pub fn request(&self) -> &RunRequest {
        self.state
            .request
            .as_ref()
            .expect("only a started run is asked for its request")
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

    /// The open question that has waited longest.
    pub(crate) fn first_suspended(&self) -> Option<(usize, &Suspension)> {
        let open = self.state.nodes.iter().enumerate();
        open.filter(|(_, n)| n.status == NodeStatus::Suspended)
            .filter_map(|(ix, n)| n.suspended.as_ref().map(|s| (ix, s)))
            .min_by_key(|(_, s)| s.since)
    }
}
