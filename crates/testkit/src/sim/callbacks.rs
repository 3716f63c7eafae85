//! Runs with a callback that must be notified of every question that stays open, whatever fails.

use super::Simulation;
use super::check::{ensure, store_failed};
use super::people::open_questions;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::time::Duration;
use tandem_record::{Event, InterruptId, RecordedEvent, RunId, RunRequest};
use tandem_runtime::Runtime;

pub(super) const URL: &str = "https://example.com/asked";
/// Longer than the pauses after as many failures as the callback's outage can cause.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// A callback URL, for some runs.
pub(super) fn random_callback(rng: &mut SmallRng) -> Option<String> {
    rng.random_bool(0.5).then(|| URL.to_owned())
}

/// In the final incarnation, before any answer: each question that was open and stays open is
/// announced.
pub(super) async fn check_open_questions_announced(
    sim: &Simulation,
    runtime: &Runtime,
) -> Result<(), String> {
    tokio::time::sleep(LONG_ENOUGH).await;
    let announced: BTreeSet<InterruptId> = announced(sim).map(|(_, interrupt)| interrupt).collect();
    for row in open_questions(runtime).await.map_err(store_failed)? {
        let fresh = runtime.clock().now().ms_since(row.created_at);
        let run = row.run().expect("runs ask all questions");
        let first = runtime.events(&run, None, 1).await;
        let first = first.map_err(store_failed)?;
        let events = first.map(|page| page.events).unwrap_or_default();
        let has_callback = request(&events).is_some_and(|r| r.callback_url.is_some());
        let settled = Duration::from_millis(fresh) >= LONG_ENOUGH;
        ensure(
            !has_callback || !settled || announced.contains(&row.interrupt),
            || format!("question {} of {} was not announced", row.interrupt, run),
        )?;
    }
    Ok(())
}

/// Every announcement is about a question that was asked, by a run that has a callback.
pub(super) fn check_only_asked_questions_announced<'a>(
    sim: &Simulation,
    logs: impl Iterator<Item = (&'a RunId, &'a [RecordedEvent])>,
) -> Result<(), String> {
    let mut asked = BTreeSet::new();
    for (run, log) in logs {
        if request(log).is_some_and(|r| r.callback_url.is_some()) {
            asked.extend(log.iter().filter_map(|recorded| match &recorded.event {
                Event::InterruptRequested { interrupt, .. } => {
                    Some((run.clone(), interrupt.id.clone()))
                }
                _ => None,
            }));
        }
    }
    let unexpected: Vec<_> = announced(sim)
        .filter(|attempt| !asked.contains(attempt))
        .collect();
    ensure(unexpected.is_empty(), || {
        format!("the callback got {unexpected:?}, which are not questions of these runs")
    })
}

fn announced(sim: &Simulation) -> impl Iterator<Item = (RunId, InterruptId)> {
    let attempts = sim.webhook_sender.announcements().into_iter();
    attempts
        .filter(|attempt| attempt.accepted)
        .map(|attempt| (attempt.run, attempt.interrupt))
}

fn request(log: &[RecordedEvent]) -> Option<&RunRequest> {
    match &log.first()?.event {
        Event::RunStarted { request, .. } => Some(request),
        _ => None,
    }
}
