//! Checks the invariants against the store after all runs have ended. Each file checks one kind of them.

mod audit;
mod children;
mod logs;
mod responses;
mod side_effects;

use super::client::tenant;
use super::decisions::Deviations;
use super::{
    Simulation, SimulationStats, all_runs, callbacks, forks, mocks, notes, purge, supervised,
    verifier, webhooks,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_record::{Event, ForkMode, RecordedEvent, RunId, RunRequest};
use tandem_runtime::{Fault, RunRow, Runtime};

/// A run that has ended.
pub(super) struct Ended {
    pub(super) row: RunRow,
    pub(super) log: Vec<RecordedEvent>,
    definition: Arc<Definition>,
}

impl Ended {
    pub(super) fn request(&self) -> &RunRequest {
        match &self.log[0].event {
            Event::RunStarted { request, .. } => request,
            other => panic!("{} begins with {other:?}", self.row.run_id),
        }
    }

    /// The events that happened in this run. A fork begins with copies; a replay has nothing else.
    pub(super) fn own_events(&self) -> &[RecordedEvent] {
        let first = match &self.request().forked_from {
            None => 0,
            Some(from) if from.mode == ForkMode::Replay => self.log.len(),
            Some(from) => usize::try_from(from.from_seq.0).expect("a short log"),
        };
        &self.log[first..]
    }
}

pub(super) type Runs = BTreeMap<RunId, Ended>;

pub(super) async fn check_all(
    sim: &Simulation,
    runtime: &Runtime,
) -> Result<SimulationStats, String> {
    let panics = runtime.metrics().panics.get();
    ensure(panics == 0, || format!("{panics} tasks panicked"))?;
    let rows = all_runs(runtime).await.map_err(store_failed)?;
    let purged = purge::check_purged_once(runtime, &*sim.store(), &rows).await?;
    let kept = rows.into_iter().filter(|row| !purged.contains(&row.run_id));
    let runs = read_all(runtime, kept).await.map_err(store_failed)?;
    let deviations = Deviations {
        clocks_differ: sim.clock_difference_ms > 0,
        late_timers: sim.shares_store,
    };
    for (run, ended) in &runs {
        logs::check_log_well_formed(ended)?;
        logs::check_decided_once(ended)?;
        sim.decisions
            .lock()
            .check_linearizable(run, ended.own_events(), deviations)?;
        let child_status = |child: &RunId| runs.get(child).map(|c| c.row.status);
        mocks::check_streamed_output(run, &ended.log)?;
        supervised::check_handoffs(run, ended.row.status, &ended.log, child_status)?;
        if ended.row.workflow_id.as_str() == verifier::CHECKED {
            verifier::check_verdicts(run, ended.row.status, &ended.log)?;
        }
        logs::check_row_matches_fold(sim, runtime, ended).await?;
    }
    children::check_child_runs(&runs, sim.clock_difference_ms)?;
    let logs = runs.iter().map(|(run, ended)| (run, ended.log.as_slice()));
    callbacks::check_only_asked_questions_announced(sim, logs)?;
    let own_events = runs.iter().map(|(run, ended)| (run, ended.own_events()));
    webhooks::check_all_events_delivered(sim, runtime, own_events).await?;
    notes::check_notes_stored(&*sim.store(), runs.values()).await?;
    let forks = forks::check_forks(runtime, &runs).await?;
    let repeated_calls = side_effects::check_calls_recorded_first(sim)?;
    let twice = sim.committed.with_second_result();
    ensure(twice.is_empty(), || {
        format!("a second result was recorded for {twice:?}")
    })?;
    side_effects::check_nothing_left_over(sim)
        .await
        .map_err(store_failed)??;
    responses::check_idempotency_records(sim).await?;
    audit::check_creations_audited(sim, &runs, &purged).await?;
    let mut observations = sim.observations.lock();
    observations.forget(&purged);
    responses::check_acknowledged(&observations, &runs)?;
    responses::check_views(&observations, &runs)?;
    Ok(SimulationStats {
        runs: runs.len() as u64,
        events: runs.values().map(|run| run.log.len() as u64).sum(),
        calls: sim.performer.performed().len() as u64,
        repeated_calls,
        purged_runs: purged.len() as u64,
        forks,
        ..SimulationStats::default()
    })
}

pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

pub(super) fn store_failed(fault: Fault) -> String {
    format!("the store failed without an injected fault: {fault}")
}

async fn read_all(runtime: &Runtime, rows: impl Iterator<Item = RunRow>) -> Result<Runs, Fault> {
    let mut runs = Runs::new();
    for row in rows {
        let stored = runtime.find_run(&tenant(), &row.run_id).await?;
        let stored = stored.expect("a listed run is found");
        let page = runtime.events(&row.run_id, None, usize::MAX).await?;
        let ended = Ended {
            definition: runtime.pinned_definition(&stored).await?,
            log: page.expect("a listed run has a log").events,
            row: stored.row,
        };
        runs.insert(row.run_id, ended);
    }
    Ok(runs)
}
