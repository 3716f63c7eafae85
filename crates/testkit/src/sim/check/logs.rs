//! One log by itself, and what is derived from it.

use super::{Ended, ensure, store_failed};
use crate::sim::Simulation;
use crate::sim::client::tenant;
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_engine::Definition;
use tandem_engine::run::{Run, State};
use tandem_record::{Event, RecordedEvent, RunId, StreamId};
use tandem_runtime::Runtime;

/// Gapless from 0, times never go back, one terminal event and nothing after it.
pub(super) fn check_log_well_formed(ended: &Ended) -> Result<(), String> {
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
pub(super) fn check_decided_once(ended: &Ended) -> Result<(), String> {
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

pub(super) fn fold(run: &RunId, definition: &Arc<Definition>, events: &[RecordedEvent]) -> Run {
    let mut folded = Run::new(run.clone(), Arc::clone(definition));
    for recorded in events {
        folded.evolve(recorded);
    }
    folded
}

/// The row, the runtime's view and the snapshot agree with the log.
pub(super) async fn check_row_matches_fold(
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
    // A fork ends no earlier than it was made, whatever the times of its copied events.
    let forked_at = ended.request().forked_from.as_ref().map(|from| from.at);
    let ended_at = folded.ended_at().max(forked_at);
    ensure(
        ended.row.status == folded.status() && ended.row.ended_at == ended_at,
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
