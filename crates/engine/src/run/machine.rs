//! The workflow run as a [`Machine`].

use super::draft::{Context, Decision};
use super::lifecycle::Limits;
use super::refusal::Undecided;
use super::required_work;
use super::state::{Run, State};
use crate::machine::Machine;
use std::collections::BTreeMap;
use tandem_record::{
    Command, EffectKind, Event, RecordedEvent, Reply, Seq, StreamId, TenantId, TimerKey, Timestamp,
};

impl Machine for Run {
    type Event = Event;
    type Command = Command;
    type Reply = Reply;
    type TimerKey = TimerKey;
    type EffectKind = EffectKind;
    type Undecided = Undecided;
    type Context<'a> = Context<'a>;
    type Limits = Limits;
    type Snapshot = State;

    fn stream(&self) -> StreamId {
        StreamId::of_run(self.id())
    }

    fn tenant(&self) -> &TenantId {
        &self.request().owner.tenant
    }

    fn head(&self) -> Option<Seq> {
        Run::head(self)
    }

    fn is_ended(&self) -> bool {
        self.status().is_terminal()
    }

    fn memory_bytes(&self) -> usize {
        self.size().memory
    }

    fn evolve(&mut self, event: &RecordedEvent) {
        Run::evolve(self, event);
    }

    fn decide(&self, command: &Command, context: &Context<'_>) -> Result<Decision, Undecided> {
        super::decide::decide(self, command, context)
    }

    fn required_timers(&self, limits: &Limits) -> BTreeMap<TimerKey, Timestamp> {
        required_work::required_timers(self, limits)
    }

    fn snapshot(&self) -> &State {
        self.state()
    }
}
