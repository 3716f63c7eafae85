//! Which rule answers which command.

use super::draft::{Draft, DraftStop, SessionContext, SessionDecision, SessionNeed};
use super::state::ChatSession;
use std::collections::BTreeSet;
use tandem_record::conversation::{
    AdminActor, AdminRequest, ClosedEscalation, EscalationHolder, InboundMessage, SessionCommand,
    SessionEnd, SessionEventBody as Body, SessionReply, SessionStart, SessionTimer, TakeoverOrigin,
    TurnCause,
};
use tandem_record::{EscalationId, Timestamp};

/// Why a command is not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SessionRefusal {
    #[error("there is no such session")]
    Unknown,
    #[error("the session has ended")]
    Ended,
    #[error("there is no such escalation")]
    EscalationNotFound,
    #[error("several escalations are open: {}", .0.iter().map(EscalationId::as_str).collect::<Vec<_>>().join(", "))]
    EscalationAmbiguous(Vec<EscalationId>),
    #[error("the escalation is of another session")]
    EscalationElsewhere,
    #[error("the escalation is the work of {}", .0.assignee)]
    EscalationClaimed(Box<EscalationHolder>),
    #[error("the escalation was closed before")]
    AlreadyResolved(Box<ClosedEscalation>),
    #[error("there is no flow {0}")]
    UnknownFlow(String),
    #[error("the input does not fit the flow: {0}")]
    InvalidInput(String),
    #[error("another flow is active")]
    FlowActive,
    #[error("there is no such flow run, or none is active")]
    NoFlow,
    #[error("the run was not waiting when it diverged; restart or abort it")]
    NotRetryable,
    #[error("too many messages wait")]
    Overloaded,
    #[error("message and data take more than {limit} bytes")]
    DecisionTooLarge { limit: usize },
    #[error("another person must decide this")]
    NotAnApprover,
    #[error("there is no such text to decide about")]
    DraftNotFound,
    #[error("this question is not open")]
    QuestionClosed,
    #[error("{} has the conversation", .holder.as_deref().unwrap_or("a person"))]
    TakeoverActive { holder: Option<String> },
    #[error("no person has the conversation")]
    NoTakeover,
    #[error("the agent has nowhere to take a conversation over to")]
    TakeoverUnavailable,
    #[error("nobody would answer: the agent has no model")]
    AgentUnavailable,
    #[error("the bridge was stopped")]
    ProxyStopped,
    #[error("too much input of admins waits for the flow")]
    ProxyFull,
}

/// A decision that could not be made.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUndecided {
    Refused(SessionRefusal),
    Needs(SessionNeed),
}

impl From<SessionNeed> for SessionUndecided {
    fn from(need: SessionNeed) -> Self {
        Self::Needs(need)
    }
}

impl From<SessionRefusal> for SessionUndecided {
    fn from(refusal: SessionRefusal) -> Self {
        Self::Refused(refusal)
    }
}

type Decided = Result<SessionDecision, SessionUndecided>;

/// Why one draft of a decision is not the decision.
enum Stopped {
    Refused(SessionRefusal),
    Draft(DraftStop),
}

impl From<SessionRefusal> for Stopped {
    fn from(refusal: SessionRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<DraftStop> for Stopped {
    fn from(stop: DraftStop) -> Self {
        Self::Draft(stop)
    }
}

/// Turns that may wait. A message beyond them is refused and may be delivered again later.
const MAX_WAITING: usize = 1_000;

/// Starts a session with its first message.
pub fn start(start: SessionStart, message: InboundMessage, cx: &SessionContext<'_>) -> Decided {
    let session = ChatSession::new(start.clone(), cx.now);
    let first = Body::SessionStarted(Box::new(start));
    let mut draft = Draft::begin(session, first, cx);
    let turn = draft.accept(message);
    let decided = draft.into_decision(SessionReply::Accepted { turn });
    undecided(decided.map_err(Stopped::Draft))
}

/// Begins a session without a message: a workflow or a schedule addresses the user first.
pub fn open(start: SessionStart, cx: &SessionContext<'_>) -> Decided {
    let session = ChatSession::new(start.clone(), cx.now);
    let draft = Draft::begin(session, Body::SessionStarted(Box::new(start)), cx);
    undecided(
        draft
            .into_decision(SessionReply::Done)
            .map_err(Stopped::Draft),
    )
}

pub fn decide(session: &ChatSession, command: &SessionCommand, cx: &SessionContext<'_>) -> Decided {
    match attempt(Draft::new(session.clone(), cx), command) {
        // Nothing of the first draft is kept: the run is left where it waits.
        Err(Stopped::Draft(DraftStop::Diverged(found))) => {
            let mut draft = Draft::new(session.clone(), cx);
            draft.divergence = Some(found);
            undecided(attempt(draft, command))
        }
        decided => undecided(decided),
    }
}

fn undecided(decided: Result<SessionDecision, Stopped>) -> Decided {
    decided.map_err(|stopped| match stopped {
        Stopped::Refused(refusal) => SessionUndecided::Refused(refusal),
        Stopped::Draft(DraftStop::Needs(need)) => SessionUndecided::Needs(need),
        // A draft that knows of a divergence does not resume that program again.
        Stopped::Draft(DraftStop::Diverged(found)) => {
            SessionUndecided::Needs(SessionNeed::Program(found.run))
        }
    })
}

fn attempt(mut draft: Draft<'_>, command: &SessionCommand) -> Result<SessionDecision, Stopped> {
    let reply = draft.carry_out(command)?;
    Ok(draft.into_decision(reply)?)
}

impl Draft<'_> {
    fn carry_out(&mut self, command: &SessionCommand) -> Result<SessionReply, SessionRefusal> {
        Ok(match command {
            // The session exists: this is another message of it.
            SessionCommand::Start { message, .. } | SessionCommand::Receive { message } => {
                self.admit_message()?;
                let turn = self.accept((**message).clone());
                SessionReply::Accepted { turn }
            }
            SessionCommand::ReceiveAndBegin { message } => {
                self.admit_message()?;
                let turn = self.accept((**message).clone());
                self.begin_only_turn();
                SessionReply::Accepted { turn }
            }
            // It exists already.
            SessionCommand::Open { .. } => SessionReply::Done,
            SessionCommand::RunCommand {
                message,
                transport,
                target,
            } => {
                self.admit_message()?;
                self.emit(Body::TurnQueued {
                    cause: TurnCause::AdminCommand {
                        message: message.clone(),
                        transport: transport.clone(),
                        target: target.clone(),
                    },
                });
                let turn = self.session.last_turn;
                SessionReply::Accepted { turn }
            }
            SessionCommand::ReceiveProxyInput { proxy, input } => {
                self.admit_message()?;
                self.admit_proxy_input(proxy, input)?
            }
            SessionCommand::FinishWork { effect, outcome } => {
                self.finish_work(effect, outcome);
                SessionReply::Done
            }
            SessionCommand::FireTimer(timer) => {
                self.fire_timer(timer);
                SessionReply::Done
            }
            SessionCommand::Act { actor, request } => self.act(actor, request)?,
            SessionCommand::WorkflowFinished { interrupt, result } => {
                self.note_workflow_end(interrupt, result);
                SessionReply::Done
            }
            SessionCommand::WorkflowAsked {
                interrupt,
                question,
            } => {
                self.note_workflow_question(interrupt, question);
                SessionReply::Done
            }
            SessionCommand::WorkflowQuestionClosed(closed) => {
                self.close_workflow_question(closed);
                SessionReply::Done
            }
            SessionCommand::StartFlow {
                flow_id,
                input,
                parent,
                on_active,
            } => {
                self.fire_due();
                self.start_for_workflow(flow_id, input.clone(), parent, *on_active)?
            }
            SessionCommand::BeginScheduled { turn } => self.accept_scheduled(turn)?,
            SessionCommand::CancelFlow { parent } => {
                self.cancel_flow_of(parent);
                SessionReply::Done
            }
            SessionCommand::ReportNondeterminism(found) => {
                if self.session.ended.is_some() {
                    return Err(SessionRefusal::Ended);
                }
                self.emit_for(
                    Some(found.flow.clone()),
                    Body::FlowNondeterministic {
                        step: found.step,
                        expected: found.expected.clone(),
                        actual: found.actual.clone(),
                        code_hash: found.code_hash.clone(),
                    },
                );
                SessionReply::Done
            }
            SessionCommand::ChangeProfile(change) => {
                if self.session.ended.is_some() {
                    return Err(SessionRefusal::Ended);
                }
                self.emit(Body::ProfileChanged(change.clone()));
                SessionReply::Done
            }
            SessionCommand::RecordExternalReply {
                message_id,
                text,
                sent_at,
            } => self.note_external_reply(message_id, text, *sent_at)?,
            SessionCommand::WithholdText { effect } => {
                self.withhold_text(effect);
                SessionReply::Done
            }
            SessionCommand::RecordAuthorization(decision) => {
                self.actor = decision.actor.clone();
                self.emit(Body::AuthorizationDecided(decision.clone()));
                SessionReply::Done
            }
            SessionCommand::Authorized { decision, command } => {
                self.actor.clone_from(&decision.actor);
                self.emit(Body::AuthorizationDecided(decision.clone()));
                self.actor = None;
                self.carry_out(command)?
            }
        })
    }

    fn act(
        &mut self,
        actor: &AdminActor,
        request: &AdminRequest,
    ) -> Result<SessionReply, SessionRefusal> {
        // A deadline that has passed comes before a decision that arrives now.
        self.fire_due();
        self.actor = Some(actor.clone());
        match request {
            AdminRequest::Resolve {
                escalation,
                decision,
            } => self.resolve(escalation.as_ref(), decision),
            AdminRequest::Desk { escalation, action } => self.do_desk_work(escalation, action),
            AdminRequest::StartFlow { flow_id, input } => {
                self.queue_flow_start(flow_id, input.clone())
            }
            AdminRequest::AbortFlow => self.abort_flow(),
            AdminRequest::EndSession => {
                if self.session.ended.is_none() {
                    self.end_session(SessionEnd::Api);
                }
                Ok(SessionReply::Done)
            }
            AdminRequest::SetMode { mode } => {
                if self.session.ended.is_some() {
                    return Err(SessionRefusal::Ended);
                }
                self.emit(Body::ModeChanged { mode: *mode });
                Ok(SessionReply::Done)
            }
            AdminRequest::DecideDraft { draft, decision } => self.decide_draft(draft, decision),
            AdminRequest::SettleDivergence { run, action } => self.settle_divergence(run, *action),
            AdminRequest::TakeOver => self.take_over(TakeoverOrigin::Api),
            AdminRequest::SendTakeoverMessage { message_id, text } => {
                self.send_takeover_message(message_id, text)
            }
            AdminRequest::HandBack { note } => self.queue_handback(note.clone()),
            AdminRequest::AnswerForUser { interrupt, value } => {
                self.queue_answer(interrupt, value.clone())
            }
            AdminRequest::StopProxy { proxy, reason } => {
                Ok(self.stop_bridge_from_outside(proxy, reason.as_deref()))
            }
        }
    }

    /// Begins the turn that waits, if the session has nothing else to do.
    pub(super) fn begin_only_turn(&mut self) {
        let session = &self.session;
        if session.turn.is_none() && session.ended.is_none() && session.waiting.len() == 1 {
            self.run_turn();
        }
    }

    pub(super) fn admit_message(&mut self) -> Result<(), SessionRefusal> {
        if self.session.ended.is_some() {
            return Err(SessionRefusal::Ended);
        }
        if self.session.waiting.len() >= MAX_WAITING {
            return Err(SessionRefusal::Overloaded);
        }
        // A deadline that has passed comes before a message that arrives now.
        self.fire_due();
        Ok(())
    }

    fn fire(&mut self, timer: &SessionTimer) {
        match timer {
            SessionTimer::Idle => self.end_if_idle(),
            SessionTimer::Interrupt { id } => self.queue_deadline(id),
            SessionTimer::Escalation { id } => self.time_out_escalation(id),
            SessionTimer::Proxy { id } => self.time_out_bridge(id),
            SessionTimer::Burst => self.close_burst(),
            SessionTimer::Reminder { .. } => self.queue_reminder(timer),
            SessionTimer::Approval { id } => self.queue_approval_deadline(id),
            SessionTimer::TakeoverIdle => self.end_idle_takeover(),
        }
    }

    fn end_if_idle(&mut self) {
        if self.session.ended.is_none() && self.session.is_idle(self.now) {
            self.end_session(SessionEnd::Idle);
        }
    }

    /// Whether the state has this timer and its time has come.
    pub(super) fn is_due(&self, timer: &SessionTimer) -> bool {
        let due = self.session.required_timers().get(timer).copied();
        due.is_some_and(|due| due <= self.now)
    }

    /// A timer came. What was due before it comes first; what is due after it has timers of its own, which may have
    /// to wait for those of other sessions.
    fn fire_timer(&mut self, timer: &SessionTimer) {
        if self.session.ended.is_some() {
            return;
        }
        if *timer == SessionTimer::Idle {
            self.fire_until(self.now, true);
            return self.end_if_idle();
        }
        let due = self.session.required_timers().get(timer).copied();
        if let Some(due) = due.filter(|due| *due <= self.now) {
            self.fire_until(due, true);
        }
    }

    /// Does what is due before anything else happens, in the order of the deadlines.
    pub(super) fn fire_due(&mut self) {
        self.fire_until(self.now, false);
    }

    /// Fires what is due until then. `begins`: the turn of a deadline begins before the next deadline, unless
    /// another turn is under way. That of a reminder does so always, because it runs no code of a flow.
    fn fire_until(&mut self, until: Timestamp, begins: bool) {
        let mut fired = BTreeSet::new();
        while let Some(timer) = self.next_due(until, &fired) {
            self.fire(&timer);
            if begins || matches!(timer, SessionTimer::Reminder { .. }) {
                self.begin_only_turn();
            }
            if self.has_stopped() {
                return;
            }
            fired.insert(timer);
        }
    }

    /// The first timer until then that was not fired. At the same time, a reminder comes before the timeout of its
    /// question.
    fn next_due(&self, until: Timestamp, fired: &BTreeSet<SessionTimer>) -> Option<SessionTimer> {
        let timers = self.session.required_timers().into_iter();
        let due = timers.filter(|(timer, due)| {
            *due <= until && *timer != SessionTimer::Idle && !fired.contains(timer)
        });
        let is_timeout = |timer: &SessionTimer| matches!(timer, SessionTimer::Interrupt { .. });
        let first = due.min_by_key(|(timer, due)| (*due, is_timeout(timer)));
        first.map(|(timer, _)| timer)
    }
}
