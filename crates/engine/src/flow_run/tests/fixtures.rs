//! A journal as tests write it, and what its run does.

use crate::flow_run::{FlowRun, FlowRunCommand, FlowRunContext, FlowRunRefusal};
use crate::machine::{Decision, Machine as _};
use serde_json::{Value, json};
use tandem_record::conversation::{
    FlowOrigin, FlowPause, FlowRecord, FlowRunStart, ResumedBy, TurnTrigger, WaitFor,
};
use tandem_record::{
    Cause, Event, InterruptId, Owner, RecordedEvent, RunId, RunView, Seq, TenantId, Timestamp,
};

pub(super) const RUN: &str = "flow-1";
pub(super) const NOW: Timestamp = Timestamp(1_000_000);

pub(super) struct Journal {
    pub(super) run: FlowRun,
    pub(super) now: Timestamp,
    pub(super) log: Vec<RecordedEvent>,
}

impl Journal {
    /// A run that was started, with no effect yet.
    pub(super) fn started() -> Self {
        let mut journal = Self {
            run: FlowRun::unstarted(RunId::new(RUN)),
            now: NOW,
            log: Vec::new(),
        };
        journal.append([start(Some(json!({"item": "chair"})))]);
        journal
    }

    pub(super) fn decide(
        &self,
        records: Vec<FlowRecord>,
    ) -> Result<Decision<FlowRun>, FlowRunRefusal> {
        let context = FlowRunContext {
            cause: Some(Cause::External("e-7".to_owned())),
        };
        let command = FlowRunCommand::Append {
            at: self.now,
            records: records.into(),
        };
        self.run.decide(&command, &context)
    }

    /// Appends records and returns the names of the events after them.
    pub(super) fn append(&mut self, records: impl IntoIterator<Item = FlowRecord>) -> Vec<String> {
        let decision = self
            .decide(records.into_iter().collect())
            .expect("the records fit");
        let mut folded = self.run.clone();
        for event in &decision.events {
            assert_eq!(
                Some(event.seq),
                folded.head().map_or(Some(Seq(0)), |h| Some(h.next()))
            );
            folded.evolve(event);
        }
        assert_eq!(folded, decision.after, "folding gives the decided state");
        let names = decision
            .events
            .iter()
            .map(|event| name(&event.event))
            .collect();
        self.log.extend(decision.events);
        self.run = decision.after;
        names
    }

    /// Yields an effect.
    pub(super) fn effect(&mut self, step: u32, effect: Value) -> Vec<String> {
        self.append([FlowRecord::Effect {
            step,
            fingerprint: "f".to_owned(),
            effect,
        }])
    }

    /// Yields an effect and waits at it.
    pub(super) fn wait(&mut self, step: u32, effect: Value, pause: FlowPause) -> Vec<String> {
        self.effect(step, effect.clone());
        self.append([FlowRecord::Paused {
            pause,
            question: effect,
        }])
    }

    pub(super) fn resume(
        &mut self,
        step: u32,
        by: ResumedBy,
        outcome: &str,
        value: Value,
    ) -> Vec<String> {
        let resumed = FlowRecord::Resumed {
            interrupt_id: interrupt(step),
            by,
            outcome: outcome.to_owned(),
            answered_by: (by == ResumedBy::UserReply).then(|| "u1".to_owned()),
        };
        let segment = FlowRecord::Segment {
            turn: 2,
            trigger: TurnTrigger::Inbound,
            context: tandem_record::Object::new(),
        };
        self.append([resumed, segment, result(step, Some(value))])
    }

    pub(super) fn view(&self) -> RunView {
        self.run.view().expect("the run was started")
    }

    pub(super) fn find(&self, wanted: &str) -> &Event {
        let mut found = self.log.iter().filter(|event| name(&event.event) == wanted);
        &found
            .next_back()
            .unwrap_or_else(|| panic!("no {wanted}"))
            .event
    }
}

pub(super) fn name(event: &Event) -> String {
    let stored = serde_json::to_value(event).expect("events are plain data");
    match event {
        Event::Flow(_) => format!(
            "flow.{}",
            stored["r"].as_str().expect("a record has a name")
        ),
        _ => stored["t"]
            .as_str()
            .expect("an event has a name")
            .to_owned(),
    }
}

pub(super) fn start(input: Option<Value>) -> FlowRecord {
    FlowRecord::Started(Box::new(FlowRunStart {
        run_id: RunId::new(RUN),
        agent_id: "demo".into(),
        flow_id: "refund".into(),
        session_id: Some("s-1".into()),
        owner: Owner {
            tenant: TenantId::new("acme"),
            workspace: None,
            principal: None,
        },
        version: "abc".to_owned(),
        input,
        origin: FlowOrigin::Router,
        parent: None,
        forked_from: None,
        seed: u64::MAX,
        context: tandem_record::Object::new(),
    }))
}

pub(super) fn result(step: u32, value: Option<Value>) -> FlowRecord {
    FlowRecord::Result {
        step,
        value,
        error: None,
    }
}

pub(super) fn ended(reason: Option<&str>, cancelled: bool) -> FlowRecord {
    FlowRecord::Ended {
        reason: reason.map(str::to_owned),
        cancelled,
    }
}

pub(super) fn interrupt(step: u32) -> InterruptId {
    InterruptId::from(format!("{RUN}:{step}"))
}

pub(super) fn asking(step: u32) -> FlowPause {
    FlowPause::Ask {
        interrupt_id: interrupt(step),
        key: "amount".to_owned(),
        asked_at: NOW,
        reminded: 0,
    }
}

pub(super) fn confirming(step: u32) -> FlowPause {
    FlowPause::Confirm {
        interrupt_id: interrupt(step),
        attempts: 0,
        deadline: NOW.plus_ms(300_000),
        asked: Seq(4),
        asked_at: NOW,
        reminded: 0,
    }
}

pub(super) fn waiting(step: u32, wait_for: WaitFor, escalation: Option<&str>) -> FlowPause {
    FlowPause::Wait {
        interrupt_id: interrupt(step),
        wait_for,
        escalation_id: escalation.map(Into::into),
        deadline: Some(NOW.plus_ms(60_000)),
        left_ms: None,
        since: NOW,
        attempts: 0,
    }
}

pub(super) const CONFIRM: &str = "interrupt.confirm";
