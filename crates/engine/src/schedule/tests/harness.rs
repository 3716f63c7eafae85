//! A schedule with its clock and its process. Every decision is checked: folding its events over the state before
//! gives the state after, and its timers are those the state requires.

use crate::agent::{AgentSpec, LoadedFlow, SchedulerSpec, read_schedule};
use crate::machine::{Machine as _, TimerRequest};
use crate::schedule::{Schedule, ScheduleContext, ScheduleReply};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{
    ScheduleCommand, ScheduleDefinition, ScheduleEventBody as Body, ScheduleOrigin, SchedulePlane,
    ScheduleRecord, ScheduleTimer, ScheduleWork, ScheduledOutcome, ScheduledStart,
    ScheduledTurnReport,
};
use tandem_record::{Owner, ScheduleRunId, TenantId, Timestamp};

pub(super) struct TestSchedule {
    pub(super) agent: AgentSpec,
    pub(super) schedule: Schedule,
    pub(super) now: Timestamp,
    pub(super) process: &'static str,
    pub(super) is_alone: bool,
    pub(super) events: Vec<Body>,
    pub(super) work: Vec<ScheduleWork>,
    pub(super) timers: BTreeMap<ScheduleTimer, Timestamp>,
}

/// A moment as tests write it.
pub(super) fn shown(at: Timestamp) -> String {
    at.rfc3339().replace(".000Z", "Z")
}

pub(super) fn at(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp(at.as_millisecond())
}

pub(super) fn agent(config: Value) -> AgentSpec {
    let mut fields = json!({"prompt": "You are the desk."});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let flow = LoadedFlow {
        flow_id: "tick".to_owned(),
        version: "v1".to_owned(),
        ..LoadedFlow::default()
    };
    AgentSpec::compile("demo", &fields, &[flow]).expect("a valid agent")
}

pub(super) fn for_user(trigger: Value) -> Value {
    json!({"flowId": "tick", "trigger": trigger, "target": {"kind": "user", "userExternalId": "u1"}})
}

pub(super) fn cron(expr: &str) -> Value {
    json!({"type": "cron", "expr": expr})
}

pub(super) fn for_tag(trigger: Value) -> Value {
    json!({"flowId": "tick", "trigger": trigger, "target": {"kind": "segment",
        "campaignId": "spring", "segment": {"type": "tag", "tag": "vip"}}})
}

impl TestSchedule {
    /// A schedule that is made at half past eight of a Monday.
    pub(super) fn new(config: Value, definition: &Value) -> Self {
        let mut test = Self::unmade(config);
        let definition = test.read(definition);
        test.command(create(definition)).expect("it is made");
        test
    }

    /// The same before it is made.
    pub(super) fn unmade(config: Value) -> Self {
        Self {
            agent: agent(config),
            schedule: Schedule::unstarted("sch-1".into()),
            now: at("2031-03-03T08:30:05Z"),
            process: "p1",
            is_alone: true,
            events: Vec::new(),
            work: Vec::new(),
            timers: BTreeMap::new(),
        }
    }

    pub(super) fn read(&self, definition: &Value) -> ScheduleDefinition {
        read_schedule(definition, &self.agent, self.now).expect("a valid definition")
    }

    pub(super) fn command(&mut self, command: ScheduleCommand) -> ScheduleReply {
        let settings: &SchedulerSpec = &self.agent.scheduler;
        let context = ScheduleContext {
            now: self.now,
            process: self.process,
            is_alone: self.is_alone,
            settings,
        };
        let Ok(decision) = self.schedule.decide(&command, &context);
        let mut folded = self.schedule.clone();
        decision
            .events
            .iter()
            .for_each(|event| folded.evolve(event));
        assert_eq!(folded, decision.after, "fold and decision agree");
        for request in &decision.timers {
            match request {
                TimerRequest::Set { key, due } => drop(self.timers.insert(key.clone(), *due)),
                TimerRequest::Clear { key } => drop(self.timers.remove(key)),
            }
        }
        assert_eq!(
            self.timers,
            decision.after.timers(),
            "timers follow from the state"
        );
        let events = decision.events.into_iter();
        self.events.extend(events.map(|event| event.event.body));
        let effects = decision.effects.into_iter();
        self.work.extend(effects.map(|effect| effect.kind));
        self.schedule = decision.after;
        decision.reply
    }

    /// Moves the clock and fires what is due, each twice: the second time changes nothing (Z-190).
    pub(super) fn clock_at(&mut self, text: &str) {
        self.now = at(text);
        let due = |test: &Self| {
            let timers = test.timers.iter();
            let mut due: Vec<_> = timers.filter(|(_, due)| **due <= test.now).collect();
            due.sort_by_key(|(_, due)| **due);
            due.first().map(|(timer, _)| (*timer).clone())
        };
        while let Some(timer) = due(self) {
            let command = ScheduleCommand::FireTimer(timer);
            self.command(command.clone()).expect("never refused");
            let events = self.events.len();
            if !matches!(&command, ScheduleCommand::FireTimer(timer)
                if self.timers.get(timer).is_some_and(|due| *due <= self.now))
            {
                self.command(command).expect("never refused");
                assert_eq!(self.events.len(), events, "a repetition changes nothing");
            }
        }
    }

    pub(super) fn record(&self) -> &ScheduleRecord {
        self.schedule.record().expect("it was made")
    }

    pub(super) fn next_run_at(&self) -> Option<String> {
        self.record().next_run_at.map(shown)
    }

    /// Times of claimed occurrences, as `HH:MM`.
    pub(super) fn triggered(&self) -> Vec<String> {
        let times = self.events.iter().filter_map(|event| match event {
            Body::Triggered { scheduled_for, .. } => Some(*scheduled_for),
            _ => None,
        });
        times.map(|at| at.rfc3339()[11..16].to_owned()).collect()
    }

    /// Reasons and times of skipped occurrences.
    pub(super) fn skipped(&self) -> Vec<(String, String, u32)> {
        let skipped = self.events.iter().filter_map(|event| match event {
            Body::Skipped {
                reason,
                scheduled_for,
                count,
                ..
            } => Some((
                reason.clone(),
                scheduled_for.rfc3339()[11..16].to_owned(),
                *count,
            )),
            _ => None,
        });
        skipped.collect()
    }

    /// Takes the work that was requested.
    pub(super) fn take_work(&mut self) -> Vec<ScheduleWork> {
        std::mem::take(&mut self.work)
    }

    /// Ordinals of the turns that were requested.
    pub(super) fn take_turns(&mut self) -> Vec<u32> {
        let work = self.take_work().into_iter();
        work.filter_map(|work| match work {
            ScheduleWork::StartTurn { ordinal, .. } => Some(ordinal),
            ScheduleWork::ResolveSegment { .. } | ScheduleWork::StartRun { .. } => None,
        })
        .collect()
    }

    /// The newest run that is not finished.
    pub(super) fn run(&self) -> ScheduleRunId {
        let known = self.schedule.known().expect("it was made");
        let newest = known.runs().last().expect("a run");
        newest.0.clone()
    }

    pub(super) fn start(&mut self, run: &ScheduleRunId, ordinal: u32) {
        let start = ScheduledStart {
            run_id: run.clone(),
            ordinal,
            user_external_id: format!("u{ordinal}"),
            session_id: Some("s-1".into()),
            turn: Ok(7),
        };
        let command = ScheduleCommand::NoteStart(Box::new(start));
        self.command(command).expect("never refused");
    }

    pub(super) fn finish(
        &mut self,
        run: &ScheduleRunId,
        ordinal: u32,
        outcome: ScheduledOutcome,
        reason: Option<&str>,
    ) {
        let report = ScheduledTurnReport {
            schedule_id: self.schedule.id().clone(),
            run_id: run.clone(),
            ordinal,
            user_external_id: format!("u{ordinal}"),
            session_id: "s-1".into(),
            turn: 7,
            outcome,
            reason: reason.map(str::to_owned),
        };
        let command = ScheduleCommand::NoteOutcome(Box::new(report));
        self.command(command.clone()).expect("never refused");
        let events = self.events.len();
        self.command(command).expect("never refused");
        assert_eq!(self.events.len(), events, "a repetition changes nothing");
    }

    /// The events at the end of a run: its outcome, reason and counts.
    pub(super) fn finished(&self) -> Vec<Value> {
        let finished = self.events.iter().filter_map(|event| match event {
            Body::RunFinished {
                outcome,
                reason,
                partial,
                counts,
                attempt,
                ..
            } => Some(
                json!({"outcome": outcome, "reason": reason, "partial": partial,
                "attempt": attempt, "counts": [counts.success, counts.skipped, counts.failed,
                    counts.canceled_hitl]}),
            ),
            _ => None,
        });
        finished.collect()
    }

    pub(super) fn list(&mut self, users: &[&str]) {
        let command = ScheduleCommand::ListRecipients {
            run_id: self.run(),
            users: Ok(users.iter().map(|user| (*user).to_owned()).collect()),
        };
        self.command(command).expect("never refused");
    }
}

pub(super) fn create(definition: ScheduleDefinition) -> ScheduleCommand {
    ScheduleCommand::Create {
        agent_id: "demo".into(),
        owner: Owner {
            tenant: TenantId::from("default"),
            workspace: None,
            principal: None,
        },
        definition: Box::new(definition),
        created_by: ScheduleOrigin {
            plane: SchedulePlane::Control,
            actor_id: Some("ana".to_owned()),
            user_id: None,
        },
        actor: None,
    }
}
