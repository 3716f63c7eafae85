//! Clients fork runs while processes fail, purge and register. A fork has its source's events and memory up to
//! its point, a replay has every event of its source, and one idempotency key makes one fork.

mod renaming;
#[cfg(test)]
mod tests;

use super::check::{Ended, Runs, ensure, store_failed};
use super::client::{idempotency_request, random_run, stored_answer, tenant};
use super::{Simulation, client_observations::ClientObservations};
use rand::Rng;
use rand::rngs::SmallRng;
use renaming::Renaming;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{
    Event, ForkMode, ForkedFrom, RecordedEvent, RunId, RunOptions, Seq, TraceContext,
};
use tandem_runtime::{ForkRequest, IdempotencyKey, Runtime, SubmitError};

/// Limit of forks that clients request in one simulation.
const MAX_FORKS: usize = 6;
const KEYS: u32 = 3;

pub(super) async fn fork(sim: &Simulation, runtime: &Runtime, rng: &mut SmallRng) {
    let Some(run) = random_run(runtime, rng).await else {
        return;
    };
    let Ok(Some(source)) = runtime.find_run(&tenant(), &run).await else {
        return;
    };
    // Few keys, so that requests repeat.
    let key = rng
        .random_bool(0.7)
        .then(|| IdempotencyKey(format!("fork-{}", rng.random_range(0..KEYS))));
    let mode = [ForkMode::Branch, ForkMode::Replay][rng.random_range(0..2)];
    // One event beyond the end is refused.
    let from_seq = Seq(rng.random_range(0..=source.head.next().0));
    for _ in 0..rng.random_range(1..4) {
        if !sim.observations.lock().may_fork(MAX_FORKS) {
            return;
        }
        let request = ForkRequest {
            mode,
            from_seq,
            overlay: RunOptions::default(),
            trace: key.as_ref().map(trace),
            conformance_role: false,
        };
        let answer = key.clone().map(idempotency_request);
        match runtime.fork_run(&source, request, answer).await {
            Ok(fork) => return observe(&mut sim.observations.lock(), key.as_ref(), fork),
            Err(SubmitError::IdempotencyKeyUsed) => {
                let key = key.expect("only a key can be answered before");
                if let Some(body) = stored_answer(sim, runtime, &key).await {
                    sim.observations.lock().created.insert(RunId::from(body));
                }
                return;
            }
            // It may be durable.
            Err(SubmitError::Fault(_)) => {}
            Err(_) => return,
        }
    }
}

fn observe(observations: &mut ClientObservations, key: Option<&IdempotencyKey>, fork: RunId) {
    if let Some(key) = key {
        observations.record_answer(key, fork.to_string());
    }
    observations.created.insert(fork);
}

/// A fork is created in the trace of its request, so it shows under which key that was.
fn trace(key: &IdempotencyKey) -> TraceContext {
    TraceContext {
        traceparent: key.0.clone(),
        tracestate: None,
    }
}

/// Returns the number of forks.
pub(super) async fn check_forks(runtime: &Runtime, runs: &Runs) -> Result<u64, String> {
    let mut by_key: BTreeMap<&str, &RunId> = BTreeMap::new();
    let mut count = 0;
    for (run, fork) in runs {
        let Some(from) = &fork.request().forked_from else {
            continue;
        };
        count += 1;
        if let Some(trace) = &fork.request().trace {
            let key = trace.traceparent.as_str();
            if let Some(first) = by_key.insert(key, run) {
                return Err(format!("key {key} made two forks, {first} and {run}"));
            }
        }
        // The log of a source may be purged after the fork.
        if let Some(source) = runs.get(&from.run_id) {
            check_events(run, fork, source, from)?;
            check_memory(runtime, fork, source, from).await?;
        }
    }
    Ok(count)
}

fn check_events(
    run: &RunId,
    fork: &Ended,
    source: &Ended,
    from: &ForkedFrom,
) -> Result<(), String> {
    let point = usize::try_from(from.from_seq.0).expect("a short log");
    let shared = match from.mode {
        ForkMode::Branch => point,
        ForkMode::Replay => {
            let diverged = |r: &RecordedEvent| matches!(r.event, Event::ReplayDiverged { .. });
            if let Some(at) = fork.log.iter().position(diverged) {
                return Err(format!(
                    "{run}, a replay of {} from {point}, diverged: {:?} instead of {:?}",
                    from.run_id,
                    &fork.log[..=at],
                    &source.log[..=at.min(source.log.len() - 1)],
                ));
            }
            replayed(fork, source, point)
        }
    };
    ensure(fork.log.len() >= shared, || {
        format!("{run} has less than {shared} events of {}", from.run_id)
    })?;
    let mut ids = Renaming::new(from.mode, &from.run_id, run);
    for (copy, original) in fork.log.iter().zip(&source.log).take(shared) {
        let same = copy.seq == original.seq && copy.at == original.at;
        let same = same && ids.is_same(&content(original), &content(copy));
        ensure(same, || {
            format!(
                "event {} of {run}, a {} of {} from {point}, is {copy:?}, but its source has {original:?}",
                copy.seq,
                from.mode.as_str(),
                from.run_id,
            )
        })?;
    }
    Ok(())
}

/// How many events of its source a replay has. It follows what the source had when it was made, without a
/// cancel after the fork point: a cancel is not part of the workflow.
fn replayed(fork: &Ended, source: &Ended, point: usize) -> usize {
    let base = fork.request().memory.as_ref().and_then(|m| m.base.as_ref());
    let length = base.map_or(0, |base| {
        usize::try_from(base.below.0).expect("a short log")
    });
    let followed = &source.log[..length.min(source.log.len())];
    let cancel = followed.iter().position(|recorded| match &recorded.event {
        Event::RunCancelRequested { .. } | Event::RunCancelled { .. } => true,
        Event::NodeCancelled { reason, .. } => reason == "run-cancelled",
        _ => false,
    });
    cancel
        .filter(|first| *first >= point)
        .unwrap_or(followed.len())
}

/// An event without the request of a start: that is the fork's own.
fn content(recorded: &RecordedEvent) -> Value {
    let mut content = serde_json::to_value(&recorded.event).expect("events are plain data");
    if let Event::RunStarted { .. } = recorded.event {
        content = Value::Null;
    }
    content
}

/// What the fork reads at its point is what its source read there.
async fn check_memory(
    runtime: &Runtime,
    fork: &Ended,
    source: &Ended,
    from: &ForkedFrom,
) -> Result<(), String> {
    let mut seen = Vec::new();
    for ended in [source, fork] {
        let stored = runtime.find_run(&tenant(), &ended.row.run_id).await;
        let stored = stored.map_err(store_failed)?.expect("a listed run exists");
        let memory = runtime.run_memory(&stored, Some(from.from_seq), None).await;
        seen.push(memory.map_err(store_failed)?.entries);
    }
    ensure(seen[0] == seen[1], || {
        format!(
            "{} saw {:?} at {}, but its source {} saw {:?}",
            fork.row.run_id, seen[1], from.from_seq, from.run_id, seen[0]
        )
    })
}
