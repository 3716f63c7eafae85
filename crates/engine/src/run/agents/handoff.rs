//! Hands work to workers, one child run each. Every step is an event on the parent's log, caused by
//! the step before it. The child's id follows from its position, so repeating a step names the same
//! child.

use super::workers::{Dispatching, WorkerState, WorkerStep};
use crate::ids::child_run_id;
use crate::node::{Dispatch, FanOut, Kind, MAX_FAN_OUT};
use crate::run::children::ChildRunSpec;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::scheduling::Done;
use crate::run::state::Run;
use serde_json::json;
use std::sync::Arc;
use tandem_record::{
    Cause, ErrorInfo, Event, Handoff, HandoffStep, NodeStatus, Object, ParentCause, RecordedEvent,
    RunId, RunStatus, Seq, VerifierVerdict, WorkflowId,
};

impl DecisionDraft<'_> {
    pub(super) fn begin_handoffs(
        &mut self,
        ix: usize,
        config: &Dispatch,
        workers: &[WorkflowId],
        decided: Seq,
    ) {
        if let FanOut::Parallel(parallel) = &config.fan_out {
            self.fan_out(ix, parallel, workers, decided);
        } else {
            self.start_worker(ix, 0, &workers[0], decided);
        }
        self.continue_dispatch(ix);
    }

    /// Does everything a dispatch node can do now: start the next worker, join, or end.
    pub(in crate::run) fn continue_dispatch(&mut self, ix: usize) {
        let def = Arc::clone(&self.run.def);
        let Kind::Dispatch(config) = &def.nodes[ix].kind else {
            return;
        };
        loop {
            let node = self.run.node(ix);
            let open = matches!(node.status, NodeStatus::Running | NodeStatus::Suspended);
            let held = self.run.phase() != Phase::Running || self.needs.is_some() || !open;
            if self.run.verifying(ix).is_some() && !held && !self.continue_verification(ix) {
                return;
            }
            let Some(dispatching) = self.run.dispatching(ix).filter(|_| !held) else {
                return;
            };
            if let FanOut::Parallel(parallel) = &config.fan_out {
                let dispatching = dispatching.clone();
                self.continue_fan_out(ix, parallel, &dispatching);
                return;
            }
            if dispatching.workers.iter().any(WorkerState::is_live) {
                return;
            }
            let decided = dispatching.decided;
            if let Some((verification_subject, completed)) =
                self.run.next_unverified_output(ix, config, dispatching)
            {
                self.request_verification(ix, verification_subject, completed);
                continue;
            }
            if let Some(refused) = dispatching.workers.iter().find(|w| w.is_refused()) {
                let (refused, outputs) = (refused.clone(), last_child(dispatching));
                self.refuse_output(ix, &refused, outputs, decided);
                return;
            }
            // No verification is needed, or it passed.
            let passed = |w: &WorkerState| {
                w.step == WorkerStep::Completed
                    && (w.verdict == Some(VerifierVerdict::Pass)
                        || !self.run.checks_output(ix, config, &w.workflow))
                    && !config.outputs(&w.workflow).is_empty()
            };
            if let Some(index) = dispatching.workers.iter().position(passed) {
                let worker = dispatching.workers[index].clone();
                self.harvest_worker(ix, config, index, &worker);
                continue;
            }
            let pending = |w: &WorkerState| w.step == WorkerStep::Pending;
            match dispatching.workers.iter().position(pending) {
                Some(next) => {
                    let worker = dispatching.workers[next].workflow.clone();
                    self.start_worker(ix, next, &worker, decided);
                }
                None => {
                    let outputs = last_child(dispatching);
                    self.complete_node(ix, Done::with(outputs), decided);
                    return;
                }
            }
        }
    }

    /// Moves one worker from pending to running, or to failed before a child run exists.
    pub(super) fn start_worker(
        &mut self,
        ix: usize,
        index: usize,
        worker: &WorkflowId,
        decided: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let Kind::Dispatch(config) = &def.nodes[ix].kind else {
            unreachable!("only dispatch nodes hand over");
        };
        let admitted = self.admit_child(worker);
        if self.needs.is_some() {
            return;
        }
        let admitted = admitted.and_then(|child_def| {
            self.check_child_inputs(&child_def, config.inputs(worker))?;
            Ok(child_def)
        });
        let recorded_worker = self.run.dispatching(ix);
        let recorded_worker = recorded_worker.and_then(|d| d.workers.get(index));
        let began =
            match recorded_worker.filter(|w| w.step == WorkerStep::Began && w.child.is_none()) {
                Some(worker) => worker.last,
                None => self.emit_handoff_step(ix, index, worker, HandoffStep::Began, decided),
            };
        let child_def = match admitted {
            Ok(child_def) => child_def,
            Err(error) => {
                let failed = HandoffStep::Failed {
                    error: error.clone(),
                };
                self.emit_handoff_step(ix, index, worker, failed, began);
                self.give_up_child(ix);
                self.fail_node(ix, error, Some(decided), None);
                return;
            }
        };
        let agent = Run::only_agent(&child_def);
        self.emit_worker_handoff(ix, agent.clone(), decided);
        let node = self.run.node(ix);
        let place = node.attempt * MAX_FAN_OUT + u32::try_from(index).unwrap_or(u32::MAX);
        let node_id = &def.nodes[ix].id;
        let child = child_run_id(self.run.id(), node_id, node.execution - 1, place);
        let dispatched = self.emit(
            Event::NodeDispatched {
                node: node_id.clone(),
                child: child.clone(),
                workflow_id: worker.clone(),
            },
            Some(decided),
        );
        let succeeded = HandoffStep::Succeeded {
            child: child.clone(),
            agent,
        };
        self.emit_handoff_step(ix, index, worker, succeeded, began);
        self.start_child(ChildRunSpec {
            ix,
            child,
            definition: child_def,
            given: Object::new(),
            inputs: config.inputs(worker),
            outputs: config.outputs(worker),
            cause: ParentCause::Dispatch,
            dispatched,
            isolated_memory: config.isolated_memory,
        });
    }

    /// Starts the fork's own workers in place of those its source waited for.
    pub(in crate::run) fn restart_workers(
        &mut self,
        ix: usize,
        workers: &[(usize, WorkerState)],
        decided: Seq,
    ) {
        while self.run.node(ix).status == NodeStatus::Suspended {
            self.resume_mirror(ix, decided);
        }
        for (index, worker) in workers {
            if self.needs.is_some() || self.run.node(ix).status != NodeStatus::Running {
                return;
            }
            self.start_worker(ix, *index, &worker.workflow, decided);
        }
        self.continue_dispatch(ix);
    }

    pub(super) fn emit_handoff_step(
        &mut self,
        ix: usize,
        index: usize,
        worker: &WorkflowId,
        step: HandoffStep,
        cause: Seq,
    ) -> Seq {
        let handoff = Handoff {
            node: self.run.def.nodes[ix].id.clone(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            worker: worker.clone(),
            step,
        };
        self.emit(Event::Handoff(Box::new(handoff)), Some(cause))
    }

    /// Handles the end of a worker's run.
    pub(in crate::run) fn worker_ended(
        &mut self,
        ix: usize,
        child: &RunId,
        status: RunStatus,
        (mut variables, mut untrusted): (Object, Vec<String>),
        error: Option<ErrorInfo>,
    ) {
        let def = Arc::clone(&self.run.def);
        let Kind::Dispatch(config) = &def.nodes[ix].kind else {
            unreachable!("only dispatch nodes have workers");
        };
        let dispatching = self.run.dispatching(ix);
        let found = dispatching.and_then(|d| d.live_worker(child));
        let Some((index, worker)) = found.map(|(i, w)| (i, w.clone())) else {
            return;
        };
        if !self.cx.agents.is_supported() {
            // The run is older than the switch that turned agents off: no more worker events are
            // emitted.
            let error = ErrorInfo::new("capability_not_provided", "this host serves no agents");
            return self.fail_node(ix, error, None, None);
        }
        let parallel = matches!(config.fan_out, FanOut::Parallel(_));
        let mapping = config.outputs(&worker.workflow);
        variables.retain(|name, _| mapping.iter().any(|(_, theirs)| theirs == name));
        untrusted.retain(|name| variables.contains_key(name));
        let step = match status {
            RunStatus::Completed => HandoffStep::ChildCompleted {
                child: child.clone(),
                variables: variables.clone(),
                untrusted: untrusted.clone(),
            },
            RunStatus::Failed => HandoffStep::ChildFailed {
                child: child.clone(),
                error: error.unwrap_or_else(|| ErrorInfo::new("child_failed", "no reason given")),
            },
            _ => HandoffStep::ChildCancelled {
                child: child.clone(),
            },
        };
        let before = self.join_outcome(ix, config);
        let ended = self.emit_handoff_step(ix, index, &worker.workflow, step, worker.last);
        if parallel {
            self.cancel_unneeded_workers(ix, config, before);
        } else if status == RunStatus::Completed && self.run.phase() != Phase::Cancelling {
            // An output that needs verification is harvested after the verdict.
            if !self.run.checks_output(ix, config, &worker.workflow) {
                self.harvest(
                    ix,
                    index,
                    &worker.workflow,
                    child,
                    (&variables, &untrusted),
                    mapping,
                    ended,
                );
            }
        }
    }

    /// Harvests a worker that completed earlier.
    pub(super) fn harvest_worker(
        &mut self,
        ix: usize,
        config: &Dispatch,
        index: usize,
        worker: &WorkerState,
    ) {
        if let (WorkerStep::Completed, Some(child)) = (worker.step, &worker.child) {
            let mapping = config.outputs(&worker.workflow);
            let (id, left) = (&worker.workflow, (&worker.variables, &*worker.untrusted));
            self.harvest(ix, index, id, child, left, mapping, worker.last);
        }
    }

    /// Copies the child's variables into the parent's, as mapped.
    #[expect(clippy::too_many_arguments, reason = "one worker, spelled out")]
    pub(super) fn harvest(
        &mut self,
        ix: usize,
        index: usize,
        worker: &WorkflowId,
        child: &RunId,
        (variables, untrusted): (&Object, &[String]),
        mapping: &[(String, String)],
        completed: Seq,
    ) {
        if let Err(error) = self.admit_merge(mapping, variables) {
            self.fail_node(ix, error, Some(completed), None);
            return;
        }
        let node = self.run.def.nodes[ix].id.clone();
        // A fork may begin in the middle of a harvest: what its source merged is already recorded.
        let by_this = Some(Cause::Event(completed));
        let merged = |r: &RecordedEvent| match &r.event {
            Event::VariableChanged { name, .. } if r.cause == by_this => Some(name.clone()),
            _ => None,
        };
        let merged: Vec<String> = self.drafted().iter().filter_map(merged).collect();
        let mut keys = Vec::new();
        for (ours, theirs) in mapping {
            // A variable the child never set does not change the parent's.
            if let Some(value) = variables.get(theirs) {
                let marked = untrusted.contains(theirs);
                if !merged.contains(ours) {
                    self.set_variable_with_trust(
                        ours,
                        Some(value.clone()),
                        &node,
                        marked,
                        completed,
                    );
                }
                keys.push(ours.clone());
            }
        }
        if !mapping.is_empty() {
            let harvested = HandoffStep::Harvested {
                child: child.clone(),
                keys,
            };
            self.emit_handoff_step(ix, index, worker, harvested, completed);
        }
    }
}

/// The outputs of a sequential dispatch: those of its last child.
fn last_child(dispatching: &Dispatching) -> Object {
    let last = dispatching.workers.iter().rev().find(|w| w.child.is_some());
    let Some(last) = last else {
        return Object::new();
    };
    Object::from_iter([
        ("childRunId".to_owned(), json!(last.child)),
        ("childStatus".to_owned(), json!(last.step.status())),
    ])
}
