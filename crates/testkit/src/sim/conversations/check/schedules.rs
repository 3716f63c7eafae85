//! The logs of schedules: each occurrence is claimed once, each of its users ends once.

use super::{ScheduleLog, ensure, store_failed};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    OutcomeCounts, RecipientRecord, ScheduleEventBody as Body, ScheduleRunRecord, ScheduledOutcome,
};
use tandem_record::{ScheduleRunId, SessionId, Timestamp};
use tandem_runtime::Runtime;
use tandem_store::ListingPage;

/// What a log says about one occurrence.
#[derive(Default)]
pub(super) struct RunLog {
    pub(super) scheduled_for: Timestamp,
    starts: u32,
    attempt: u32,
    /// The users of a campaign.
    users: Vec<String>,
    is_resolved: bool,
    /// The turns that were accepted, by their ordinals.
    pub(super) turns: BTreeMap<u32, StartedTurn>,
    /// How the users of a campaign ended.
    ended: BTreeMap<u32, ScheduledOutcome>,
    finished: Option<Finished>,
}

/// The turn of one user, as the schedule knows it.
pub(super) struct StartedTurn {
    pub(super) user: String,
    pub(super) place: Option<(SessionId, u64)>,
    pub(super) outcome: Option<(ScheduledOutcome, Option<String>)>,
}

struct Finished {
    outcome: ScheduledOutcome,
    counts: OutcomeCounts,
    is_canceled: bool,
}

pub(super) type Runs = BTreeMap<ScheduleRunId, RunLog>;

/// Z-170, Z-171: an occurrence is claimed once, whoever looks at it, and each takeover is another attempt. Z-172,
/// Z-173, Z-174: the list of a campaign is made once; every user on it ends once, and the counts are of all of them.
pub(super) fn check(log: &ScheduleLog) -> Result<Runs, String> {
    let id = &log.id;
    let mut runs = Runs::new();
    let (mut claimed, mut skipped) = (BTreeSet::new(), BTreeSet::new());
    for (place, event) in log.events.iter().enumerate() {
        let body = &event.event.body;
        ensure(event.seq.0 == place as u64, || {
            format!("{id} has a gap at {place}")
        })?;
        let fine = match body {
            Body::Triggered {
                run_id,
                scheduled_for,
                ..
            } => {
                let run = RunLog {
                    scheduled_for: *scheduled_for,
                    ..RunLog::default()
                };
                claimed.insert(*scheduled_for) && runs.insert(run_id.clone(), run).is_none()
            }
            Body::Skipped { scheduled_for, .. } => skipped.insert(*scheduled_for),
            _ => match body.run_id() {
                Some(run) => runs.get_mut(run).is_some_and(|run| run.follows(body)),
                None => true,
            },
        };
        ensure(fine, || {
            format!("{id} does this twice, or out of turn: {event:?}")
        })?;
    }
    ensure(claimed.is_disjoint(&skipped), || {
        format!("{id} skipped what it executed: {claimed:?}, {skipped:?}")
    })?;
    for (run_id, run) in &runs {
        run.check_end(log, run_id)?;
    }
    Ok(runs)
}

impl RunLog {
    /// It addressed several users.
    pub(super) fn is_campaign(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether an event may follow those before it.
    fn follows(&mut self, body: &Body) -> bool {
        let is_open = self.finished.is_none();
        is_open
            && match body {
                Body::RunStarted { .. } => {
                    self.starts += 1;
                    self.attempt = 1;
                    self.starts == 1
                }
                Body::ClaimTakenOver { attempt, .. } => {
                    self.attempt += 1;
                    self.attempt == *attempt
                }
                Body::RecipientsListed { first, users, .. } => {
                    let fits = *first as usize == self.users.len() && !self.is_resolved;
                    self.users.extend(users.iter().cloned());
                    fits
                }
                Body::CampaignResolved { recipients, .. } => {
                    let unique: BTreeSet<_> = self.users.iter().collect();
                    let fits = unique.len() == self.users.len();
                    let is_first = !std::mem::replace(&mut self.is_resolved, true);
                    fits && is_first && *recipients as usize == self.users.len()
                }
                Body::TurnStarted {
                    ordinal,
                    user_external_id,
                    session_id,
                    turn,
                    ..
                } => {
                    let listed = self.users.get(*ordinal as usize);
                    let fits = listed.is_none_or(|listed| listed == user_external_id);
                    let started = StartedTurn {
                        user: user_external_id.clone(),
                        place: session_id.clone().zip(*turn),
                        outcome: None,
                    };
                    fits && self.turns.insert(*ordinal, started).is_none()
                }
                Body::RecipientFinished {
                    ordinal,
                    user_external_id,
                    outcome,
                    reason,
                    ..
                } => {
                    let is_user = self.users.get(*ordinal as usize) == Some(user_external_id);
                    let turn = self.turns.get_mut(ordinal);
                    let has_turn = turn.is_some();
                    if let Some(turn) = turn {
                        turn.outcome = Some((*outcome, reason.clone()));
                    }
                    is_user && has_turn && self.ended.insert(*ordinal, *outcome).is_none()
                }
                Body::RunFinished {
                    outcome,
                    reason,
                    counts,
                    ..
                } => {
                    if !self.is_resolved
                        && let Some(turn) = self.turns.get_mut(&0)
                    {
                        turn.outcome = Some((*outcome, reason.clone()));
                    }
                    self.finished = Some(Finished {
                        outcome: *outcome,
                        counts: *counts,
                        is_canceled: reason.as_deref() == Some("schedule_canceled"),
                    });
                    true
                }
                _ => true,
            }
    }

    fn check_end(&self, log: &ScheduleLog, run: &ScheduleRunId) -> Result<(), String> {
        let Some(finished) = &self.finished else {
            return Err(format!("{run} of {} never ended", log.id));
        };
        let counts = finished.counts;
        if !self.is_resolved {
            // One user, or a segment that could not be found.
            let fits = counts.total() as usize == self.turns.len() && counts.total() <= 1;
            return ensure(fits, || format!("{run} counts {counts:?}"));
        }
        let mut expected = OutcomeCounts::default();
        self.ended
            .values()
            .for_each(|outcome| expected.add(*outcome, 1));
        let rest = self.users.len() as u32 - expected.total();
        expected.add(ScheduledOutcome::Skipped, rest);
        ensure(
            counts == expected && (rest == 0 || finished.is_canceled),
            || format!("{run} counts {counts:?} of {expected:?}, {rest} without an outcome"),
        )?;
        let (outcome, _) = expected.aggregate();
        ensure(finished.outcome == outcome, || {
            format!(
                "{run} ended with {:?}, its users with {expected:?}",
                finished.outcome
            )
        })
    }
}

/// The rows of occurrences and of their users are those of the log.
pub(super) async fn check_rows(
    runtime: &Runtime,
    log: &ScheduleLog,
    runs: &Runs,
) -> Result<(), String> {
    let page = ListingPage {
        after: None,
        limit: 10_000,
    };
    let listed = runtime.store().list_schedule_runs(&log.id, &page).await;
    let listed = listed.map_err(store_failed)?.map(|listing| listing.rows);
    let rows = listed.unwrap_or_default();
    ensure(rows.len() == runs.len(), || {
        format!("{} has {} rows of {} runs", log.id, rows.len(), runs.len())
    })?;
    for row in rows {
        let record: ScheduleRunRecord =
            serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
        let run = runs.get(&row.run_id);
        let finished = run.and_then(|run| run.finished.as_ref());
        let (Some(run), Some(finished)) = (run, finished) else {
            return Err(format!("{row:?} is in no log"));
        };
        let same = record.outcome == Some(finished.outcome)
            && record.counts == finished.counts
            && record.scheduled_for == run.scheduled_for
            && record.attempt == run.attempt;
        ensure(same, || format!("the row of {} is {record:?}", row.run_id))?;
        check_recipients(runtime, &row.run_id, run).await?;
    }
    Ok(())
}

async fn check_recipients(
    runtime: &Runtime,
    run_id: &ScheduleRunId,
    run: &RunLog,
) -> Result<(), String> {
    let page = ListingPage {
        after: None,
        limit: 10_000,
    };
    let listed = runtime
        .store()
        .list_schedule_recipients(run_id, &page)
        .await;
    let rows = listed.map_err(store_failed)?.rows;
    ensure(rows.len() == run.users.len(), || {
        format!("{run_id} has {} rows of {:?}", rows.len(), run.users)
    })?;
    for (row, user) in rows.iter().zip(&run.users) {
        let record: RecipientRecord = serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
        let outcome = run.ended.get(&row.ordinal).copied();
        ensure(
            record.user_external_id == *user && record.outcome == outcome,
            || format!("{run_id} ended for {user} with {outcome:?}, the row is {record:?}"),
        )?;
    }
    Ok(())
}
