//! Turns that schedules begin in sessions.

use super::schedules::Runs;
use super::{Logs, SessionLog, ensure};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    FlowOrigin, ScheduledOutcome, SessionEventBody as Body, TurnCause, TurnTrigger,
};
use tandem_record::{ScheduleId, SessionId, Timestamp};
use tandem_runtime::conversation::ChatSession;

/// Why a scheduled turn was dropped, by the session's log. `None` for one that took place.
type Dropped = BTreeMap<(SessionId, u64), Option<String>>;

/// Z-163, Z-170: an occurrence has one turn at most for each user, over all sessions, and the schedule knows it. Z-166:
/// one that a person's decision kept from taking place ended as such.
pub(super) fn check(logs: &Logs, runs: &BTreeMap<&ScheduleId, Runs>) -> Result<u64, String> {
    let mut dropped = Dropped::new();
    let mut taken: BTreeSet<(ScheduleId, Timestamp, String)> = BTreeSet::new();
    let mut started = 0;
    for log in logs.sessions.values() {
        started += check_floor(log)?;
        for event in &log.events {
            match (&event.event.body, event.event.turn) {
                (
                    Body::TurnQueued {
                        cause: TurnCause::Scheduled(turn),
                    },
                    Some(number),
                ) => {
                    let user = log.folded.start().user.external_user_id.clone();
                    let occurrence = (turn.schedule_id.clone(), turn.scheduled_for, user);
                    ensure(taken.insert(occurrence), || {
                        format!("{} has another turn of {turn:?}", log.id)
                    })?;
                    let run = runs.get(&turn.schedule_id);
                    let run = run.and_then(|runs| runs.get(&turn.run_id));
                    let known = run.and_then(|run| run.turns.get(&turn.ordinal));
                    let place = known.and_then(|known| known.place.clone());
                    ensure(place == Some((log.id.clone(), number)), || {
                        format!("{number} of {} is {place:?} in the log of {turn:?}", log.id)
                    })?;
                    dropped.insert((log.id.clone(), number), None);
                }
                (Body::TurnDropped { number, reason, .. }, _) => {
                    if let Some(why) = dropped.get_mut(&(log.id.clone(), *number)) {
                        *why = Some(reason.clone());
                    }
                }
                _ => {}
            }
        }
    }
    let turns = runs.values().flat_map(BTreeMap::values);
    for turn in turns.flat_map(|run| run.turns.values()) {
        let Some(place) = &turn.place else { continue };
        let Some(why) = dropped.get(place) else {
            return Err(format!("{place:?} of {} is in no session", turn.user));
        };
        let outcome = turn.outcome.as_ref().map(|(outcome, _)| *outcome);
        let fits = match why.as_deref() {
            Some("hitl_active") => outcome == Some(ScheduledOutcome::CanceledHitl),
            Some(_) => outcome == Some(ScheduledOutcome::Skipped),
            None => outcome.is_some(),
        };
        ensure(fits, || {
            format!(
                "{place:?} was dropped for {why:?} and ended as {:?}",
                turn.outcome
            )
        })?;
    }
    Ok(started)
}

/// Z-166: no scheduled turn begins, and none starts its flow, while a person's decision is open, and one that was kept
/// from it for this reason had such a decision. Counts those that began.
fn check_floor(log: &SessionLog) -> Result<u64, String> {
    let Body::SessionStarted(start) = &log.events[0].event.body else {
        return Err(format!("{} does not begin with its start", log.id));
    };
    let mut session = ChatSession::started((**start).clone(), log.events[0].at);
    let mut started = 0;
    for event in &log.events[1..] {
        let mode = session.hitl_mode();
        let fine = match &event.event.body {
            Body::TurnStarted { trigger, .. } => {
                let is_scheduled = *trigger == TurnTrigger::Scheduled;
                started += u64::from(is_scheduled);
                !is_scheduled || mode.is_none()
            }
            Body::FlowStarted {
                origin: FlowOrigin::Schedule,
                ..
            } => mode.is_none(),
            Body::TurnDropped { reason, .. } if reason == "hitl_active" => mode.is_some(),
            _ => true,
        };
        ensure(fine, || {
            format!("{} is in {mode:?} at {:?}", log.id, event.event.body)
        })?;
        session.evolve(event);
    }
    Ok(started)
}
