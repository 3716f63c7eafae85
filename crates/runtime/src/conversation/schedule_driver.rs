//! The schedule as a machine of this runtime: how it is loaded, decided, stored and projected.

use super::agent_host::AgentHost;
use super::schedule_rows;
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::redact_decision::encode_redacted;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::worker_slots::internal_lane;
use std::sync::Arc;
use tandem_engine::agent::SchedulerSpec;
use tandem_engine::machine::{Decision, Machine};
use tandem_engine::schedule::{KnownSchedule, Schedule, ScheduleContext};
use tandem_record::conversation::{ScheduleCommand, ScheduleEvent, ScheduleTimer, ScheduleWork};
use tandem_record::{AgentId, OrderKey, Recorded, ScheduleId, StreamId, TimerName};
use tandem_store::{Commit, Fault, Lane, NewEvent};

/// What performing the work of a schedule gave.
pub enum ScheduleOutcome {
    /// The users of a segment, or why they cannot be told.
    Segment(Result<Vec<String>, String>),
    /// Beginning the turn or the run is recording it.
    Start,
}

fn unstarted(stream: &StreamId) -> Schedule {
    let id = stream.schedule();
    Schedule::unstarted(id.unwrap_or_else(|| ScheduleId::new("")))
}

impl DrivenMachine for Schedule {
    const STREAM_PREFIX: &'static str = "when:";
    const SNAPSHOT_FORMAT: u32 = 1;

    /// The agents of this host, if it has any.
    type Settings = Option<Arc<dyn AgentHost>>;
    type Outcome = ScheduleOutcome;

    fn limits<'a>(_: &'a Runtime, _: &'a Self::Settings) -> &'a () {
        &()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        let fresh = unstarted(stream);
        let id = fresh.id().clone();
        let restore = |known: Option<Arc<KnownSchedule>>| Some(Self::restored(id, known?));
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    fn unstarted(stream: &StreamId) -> Option<Self> {
        Some(unstarted(stream))
    }

    async fn decide_with_lookups(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        current: &Self,
        command: &ScheduleCommand,
    ) -> Result<Decision<Self>, SubmitError> {
        let agents = driver.settings.as_ref();
        let agent = agent_of(current, command).and_then(|agent| agents?.agent(agent));
        let default = SchedulerSpec::default();
        let config = &runtime.inner.config;
        let context = ScheduleContext {
            now: runtime.clock().now(),
            process: &config.owner,
            is_alone: config.is_single_process,
            settings: agent.as_ref().map_or(&default, |agent| &agent.scheduler),
        };
        let Ok(decision) = current.decide(command, &context);
        Ok(decision)
    }

    fn timer_name(key: &ScheduleTimer) -> TimerName {
        TimerName::from(serde_json::to_string(key).expect("a timer key is plain JSON"))
    }

    fn timer_key(name: &TimerName) -> Option<ScheduleTimer> {
        serde_json::from_str(name.as_str()).ok()
    }

    fn timer_command(key: ScheduleTimer) -> ScheduleCommand {
        ScheduleCommand::FireTimer(key)
    }

    fn effect_name(effect: &ScheduleWork) -> &'static str {
        effect.name()
    }

    fn lane(&self, _: &ScheduleWork) -> Lane {
        internal_lane(self.tenant())
    }

    /// Occurrences for one user, and those of a workflow, begin in their order.
    fn order_key(&self, effect: &ScheduleWork) -> Option<OrderKey> {
        let (ScheduleWork::StartTurn { run_id, .. } | ScheduleWork::StartRun { run_id }) = effect
        else {
            return None;
        };
        let run = self.run(run_id).filter(|run| !run.is_campaign());
        run.map(|_| OrderKey::new(format!("schedule:{}", self.id())))
    }

    async fn perform(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        work: &LeasedEffect<ScheduleWork>,
    ) -> Result<ScheduleOutcome, Fault> {
        runtime.perform_schedule_work(driver, work).await
    }

    async fn record_outcome(
        runtime: &Runtime,
        driver: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect<ScheduleWork>,
        outcome: &ScheduleOutcome,
    ) -> Result<(), Fault> {
        runtime.record_schedule_work(driver, work, outcome).await
    }

    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent> {
        let redactor = &runtime.inner.config.redactor;
        let events = &mut decision.events;
        let (encoded, has_secrets) =
            encode_redacted(redactor, events, |event| redact_event(runtime, event));
        if has_secrets {
            // Memory and log must agree.
            let stream = decision.after.stream();
            let mut after = before.cloned().unwrap_or_else(|| unstarted(&stream));
            decision.events.iter().for_each(|event| after.evolve(event));
            decision.after = after;
        }
        encoded
    }

    fn project(
        _: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows {
        schedule_rows::project(before, decision, commit);
        ProjectedRows::default()
    }

    fn announce(runtime: &Runtime, decision: &Decision<Self>, _created: bool) {
        let metrics = &runtime.inner.metrics.conversations;
        metrics.observe_schedule(decision);
    }
}

fn agent_of<'a>(current: &'a Schedule, command: &'a ScheduleCommand) -> Option<&'a AgentId> {
    match (current.record(), command) {
        (Some(record), _) => record.agent_id.as_ref(),
        (None, ScheduleCommand::Create { agent_id, .. }) => Some(agent_id),
        (None, ScheduleCommand::Configure { agent_id, .. }) => agent_id.as_ref(),
        (None, _) => None,
    }
}

/// Removes secrets from an event. Its shape cannot change: only texts are replaced.
fn redact_event(runtime: &Runtime, recorded: &mut Recorded<ScheduleEvent>) -> bool {
    let mut value = serde_json::to_value(&recorded.event).expect("events are plain data");
    if !runtime.inner.config.redactor.redact_value(&mut value) {
        return false;
    }
    match serde_json::from_value(value) {
        Ok(event) => {
            recorded.event = event;
            true
        }
        Err(error) => {
            tracing::error!(%error, "a redacted event cannot be read; it is stored as it was");
            false
        }
    }
}
