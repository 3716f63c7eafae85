//! The draft of one decision about a schedule: a copy that changes as events are drafted.

use super::decide::ScheduleContext;
use super::state::{ActiveRun, Schedule};
use crate::machine::{Decision, Machine as _, timer_changes};
use tandem_record::conversation::{
    AdminActor, ScheduleEvent, ScheduleEventBody as Body, ScheduleWork,
};
use tandem_record::{Effect, EffectId, Recorded, ScheduleRunId, Seq, Timestamp};

pub(super) struct Draft<'a> {
    pub(super) schedule: Schedule,
    pub(super) cx: &'a ScheduleContext<'a>,
    /// Who acts, if an admin does.
    pub(super) actor: Option<AdminActor>,
    before: &'a Schedule,
    events: Vec<Recorded<ScheduleEvent>>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(before: &'a Schedule, cx: &'a ScheduleContext<'a>) -> Self {
        Self {
            schedule: before.clone(),
            cx,
            actor: None,
            before,
            events: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.cx.now
    }

    /// Drafts an event and folds it at once.
    pub(super) fn emit(&mut self, body: Body) {
        let recorded = Recorded {
            seq: self.schedule.head().map_or(Seq(0), Seq::next),
            at: self.cx.now,
            cause: None,
            event: ScheduleEvent {
                actor: self.actor.clone(),
                body,
            },
        };
        self.schedule.fold(&recorded);
        self.events.push(recorded);
    }

    pub(super) fn run(&self, run: &ScheduleRunId) -> Option<&ActiveRun> {
        self.schedule.run(run)
    }

    pub(super) fn into_decision(self, reply: super::ScheduleReply) -> Decision<Schedule> {
        let timers = timer_changes(&self.before.timers(), &self.schedule.timers());
        Decision {
            effects: self.requested(),
            timers,
            events: self.events,
            dropped: Vec::new(),
            children: Vec::new(),
            reply,
            after: self.schedule,
        }
    }

    /// Work that the state requests and that the one before did not.
    fn requested(&self) -> Vec<Effect<ScheduleWork>> {
        let mut effects = Vec::new();
        let Some(known) = self.schedule.known() else {
            return effects;
        };
        for (id, run) in &known.runs {
            let before = self.before.run(id);
            if before.is_none() && run.is_campaign() {
                effects.push(Effect {
                    id: EffectId::from(format!("{id}:segment")),
                    kind: ScheduleWork::ResolveSegment { run_id: id.clone() },
                });
            }
            if before.is_none() && run.definition.target.workflow().is_some() {
                effects.push(Effect {
                    id: EffectId::from(format!("{id}:run")),
                    kind: ScheduleWork::StartRun { run_id: id.clone() },
                });
            }
            let released = before.map_or(0, ActiveRun::released);
            effects.extend((released..run.released()).map(|ordinal| Effect {
                id: EffectId::from(format!("{id}:{ordinal}")),
                kind: ScheduleWork::StartTurn {
                    run_id: id.clone(),
                    ordinal,
                },
            }));
        }
        effects
    }
}
