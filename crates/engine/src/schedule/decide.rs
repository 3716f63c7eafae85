//! Which rule answers which command.

use super::cron::Occurrences;
use super::draft::Draft;
use super::due::due;
use super::evolve::REMOVED;
use super::state::Schedule;
use crate::agent::SchedulerSpec;
use crate::machine::{Decision, Machine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use tandem_record::conversation::{
    AdminActor, ScheduleCommand, ScheduleDefinition, ScheduleEvent, ScheduleEventBody as Body,
    ScheduleOrigin, SchedulePlane, ScheduleRecord, ScheduleStatus, ScheduleTimer, ScheduleTrigger,
    ScheduleWork,
};
use tandem_record::{
    AgentId, Owner, Recorded, ScheduleId, ScheduleRunId, Seq, StreamId, TenantId, Timestamp,
};

/// Runs of one schedule that are not finished. An occurrence beyond them is skipped.
const MAX_RUNS: usize = 200;
/// The same where the next one was missed: what takes place in time finds room beside all that are caught up.
const MAX_CAUGHT_UP: usize = 100;

/// Everything from outside that a decision may read.
pub struct ScheduleContext<'a> {
    pub now: Timestamp,
    /// The process that decides. It has the claims it makes.
    pub process: &'a str,
    /// No other process is on the store.
    pub is_alone: bool,
    pub settings: &'a SchedulerSpec,
}

/// Why a command is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefusal {
    #[error("there is no such schedule")]
    Unknown,
    #[error("the schedule was changed: its version is {version}")]
    VersionConflict { version: u64 },
    #[error("the schedule was cancelled")]
    Canceled,
}

/// The schedule as it is afterwards.
pub type ScheduleReply = Result<Box<ScheduleRecord>, ScheduleRefusal>;

impl Machine for Schedule {
    type Event = ScheduleEvent;
    type Command = ScheduleCommand;
    type Reply = ScheduleReply;
    type TimerKey = ScheduleTimer;
    type EffectKind = ScheduleWork;
    type Undecided = Infallible;
    type Context<'a> = ScheduleContext<'a>;
    type Limits = ();
    type Snapshot = Option<Arc<super::KnownSchedule>>;

    fn stream(&self) -> StreamId {
        StreamId::of_schedule(&self.id)
    }

    fn tenant(&self) -> &TenantId {
        self.tenant_or_nobody()
    }

    fn head(&self) -> Option<Seq> {
        self.known().map(|known| known.head)
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize {
        let known = self.known();
        let runs = known.map_or(0, |known| known.runs.len());
        let definition = known.map_or(0, |known| {
            let data = &known.record.definition;
            let metadata = data.metadata.as_ref().map_or(0, |m| m.len() * 64);
            let input = data.input.as_ref();
            metadata + input.map_or(0, |input| tandem_record::Size::of(input).memory)
        });
        1_024 + definition + runs * (512 + definition)
    }

    fn evolve(&mut self, recorded: &Recorded<ScheduleEvent>) {
        self.fold(recorded);
    }

    fn decide(
        &self,
        command: &ScheduleCommand,
        context: &ScheduleContext<'_>,
    ) -> Result<Decision<Self>, Infallible> {
        let mut draft = Draft::new(self, context);
        let refused = draft.carry_out(command).err();
        let reply = match (refused, draft.schedule.record()) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(record)) => Ok(Box::new(record.clone())),
            (None, None) => Err(ScheduleRefusal::Unknown),
        };
        Ok(draft.into_decision(reply))
    }

    fn required_timers(&self, (): &()) -> BTreeMap<ScheduleTimer, Timestamp> {
        self.timers()
    }

    fn snapshot(&self) -> &Option<Arc<super::KnownSchedule>> {
        self.snapshot_of()
    }
}

/// The first occurrence of a definition that is made now, of those after `passed`. A moment of the past is one that
/// was missed.
fn first_occurrence(
    definition: &ScheduleDefinition,
    now: Timestamp,
    passed: Option<Timestamp>,
) -> Option<Timestamp> {
    match definition.trigger {
        ScheduleTrigger::Once { run_at } => Some(run_at).filter(|at| Some(*at) > passed),
        ScheduleTrigger::Cron { .. } => {
            let after = passed.map_or(now, |passed| passed.max(now));
            occurrences(definition)?.after(after)
        }
    }
}

fn is_retimed(record: &ScheduleRecord, definition: &ScheduleDefinition) -> bool {
    record.definition.trigger != definition.trigger
        || record.definition.timezone != definition.timezone
}

/// `None` for a definition of another release that this one cannot read.
fn occurrences(definition: &ScheduleDefinition) -> Option<Occurrences> {
    Occurrences::of(&definition.trigger, &definition.timezone).ok()
}

/// The id of a run follows from its occurrence. The time first, so that ids sort by it.
pub fn occurrence_id(schedule: &ScheduleId, at: Timestamp) -> ScheduleRunId {
    let digest = Sha256::digest(format!("tandem:schedule-run:v1\0{schedule}\0{}", at.0).as_bytes());
    let hex: String = digest[..10].iter().map(|b| format!("{b:02x}")).collect();
    ScheduleRunId::from(format!("srun-{:012x}-{hex}", at.0.max(0)))
}

impl Draft<'_> {
    fn carry_out(&mut self, command: &ScheduleCommand) -> Result<(), ScheduleRefusal> {
        match command {
            ScheduleCommand::Create {
                agent_id,
                owner,
                definition,
                created_by,
                actor,
            } => {
                self.actor.clone_from(actor);
                if self.schedule.known().is_none() {
                    let created_by = created_by.clone();
                    self.create(Some(agent_id), owner, definition, created_by, None);
                }
                Ok(())
            }
            ScheduleCommand::Configure {
                agent_id,
                owner,
                definition,
                fingerprint,
            } => {
                self.configure(agent_id.as_ref(), owner, definition, fingerprint);
                Ok(())
            }
            ScheduleCommand::Unconfigure => {
                let record = self.schedule.record();
                let ends = record.is_some_and(|record| match record.status {
                    ScheduleStatus::Active | ScheduleStatus::Paused => true,
                    // A document that comes back begins again.
                    ScheduleStatus::Completed => record.definition.target.workflow().is_some(),
                    ScheduleStatus::Canceled => false,
                });
                if ends {
                    self.cancel(REMOVED);
                }
                Ok(())
            }
            ScheduleCommand::Update {
                expected,
                definition,
                actor,
            } => {
                self.check_version(*expected, actor.as_ref())?;
                self.update(definition)
            }
            ScheduleCommand::Pause { expected, actor } => {
                self.check_version(*expected, actor.as_ref())?;
                match self.status()? {
                    ScheduleStatus::Canceled => Err(ScheduleRefusal::Canceled),
                    ScheduleStatus::Paused | ScheduleStatus::Completed => Ok(()),
                    ScheduleStatus::Active => {
                        self.change(None, None, ScheduleStatus::Paused, None);
                        Ok(())
                    }
                }
            }
            ScheduleCommand::Resume { expected, actor } => {
                self.check_version(*expected, actor.as_ref())?;
                match self.status()? {
                    ScheduleStatus::Canceled => Err(ScheduleRefusal::Canceled),
                    ScheduleStatus::Active | ScheduleStatus::Completed => Ok(()),
                    ScheduleStatus::Paused => {
                        let (status, next) = self.begun(&self.record()?.definition);
                        self.change(None, None, status, next);
                        Ok(())
                    }
                }
            }
            ScheduleCommand::Cancel {
                expected,
                actor,
                reason,
            } => {
                self.check_version(*expected, actor.as_ref())?;
                if self.status()? != ScheduleStatus::Canceled {
                    self.cancel(reason);
                }
                Ok(())
            }
            ScheduleCommand::FireTimer(timer) => {
                self.fire(timer);
                Ok(())
            }
            ScheduleCommand::ListRecipients { run_id, users } => {
                self.list_recipients(run_id, users);
                Ok(())
            }
            ScheduleCommand::NoteStart(start) => {
                self.note_start(start);
                Ok(())
            }
            ScheduleCommand::NoteOutcome(report) => {
                self.note_outcome(report);
                Ok(())
            }
            ScheduleCommand::NoteRun(start) => {
                self.note_run(start);
                Ok(())
            }
        }
    }

    fn record(&self) -> Result<&ScheduleRecord, ScheduleRefusal> {
        self.schedule.record().ok_or(ScheduleRefusal::Unknown)
    }

    fn status(&self) -> Result<ScheduleStatus, ScheduleRefusal> {
        Ok(self.record()?.status)
    }

    fn check_version(
        &mut self,
        expected: Option<u64>,
        actor: Option<&AdminActor>,
    ) -> Result<(), ScheduleRefusal> {
        let version = self.record()?.version;
        if expected.is_some_and(|expected| expected != version) {
            return Err(ScheduleRefusal::VersionConflict { version });
        }
        self.actor = actor.cloned();
        Ok(())
    }

    fn create(
        &mut self,
        agent_id: Option<&AgentId>,
        owner: &Owner,
        definition: &ScheduleDefinition,
        created_by: ScheduleOrigin,
        configured: Option<String>,
    ) {
        self.emit(Body::Created {
            agent_id: agent_id.cloned(),
            owner: owner.clone(),
            definition: Box::new(definition.clone()),
            created_by,
            configured,
            next_run_at: first_occurrence(definition, self.now(), None),
        });
    }

    fn configure(
        &mut self,
        agent_id: Option<&AgentId>,
        owner: &Owner,
        definition: &ScheduleDefinition,
        fingerprint: &str,
    ) {
        let fingerprint = fingerprint.to_owned();
        let Some(known) = self.schedule.known() else {
            let workflow = definition.target.workflow();
            let created_by = ScheduleOrigin {
                plane: match workflow {
                    None => SchedulePlane::Config,
                    Some(_) => SchedulePlane::Workflow,
                },
                actor_id: workflow
                    .and_then(|workflow| workflow.registered_by.as_ref())
                    .map(ToString::to_string),
                user_id: None,
            };
            return self.create(agent_id, owner, definition, created_by, Some(fingerprint));
        };
        let is_same = known.configured.as_ref() == Some(&fingerprint);
        if is_same && !known.is_removed {
            return self.hand_over(definition);
        }
        let record = &known.record;
        let (status, next) = match record.status {
            ScheduleStatus::Paused => (ScheduleStatus::Paused, None),
            status @ (ScheduleStatus::Active | ScheduleStatus::Completed)
                if !is_retimed(record, definition) =>
            {
                (status, record.next_run_at)
            }
            _ => self.begun(definition),
        };
        self.change(Some(definition.clone()), Some(fingerprint), status, next);
    }

    /// The same trigger of a document that somebody else registered: when it takes place stays.
    fn hand_over(&mut self, definition: &ScheduleDefinition) {
        let Some(record) = self.schedule.record() else {
            return;
        };
        let target = &record.definition.target;
        if target.workflow().is_some() && *target != definition.target {
            let handed_over = ScheduleDefinition {
                target: definition.target.clone(),
                ..record.definition.clone()
            };
            let (status, next) = (record.status, record.next_run_at);
            self.change(Some(handed_over), None, status, next);
        }
    }

    fn update(&mut self, definition: &ScheduleDefinition) -> Result<(), ScheduleRefusal> {
        let record = self.record()?;
        let (status, next) = match record.status {
            ScheduleStatus::Canceled => return Err(ScheduleRefusal::Canceled),
            ScheduleStatus::Paused => (ScheduleStatus::Paused, None),
            status if !is_retimed(record, definition) => (status, record.next_run_at),
            _ => self.begun(definition),
        };
        self.change(Some(definition.clone()), None, status, next);
        Ok(())
    }

    /// How a schedule goes on that begins with this definition. A one-off that was looked at does not begin again.
    fn begun(&self, definition: &ScheduleDefinition) -> (ScheduleStatus, Option<Timestamp>) {
        let passed = self.schedule.known().and_then(|known| known.passed);
        let next = first_occurrence(definition, self.now(), passed);
        let is_once = matches!(definition.trigger, ScheduleTrigger::Once { .. });
        match next.is_none() && is_once {
            true => (ScheduleStatus::Completed, None),
            false => (ScheduleStatus::Active, next),
        }
    }

    fn change(
        &mut self,
        definition: Option<ScheduleDefinition>,
        configured: Option<String>,
        status: ScheduleStatus,
        next_run_at: Option<Timestamp>,
    ) {
        self.emit(Body::Updated {
            definition: definition.map(Box::new),
            configured,
            status,
            next_run_at,
        });
    }

    fn cancel(&mut self, reason: &str) {
        self.emit(Body::Canceled {
            reason: reason.to_owned(),
        });
        let runs = self.schedule.known().map(|known| known.runs.keys());
        let runs: Vec<_> = runs.into_iter().flatten().cloned().collect();
        for run in runs {
            self.finish_campaign(&run);
        }
    }

    fn fire(&mut self, timer: &ScheduleTimer) {
        let due = self.schedule.timers().get(timer).copied();
        if due.is_none_or(|due| due > self.now()) {
            return;
        }
        match timer {
            ScheduleTimer::Due => self.pass_due(),
            ScheduleTimer::Claim { run } => {
                if !self.take_over(run) {
                    let run_id = run.clone();
                    self.emit(Body::ClaimRenewed { run_id });
                }
            }
            ScheduleTimer::Throttle { run } => {
                let Some(active) = self.run(run) else { return };
                let more = active.limits.per_minute.unwrap_or(u32::MAX);
                let allowed = active.allowed.saturating_add(more);
                let run_id = run.clone();
                self.emit(Body::ThrottleReleased { run_id, allowed });
            }
        }
    }

    /// Looks at every occurrence up to now.
    fn pass_due(&mut self) {
        let Some(record) = self.schedule.record() else {
            return;
        };
        let (Some(first), definition) = (record.next_run_at, record.definition.clone()) else {
            return;
        };
        let Some(occurrences) = occurrences(&definition) else {
            return self.skip("unreadable", first, None, 1, None);
        };
        let settings = self.cx.settings;
        let late_after_ms = settings.late_after_ms();
        let missed = &definition.on_missed;
        let due = due(&occurrences, first, self.now(), late_after_ms, missed);
        for at in due.missed {
            self.skip("missed", at, None, 1, due.next);
        }
        if let Some((first, last, count)) = due.more_missed {
            self.skip("missed", first, Some(last), count, due.next);
        }
        for (place, at) in due.run.into_iter().enumerate() {
            let max_runs = match place < due.caught_up {
                true => MAX_CAUGHT_UP,
                false => MAX_RUNS,
            };
            let under_way = self.schedule.known().map_or(0, |known| known.runs.len());
            if !settings.enabled {
                self.skip("scheduler_disabled", at, None, 1, due.next);
            } else if under_way >= max_runs {
                self.skip("too_many_runs", at, None, 1, due.next);
            } else {
                self.claim(at, due.next);
            }
        }
    }

    fn skip(
        &mut self,
        reason: &str,
        scheduled_for: Timestamp,
        until: Option<Timestamp>,
        count: u32,
        next_run_at: Option<Timestamp>,
    ) {
        self.emit(Body::Skipped {
            reason: reason.to_owned(),
            scheduled_for,
            until,
            count,
            next_run_at,
        });
    }

    fn claim(&mut self, scheduled_for: Timestamp, next_run_at: Option<Timestamp>) {
        let run_id = occurrence_id(&self.schedule.id, scheduled_for);
        self.emit(Body::Triggered {
            run_id: run_id.clone(),
            scheduled_for,
            next_run_at,
        });
        self.emit(Body::RunStarted {
            run_id,
            scheduled_for,
            limits: self.cx.settings.run_limits(),
            claimed_by: self.cx.process.to_owned(),
        });
    }
}
