//! The draft of one decision: a copy of the run that changes as events are drafted, and the
//! bookkeeping that turns the result into a [`Decision`].

use crate::definition::Definition;
use crate::model::Providers;
use crate::pack::PackTypes;
use crate::run::agents::AgentPolicy;
use crate::run::calls::ModelAnswers;
use crate::run::children::NewChildRun;
use crate::run::lifecycle::DraftSize;
use crate::run::lifecycle::Limits;
use crate::run::lifecycle::too_deep;
use crate::run::lifecycle::{charge_event, charge_state_copy};
use crate::run::memory::Memory;
use crate::run::questions::required_announcements;
use crate::run::refusal::{Need, Undecided};
use crate::run::required_work::{TimerRequest, required_effects, required_timers};
use crate::run::state::Run;
use crate::tool::ToolServers;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tandem_record::{
    Cause, Effect, EffectId, EffectKind, Event, InterruptId, RecordedEvent, Reply, RunId, Seq,
    TimerKey, Timestamp, WorkflowId,
};
use tandem_schema::Meter;

/// Everything from outside that a decision may read.
pub struct Context<'a> {
    pub now: Timestamp,
    pub limits: &'a Limits,
    pub agents: &'a AgentPolicy,
    /// This host provides the types and hooks for conformance tests.
    pub conformance: bool,
    pub definitions: &'a dyn Definitions,
    pub memory: &'a dyn Memory,
    pub providers: &'a Providers,
    pub packs: &'a PackTypes,
    pub model_answers: &'a dyn ModelAnswers,
    pub tools: &'a ToolServers,
    /// Work that may be done in this decision: see [`crate::run::lifecycle::work`].
    pub work: &'a Meter,
}

/// The current definition of each workflow id, for the run's tenant.
pub trait Definitions: Sync {
    fn current(&self, workflow: &WorkflowId) -> Lookup;
}

pub enum Lookup {
    Known(Arc<Definition>),
    Unknown,
    /// Not loaded yet; the decision stops and requests it.
    NotLoaded,
}

/// What is to be committed, and the run as it is afterwards.
#[derive(Debug)]
pub struct Decision {
    pub events: Vec<RecordedEvent>,
    pub timers: Vec<TimerRequest>,
    /// New effects. Their ids are stable: a repeated decision gives the same ids.
    pub effects: Vec<Effect>,
    /// Effects that are no longer needed.
    pub dropped: Vec<EffectId>,
    /// Children that the events name. They are created in the same commit.
    pub children: Vec<NewChildRun>,
    pub reply: Reply,
    pub run: Run,
}

pub(crate) struct DecisionDraft<'a> {
    pub(crate) run: Run,
    pub(crate) cx: &'a Context<'a>,
    pub(crate) now: Timestamp,
    /// The interrupt the run waited for when the decision began.
    pub(crate) waited_for: Option<InterruptId>,
    timers_before: BTreeMap<TimerKey, Timestamp>,
    effects_before: BTreeMap<EffectId, Effect>,
    announced_before: Vec<Effect>,
    events: Vec<RecordedEvent>,
    one_shots: Vec<Effect>,
    pub(crate) children: Vec<NewChildRun>,
    /// Triggers whose channel was written in this decision, in order.
    pub(crate) triggers_to_fire: VecDeque<String>,
    pub(crate) starts: u32,
    /// Something the engine has to look up; ends the draft without a decision.
    pub(crate) needs: Option<Need>,
    /// The first event of this decision. Events before it are stored, or copied from a source.
    pub(crate) first_own_seq: Seq,
    /// Events a fork already has for work it repeats. Each one replaces a drafted event.
    pub(crate) already_recorded: VecDeque<RecordedEvent>,
    /// The run replays another one: what cannot be repeated is refused.
    pub(crate) replaying: bool,
    /// The run id that names the artifacts a replay creates again, if it is not the replay's own.
    pub(crate) artifact_owner: Option<RunId>,
    /// Nodes at which a replay reads memory, and the event before which it reads.
    pub(crate) replay_memory_reads: Vec<(usize, Seq)>,
    /// The event before which the node being started reads memory.
    pub(crate) read_at: Seq,
    /// The start of the supervisor iteration that the node belongs to, if it belongs to one.
    pub(crate) iteration_view: Option<Seq>,
    /// An event whose value is nested too deeply to be used further.
    pub(crate) too_deep: Option<Seq>,
    pub(super) draft_size: DraftSize,
    /// Runs that the ended child was granted and did not start.
    pub(super) returned: u64,
    /// The rest is left to the next decision.
    pub(super) continues: bool,
}

impl<'a> DecisionDraft<'a> {
    pub(crate) fn new(run: &Run, cx: &'a Context<'a>) -> Self {
        charge_state_copy(run, cx.work);
        Self {
            run: run.clone(),
            // If the clock stepped back, the times in the log must not.
            now: cx.now.max(run.state.last_at),
            cx,
            waited_for: run.awaited_interrupt(),
            timers_before: required_timers(run, cx.limits),
            effects_before: required_effects(run),
            announced_before: required_announcements(run),
            events: Vec::new(),
            one_shots: Vec::new(),
            children: Vec::new(),
            triggers_to_fire: VecDeque::new(),
            starts: 0,
            needs: None,
            first_own_seq: run.next_seq(),
            already_recorded: VecDeque::new(),
            replaying: false,
            artifact_owner: None,
            replay_memory_reads: Vec::new(),
            read_at: Seq(0),
            iteration_view: None,
            too_deep: None,
            draft_size: DraftSize::default(),
            returned: 0,
            continues: false,
        }
    }

    /// Drafts an event and folds it at once.
    pub(crate) fn emit(&mut self, event: Event, cause: Option<Seq>) -> Seq {
        self.emit_with_cause(event, cause.map(Cause::Event))
    }

    pub(crate) fn emit_with_cause(&mut self, event: Event, cause: Option<Cause>) -> Seq {
        debug_assert!(
            !self.run.state.phase.is_terminal(),
            "nothing follows a terminal event"
        );
        let drafted = RecordedEvent {
            seq: self.run.next_seq(),
            at: self.now,
            cause,
            event,
        };
        let recorded = self.already_recorded.pop_front().unwrap_or(drafted);
        self.append_recorded(recorded)
    }

    /// Appends a recorded event unchanged and folds it.
    pub(crate) fn append_recorded(&mut self, recorded: RecordedEvent) -> Seq {
        let size = self.run.evolve(&recorded);
        let seq = recorded.seq;
        charge_event(size, self.cx.work);
        self.note_drafted(size, &recorded.event, seq);
        if too_deep(&recorded.event) {
            self.too_deep = Some(seq);
        }
        self.events.push(recorded);
        seq
    }

    pub(crate) fn drafted(&self) -> &[RecordedEvent] {
        &self.events
    }

    /// Adds an effect that is not the work of a node and is performed once.
    pub(crate) fn add_one_shot_effect(&mut self, id: String, kind: EffectKind) {
        self.one_shots.push(Effect {
            id: EffectId::from(id),
            run_id: self.run.state.run_id.clone(),
            kind,
        });
    }

    /// The decision, unless something has to be looked up first.
    pub(crate) fn into_decision(mut self, reply: Reply) -> Result<Decision, Undecided> {
        if self.cx.work.exceeded() {
            return Err(Undecided::Needs(Need::MoreWork));
        }
        match self.needs.take() {
            Some(need) => Err(Undecided::Needs(need)),
            None => Ok(self.finish(reply)),
        }
    }

    pub(crate) fn finish(mut self, reply: Reply) -> Decision {
        self.mirror_to_parent();
        let timers_after = required_timers(&self.run, self.cx.limits);
        let mut effects_after = required_effects(&self.run);
        let timers = difference(&self.timers_before, &timers_after);
        let announced_after = required_announcements(&self.run);
        let answered = self.announced_before.iter();
        let answered = answered.filter(|effect| !announced_after.contains(effect));
        let dropped = self
            .effects_before
            .keys()
            .filter(|id| !effects_after.contains_key(*id))
            .chain(answered.map(|effect| &effect.id))
            .cloned()
            .collect();
        effects_after.retain(|id, effect| self.effects_before.get(id) != Some(effect));
        let mut effects: Vec<Effect> = effects_after.into_values().collect();
        effects.extend(self.one_shots);
        let new_announcements = announced_after.into_iter();
        effects.extend(new_announcements.filter(|effect| !self.announced_before.contains(effect)));
        let mut children = self.children;
        for new_child in &mut children {
            new_child.absorb_cancel_effect(&mut effects);
        }
        let request = self.run.state.request.as_ref();
        if request.is_some_and(|r| r.is_replay()) {
            // A replay performs no effects, whatever its nodes are.
            effects.clear();
            children.clear();
        }
        Decision {
            events: self.events,
            timers,
            effects,
            dropped,
            children,
            reply,
            run: self.run,
        }
    }
}

fn difference(
    before: &BTreeMap<TimerKey, Timestamp>,
    after: &BTreeMap<TimerKey, Timestamp>,
) -> Vec<TimerRequest> {
    let cleared = before.keys().filter(|key| !after.contains_key(*key));
    let set = after
        .iter()
        .filter(|(key, due)| before.get(*key) != Some(due));
    cleared
        .map(|key| TimerRequest::Clear { key: key.clone() })
        .chain(set.map(|(key, due)| TimerRequest::Set {
            key: key.clone(),
            due: *due,
        }))
        .collect()
}
