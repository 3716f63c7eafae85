//! The scheduler: from what is settled to what starts next, until the run waits or ends.

use super::start::Entry;
use super::state::Phase;
use super::turn::Turn;
use crate::graph::readiness::{Handling, Readiness, handling, readiness};
use crate::node::Kind;
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::{CapKind, DrainPolicy, EffectKind, ErrorInfo, Event, NodeStatus, Seq};

impl Turn<'_> {
    /// Starts everything that may start, skips what cannot, and ends the run when nothing is left.
    /// Stops early, with a note to go on, when one decision would grow too large.
    pub(super) fn advance(&mut self) {
        // Only nodes downstream of a change need another look; the first look is at all of them.
        let mut candidates: BTreeSet<usize> = (0..self.run.def.nodes.len()).collect();
        while self.run.state.phase == Phase::Running && self.needs.is_none() {
            if self.run.state.draining.is_some() {
                self.finish_draining();
                return;
            }
            if self.fail_if_unhandled() {
                return;
            }
            self.enter_loops(&mut candidates);
            if self.run.state.phase != Phase::Running || self.needs.is_some() {
                return;
            }
            let Some(ix) = self.next_action(&mut candidates) else {
                self.settle_run();
                return;
            };
            if self.starts >= self.cx.limits.max_starts_per_decision {
                let id = format!("continue:{}:{}", self.run.id(), self.run.next_seq());
                self.once(id, EffectKind::Continue);
                return;
            }
            if !self.within_execution_limit(ix) {
                return;
            }
            self.start_node(ix, Entry::default());
            self.look_again_after(ix, &mut candidates);
        }
    }

    /// The next node to start, after skipping those that cannot run. `None` when nothing is ready
    /// or too much is under way.
    fn next_action(&mut self, candidates: &mut BTreeSet<usize>) -> Option<usize> {
        loop {
            let mut waiting = Vec::new();
            let mut chosen = None;
            while let Some(ix) = candidates.pop_first() {
                if self.run.state.nodes[ix].status != NodeStatus::Pending {
                    continue;
                }
                match readiness(&self.run, ix) {
                    Readiness::Wait => {}
                    Readiness::Ready if self.under_way() < self.cx.limits.max_in_flight => {
                        chosen = Some(ix);
                        break;
                    }
                    Readiness::Ready => waiting.push(ix),
                    Readiness::Skip(reason) => {
                        let node = self.run.def.nodes[ix].id.clone();
                        let cause = self.entry_cause(ix);
                        let reason = reason.to_owned();
                        self.emit(Event::NodeSkipped { node, reason }, cause);
                        self.look_again_after(ix, candidates);
                    }
                }
            }
            let idle = waiting.is_empty() || chosen.is_some();
            candidates.extend(waiting);
            if idle || self.under_way() >= self.cx.limits.max_in_flight {
                return chosen;
            }
        }
    }

    fn under_way(&self) -> usize {
        let nodes = self.run.state.nodes.iter();
        nodes.filter(|n| n.status == NodeStatus::Running).count()
    }

    fn look_again_after(&self, ix: usize, candidates: &mut BTreeSet<usize>) {
        candidates.extend(
            self.run.def.nodes[ix]
                .outgoing
                .iter()
                .map(|e| self.run.def.edges[*e].target),
        );
    }

    /// What made a node ready: the newest event of the nodes before it, else the run's start.
    pub(super) fn entry_cause(&self, ix: usize) -> Option<Seq> {
        let state = &self.run.state;
        let sources = self.run.def.nodes[ix].incoming.iter();
        let newest = sources
            .filter_map(|e| state.nodes[self.run.def.edges[*e].source].last)
            .max();
        newest.or(state.head.map(|_| Seq(0)))
    }

    fn within_execution_limit(&mut self, ix: usize) -> bool {
        let limit = self.run.execution_limit(self.cx.limits);
        let observed = self.run.state.executions + 1;
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
            self.run.state.head,
        );
        let error = ErrorInfo::new(
            "recursion_limit_exceeded",
            format!("the run reached its limit of {limit} node executions"),
        );
        self.fail_run(error, None, Some(cause));
        false
    }

    /// A loop head runs again when every edge back to it has been decided.
    fn enter_loops(&mut self, candidates: &mut BTreeSet<usize>) {
        let def = self.definition();
        for (ix, node) in def.nodes.iter().enumerate() {
            let (Kind::Loop(_), Some(repeats)) = (&node.kind, &node.repeats) else {
                continue;
            };
            let head = &self.run.state.nodes[ix];
            let done = head.outputs.as_ref().and_then(|o| o.get("done"));
            let round_over = head.status == NodeStatus::Completed
                && done == Some(&Value::Bool(false))
                && repeats
                    .tails
                    .iter()
                    .all(|t| self.run.state.nodes[*t].status.is_settled());
            if !round_over || !self.within_execution_limit(ix) {
                continue;
            }
            let entry = Entry {
                resets: repeats.body.clone(),
                ..Entry::default()
            };
            self.start_node(ix, entry);
            candidates.extend(repeats.body.iter().copied());
            self.look_again_after(ix, candidates);
        }
    }

    fn fail_if_unhandled(&mut self) -> bool {
        let nodes = self.run.state.nodes.iter().enumerate();
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

    /// Nothing can start: the run waits, or it is over.
    fn settle_run(&mut self) {
        let def = self.definition();
        let open = self
            .run
            .state
            .nodes
            .iter()
            .zip(&def.nodes)
            .any(|(state, node)| match state.status {
                NodeStatus::Running | NodeStatus::Suspended => true,
                NodeStatus::Pending => !node.dormant,
                NodeStatus::Completed
                | NodeStatus::Failed
                | NodeStatus::Skipped
                | NodeStatus::Cancelled => false,
            });
        if !open && self.run.state.armed.is_empty() {
            self.complete_run();
        }
    }

    /// A pause that waited for running nodes takes effect once none is left.
    fn finish_draining(&mut self) {
        if self.run.has_running() {
            return;
        }
        let reason = self
            .run
            .state
            .draining
            .as_ref()
            .and_then(|d| d.reason.clone());
        let cause = self.run.state.head;
        self.emit(
            Event::RunPaused {
                reason,
                policy: DrainPolicy::DrainCurrentNode,
                interrupted: Vec::new(),
            },
            cause,
        );
    }

    /// A channel was written by `writer`: fires or arms the triggers that listen to it.
    pub(super) fn arm_triggers(&mut self, channel: &str, writer: usize) {
        let def = self.definition();
        for trigger in &def.triggers {
            // What a trigger started, and what follows from it, does not fire it again.
            if trigger.channel != channel || trigger.lineage.contains(&writer) {
                continue;
            }
            if trigger.debounce_ms > 0 {
                if !self.run.state.armed.contains_key(&trigger.id) {
                    let due = self.now.plus_ms(trigger.debounce_ms);
                    let event = Event::TriggerArmed {
                        trigger: trigger.id.clone(),
                        due,
                    };
                    self.emit(event, self.run.state.head);
                }
            } else {
                self.fire_trigger(&trigger.id);
            }
        }
    }

    pub(super) fn fire_trigger(&mut self, id: &str) {
        let def = self.definition();
        let Some(trigger) = def.triggers.iter().find(|t| t.id == id) else {
            return;
        };
        let busy = trigger.lineage.iter().any(|ix| {
            matches!(
                self.run.state.nodes[*ix].status,
                NodeStatus::Running | NodeStatus::Suspended
            )
        });
        let fired = self.run.state.fired.get(id).copied().unwrap_or(0);
        let limit = self.run.loopback_limit();
        if fired >= limit {
            if fired == limit && !busy {
                let node = def.nodes[trigger.node].id.clone();
                let event = Event::LoopbackLimitReached {
                    node,
                    iterations: fired + 1,
                    limit,
                };
                self.emit(event, self.run.state.head);
            }
            return;
        }
        if busy || !self.within_execution_limit(trigger.node) {
            return;
        }
        let resets = trigger
            .lineage
            .iter()
            .copied()
            .filter(|ix| *ix != trigger.node);
        let entry = Entry {
            resets: resets.collect(),
            trigger: Some(id.to_owned()),
            ..Entry::default()
        };
        self.start_node(trigger.node, entry);
    }
}
