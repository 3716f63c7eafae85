//! Checks the invariants against the store after all runs have ended.

use super::client::tenant;
use super::client_observations::ClientObservations;
use super::decisions::Deviations;
use super::{
    Simulation, SimulationStats, all_runs, callbacks, mocks, notes, purge, supervised, verifier,
    webhooks,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::run::{Run, State};
use tandem_record::{
    ErrorInfo, Event, ExternalEventOutcome, RecordedEvent, Reply, RunId, RunStatus, StreamId,
    Timestamp,
};
use tandem_runtime::{Fault, RunRow, Runtime};
use tandem_store::audit::{ChainVerifier, Entry};

/// A run that has ended.
struct Ended {
    row: RunRow,
    log: Vec<RecordedEvent>,
    definition: Arc<Definition>,
}

type Runs = BTreeMap<RunId, Ended>;

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
        check_log_well_formed(ended)?;
        check_decided_once(ended)?;
        sim.decisions
            .lock()
            .check_linearizable(run, &ended.log, deviations)?;
        let child_status = |child: &RunId| runs.get(child).map(|c| c.row.status);
        mocks::check_streamed_output(run, &ended.log)?;
        supervised::check_handoffs(run, ended.row.status, &ended.log, child_status)?;
        if ended.row.workflow_id.as_str() == verifier::CHECKED {
            verifier::check_verdicts(run, ended.row.status, &ended.log)?;
        }
        check_row_matches_fold(sim, runtime, ended).await?;
    }
    check_child_runs(&runs, sim.clock_difference_ms)?;
    let logs = runs.iter().map(|(run, ended)| (run, ended.log.as_slice()));
    callbacks::check_only_asked_questions_announced(sim, logs.clone())?;
    webhooks::check_all_events_delivered(sim, runtime, logs).await?;
    notes::check_notes_stored(&*sim.store(), runs.values().map(|run| run.log.as_slice())).await?;
    let repeated_calls = check_calls_recorded_first(sim)?;
    let twice = sim.committed.with_second_result();
    ensure(twice.is_empty(), || {
        format!("a second result was recorded for {twice:?}")
    })?;
    check_nothing_left_over(sim).await.map_err(store_failed)??;
    check_idempotency_records(sim).await?;
    check_creations_audited(sim, &runs, &purged).await?;
    let mut observations = sim.observations.lock();
    observations.forget(&purged);
    check_acknowledged(&observations, &runs)?;
    check_views(&observations, &runs)?;
    Ok(SimulationStats {
        runs: runs.len() as u64,
        events: runs.values().map(|run| run.log.len() as u64).sum(),
        calls: sim.performer.performed().len() as u64,
        repeated_calls,
        purged_runs: purged.len() as u64,
        ..SimulationStats::default()
    })
}

/// The audit chain is valid through every fault, and has exactly one entry for each requested run.
async fn check_creations_audited(
    sim: &Simulation,
    runs: &Runs,
    purged: &BTreeSet<RunId>,
) -> Result<(), String> {
    let store = sim.store();
    let rows = store.audit_entries(0, usize::MAX).await;
    let mut walk = ChainVerifier::new();
    let mut audited = Vec::new();
    for row in rows.map_err(store_failed)? {
        walk.entry(row.seq, &row.body);
        let entry: Entry = serde_json::from_slice(&row.body).map_err(|e| e.to_string())?;
        if entry.action == "run.create" && !purged.contains(entry.target.as_str()) {
            audited.push(entry.target);
        }
    }
    let head = store.audit_head().await.map_err(store_failed)?;
    ensure(walk.breaks().is_empty() && walk.last() == head, || {
        format!("the audit chain is broken: {:?}", walk.breaks())
    })?;
    audited.sort();
    let asked = runs.values().filter(|run| run.row.parent.is_none());
    let asked: Vec<String> = asked.map(|run| run.row.run_id.to_string()).collect();
    ensure(audited == asked, || {
        format!("runs {asked:?} were created, but the audit log has {audited:?}")
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

/// Gapless from 0, times never go back, one terminal event and nothing after it.
fn check_log_well_formed(ended: &Ended) -> Result<(), String> {
    let run = &ended.row.run_id;
    for (place, recorded) in ended.log.iter().enumerate() {
        ensure(recorded.seq.0 == place as u64, || {
            format!("{run} has a gap at {place}")
        })?;
    }
    ensure(ended.log.windows(2).all(|w| w[0].at <= w[1].at), || {
        format!("times in the log of {run} go back")
    })?;
    let ends: Vec<usize> = (0..ended.log.len())
        .filter(|place| ended.log[*place].event.is_terminal())
        .collect();
    ensure(ends == [ended.log.len() - 1], || {
        format!("{run} ends at {ends:?} of {}", ended.log.len())
    })
}

/// A question is decided once, its node resumes once, and an external event is used once.
fn check_decided_once(ended: &Ended) -> Result<(), String> {
    let run = &ended.row.run_id;
    // A parent mirrors its child's question each time the child waits for it; its own question it
    // asks once.
    let mut asked = BTreeSet::new();
    let (mut decided, mut resumed) = (BTreeSet::new(), BTreeSet::new());
    let (mut received, mut used) = (BTreeSet::new(), BTreeSet::new());
    for recorded in &ended.log {
        match &recorded.event {
            Event::InterruptResolved { resolution, .. } => {
                let id = &resolution.interrupt;
                ensure(decided.insert(id), || format!("{run} decided {id} twice"))?;
                if let Some(event) = &resolution.event_id {
                    ensure(used.insert(event) && received.contains(event), || {
                        format!("{run} used event {event} wrongly")
                    })?;
                }
            }
            Event::InterruptRequested { interrupt, .. } => {
                asked.insert(&interrupt.id);
            }
            Event::NodeResumed {
                interrupt: Some(id),
                ..
            } if asked.contains(id) => {
                ensure(resumed.insert(id), || format!("{run} resumed {id} twice"))?;
            }
            Event::ExternalEventReceived { event_id, .. } => {
                ensure(received.insert(event_id), || {
                    format!("{run} took event {event_id} twice")
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn fold(run: &RunId, definition: &Arc<Definition>, events: &[RecordedEvent]) -> Run {
    let mut folded = Run::new(run.clone(), Arc::clone(definition));
    for recorded in events {
        folded.evolve(recorded);
    }
    folded
}

/// The row, the runtime's view and the snapshot agree with the log.
async fn check_row_matches_fold(
    sim: &Simulation,
    runtime: &Runtime,
    ended: &Ended,
) -> Result<(), String> {
    let run = &ended.row.run_id;
    let folded = fold(run, &ended.definition, &ended.log);
    let shown = runtime
        .observe(&tenant(), run)
        .await
        .map_err(store_failed)?;
    ensure(shown.map(|o| o.view) == Some(folded.view()), || {
        format!("the view of {run} differs from its log")
    })?;
    ensure(
        ended.row.status == folded.status() && ended.row.ended_at == folded.ended_at(),
        || format!("the row of {run} says {:?}", ended.row.status),
    )?;
    let stream = StreamId::of_run(run);
    let snapshot = sim.store().snapshot(&stream).await;
    if let Some(snapshot) = snapshot.map_err(store_failed)? {
        let upto = usize::try_from(snapshot.seq.0).expect("a short log") + 1;
        let stored_value: State =
            serde_json::from_str(&snapshot.body).map_err(|e| e.to_string())?;
        let folded = fold(run, &ended.definition, &ended.log[..upto]);
        ensure(*folded.state() == stored_value, || {
            format!("the snapshot of {run} is not the fold of its log")
        })?;
    }
    Ok(())
}

/// Every child is named by its parent, once, and ends before it; a parent that completed has the
/// children it waited for.
fn check_child_runs(runs: &Runs, clock_difference_ms: u64) -> Result<(), String> {
    let mut named: BTreeMap<&RunId, &RunId> = BTreeMap::new();
    for (parent, ended) in runs {
        for recorded in &ended.log {
            if let Event::NodeDispatched { child, .. } = &recorded.event {
                let twice = named.insert(child, parent);
                ensure(twice.is_none(), || format!("child {child} was named twice"))?;
            }
        }
        let reported = ended
            .log
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::NodeCompleted { outputs, .. } => outputs.get("childRunId"),
                _ => None,
            });
        for child in reported.filter_map(|id| id.as_str()) {
            ensure(runs.contains_key(child), || {
                format!("{parent} completed with child {child}, which does not exist")
            })?;
        }
    }
    for (run, ended) in runs {
        let Some(parent) = &ended.row.parent else {
            continue;
        };
        ensure(named.get(run) == Some(&parent), || {
            format!("{run} is a child of {parent}, which never named it")
        })?;
        // A cancel waits for the descendants; a failure does not, and after a timeout a child may
        // continue.
        let above = &runs[parent];
        let end = above.row.ended_at.map(|at| at.plus_ms(clock_difference_ms));
        ensure(
            above.row.status != RunStatus::Cancelled
                || gave_up(above, run)
                || ended.row.ended_at <= end,
            || format!("{run} continued after {parent} was cancelled"),
        )?;
    }
    Ok(())
}

/// Whether the parent's node stopped waiting for this child before it ended.
fn gave_up(parent: &Ended, child: &RunId) -> bool {
    let events = || parent.log.iter().map(|recorded| &recorded.event);
    let node = events().find_map(|event| match event {
        Event::NodeDispatched { node, child: c, .. } if c == child => Some(node),
        _ => None,
    });
    let timed_out = |error: &ErrorInfo| error.code == "node_timeout";
    events().any(|event| match event {
        Event::NodeRetried {
            node: n,
            last_error,
            ..
        } => Some(n) == node && timed_out(last_error),
        Event::NodeFailed { node: n, error, .. } => Some(n) == node && timed_out(error),
        Event::NodeCompleted {
            node: n, outputs, ..
        } => Some(n) == node && outputs.contains_key("error"),
        _ => false,
    })
}

/// Every call has its identity in the outbox first, and is made once per incarnation. Among several
/// processes it is made again only if a process failed. Returns how many were.
fn check_calls_recorded_first(sim: &Simulation) -> Result<u64, String> {
    let mut made = BTreeSet::new();
    let mut repeated = 0;
    for call in sim.performer.performed() {
        ensure(call.recorded, || {
            format!("{} made a call without a record", call.run)
        })?;
        let key = (call.incarnation, call.effect.clone(), call.attempt);
        let fresh = made.insert(key);
        ensure(fresh || sim.process_faults.any(), || {
            format!("{} made call {} twice", call.run, call.effect)
        })?;
        repeated += u64::from(!fresh);
    }
    Ok(repeated)
}

/// All runs have ended: no timer is set, no effect waits.
async fn check_nothing_left_over(sim: &Simulation) -> Result<Result<(), String>, Fault> {
    let store = sim.store();
    let timers = store.due_timers(Timestamp(i64::MAX), usize::MAX).await?;
    let effects = store.depth().await?;
    Ok(ensure(timers.is_empty() && effects == 0, || {
        format!("{effects} effects and timers {timers:?} are left")
    }))
}

async fn check_idempotency_records(sim: &Simulation) -> Result<(), String> {
    let answers = sim.observations.lock().answers.clone();
    for (key, answer) in answers {
        let stored_value = sim.store().idempotency_record(&key).await;
        let stored_value = stored_value.map_err(store_failed)?.map(|r| r.response.body);
        ensure(stored_value.as_ref() == Some(&answer), || {
            format!(
                "key {} was answered {answer:?}, kept is {stored_value:?}",
                key.0
            )
        })?;
    }
    Ok(())
}

/// Nothing that a client was told is lost or changed.
fn check_acknowledged(observations: &ClientObservations, runs: &Runs) -> Result<(), String> {
    if let Some(violation) = observations.violations.first() {
        return Err(violation.clone());
    }
    for run in &observations.created {
        ensure(runs.contains_key(run), || {
            format!("{run} was created and is missing")
        })?;
    }
    for (run, read) in &observations.logs {
        let log = runs
            .get(run)
            .map(|ended| &ended.log[..])
            .unwrap_or_default();
        ensure(log.starts_with(read), || {
            format!("{run} lost or changed events that were read")
        })?;
    }
    for (run, reply) in &observations.replies {
        let log = &runs.get(run).ok_or("a run that replied is gone")?.log;
        let has = |predicate: &dyn Fn(&RecordedEvent) -> bool| log.iter().any(predicate);
        let is_in_log = match reply {
            Reply::Paused { at } => has(&|r| {
                let paused = matches!(
                    r.event,
                    Event::RunPaused { .. } | Event::RunPauseRequested { .. }
                );
                paused && r.at == *at
            }),
            Reply::Resumed { at } => {
                has(&|r| matches!(r.event, Event::RunResumed { .. }) && r.at == *at)
            }
            Reply::Cancel {
                already_terminal: false,
                ..
            } => has(&|r| matches!(r.event, Event::RunCancelled { .. })),
            Reply::Resolved {
                interrupt,
                outcome: Some(outcome),
                ..
            } => has(&|r| {
                matches!(&r.event, Event::InterruptResolved { resolution, .. }
                    if resolution.interrupt == *interrupt
                        && resolution.outcome.as_ref() == Some(outcome))
            }),
            Reply::ExternalEventAccepted {
                outcome: ExternalEventOutcome::Matched { interrupt, .. },
                ..
            } => has(&|r| {
                matches!(&r.event, Event::InterruptResolved { resolution, .. }
                    if resolution.interrupt == *interrupt && resolution.event_id.is_some())
            }),
            Reply::ExternalEventAccepted { .. } => {
                has(&|r| matches!(r.event, Event::ExternalEventReceived { .. }))
            }
            Reply::Denied { .. } => has(&|r| matches!(r.event, Event::DecisionDenied { .. })),
            Reply::Cancel { .. }
            | Reply::Unchanged
            | Reply::Accepted
            | Reply::Resolved { outcome: None, .. } => true,
        };
        ensure(is_in_log, || {
            format!("{run} replied {reply:?}, which its log does not contain")
        })?;
    }
    Ok(())
}

/// Every view that was shown agrees with the log up to its head.
fn check_views(observations: &ClientObservations, runs: &Runs) -> Result<(), String> {
    for view in &observations.views {
        let run = &view.run_id;
        let ended = runs
            .get(run)
            .ok_or_else(|| format!("{run} was shown and is missing"))?;
        let upto = usize::try_from(view.head.0).expect("a short log") + 1;
        let events = ended.log.get(..upto);
        let events = events.ok_or_else(|| format!("{run} was shown beyond its log"))?;
        let folded = fold(run, &ended.definition, events);
        ensure(folded.view() == *view, || {
            format!("the view of {run} at {upto} differs from its log")
        })?;
    }
    Ok(())
}
