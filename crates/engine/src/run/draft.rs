//! The draft of one decision: a copy of the run that changes as events are drafted, and the
//! bookkeeping that turns the result into a [`Decision`].

use crate::definition::Definition;
use crate::model::Providers;
use crate::pack::PackTypes;
use crate::run::agents::AgentPolicy;
use crate::run::calls::ModelAnswers;
use crate::run::children::{ChildrenDraft, TreePlaces};
use crate::run::lifecycle::{Limits, UsageDraft, charge_event, charge_state_copy};
use crate::run::memory::{Memory, MemoryDraft};
use crate::run::questions::{NoticeRule, QuestionsDraft};
use crate::run::refusal::{Need, Undecided};
use crate::run::replay::ReplayDraft;
use crate::run::required_work::RequiredWork;
use crate::run::scheduling::SchedulingDraft;
use crate::run::state::Run;
use crate::tool::ToolServers;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::conversation::WorkflowQuestion;
use tandem_record::{
    Cause, Effect, EffectId, EffectKind, Event, InterruptId, RecordedEvent, Reply, Seq, Timestamp,
    WorkflowId,
};
use tandem_schema::Meter;

/// Everything from outside that a decision may read.
pub struct Context<'a> {
    pub now: Timestamp,
    pub limits: &'a Limits,
    pub agents: &'a AgentPolicy,
    /// Who is told of questions of runs.
    pub notices: &'a [NoticeRule],
    /// This host provides the types and hooks for conformance tests.
    pub conformance: bool,
    pub definitions: &'a dyn Definitions,
    pub memory: &'a dyn Memory,
    pub providers: &'a Providers,
    pub packs: &'a PackTypes,
    pub model_answers: &'a dyn ModelAnswers,
    pub tools: &'a ToolServers,
    /// Places that this decision may fill with child runs.
    pub places: TreePlaces,
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

/// A decision about a workflow run.
pub type Decision = crate::machine::Decision<Run>;

/// The core of a draft is small: the run, the context, and what was drafted. Each slice of the
/// machine keeps what else it has to remember in a struct of its own, in its own folder.
pub(crate) struct DecisionDraft<'a> {
    pub(crate) run: Run,
    pub(crate) cx: &'a Context<'a>,
    pub(crate) now: Timestamp,
    /// Something the engine has to look up; ends the draft without a decision.
    pub(crate) needs: Option<Need>,
    events: Vec<RecordedEvent>,
    one_shots: Vec<Effect>,
    required_before: RequiredWork,
    /// Questions that a conversation shows when the decision begins.
    surfaced_before: BTreeMap<InterruptId, WorkflowQuestion>,
    pub(super) scheduling: SchedulingDraft,
    pub(super) children: ChildrenDraft,
    pub(super) questions: QuestionsDraft,
    pub(super) memory: MemoryDraft,
    pub(super) replay: ReplayDraft,
    pub(super) usage: UsageDraft,
}

impl<'a> DecisionDraft<'a> {
    pub(crate) fn new(run: &Run, cx: &'a Context<'a>) -> Self {
        charge_state_copy(run, cx.work);
        Self {
            run: run.clone(),
            // If the clock stepped back, the times in the log must not.
            now: cx.now.max(run.last_at()),
            cx,
            needs: None,
            events: Vec::new(),
            one_shots: Vec::new(),
            required_before: RequiredWork::of(run, cx.limits, cx.notices),
            surfaced_before: run.surfaced_questions(),
            scheduling: SchedulingDraft::default(),
            children: ChildrenDraft::default(),
            questions: QuestionsDraft::begin(run),
            memory: MemoryDraft::new(),
            replay: ReplayDraft::begin(run),
            usage: UsageDraft::default(),
        }
    }

    /// Drafts an event and folds it at once.
    pub(crate) fn emit(&mut self, event: Event, cause: Option<Seq>) -> Seq {
        self.emit_with_cause(event, cause.map(Cause::Event))
    }

    pub(crate) fn emit_with_cause(&mut self, event: Event, cause: Option<Cause>) -> Seq {
        let drafted = RecordedEvent {
            seq: self.run.next_seq(),
            at: self.now,
            cause,
            event,
        };
        let recorded = self.take_recorded().unwrap_or(drafted);
        self.append_recorded(recorded)
    }

    /// Appends a recorded event unchanged and folds it. Every event of a decision passes here, so
    /// the invariants of a log are checked here, in every build: a decision that would break one
    /// stops with a panic, and nothing is committed.
    pub(crate) fn append_recorded(&mut self, recorded: RecordedEvent) -> Seq {
        assert!(
            !self.run.phase().is_terminal(),
            "nothing follows a terminal event of run {}",
            self.run.id()
        );
        assert_eq!(
            recorded.seq,
            self.run.next_seq(),
            "the events of run {} have no gaps",
            self.run.id()
        );
        let size = self.run.evolve(&recorded);
        let seq = recorded.seq;
        charge_event(size, self.cx.work);
        self.note_drafted(size, &recorded.event, seq);
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
        let surfaced = std::mem::take(&mut self.surfaced_before);
        self.mirror_to_session(&surfaced);
        let after = RequiredWork::of(&self.run, self.cx.limits, self.cx.notices);
        let change = self.required_before.change_to(after);
        let mut effects = change.effects;
        effects.extend(self.one_shots);
        effects.extend(change.announcements);
        let mut children = self.children.into_created(&mut effects);
        let request = self.run.started_request();
        if request.is_some_and(|r| r.is_replay()) {
            // A replay performs no effects, whatever its nodes are.
            effects.clear();
            children.clear();
        }
        Decision {
            events: self.events,
            timers: change.timers,
            effects,
            dropped: change.dropped,
            children,
            reply,
            after: self.run,
        }
    }
}
