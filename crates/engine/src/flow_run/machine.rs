//! The flow run as a [`Machine`].

use super::state::{FlowRun, FlowRunState};
use crate::machine::{Decision, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use tandem_record::conversation::FlowRecord;
use tandem_record::{Cause, Event, RecordedEvent, Seq, StreamId, TenantId, Timestamp};

/// The commands of a flow run.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowRunCommand {
    /// What the session decided about the flow, in order. The time is that of the session's decision: the
    /// code saw it, so the journal must have it.
    Append {
        at: Timestamp,
        records: Arc<[FlowRecord]>,
    },
    /// The whole journal of a detached run that repeats another one, with the times of its source.
    Copy {
        records: Vec<(Timestamp, FlowRecord)>,
    },
}

/// Everything from outside that a decision may read.
#[derive(Clone, Debug)]
pub struct FlowRunContext {
    /// The event of the session that led to the records.
    pub cause: Option<Cause>,
}

/// Why records are not appended. The session never asks for this: it would be a fault of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowRunRefusal {
    #[error("the flow run has ended")]
    Ended,
    #[error("the journal of a flow run begins with its start, and has no other")]
    OutOfOrder,
}

/// A flow run requests no effects: its session does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NoFlowRunEffect {}

impl Machine for FlowRun {
    type Event = Event;
    type Command = FlowRunCommand;
    type Reply = ();
    type TimerKey = Infallible;
    type EffectKind = NoFlowRunEffect;
    type Undecided = FlowRunRefusal;
    type Context<'a> = FlowRunContext;
    type Limits = ();
    type Snapshot = FlowRunState;

    fn stream(&self) -> StreamId {
        StreamId::of_run(&self.id)
    }

    fn tenant(&self) -> &TenantId {
        &self.state.tenant
    }

    fn head(&self) -> Option<Seq> {
        self.state.head
    }

    fn is_ended(&self) -> bool {
        self.state.status.is_terminal()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.state.bytes
    }

    fn evolve(&mut self, event: &RecordedEvent) {
        self.fold(event);
    }

    fn decide(
        &self,
        command: &FlowRunCommand,
        context: &FlowRunContext,
    ) -> Result<Decision<Self>, FlowRunRefusal> {
        let records: Vec<(Timestamp, &FlowRecord)> = match command {
            FlowRunCommand::Append { at, records } => {
                records.iter().map(|record| (*at, record)).collect()
            }
            FlowRunCommand::Copy { records } => {
                records.iter().map(|(at, record)| (*at, record)).collect()
            }
        };
        let mut after = self.clone();
        let mut events = Vec::new();
        for (at, record) in records {
            // If the clock stepped back, the times in the log must not.
            let now = at.max(after.state.last_at);
            let is_start = matches!(record, FlowRecord::Started(_));
            if after.is_ended() {
                return Err(FlowRunRefusal::Ended);
            }
            if is_start != after.state.start.is_none() {
                return Err(FlowRunRefusal::OutOfOrder);
            }
            for event in after.derive(record, now) {
                let recorded = RecordedEvent {
                    seq: after.state.head.map_or(Seq(0), Seq::next),
                    at: now,
                    cause: context.cause.clone(),
                    event,
                };
                after.fold(&recorded);
                events.push(recorded);
            }
        }
        Ok(Decision {
            events,
            timers: Vec::new(),
            effects: Vec::new(),
            dropped: Vec::new(),
            children: Vec::new(),
            reply: (),
            after,
        })
    }

    fn required_timers(&self, (): &()) -> BTreeMap<Infallible, Timestamp> {
        BTreeMap::new()
    }

    fn snapshot(&self) -> &FlowRunState {
        &self.state
    }
}
