//! Applies events to the nodes and to the channel triggers.

use super::state::Scheduling;
use crate::definition::{ChannelTrigger, Definition};
use std::sync::Arc;
use tandem_record::{ErrorInfo, NodeStatus, Object, RunId, Seq, Timestamp, Work};

/// The start of a node, as its event records it.
pub(in crate::run) struct NodeStart<'e> {
    pub(in crate::run) attempt: u32,
    pub(in crate::run) execution: u32,
    pub(in crate::run) work: Option<&'e Work>,
    pub(in crate::run) deadline: Option<Timestamp>,
    pub(in crate::run) trigger: Option<&'e String>,
    pub(in crate::run) at: Timestamp,
}

impl Scheduling {
    pub(in crate::run) fn start(&mut self, ix: usize, start: &NodeStart<'_>) {
        if let Some(trigger) = start.trigger {
            self.armed.remove(trigger);
            *self.fired.entry(trigger.clone()).or_default() += 1;
        }
        self.executions += 1;
        let node = &mut self.nodes[ix];
        node.reset();
        node.status = NodeStatus::Running;
        node.attempt = start.attempt;
        node.execution = start.execution + 1;
        node.started_at = Some(start.at);
        node.work = start.work.cloned();
        node.deadline = start.deadline;
    }

    pub(in crate::run) fn reset(&mut self, ix: usize) {
        self.nodes[ix].reset();
    }

    pub(in crate::run) fn complete(
        &mut self,
        ix: usize,
        outputs: &Object,
        untrusted: bool,
        at: Timestamp,
    ) {
        self.settle(ix, NodeStatus::Completed, at);
        self.nodes[ix].outputs = Some(Arc::new(outputs.clone()));
        self.nodes[ix].untrusted = untrusted;
    }

    pub(in crate::run) fn fail(
        &mut self,
        def: &Definition,
        ix: usize,
        error: &ErrorInfo,
        at: Timestamp,
    ) {
        // The node was refused before it started: the trigger has been used.
        if self.nodes[ix].status == NodeStatus::Pending {
            for trigger in triggers_of(def, ix) {
                self.armed.remove(&trigger.id);
            }
        }
        self.settle(ix, NodeStatus::Failed, at);
        self.nodes[ix].error = Some(error.clone());
    }

    /// The node waits for its next attempt. A retried verification keeps the time limit of its node.
    pub(in crate::run) fn retry(
        &mut self,
        ix: usize,
        (attempt, retry_at): (u32, Timestamp),
        error: &ErrorInfo,
        verifies: bool,
        at: Timestamp,
    ) {
        let node = &mut self.nodes[ix];
        node.attempt = attempt;
        node.retry_at = Some(retry_at);
        node.error = Some(error.clone());
        node.drop_work();
        node.deadline = node.deadline.filter(|due| verifies && *due > at);
    }

    pub(in crate::run) fn skip(&mut self, ix: usize, reason: &str, at: Timestamp) {
        self.settle(ix, NodeStatus::Skipped, at);
        self.nodes[ix].skipped = Some(reason.to_owned());
    }

    pub(in crate::run) fn cancel(&mut self, ix: usize, at: Timestamp) {
        self.settle(ix, NodeStatus::Cancelled, at);
    }

    fn settle(&mut self, ix: usize, status: NodeStatus, at: Timestamp) {
        let node = &mut self.nodes[ix];
        node.status = status;
        node.ended_at = Some(at);
        node.work = None;
        node.deadline = None;
        node.retry_at = None;
        node.cut_off = false;
        node.error = None;
    }

    pub(in crate::run) fn suspend(&mut self, ix: usize) {
        self.nodes[ix].status = NodeStatus::Suspended;
    }

    pub(in crate::run) fn resume(&mut self, ix: usize) {
        self.nodes[ix].status = NodeStatus::Running;
    }

    /// A pause removes the node's work; the next start, or verification request, is another attempt.
    pub(in crate::run) fn cut_off(&mut self, ix: usize, verifies: bool) {
        let node = &mut self.nodes[ix];
        // A node that waits for a retry has not started that attempt.
        if node.retry_at.is_none() {
            node.attempt += 1;
        }
        node.drop_work();
        if verifies {
            return;
        }
        node.status = NodeStatus::Pending;
        node.cut_off = true;
        node.deadline = None;
        node.retry_at = None;
    }

    /// The node waits for other work than before.
    pub(in crate::run) fn replace_work(&mut self, ix: usize, work: &Work) {
        self.nodes[ix].work = Some(work.clone());
    }

    /// The node waits for its verifier; a failed attempt before it is over.
    pub(in crate::run) fn wait_for_verifier(&mut self, ix: usize, work: &Work) {
        let node = &mut self.nodes[ix];
        node.work = Some(work.clone());
        node.retry_at = None;
        node.error = None;
    }

    /// The verifier answered. Returns its run, if it was one.
    pub(in crate::run) fn end_verification(&mut self, ix: usize) -> Option<RunId> {
        match self.nodes[ix].work.take() {
            Some(Work::Child { child, .. }) => Some(child),
            _ => None,
        }
    }

    /// One more chunk of a scripted answer was emitted.
    pub(in crate::run) fn record_output_chunk(&mut self, ix: usize, at: Timestamp) {
        if let Some(Work::Model {
            mock: Some(call), ..
        }) = &mut self.nodes[ix].work
        {
            call.record_emitted(at);
        }
    }

    /// Extends the time limits of all nodes by the length of a pause.
    pub(in crate::run) fn extend_deadlines(&mut self, paused_ms: u64) {
        for node in &mut self.nodes {
            node.deadline = node.deadline.map(|due| due.plus_ms(paused_ms));
        }
    }

    pub(in crate::run) fn arm(&mut self, trigger: &str, due: Timestamp) {
        self.armed.insert(trigger.to_owned(), due);
    }

    pub(in crate::run) fn disarm_all(&mut self) {
        self.armed.clear();
    }

    /// Counts past the limit, so that it is recorded once.
    pub(in crate::run) fn reach_loopback_limit(&mut self, def: &Definition, ix: usize, limit: u32) {
        for trigger in triggers_of(def, ix) {
            if let Some(fired) = self.fired.get_mut(&trigger.id)
                && *fired >= limit
            {
                *fired += 1;
                self.armed.remove(&trigger.id);
            }
        }
    }

    /// Notes the newest event about a node.
    pub(in crate::run) fn note_event(&mut self, ix: usize, seq: Seq) {
        self.nodes[ix].last = Some(seq);
    }
}

fn triggers_of(def: &Definition, ix: usize) -> impl Iterator<Item = &ChannelTrigger> {
    def.triggers.iter().filter(move |t| t.node == ix)
}
