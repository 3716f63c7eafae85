//! The questions of a run. Only the fold of an event changes them.

use crate::run::lifecycle::Phase;
use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{
    ClosedInterrupt, Interrupt, InterruptId, NodeId, NodeStatus, Object, Principal, RunId,
    RunStatus, Seq, Timestamp, Vote,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Questions {
    /// The waits of each node, by the definition's node index. The first is shown; the others are
    /// of further children of the node.
    pub(super) open: BTreeMap<usize, Vec<Suspension>>,
    /// Interrupts that were answered or closed, newest last.
    pub(super) closed: Vec<ClosedInterrupt>,
    /// Requested changes, by the node that has to make them.
    pub(super) feedback: BTreeMap<NodeId, Value>,
    /// External events that no node has waited for yet, in order of arrival.
    pub(super) early: Vec<EarlyEvent>,
    /// Ids of all external events, to recognise repetitions.
    pub(super) event_ids: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EarlyEvent {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) payload: Object,
    pub(super) by: Option<Principal>,
    pub(super) received: Seq,
}

/// An open interrupt of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Suspension {
    pub(in crate::run) interrupt: Interrupt,
    /// The status of the run while only such interrupts are open.
    pub(in crate::run) status: RunStatus,
    pub(in crate::run) since: Seq,
    pub(in crate::run) votes: Vec<Vote>,
    /// The original proposal, once a voter accepted it with changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) proposed: Option<Value>,
    /// When the timeout action runs if nobody answers.
    pub(in crate::run) due: Option<Timestamp>,
    /// Number of escalations so far.
    pub(in crate::run) level: u32,
    pub(in crate::run) reminders: u32,
    pub(in crate::run) denials: u32,
    /// The turns, if it is a conversation.
    pub(super) turns: Vec<Value>,
    /// The child run and node that own the interrupt.
    pub(in crate::run) mirrors: Option<(RunId, NodeId)>,
    /// The direct child that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) child: Option<RunId>,
}

impl Suspension {
    /// An interrupt that was just opened.
    pub(super) fn new(interrupt: Interrupt, since: Seq) -> Self {
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

impl Run {
    /// The interrupts a node waits for: the one that is shown, then those of further children.
    pub(in crate::run) fn open_interrupts(&self, ix: usize) -> &[Suspension] {
        let open = self.state.questions.open.get(&ix);
        open.map_or(&[], Vec::as_slice)
    }

    /// The interrupt that a node shows.
    pub(in crate::run) fn open_interrupt(&self, ix: usize) -> Option<&Suspension> {
        self.open_interrupts(ix).first()
    }

    /// The interrupts that suspended nodes show, in the order of the nodes.
    pub(in crate::run) fn shown_interrupts(&self) -> impl Iterator<Item = (usize, &Suspension)> {
        let open = self.state.questions.open.iter();
        let shown = open.filter_map(|(ix, waits)| Some((*ix, waits.first()?)));
        shown.filter(|(ix, _)| self.node(*ix).status == NodeStatus::Suspended)
    }

    /// The open interrupt that has waited longest.
    pub(in crate::run) fn first_suspended(&self) -> Option<(usize, &Suspension)> {
        self.shown_interrupts().min_by_key(|(_, s)| s.since)
    }

    /// The interrupt that this run as a whole waits for, if it waits.
    pub(in crate::run) fn awaited_interrupt(&self) -> Option<InterruptId> {
        let waiting = self.phase() == Phase::Running && self.status().is_waiting();
        let open = self.first_suspended().filter(|_| waiting);
        open.map(|(_, s)| s.interrupt.id.clone())
    }

    /// How a question ended, if it did.
    pub fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt> {
        let closed = self.state.questions.closed.iter();
        closed.rev().find(|c| c.interrupt == *id)
    }

    /// The changes that a reviewer requested of a node.
    pub(crate) fn requested_changes(&self, node: &NodeId) -> Option<&Value> {
        self.state.questions.feedback.get(node)
    }

    /// Whether this external event was delivered before.
    pub(in crate::run) fn knows_external_event(&self, event_id: &str) -> bool {
        self.state.questions.event_ids.contains(event_id)
    }

    /// How many external events were accepted, and how many of them no node waited for yet.
    pub(in crate::run) fn external_event_counts(&self) -> (usize, usize) {
        let questions = &self.state.questions;
        (questions.event_ids.len(), questions.early.len())
    }
}
