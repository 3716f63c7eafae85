//! Flow runs of one session, and their journals.

use super::{FlowLog, SessionLog, ensure};
use crate::sim::conversations::flow_code::UNUSABLE;
use tandem_record::RunId;
use tandem_record::conversation::{FlowRecord, SessionEventBody as Body};

pub(super) fn check(log: &SessionLog) -> Result<(), String> {
    check_one_active(log)?;
    for (run, flow) in &log.flow_runs {
        check_journal(run, flow)?;
        check_effects(log, run, flow)?;
    }
    Ok(())
}

/// Z-1
fn check_one_active(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let mut active: Option<&RunId> = None;
    for event in &log.events {
        let run = event.event.flow.as_ref().map(|flow| &flow.flow_run_id);
        match &event.event.body {
            Body::FlowStarted { .. } => {
                ensure(active.is_none(), || {
                    format!("{id} starts {run:?} during {active:?}")
                })?;
                active = run;
            }
            Body::FlowFailed { error } if error.message.starts_with(UNUSABLE) => {
                return Err(format!("{run:?} of {id} failed: {}", error.message));
            }
            Body::FlowEnded { .. } | Body::FlowFailed { .. } => {
                ensure(active.is_some() && active == run, || {
                    format!("{id} ends {run:?} during {active:?}")
                })?;
                active = None;
            }
            Body::FlowDiverged {
                step,
                expected,
                actual,
                ..
            }
            | Body::FlowNondeterministic {
                step,
                expected,
                actual,
                ..
            } => {
                return Err(format!(
                    "{run:?} of {id} diverges at {step}: {actual} instead of {expected}"
                ));
            }
            _ => {}
        }
    }
    ensure(active.is_none(), || format!("{id} ended during {active:?}"))
}

/// Z-2, Z-21: every step has one result at most, steps follow each other, the end is the last record.
fn check_journal(run: &RunId, flow: &FlowLog) -> Result<(), String> {
    let (mut next, mut open) = (0, None);
    let mut ended = false;
    for (place, record) in flow.journal.iter().enumerate() {
        ensure(!ended, || format!("{run} goes on after its end"))?;
        match &record.event {
            FlowRecord::Started(_) => ensure(place == 0, || format!("{run} starts twice"))?,
            FlowRecord::Effect { step, .. } => {
                ensure(*step == next && open.is_none(), || {
                    format!("{run} has step {step} instead of {next}, during {open:?}")
                })?;
                (next, open) = (next + 1, Some(*step));
            }
            FlowRecord::Result { step, .. } => {
                ensure(open == Some(*step), || {
                    format!("{run} has a second result of {step}")
                })?;
                open = None;
            }
            FlowRecord::Ended { .. } | FlowRecord::Failed { .. } => ended = true,
            _ => {}
        }
    }
    ensure(ended && flow.folded.status().is_terminal(), || {
        format!("{run} never ended")
    })
}

/// The session and the journal name the same effects.
fn check_effects(log: &SessionLog, run: &RunId, flow: &FlowLog) -> Result<(), String> {
    let of_run = log.events.iter().filter(|event| {
        let named = event.event.flow.as_ref().map(|flow| &flow.flow_run_id);
        named == Some(run)
    });
    let started: Vec<_> = of_run
        .filter_map(|event| match &event.event.body {
            Body::FlowEffectStarted { step, effect, .. } => Some((*step, effect)),
            _ => None,
        })
        .collect();
    let recorded: Vec<_> = flow
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            FlowRecord::Effect { step, effect, .. } => Some((*step, effect)),
            _ => None,
        })
        .collect();
    ensure(started == recorded, || {
        format!("{run} has effects {recorded:?}, its session {started:?}")
    })
}
