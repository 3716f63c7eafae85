//! Folds events into a schedule. Never fails and never appends.

use super::state::{ActiveRun, KnownSchedule, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tandem_record::conversation::{
    OutcomeCounts, ScheduleEvent, ScheduleEventBody as Body, ScheduleRecord, ScheduleStatus,
    ScheduleTrigger,
};
use tandem_record::{Recorded, ScheduleRunId, Timestamp};

/// The reason of a schedule that its agent's file, or the document of its workflow, has no more.
pub(super) const REMOVED: &str = "removed_from_configuration";

impl Schedule {
    pub(super) fn fold(&mut self, recorded: &Recorded<ScheduleEvent>) {
        let (at, body) = (recorded.at, &recorded.event.body);
        match (&mut self.known, body) {
            (Some(known), body) => {
                let known = Arc::make_mut(known);
                known.head = recorded.seq;
                known.fold(body, at);
            }
            (
                none,
                Body::Created {
                    agent_id,
                    owner,
                    definition,
                    created_by,
                    configured,
                    next_run_at,
                },
            ) => {
                *none = Some(Arc::new(KnownSchedule {
                    head: recorded.seq,
                    record: ScheduleRecord {
                        id: self.id.clone(),
                        agent_id: agent_id.clone(),
                        owner: owner.clone(),
                        definition: (**definition).clone(),
                        status: ScheduleStatus::Active,
                        version: 1,
                        created_by: created_by.clone(),
                        created_at: at,
                        next_run_at: *next_run_at,
                        last_run_at: None,
                    },
                    configured: configured.clone(),
                    is_removed: false,
                    runs: BTreeMap::new(),
                    passed: None,
                }));
            }
            // The first event of a schedule is its creation.
            (None, _) => {}
        }
    }
}

impl KnownSchedule {
    fn fold(&mut self, body: &Body, at: Timestamp) {
        match body {
            Body::Created { .. } | Body::RecipientsListed { .. } => {}
            Body::Updated {
                definition,
                configured,
                status,
                next_run_at,
            } => {
                if let Some(definition) = definition {
                    self.record.definition = (**definition).clone();
                }
                if configured.is_some() {
                    self.configured.clone_from(configured);
                }
                self.record.status = *status;
                self.record.next_run_at = *next_run_at;
                self.record.version += 1;
                self.is_removed = false;
            }
            Body::Canceled { reason } => {
                self.record.status = ScheduleStatus::Canceled;
                self.record.next_run_at = None;
                self.record.version += 1;
                self.is_removed = reason == REMOVED;
                for run in self.runs.values_mut() {
                    run.allowed = run.released();
                    run.is_canceled = true;
                }
            }
            Body::Triggered {
                scheduled_for,
                next_run_at,
                ..
            } => {
                self.record.last_run_at = Some(at);
                self.pass_occurrence(*scheduled_for, *next_run_at);
            }
            Body::Skipped {
                scheduled_for,
                until,
                next_run_at,
                ..
            } => self.pass_occurrence(until.unwrap_or(*scheduled_for), *next_run_at),
            Body::RunStarted {
                run_id,
                scheduled_for,
                limits,
                claimed_by,
            } => {
                let definition = Arc::new(self.record.definition.clone());
                let is_for_one = definition.target.user().is_some();
                let run = ActiveRun {
                    definition,
                    scheduled_for: *scheduled_for,
                    started_at: at,
                    attempt: 1,
                    claimed_by: claimed_by.clone(),
                    claimed_at: at,
                    limits: *limits,
                    recipients: is_for_one.then_some(1),
                    allowed: limits.per_minute.unwrap_or(u32::MAX),
                    allowed_at: at,
                    under_way: BTreeSet::new(),
                    counts: OutcomeCounts::default(),
                    is_canceled: false,
                };
                self.runs.insert(run_id.clone(), run);
            }
            Body::ClaimRenewed { run_id } => self.change(run_id, |run| run.claimed_at = at),
            Body::ClaimTakenOver {
                run_id,
                attempt,
                claimed_by,
            } => self.change(run_id, |run| {
                run.attempt = *attempt;
                run.claimed_by.clone_from(claimed_by);
                run.claimed_at = at;
            }),
            Body::CampaignResolved {
                run_id, recipients, ..
            } => self.change(run_id, |run| {
                run.recipients = Some(*recipients);
                run.allowed_at = at;
            }),
            Body::ThrottleReleased { run_id, allowed } => self.change(run_id, |run| {
                run.allowed = *allowed;
                run.allowed_at = at;
            }),
            Body::TurnStarted {
                run_id, ordinal, ..
            } => self.change(run_id, |run| {
                run.under_way.insert(*ordinal);
            }),
            Body::RecipientFinished {
                run_id,
                ordinal,
                outcome,
                ..
            } => self.change(run_id, |run| {
                run.under_way.remove(ordinal);
                run.counts.add(*outcome, 1);
            }),
            Body::RunFinished { run_id, .. } => drop(self.runs.remove(run_id)),
        }
    }

    fn change(&mut self, run: &ScheduleRunId, change: impl FnOnce(&mut ActiveRun)) {
        if let Some(run) = self.runs.get_mut(run) {
            change(run);
        }
    }

    /// An occurrence was looked at. A one-off has no other.
    fn pass_occurrence(&mut self, occurrence: Timestamp, next: Option<Timestamp>) {
        self.passed = self.passed.max(Some(occurrence));
        self.record.next_run_at = next;
        let is_once = matches!(self.record.definition.trigger, ScheduleTrigger::Once { .. });
        if is_once && self.record.status == ScheduleStatus::Active {
            self.record.status = ScheduleStatus::Completed;
        }
    }
}
