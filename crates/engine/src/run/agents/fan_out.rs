//! Parallel workers: how many run at once, when the join is decided, and which workers are
//! cancelled then. The node ends only when none of its workers is running.

use super::workers::{Dispatching, WorkerState, WorkerStep};
use crate::node::{Dispatch, FanOut, JoinMode, Kind, OnWorkerFailure, Parallel};
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{EffectKind, Event, JoinOutcome, Object, RunId, Seq, WorkflowId};

/// Number of workers that run at once when the author sets none.
const DEFAULT_CONCURRENCY: u32 = 16;

impl DecisionDraft<'_> {
    pub(super) fn fan_out(
        &mut self,
        ix: usize,
        parallel: &Parallel,
        workers: &[WorkflowId],
        decided: Seq,
    ) {
        let event = Event::FanOut {
            node: self.run.def.nodes[ix].id.clone(),
            children: u32::try_from(workers.len()).unwrap_or(u32::MAX),
            max_concurrency: parallel.max_concurrency,
            join: parallel.join.as_str().to_owned(),
        };
        self.emit(event, Some(decided));
    }

    /// Starts workers up to the limit. Joins when no worker is running and no more will start.
    pub(super) fn continue_fan_out(
        &mut self,
        ix: usize,
        parallel: &Parallel,
        dispatching: &Dispatching,
    ) {
        let live = dispatching.workers.iter().filter(|w| w.is_live()).count();
        if let Some(outcome) = outcome(parallel, dispatching) {
            if live > 0 {
                return;
            }
            let def = Arc::clone(&self.run.def);
            if let Kind::Dispatch(config) = &def.nodes[ix].kind
                && let Some((verification_subject, completed)) =
                    self.run.next_unverified_output(ix, config, dispatching)
            {
                self.request_verification(ix, verification_subject, completed);
                self.continue_dispatch(ix);
                return;
            }
            self.fan_in(ix, dispatching, outcome);
            return;
        }
        let bound = parallel.max_concurrency.unwrap_or(DEFAULT_CONCURRENCY) as usize;
        let pending = dispatching.workers.iter().enumerate();
        let pending = pending.filter(|(_, w)| w.step == WorkerStep::Pending);
        for (index, worker) in pending.take(bound.saturating_sub(live)) {
            if self.is_full() {
                self.schedule_continue();
                return;
            }
            self.start_worker(ix, index, &worker.workflow, dispatching.decided);
            let node = self.run.node(ix);
            if self.needs.is_some() || node.status.is_settled() {
                return;
            }
        }
    }

    /// The result of the join, if it is already decided.
    pub(super) fn join_outcome(&self, ix: usize, config: &Dispatch) -> Option<JoinOutcome> {
        let FanOut::Parallel(parallel) = &config.fan_out else {
            return None;
        };
        let dispatching = self.run.dispatching(ix)?;
        outcome(parallel, dispatching)
    }

    /// Cancels the workers that are no longer needed, as soon as the join is decided.
    pub(super) fn cancel_unneeded_workers(
        &mut self,
        ix: usize,
        config: &Dispatch,
        before: Option<JoinOutcome>,
    ) {
        if before.is_some() || self.join_outcome(ix, config).is_none() {
            return;
        }
        let dispatching = self.run.dispatching(ix).into_iter();
        let live = dispatching.flat_map(|d| d.workers.iter());
        let live = live.filter(|w| w.is_live()).filter_map(|w| w.child.clone());
        for child in live.collect::<Vec<RunId>>() {
            self.add_one_shot_effect(format!("cancel:{child}"), EffectKind::CancelChild { child });
        }
    }

    fn fan_in(&mut self, ix: usize, dispatching: &Dispatching, outcome: JoinOutcome) {
        let def = Arc::clone(&self.run.def);
        let Kind::Dispatch(config) = &def.nodes[ix].kind else {
            unreachable!("only dispatch nodes fan in");
        };
        let count = |step: WorkerStep| {
            let workers = dispatching.workers.iter();
            u32::try_from(workers.filter(|w| w.step == step).count()).unwrap_or(u32::MAX)
        };
        let mut ended: Vec<(usize, &WorkerState)> = dispatching
            .workers
            .iter()
            .enumerate()
            .filter(|(_, w)| w.child.is_some())
            .collect();
        ended.sort_by_key(|(_, w)| w.last);
        let event = Event::FanIn {
            node: def.nodes[ix].id.clone(),
            outcome,
            completed: count(WorkerStep::Completed),
            failed: count(WorkerStep::Failed),
            cancelled: count(WorkerStep::Cancelled),
            merge_order: ended.iter().filter_map(|(_, w)| w.child.clone()).collect(),
        };
        self.emit(event, Some(dispatching.decided));
        for (index, worker) in &ended {
            if !worker.is_refused() {
                self.harvest_worker(ix, config, *index, worker);
            }
            if self.run.node(ix).status.is_settled() {
                return;
            }
        }
        let children: Vec<Value> = dispatching.workers.iter().filter_map(report).collect();
        let outputs = Object::from_iter([
            ("joinOutcome".to_owned(), json!(outcome.as_str())),
            ("children".to_owned(), json!(children)),
        ]);
        self.complete_node(ix, Done::with(outputs), dispatching.decided);
    }
}

fn report(worker: &WorkerState) -> Option<Value> {
    let mut report = json!({
        "workflowId": worker.workflow,
        "childRunId": worker.child.as_ref()?,
        "childStatus": worker.step.status(),
    });
    if let Some(verdict) = worker.verdict {
        report["verdict"] = json!(verdict);
    }
    if let Some(error) = &worker.error {
        report["error"] = json!({"code": error.code, "message": error.message});
    }
    Some(report)
}

/// The result of the join at the worker end that decided it. A worker that ends later, before its
/// cancel arrives, does not change the result.
fn outcome(parallel: &Parallel, dispatching: &Dispatching) -> Option<JoinOutcome> {
    let ended = dispatching.workers.iter().filter(|w| w.has_ended());
    let mut ended: Vec<&WorkerState> = ended.collect();
    ended.sort_by_key(|w| w.last);
    let all = dispatching.workers.len();
    (1..=ended.len()).find_map(|n| outcome_after(parallel, &ended[..n], all))
}

fn outcome_after(parallel: &Parallel, ended: &[&WorkerState], all: usize) -> Option<JoinOutcome> {
    let count = |step: WorkerStep| ended.iter().filter(|w| w.step == step).count();
    let completed = count(WorkerStep::Completed) + count(WorkerStep::Harvested);
    let lost = ended.len() - completed;
    let open = all - ended.len();
    let short = if completed > 0 {
        JoinOutcome::Partial
    } else {
        JoinOutcome::Failed
    };
    if count(WorkerStep::Failed) > 0 && parallel.on_failure == OnWorkerFailure::FailFast {
        return Some(JoinOutcome::Failed);
    }
    let needed = match parallel.join {
        JoinMode::WaitAll if open > 0 => return None,
        JoinMode::WaitAll if lost == 0 => return Some(JoinOutcome::Satisfied),
        JoinMode::WaitAll if parallel.on_failure == OnWorkerFailure::Absorb && completed > 0 => {
            return Some(JoinOutcome::Satisfied);
        }
        JoinMode::WaitAll => return Some(short),
        JoinMode::Race | JoinMode::First => 1,
        JoinMode::Quorum(n) => n as usize,
    };
    if completed >= needed {
        Some(JoinOutcome::Satisfied)
    } else if parallel.join == JoinMode::Race || completed + open < needed {
        Some(short)
    } else {
        None
    }
}
