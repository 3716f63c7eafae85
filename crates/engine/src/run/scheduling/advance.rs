//! The scheduler: starts the nodes that are ready, until the run waits or ends.

use super::start::NodeEntry;
use crate::graph::readiness::{Handling, Readiness, handling, readiness};
use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::{CONTINUE_AFTER_WORK, Phase, work_exceeded};
use std::collections::BTreeSet;
use tandem_record::{CapKind, DrainPolicy, EffectKind, ErrorInfo, Event, NodeStatus, Seq};

impl DecisionDraft<'_> {
    /// Starts every node that may start, skips nodes that cannot run, and ends the run when nothing
    /// is left. Stops early and schedules a continue when the decision would grow too large.
    pub(in crate::run) fn advance(&mut self) {
        // Later passes look only at nodes downstream of a change. The first pass looks at all
        // nodes, and so does the pass after a trigger reset a whole lineage.
        let mut candidates: BTreeSet<usize> = (0..self.run.def.nodes.len()).collect();
        while self.run.phase() == Phase::Running && self.needs.is_none() {
            if !self.cx.work.begin_step() {
                self.fail_run(work_exceeded(), None, self.run.head());
                return;
            }
            // What was concluded so far is thrown away.
            if !self.charge_step() {
                return;
            }
            self.continue_dispatches();
            if self.run.phase() != Phase::Running
                || self.fail_if_too_deep()
                || self.fail_if_too_large()
            {
                return;
            }
            if self.run.is_draining() {
                self.arm_written();
                self.finish_draining();
                return;
            }
            if self.fail_if_unhandled() {
                return;
            }
            if self.fire_next_trigger() {
                candidates = (0..self.run.def.nodes.len()).collect();
                continue;
            }
            let next = self.next_entry(&mut candidates);
            if self.cx.work.exceeded() {
                return;
            }
            if self.fail_if_condition_text_too_long() {
                return;
            }
            // A skipped node may have been the last one that could handle a failure.
            if self.fail_if_unhandled() {
                return;
            }
            let Some((ix, entry)) = next else {
                if self.leaves_rest() && !candidates.is_empty() {
                    self.schedule_continue();
                    return;
                }
                self.settle_run();
                return;
            };
            let started = self.scheduling.starts >= self.cx.limits.max_starts_per_decision;
            if started || self.is_full() || self.is_work_budget_spent() {
                self.schedule_continue();
                return;
            }
            if !self.within_execution_limit(ix) || !self.within_agent_limits(ix) {
                return;
            }
            candidates.extend(&entry.resets);
            self.start_node(ix, entry);
            self.recheck_downstream(ix, &mut candidates);
        }
    }

    /// Fails a run when a condition has a pattern and the text is too long for it. Treating the
    /// text as "no match" would let the text choose the path.
    fn fail_if_condition_text_too_long(&mut self) -> bool {
        if !self.cx.work.refused() {
            return false;
        }
        let message = "a text is too long for the pattern of a condition that it has to match";
        let error = ErrorInfo::new("schema_work_exceeded", message);
        self.fail_run(error, None, self.run.head());
        true
    }

    /// Whether this turn did as much work as one should. A replay is decided whole.
    fn is_work_budget_spent(&self) -> bool {
        !self.is_replaying() && self.cx.work.spent() >= CONTINUE_AFTER_WORK
    }

    /// Whether the rest of a long look at the graph is better left to the next decision, which has to
    /// begin further on than this one did.
    fn leaves_rest(&self) -> bool {
        self.is_work_budget_spent() && !self.drafted().is_empty()
    }

    /// Leaves the rest to the next decision.
    pub(in crate::run) fn schedule_continue(&mut self) {
        if self.scheduling.continues {
            return;
        }
        self.scheduling.continues = true;
        let id = format!("continue:{}:{}", self.run.id(), self.run.next_seq());
        self.add_one_shot_effect(id, EffectKind::Continue);
    }

    /// A loop head whose round has ended, else the next node that is ready.
    fn next_entry(&mut self, candidates: &mut BTreeSet<usize>) -> Option<(usize, NodeEntry)> {
        self.next_round()
            .or_else(|| {
                let ready = self.next_ready_node(candidates)?;
                Some((ready, NodeEntry::default()))
            })
            // Skipping may have ended a round.
            .or_else(|| self.next_round())
    }

    /// The next node to start, after skipping nodes that cannot run. `None` when no node is ready
    /// or too many are running.
    fn next_ready_node(&mut self, candidates: &mut BTreeSet<usize>) -> Option<usize> {
        loop {
            let mut waiting = Vec::new();
            let mut chosen = None;
            while let Some(ix) = candidates.first().copied() {
                if self.leaves_rest() || self.cx.work.exceeded() {
                    candidates.extend(waiting);
                    return None;
                }
                candidates.remove(&ix);
                if self.run.node(ix).status != NodeStatus::Pending {
                    continue;
                }
                match readiness(&self.run, ix, self.cx.work) {
                    Readiness::Wait => {}
                    Readiness::Ready if self.running_count() < self.cx.limits.max_in_flight => {
                        chosen = Some(ix);
                        break;
                    }
                    Readiness::Ready => waiting.push(ix),
                    Readiness::Skip(reason) => {
                        let node = self.run.def.nodes[ix].id.clone();
                        let cause = self.entry_cause(ix);
                        let reason = reason.to_owned();
                        self.emit(Event::NodeSkipped { node, reason }, cause);
                        self.recheck_downstream(ix, candidates);
                    }
                }
            }
            let idle = waiting.is_empty() || chosen.is_some();
            candidates.extend(waiting);
            if idle || self.running_count() >= self.cx.limits.max_in_flight {
                return chosen;
            }
        }
    }

    fn running_count(&self) -> usize {
        let nodes = self.run.nodes().iter();
        nodes.filter(|n| n.status == NodeStatus::Running).count()
    }

    fn recheck_downstream(&self, ix: usize, candidates: &mut BTreeSet<usize>) {
        candidates.extend(
            self.run.def.nodes[ix]
                .outgoing
                .iter()
                .map(|e| self.run.def.edges[*e].target),
        );
    }

    /// The event that made a node ready: the newest event of its predecessors or of the nodes that
    /// lead back to it, else the start of the run.
    pub(in crate::run) fn entry_cause(&self, ix: usize) -> Option<Seq> {
        let state = |ix: usize| self.run.node(ix);
        let node = &self.run.def.nodes[ix];
        let sources = node.incoming.iter();
        let before = sources.map(|e| self.run.def.edges[*e].source);
        let newest = before.filter_map(|n| state(n).last).max();
        let tails = || node.repeats.iter().flat_map(|r| &r.tails);
        let done = tails().filter(|n| state(**n).status == NodeStatus::Completed);
        let back = done.filter_map(|n| state(*n).last).max();
        let back = back.or_else(|| tails().filter_map(|n| state(*n).last).max());
        newest.max(back).or(self.run.head().map(|_| Seq(0)))
    }

    pub(in crate::run) fn within_execution_limit(&mut self, ix: usize) -> bool {
        let limit = self.run.execution_limit(self.cx.limits);
        let observed = self.run.executions() + 1;
        if observed <= limit {
            return true;
        }
        let node = self.run.def.nodes[ix].id.clone();
        let cause = self.emit(
            Event::CapBreached {
                kind: CapKind::NodeExecutions,
                limit,
                observed,
                node: Some(node),
            },
            self.run.head(),
        );
        let error = ErrorInfo::new(
            "recursion_limit_exceeded",
            format!("the run reached its limit of {limit} node executions"),
        );
        self.fail_run(error, None, Some(cause));
        false
    }

    /// Starts the next worker if a pause delayed it or if an ended child freed a slot.
    fn continue_dispatches(&mut self) {
        for ix in self.run.def.dispatchers.clone() {
            self.continue_dispatch(ix);
        }
    }

    fn within_agent_limits(&mut self, ix: usize) -> bool {
        let def = self.definition();
        match &def.nodes[ix].kind {
            Kind::Supervisor(config) => self.within_iteration_limits(config),
            Kind::Dispatch(config) => self.within_dispatch_cap(config),
            _ => true,
        }
    }

    fn fail_if_unhandled(&mut self) -> bool {
        let nodes = self.run.nodes().iter().enumerate();
        let unhandled = nodes
            .filter(|(_, n)| n.status == NodeStatus::Failed)
            .find(|(ix, _)| handling(&self.run, *ix) == Handling::Unhandled)
            .map(|(ix, n)| (ix, n.error.clone(), n.last));
        let Some((ix, error, cause)) = unhandled else {
            return false;
        };
        let error = error.expect("a failed node has an error");
        self.fail_run(error, Some(ix), cause);
        true
    }

    /// Nothing can start: the run waits or ends.
    fn settle_run(&mut self) {
        let def = self.definition();
        let open = self
            .run
            .nodes()
            .iter()
            .zip(&def.nodes)
            .any(|(state, node)| match state.status {
                NodeStatus::Running | NodeStatus::Suspended => true,
                NodeStatus::Pending => !node.trigger_only || state.cut_off,
                NodeStatus::Completed
                | NodeStatus::Failed
                | NodeStatus::Skipped
                | NodeStatus::Cancelled => false,
            });
        if !open && self.run.state.scheduling.armed.is_empty() {
            match self.run.unverified_termination() {
                Some((ix, error)) => self.fail_run(error, Some(ix), self.run.head()),
                None => self.complete_run(),
            }
        }
    }

    /// Completes a draining pause once no node is running.
    fn finish_draining(&mut self) {
        if self.run.has_running() {
            return;
        }
        let reason = self.run.drain_reason();
        let cause = self.run.head();
        self.emit(
            Event::RunPaused {
                reason,
                policy: DrainPolicy::DrainCurrentNode,
                interrupted: Vec::new(),
            },
            cause,
        );
    }
}
