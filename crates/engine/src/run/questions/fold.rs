//! Applies events to the questions of a run.

use super::open_question::{changes_artifact, count_vote};
use super::state::{EarlyEvent, Questions, Suspension};
use serde_json::Value;
use tandem_record::{
    ApprovalDecision, ClosedInterrupt, Interrupt, InterruptId, NodeId, Object, Principal,
    Resolution, RunId, RunStatus, Seq, Timestamp,
};

/// What became of a node's wait that is over.
pub(in crate::run) struct ResumedWait {
    /// The child whose wait it was.
    pub(in crate::run) child: Option<RunId>,
    /// Nothing else is waited for: the node runs again.
    pub(in crate::run) was_last: bool,
}

impl Questions {
    /// The node asks; it is suspended by the next event.
    pub(in crate::run) fn open(&mut self, ix: usize, interrupt: &Interrupt, seq: Seq) {
        self.set_first(ix, Suspension::new(interrupt.clone(), seq));
    }

    fn set_first(&mut self, ix: usize, wait: Suspension) {
        let waits = self.open.entry(ix).or_default();
        match waits.first_mut() {
            Some(first) => *first = wait,
            None => waits.push(wait),
        }
    }

    /// The status of the run while the node's own interrupt is open.
    pub(in crate::run) fn set_status(&mut self, ix: usize, status: RunStatus) {
        self.with_open(ix, |open| open.status = status);
    }

    /// A child of the node waits. If another child of it waits already, that wait stays first.
    pub(in crate::run) fn mirror(
        &mut self,
        ix: usize,
        interrupt: Interrupt,
        status: RunStatus,
        (mirrors, child): (&(RunId, NodeId), Option<&RunId>),
        (waits_already, seq): (bool, Seq),
    ) {
        let wait = Suspension {
            status,
            mirrors: Some(mirrors.clone()),
            child: child.cloned(),
            ..Suspension::new(interrupt, seq)
        };
        if waits_already {
            self.open.entry(ix).or_default().push(wait);
        } else {
            self.set_first(ix, wait);
        }
    }

    /// A question of the node, or of one of its children, was answered.
    pub(in crate::run) fn resume(
        &mut self,
        ix: usize,
        interrupt: Option<&InterruptId>,
    ) -> ResumedWait {
        let waits = self.open.entry(ix).or_default();
        let further = interrupt.and_then(|id| {
            let mut waiting = waits.iter().skip(1);
            waiting.position(|s| s.interrupt.id == *id)
        });
        let place = further.map_or(0, |place| place + 1);
        let over = (place < waits.len()).then(|| waits.remove(place));
        let was_last = waits.is_empty();
        if was_last {
            self.open.remove(&ix);
        }
        ResumedWait {
            child: over.and_then(|wait| wait.child),
            was_last,
        }
    }

    /// The node ended, or starts again: it waits for nothing.
    pub(in crate::run) fn forget(&mut self, ix: usize) {
        self.open.remove(&ix);
    }

    /// Closes the node's own interrupt when the node is cancelled.
    pub(in crate::run) fn close_cancelled(&mut self, ix: usize, node: &NodeId, at: Timestamp) {
        let open = self.open.get(&ix).and_then(|waits| waits.first());
        if let Some(open) = open.filter(|s| s.mirrors.is_none()) {
            let closed = ClosedInterrupt::cancelled(&open.interrupt, node, at);
            self.closed.push(closed);
        }
    }

    /// Records how an interrupt was closed. The node is resumed by the next event.
    pub(in crate::run) fn resolve(
        &mut self,
        ix: Option<usize>,
        node: &NodeId,
        resolution: &Resolution,
        at: Timestamp,
    ) {
        // An early event that answered is used up.
        if let Some(used) = &resolution.event_id {
            self.early.retain(|event| event.id != *used);
        }
        let open = ix.and_then(|ix| self.open.get(&ix)?.first());
        let (asked_at, due) = open.map(|o| (o.interrupt.requested_at, o.due)).unzip();
        let outcome = resolution.outcome.clone();
        let overdue = resolution.reason.as_deref() == Some("timeout");
        self.closed.push(ClosedInterrupt {
            interrupt: resolution.interrupt.clone(),
            node: node.clone(),
            outcome: outcome.unwrap_or_else(|| "resolved".to_owned()),
            by: resolution.by.clone(),
            // The deadline decided, however late its timer fired.
            at: due.flatten().filter(|_| overdue).unwrap_or(at),
            asked_at,
            overdue,
        });
    }

    /// Counts a vote, and stores its edits for the other voters.
    pub(in crate::run) fn count_vote(
        &mut self,
        ix: usize,
        decision: &ApprovalDecision,
        at: Timestamp,
    ) {
        self.with_open(ix, |open| {
            let shown = open.interrupt.data.get("artifactData");
            let changed = changes_artifact(decision, shown);
            count_vote(&mut open.votes, decision, shown, at);
            if let Some(edited) = decision.edited.as_ref().filter(|_| changed) {
                let shown = &mut open.interrupt.data["artifactData"];
                let before = std::mem::replace(shown, edited.clone());
                open.proposed.get_or_insert(before);
            }
        });
    }

    /// A node has to make changes.
    pub(in crate::run) fn request_changes(&mut self, node: &NodeId, refine: &Value) {
        self.feedback.insert(node.clone(), refine.clone());
    }

    pub(in crate::run) fn escalate(&mut self, ix: usize, level: u32, deadline: Timestamp) {
        self.with_open(ix, |open| {
            open.level = level;
            open.due = Some(deadline);
        });
    }

    pub(in crate::run) fn remind(&mut self, ix: usize, count: u32, next: Option<Timestamp>) {
        self.with_open(ix, |open| {
            open.reminders = count;
            open.due = next;
        });
    }

    /// A pause ended. Its length extends the deadlines of all open interrupts.
    pub(in crate::run) fn extend_deadlines(&mut self, paused_ms: u64) {
        for open in self.open.values_mut().flatten() {
            open.due = open.due.map(|due| due.plus_ms(paused_ms));
        }
    }

    pub(in crate::run) fn count_denial(&mut self, ix: usize) {
        self.with_open(ix, |open| open.denials += 1);
    }

    pub(in crate::run) fn add_turn(&mut self, ix: usize, turn: &Value) {
        self.with_open(ix, |open| open.turns.push(turn.clone()));
    }

    /// Keeps an external event until a node waits for it.
    pub(in crate::run) fn store_event(
        &mut self,
        (id, kind): (&str, &str),
        payload: &Object,
        by: Option<&Principal>,
        received: Seq,
    ) {
        self.event_ids.insert(id.to_owned());
        self.early.push(EarlyEvent {
            id: id.to_owned(),
            kind: kind.to_owned(),
            payload: payload.clone(),
            by: by.cloned(),
            received,
        });
    }

    fn with_open(&mut self, ix: usize, change: impl FnOnce(&mut Suspension)) {
        if let Some(open) = self.open.get_mut(&ix).and_then(|waits| waits.first_mut()) {
            change(open);
        }
    }
}
