//! What clients were told stays true.

use super::logs::fold;
use super::{Runs, ensure, store_failed};
use crate::sim::Simulation;
use crate::sim::client_observations::ClientObservations;
use tandem_record::{Event, ExternalEventOutcome, RecordedEvent, Reply};

pub(super) async fn check_idempotency_records(sim: &Simulation) -> Result<(), String> {
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
pub(super) fn check_acknowledged(
    observations: &ClientObservations,
    runs: &Runs,
) -> Result<(), String> {
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
pub(super) fn check_views(observations: &ClientObservations, runs: &Runs) -> Result<(), String> {
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
