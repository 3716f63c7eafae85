//! Which rule answers which command.

use super::draft::{Draft, DraftStop, SessionContext, SessionDecision, SessionNeed};
use super::state::ChatSession;
use tandem_record::EscalationId;
use tandem_record::conversation::{
    AdminActor, AdminRequest, ClosedEscalation, InboundMessage, SessionCommand, SessionEnd,
    SessionEventBody as Body, SessionReply, SessionStart, SessionTimer, TurnCause,
};

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
    #[error("another person must decide this")]
    NotAnApprover,
    #[error("there is no such text to decide about")]
    DraftNotFound,
    #[error("this question is not open")]
    QuestionClosed,
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
    let reply = match command {
        // The session exists: this is another message of it.
        SessionCommand::Start { message, .. } | SessionCommand::Receive { message } => {
            draft.admit_message()?;
            let turn = draft.accept((**message).clone());
            SessionReply::Accepted { turn }
        }
        // It exists already.
        SessionCommand::Open { .. } => SessionReply::Done,
        SessionCommand::RunCommand {
            message,
            transport,
            target,
        } => {
            draft.admit_message()?;
            draft.emit(Body::TurnQueued {
                cause: TurnCause::AdminCommand {
                    message: message.clone(),
                    transport: transport.clone(),
                    target: target.clone(),
                },
            });
            let turn = draft.session.last_turn;
            SessionReply::Accepted { turn }
        }
        SessionCommand::FinishWork { effect, outcome } => {
            draft.finish_work(effect, outcome);
            SessionReply::Done
        }
        SessionCommand::FireTimer(timer) => {
            if draft.session.ended.is_none() {
                draft.fire(timer);
            }
            SessionReply::Done
        }
        SessionCommand::Act { actor, request } => draft.act(actor, request)?,
        SessionCommand::WorkflowFinished { interrupt, result } => {
            draft.note_workflow_end(interrupt, result);
            SessionReply::Done
        }
        SessionCommand::StartFlow {
            flow_id,
            input,
            parent,
            on_active,
        } => {
            draft.fire_due();
            draft.start_for_workflow(flow_id, input.clone(), parent, *on_active)?
        }
        SessionCommand::CancelFlow { parent } => {
            draft.cancel_flow_of(parent);
            SessionReply::Done
        }
        SessionCommand::RecordAuthorization(decision) => {
            draft.actor = decision.actor.clone();
            draft.emit(Body::AuthorizationDecided(decision.clone()));
            SessionReply::Done
        }
    };
    Ok(draft.into_decision(reply)?)
}

impl Draft<'_> {
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
            AdminRequest::AnswerForUser { interrupt, value } => {
                self.queue_answer(interrupt, value.clone())
            }
        }
    }

    fn admit_message(&mut self) -> Result<(), SessionRefusal> {
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

    pub(super) fn fire(&mut self, timer: &SessionTimer) {
        match timer {
            SessionTimer::Idle => {
                if self.session.is_idle(self.now) {
                    self.end_session(SessionEnd::Idle);
                }
            }
            SessionTimer::Interrupt { id } => self.queue_deadline(id),
            SessionTimer::Escalation { id } => self.time_out_escalation(id),
            SessionTimer::Burst => self.close_burst(),
            SessionTimer::Reminder { .. } => self.queue_reminder(timer),
            SessionTimer::Approval { id } => self.queue_approval_deadline(id),
        }
    }

    /// Whether the state has this timer and its time has come.
    pub(super) fn is_due(&self, timer: &SessionTimer) -> bool {
        let due = self.session.required_timers().get(timer).copied();
        due.is_some_and(|due| due <= self.now)
    }

    /// Does what is due before anything else happens, in the order of the deadlines.
    pub(super) fn fire_due(&mut self) {
        if self.session.ended.is_some() {
            return;
        }
        let timers = self.session.required_timers().into_iter();
        let mut due: Vec<_> = timers
            .filter(|(timer, due)| *due <= self.now && *timer != SessionTimer::Idle)
            .collect();
        due.sort_by_key(|(_, due)| *due);
        for (timer, _) in due {
            self.fire(&timer);
        }
    }
}
