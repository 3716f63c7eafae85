//! The draft of one decision about a session: a copy of the session that changes as events are
//! drafted, the work it requests, and the records it adds to journals of flow runs.

use super::program::Programs;
use super::state::ChatSession;
use super::turn_state::UnsentText;
use crate::agent::AgentSpec;
use serde_json::Value;
use std::cell::RefCell;
use tandem_record::conversation::{
    AdminActor, FlowRecord, FlowRef, RequestedWork, SessionEvent, SessionEventBody, SessionReply,
    SessionWork, WorkPurpose,
};
use tandem_record::{EffectId, Object, Recorded, RunId, Seq, Timestamp};
use tandem_schema::Meter;

/// Everything from outside that a decision may read.
pub struct SessionContext<'a> {
    pub now: Timestamp,
    pub agent: &'a AgentSpec,
    /// The code of flows. Running it is part of deciding: it is a function of the journal.
    pub programs: &'a RefCell<dyn Programs>,
    /// Work that may be done in this decision.
    pub work: &'a Meter,
}

/// What is to be committed for one session, and the session as it is afterwards.
#[derive(Debug)]
pub struct SessionDecision {
    pub events: Vec<Recorded<SessionEvent>>,
    /// New outbox entries. Their ids are stable: a repeated decision gives the same ids.
    pub work: Vec<(EffectId, SessionWork)>,
    /// Records for journals of flow runs, in order. A run that is new begins with
    /// [`FlowRecord::Started`].
    pub journal: Vec<(RunId, FlowRecord)>,
    /// Outbox entries whose outcome nobody waits for any more.
    pub dropped: Vec<EffectId>,
    pub reply: SessionReply,
    pub after: ChatSession,
}

pub(super) struct Draft<'a> {
    pub(super) session: ChatSession,
    pub(super) cx: &'a SessionContext<'a>,
    pub(super) now: Timestamp,
    /// Who acts, if an admin does.
    pub(super) actor: Option<AdminActor>,
    /// The text that was delivered or decided about, while that is recorded.
    pub(super) delivered: Option<UnsentText>,
    /// A flow run whose program has to be loaded; ends the draft without a decision.
    pub(super) needs_program: Option<RunId>,
    /// A program did something else than its journal says; ends the draft without a decision.
    pub(super) found_divergence: Option<Divergence>,
    /// What an earlier draft of this decision found.
    pub(super) divergence: Option<Divergence>,
    /// The turn that events between turns are about: the one they cause, or the last one.
    pub(super) caused_turn: Option<u64>,
    /// Context calls of the active flow since its last effect.
    pub(super) host_calls: u32,
    /// The handler of an admin's command starts a takeover, or ends it.
    pub(super) takeover_write: Option<bool>,
    dropped: Vec<EffectId>,
    events: Vec<Recorded<SessionEvent>>,
    work: Vec<(EffectId, SessionWork)>,
    journal: Vec<(RunId, FlowRecord)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(session: ChatSession, cx: &'a SessionContext<'a>) -> Self {
        Self {
            // If the clock stepped back, the times in the log must not.
            now: cx.now.max(session.last_at),
            session,
            cx,
            actor: None,
            delivered: None,
            needs_program: None,
            found_divergence: None,
            divergence: None,
            caused_turn: None,
            host_calls: 0,
            takeover_write: None,
            dropped: Vec::new(),
            events: Vec::new(),
            work: Vec::new(),
            journal: Vec::new(),
        }
    }

    /// The draft of a new session: its first event is appended without folding.
    pub(super) fn begin(
        session: ChatSession,
        first: SessionEventBody,
        cx: &'a SessionContext<'a>,
    ) -> Self {
        let mut draft = Self::new(session, cx);
        draft.events.push(Recorded {
            seq: Seq(0),
            at: draft.now,
            cause: None,
            event: SessionEvent {
                turn: None,
                flow: None,
                actor: None,
                response: None,
                body: first,
            },
        });
        draft
    }

    /// Drafts an event and folds it at once.
    pub(super) fn emit(&mut self, body: SessionEventBody) -> Seq {
        let flow = self.flow_of(&body);
        self.emit_for(flow, body)
    }

    /// Drafts an event that names another flow run than the active one.
    pub(super) fn emit_for(&mut self, flow: Option<FlowRef>, body: SessionEventBody) -> Seq {
        assert!(
            self.session.ended.is_none() || may_follow_end(&body),
            "only deliveries follow the end of session {}",
            self.session.id()
        );
        let recorded = Recorded {
            seq: self.session.next_seq(),
            at: self.now,
            cause: self.cause_of(&body),
            event: SessionEvent {
                turn: self.turn_of(&body),
                flow,
                actor: self.actor.clone(),
                response: self.response_of(&body),
                body,
            },
        };
        let seq = recorded.seq;
        let ended = self.outcome_for_schedule(&recorded.event.body);
        self.session.evolve(&recorded);
        self.notify_of(&recorded);
        if let Some(ended) = ended {
            self.report_ended(ended);
        }
        self.events.push(recorded);
        seq
    }

    /// The first event of this decision, if there is one.
    pub(super) fn first_event(&self) -> Option<Seq> {
        self.events.first().map(|event| event.seq)
    }

    /// Requests work and lets the turn wait for it.
    pub(super) fn request(&mut self, purpose: WorkPurpose, work: SessionWork) {
        let next = self.session.next_seq();
        let id = EffectId::from(format!("{}:{next}", self.session.id()));
        self.request_as(id, purpose, work);
    }

    pub(super) fn request_as(&mut self, id: EffectId, purpose: WorkPurpose, work: SessionWork) {
        self.work.push((id.clone(), work.clone()));
        self.emit(SessionEventBody::WorkRequested(Box::new(RequestedWork {
            effect_id: id,
            purpose,
            work,
        })));
    }

    /// Adds an outbox entry that no turn waits for.
    pub(super) fn add_work(&mut self, id: EffectId, work: SessionWork) {
        self.work.push((id, work));
    }

    /// Nobody waits for the outcome of the turn's work any more.
    pub(super) fn drop_pending_work(&mut self) {
        let turn = self.session.turn.as_ref();
        let pending = turn.and_then(|turn| turn.pending.as_ref());
        self.dropped
            .extend(pending.map(|work| work.effect_id.clone()));
    }

    pub(super) fn drop_work(&mut self, effect: EffectId) {
        self.dropped.push(effect);
    }

    pub(super) fn record(&mut self, run: &RunId, record: FlowRecord) {
        self.journal.push((run.clone(), record));
    }

    /// What this decision hands to the code of a run for the turn that goes on with it.
    pub(super) fn drafted_segment(&self, run: &RunId) -> Option<&Object> {
        let mut newest = self.journal.iter().rev().filter(|(of, _)| of == run);
        newest.find_map(|(_, record)| match record {
            FlowRecord::Segment { context, .. } => Some(context),
            _ => None,
        })
    }

    /// Whether the run begins in this decision.
    pub(super) fn starts(&self, run: &RunId) -> bool {
        let mut records = self.journal.iter().filter(|(of, _)| of == run);
        records.any(|(_, record)| matches!(record, FlowRecord::Started(_)))
    }

    /// The number of records this decision adds to a run's journal.
    pub(super) fn drafted_records(&self, run: &RunId) -> usize {
        self.journal.iter().filter(|(of, _)| of == run).count()
    }

    /// Nothing of this draft is kept: a program has to be loaded, or did something else than before.
    pub(super) fn has_stopped(&self) -> bool {
        self.found_divergence.is_some() || self.needs_program.is_some()
    }

    pub(super) fn into_decision(
        mut self,
        reply: SessionReply,
    ) -> Result<SessionDecision, DraftStop> {
        if let Some(found) = self.found_divergence {
            return Err(DraftStop::Diverged(found));
        }
        if let Some(run) = self.needs_program {
            return Err(DraftStop::Needs(SessionNeed::Program(run)));
        }
        self.add_continue();
        Ok(SessionDecision {
            events: self.events,
            work: self.work,
            journal: self.journal,
            dropped: self.dropped,
            reply,
            after: self.session,
        })
    }

    /// A turn that can start needs somebody to start it.
    fn add_continue(&mut self) {
        if self.session.ended.is_some() {
            return;
        }
        let Some(next) = self.next_turn() else {
            return;
        };
        let id = continue_id(&self.session, next.number);
        self.work.push((id, SessionWork::Continue));
    }
}

/// What may still happen to a session that has ended: deliveries, reports about them, audits.
fn may_follow_end(body: &SessionEventBody) -> bool {
    matches!(
        body,
        SessionEventBody::ResponseQueued { .. }
            | SessionEventBody::ResponseSent { .. }
            | SessionEventBody::ResponsePersisted { .. }
            | SessionEventBody::ResponseFailed { .. }
            | SessionEventBody::SendFailed { .. }
            | SessionEventBody::ResponseSuppressed { .. }
            | SessionEventBody::WorkRequested(_)
            | SessionEventBody::WorkFinished { .. }
            | SessionEventBody::KvChanged { .. }
            | SessionEventBody::ProfileChanged(_)
            | SessionEventBody::AuthorizationDecided(_)
    )
}

/// Why a draft gives no decision.
#[derive(Debug)]
pub(super) enum DraftStop {
    Needs(SessionNeed),
    /// The decision is made again, knowing this.
    Diverged(Divergence),
}

/// The code of a run no longer fits its journal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Divergence {
    pub(super) run: RunId,
    pub(super) step: u32,
    pub(super) expected: Value,
    pub(super) actual: Value,
}

/// The outbox entry that starts a turn.
pub(super) fn continue_id(session: &ChatSession, turn: u64) -> EffectId {
    EffectId::from(format!("{}:turn:{turn}", session.id()))
}

/// Something that has to be loaded before the decision can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionNeed {
    /// The program of a flow run, at the end of its journal.
    Program(RunId),
}
