//! The folded state of a schedule. `evolve.rs` is the only place that changes it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tandem_record::conversation::{
    OutcomeCounts, RunLimits, ScheduleDefinition, ScheduleRecord, ScheduleStatus, ScheduleTimer,
};
use tandem_record::{ScheduleId, ScheduleRunId, Seq, TenantId, Timestamp};

pub(super) const MINUTE_MS: u64 = 60_000;

/// A schedule, or nothing before its first event.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub(super) id: ScheduleId,
    /// What a snapshot stores. Shared with readers and with the machines of decisions.
    pub(super) known: Option<Arc<KnownSchedule>>,
    nobody: TenantId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownSchedule {
    pub(super) head: Seq,
    pub(super) record: ScheduleRecord,
    /// What the agent's file or the document of the workflow said last, hashed.
    pub(super) configured: Option<String>,
    /// It was cancelled because the file or the document has it no more.
    pub(super) is_removed: bool,
    pub(super) runs: BTreeMap<ScheduleRunId, ActiveRun>,
    /// The newest occurrence that was looked at. It and those before it never take place again, whatever is changed
    /// and however far behind the clock of the process is that changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) passed: Option<Timestamp>,
}

/// An occurrence that is not finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveRun {
    /// As it was when the run was claimed.
    pub definition: Arc<ScheduleDefinition>,
    pub scheduled_for: Timestamp,
    pub started_at: Timestamp,
    pub attempt: u32,
    pub(super) claimed_by: String,
    /// The last sign of whoever has the claim.
    pub(super) claimed_at: Timestamp,
    pub(super) limits: RunLimits,
    /// How many users it has; `None` while they are not known, and for a run of a workflow.
    pub recipients: Option<u32>,
    /// How many may begin so far.
    pub(super) allowed: u32,
    pub(super) allowed_at: Timestamp,
    /// Turns that were accepted and are not over.
    pub(super) under_way: BTreeSet<u32>,
    pub counts: OutcomeCounts,
    /// The schedule was cancelled: nobody begins any more.
    pub(super) is_canceled: bool,
}

impl ActiveRun {
    /// How many turns have been requested: the first ones in the order of the list.
    pub(super) fn released(&self) -> u32 {
        let Some(recipients) = self.recipients else {
            return 0;
        };
        let by_limit = self
            .counts
            .total()
            .saturating_add(self.limits.max_concurrent);
        recipients.min(by_limit).min(self.allowed)
    }

    /// Whether every user who may begin has ended.
    pub(super) fn is_over(&self) -> bool {
        let Some(recipients) = self.recipients else {
            return false;
        };
        let last = match self.is_canceled {
            true => recipients.min(self.allowed),
            false => recipients,
        };
        self.under_way.is_empty() && self.counts.total() >= last
    }

    pub(super) fn claim_ends_at(&self) -> Timestamp {
        self.claimed_at.plus_ms(self.limits.claim_ttl_ms)
    }

    pub fn is_campaign(&self) -> bool {
        self.definition.target.campaign().is_some()
    }

    fn may_release_more(&self) -> bool {
        let has_more = self.recipients.is_some_and(|n| self.allowed < n);
        has_more && self.limits.per_minute.is_some() && !self.is_canceled
    }
}

impl KnownSchedule {
    pub fn record(&self) -> &ScheduleRecord {
        &self.record
    }

    pub fn run(&self, run: &ScheduleRunId) -> Option<&ActiveRun> {
        self.runs.get(run)
    }

    /// Occurrences that are not finished.
    pub fn runs(&self) -> impl Iterator<Item = (&ScheduleRunId, &ActiveRun)> {
        self.runs.iter()
    }
}

impl Schedule {
    pub fn unstarted(id: ScheduleId) -> Self {
        Self {
            id,
            known: None,
            nobody: TenantId::new(""),
        }
    }

    pub fn restored(id: ScheduleId, known: Arc<KnownSchedule>) -> Self {
        Self {
            known: Some(known),
            ..Self::unstarted(id)
        }
    }

    pub fn id(&self) -> &ScheduleId {
        &self.id
    }

    /// `None` before its first event.
    pub fn known(&self) -> Option<&KnownSchedule> {
        self.known.as_deref()
    }

    pub(super) fn snapshot_of(&self) -> &Option<Arc<KnownSchedule>> {
        &self.known
    }

    pub fn record(&self) -> Option<&ScheduleRecord> {
        self.known().map(KnownSchedule::record)
    }

    pub fn run(&self, run: &ScheduleRunId) -> Option<&ActiveRun> {
        self.known()?.run(run)
    }

    pub(super) fn tenant_or_nobody(&self) -> &TenantId {
        self.record()
            .map_or(&self.nobody, |record| &record.owner.tenant)
    }

    /// The attempt at a run that this process would make: one more where it would take the run over.
    pub fn attempt_of(
        &self,
        run: &ScheduleRunId,
        process: &str,
        now: Timestamp,
        alone: bool,
    ) -> u32 {
        let Some(run) = self.run(run) else { return 1 };
        run.attempt + u32::from(run.is_abandoned(process, now, alone))
    }

    /// The timers the state requires.
    pub fn timers(&self) -> BTreeMap<ScheduleTimer, Timestamp> {
        let mut timers = BTreeMap::new();
        let Some(known) = self.known() else {
            return timers;
        };
        if let Some(next) = known.record.next_run_at
            && known.record.status == ScheduleStatus::Active
        {
            timers.insert(ScheduleTimer::Due, next);
        }
        for (id, run) in &known.runs {
            let claim = ScheduleTimer::Claim { run: id.clone() };
            timers.insert(claim, run.claim_ends_at());
            if run.may_release_more() {
                let throttle = ScheduleTimer::Throttle { run: id.clone() };
                timers.insert(throttle, run.allowed_at.plus_ms(MINUTE_MS));
            }
        }
        timers
    }
}

impl ActiveRun {
    /// Whether whoever claimed the run works on it no more. A process that is alone knows that another one is gone.
    pub(super) fn is_abandoned(&self, process: &str, now: Timestamp, alone: bool) -> bool {
        self.claimed_by != process && (alone || now >= self.claim_ends_at())
    }
}
