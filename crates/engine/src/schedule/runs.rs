//! What happens to the runs of a schedule: who has their claims, their recipients, and how they end.

use super::draft::Draft;
use tandem_record::conversation::{
    OutcomeCounts, ScheduleEventBody as Body, ScheduledOutcome, ScheduledRunStart, ScheduledStart,
    ScheduledTurnReport,
};
use tandem_record::{RunId, ScheduleRunId, SessionId};

/// Users in one event.
const LISTED_AT_ONCE: usize = 500;

/// Where the only turn or run of an occurrence is found.
#[derive(Default)]
struct Place {
    turn: Option<(SessionId, Option<u64>)>,
    workflow_run: Option<RunId>,
}

impl Draft<'_> {
    fn attempt(&self, run: &ScheduleRunId) -> u32 {
        self.run(run).map_or(1, |run| run.attempt)
    }

    /// Takes the claim of a run that nobody works on any more. Whether this process had to.
    pub(super) fn take_over(&mut self, run: &ScheduleRunId) -> bool {
        let (process, now, alone) = (self.cx.process, self.cx.now, self.cx.is_alone);
        let Some(active) = self.run(run) else {
            return false;
        };
        if !active.is_abandoned(process, now, alone) {
            return false;
        }
        let attempt = active.attempt + 1;
        self.emit(Body::ClaimTakenOver {
            run_id: run.clone(),
            attempt,
            claimed_by: process.to_owned(),
        });
        true
    }

    pub(super) fn list_recipients(
        &mut self,
        run_id: &ScheduleRunId,
        users: &Result<Vec<String>, String>,
    ) {
        if self.run(run_id).is_none_or(|run| run.recipients.is_some()) {
            return;
        }
        self.take_over(run_id);
        let users = match users {
            Ok(users) => users,
            Err(reason) => {
                let outcome = (ScheduledOutcome::Failed, Some(reason.clone()));
                return self.finish_run(
                    run_id,
                    outcome,
                    false,
                    OutcomeCounts::default(),
                    Place::default(),
                );
            }
        };
        for (i, part) in users.chunks(LISTED_AT_ONCE).enumerate() {
            self.emit(Body::RecipientsListed {
                run_id: run_id.clone(),
                first: (i * LISTED_AT_ONCE) as u32,
                users: part.to_vec(),
            });
        }
        self.emit(Body::CampaignResolved {
            run_id: run_id.clone(),
            attempt: self.attempt(run_id),
            recipients: users.len() as u32,
        });
        if users.is_empty() {
            let outcome = (ScheduledOutcome::Skipped, Some("empty_segment".to_owned()));
            return self.finish_run(
                run_id,
                outcome,
                false,
                OutcomeCounts::default(),
                Place::default(),
            );
        }
        if self.run(run_id).is_some_and(|run| run.is_canceled) {
            self.finish_campaign(run_id);
        }
    }

    pub(super) fn note_start(&mut self, start: &ScheduledStart) {
        let Some(run) = self.run(&start.run_id) else {
            return;
        };
        if start.ordinal >= run.released() || run.under_way.contains(&start.ordinal) {
            return;
        }
        self.take_over(&start.run_id);
        let turn = start.turn.as_ref().ok().copied();
        self.emit(Body::TurnStarted {
            run_id: start.run_id.clone(),
            attempt: self.attempt(&start.run_id),
            ordinal: start.ordinal,
            user_external_id: start.user_external_id.clone(),
            session_id: start.session_id.clone(),
            turn,
        });
        if let Err((outcome, reason)) = &start.turn {
            let outcome = (*outcome, Some(reason.clone()));
            let place = start.session_id.clone().map(|session| (session, None));
            self.finish_turn(
                &start.run_id,
                start.ordinal,
                &start.user_external_id,
                outcome,
                place,
            );
        }
    }

    pub(super) fn note_outcome(&mut self, report: &ScheduledTurnReport) {
        let run = self.run(&report.run_id);
        if !run.is_some_and(|run| run.under_way.contains(&report.ordinal)) {
            return;
        }
        self.take_over(&report.run_id);
        let outcome = (report.outcome, report.reason.clone());
        let place = Some((report.session_id.clone(), Some(report.turn)));
        let user = &report.user_external_id;
        self.finish_turn(&report.run_id, report.ordinal, user, outcome, place);
    }

    fn finish_turn(
        &mut self,
        run_id: &ScheduleRunId,
        ordinal: u32,
        user_external_id: &str,
        (outcome, reason): (ScheduledOutcome, Option<String>),
        place: Option<(SessionId, Option<u64>)>,
    ) {
        let Some(run) = self.run(run_id) else { return };
        if !run.is_campaign() {
            let mut counts = OutcomeCounts::default();
            counts.add(outcome, 1);
            let place = Place {
                turn: place,
                workflow_run: None,
            };
            return self.finish_run(run_id, (outcome, reason), false, counts, place);
        }
        let (session_id, turn) = place.map_or((None, None), |(id, turn)| (Some(id), turn));
        self.emit(Body::RecipientFinished {
            run_id: run_id.clone(),
            attempt: self.attempt(run_id),
            ordinal,
            user_external_id: user_external_id.to_owned(),
            session_id,
            turn,
            outcome,
            reason,
        });
        self.renew_early(run_id);
        self.finish_campaign(run_id);
    }

    /// A sign of life before the claim is half over costs no event.
    fn renew_early(&mut self, run_id: &ScheduleRunId) {
        let now = self.now();
        let is_due = self.run(run_id).is_some_and(|run| {
            let passed = now.ms_since(run.claimed_at);
            run.claimed_by == self.cx.process && passed * 2 >= run.limits.claim_ttl_ms
        });
        if is_due {
            let run_id = run_id.clone();
            self.emit(Body::ClaimRenewed { run_id });
        }
    }

    /// Ends a campaign whose recipients have all ended.
    pub(super) fn finish_campaign(&mut self, run_id: &ScheduleRunId) {
        let Some(run) = self.run(run_id).filter(|run| run.is_over()) else {
            return;
        };
        let mut counts = run.counts;
        // Those whom a cancelled campaign did not come to.
        let rest = run.recipients.unwrap_or(0).saturating_sub(counts.total());
        counts.add(ScheduledOutcome::Skipped, rest);
        let reason = (rest > 0).then(|| "schedule_canceled".to_owned());
        let (outcome, partial) = counts.aggregate();
        let nowhere = Place::default();
        self.finish_run(run_id, (outcome, reason), partial, counts, nowhere);
    }

    /// The occurrence of a workflow is over once its run began: the run has a history of its own.
    pub(super) fn note_run(&mut self, start: &ScheduledRunStart) {
        let run = self.run(&start.run_id);
        if run.is_none_or(|run| run.definition.target.workflow().is_none()) {
            return;
        }
        self.take_over(&start.run_id);
        let mut counts = OutcomeCounts::default();
        counts.add(start.outcome, 1);
        let place = Place {
            turn: None,
            workflow_run: start.workflow_run_id.clone(),
        };
        let outcome = (start.outcome, start.reason.clone());
        self.finish_run(&start.run_id, outcome, false, counts, place);
    }

    fn finish_run(
        &mut self,
        run_id: &ScheduleRunId,
        (outcome, reason): (ScheduledOutcome, Option<String>),
        partial: bool,
        counts: OutcomeCounts,
        place: Place,
    ) {
        let (session_id, turn) = match place.turn {
            None => (None, None),
            Some((session, turn)) => (Some(session), turn),
        };
        self.emit(Body::RunFinished {
            run_id: run_id.clone(),
            attempt: self.attempt(run_id),
            outcome,
            reason,
            partial,
            counts,
            session_id,
            turn,
            workflow_run_id: place.workflow_run,
        });
    }
}
