//! Which rule answers which command.

use super::draft::{Draft, SessionContext, SessionDecision, SessionNeed, continue_id};
use super::state::ChatSession;
use tandem_record::conversation::{
    AdminRequest, ClosedEscalation, CodeOutcome, InboundMessage, SessionCommand, SessionEnd,
    SessionEventBody as Body, SessionReply, SessionStart, SessionTimer, WorkOutcome,
};
use tandem_record::{EffectId, EscalationId};

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
    #[error("no flow is active")]
    NoFlow,
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

/// Starts a session with its first message.
pub fn start(start: SessionStart, message: InboundMessage, cx: &SessionContext<'_>) -> Decided {
    let session = ChatSession::new(start.clone(), cx.now);
    let first = Body::SessionStarted(Box::new(start));
    accept(Draft::begin(session, first, cx), message)
}

pub fn decide(session: &ChatSession, command: &SessionCommand, cx: &SessionContext<'_>) -> Decided {
    let mut draft = Draft::new(session.clone(), cx);
    match command {
        // The session exists: this is another message of it.
        SessionCommand::Start { message, .. } | SessionCommand::Receive { message } => {
            if session.ended.is_some() {
                return Err(SessionRefusal::Ended.into());
            }
            // A deadline that has passed comes before a message that arrives now.
            draft.fire_due();
            accept(draft, (**message).clone())
        }
        SessionCommand::FinishWork { effect, outcome } => {
            draft.finish_work(effect, outcome);
            Ok(draft.into_decision(SessionReply::Done)?)
        }
        SessionCommand::FireTimer(timer) => {
            if session.ended.is_none() {
                draft.fire(timer);
            }
            Ok(draft.into_decision(SessionReply::Done)?)
        }
        SessionCommand::Act { actor, request } => {
            draft.actor = Some(actor.clone());
            let reply = match request {
                AdminRequest::Resolve {
                    escalation,
                    decision,
                } => draft.resolve(escalation.as_ref(), decision)?,
                AdminRequest::StartFlow { flow_id, input } => {
                    draft.queue_flow_start(flow_id, input.clone())?
                }
                AdminRequest::AbortFlow => draft.abort_flow()?,
                AdminRequest::EndSession => {
                    if session.ended.is_none() {
                        draft.end_session(SessionEnd::Api);
                    }
                    SessionReply::Done
                }
            };
            Ok(draft.into_decision(reply)?)
        }
        SessionCommand::RecordAuthorization(decision) => {
            draft.actor = decision.actor.clone();
            draft.emit(Body::AuthorizationDecided(decision.clone()));
            Ok(draft.into_decision(SessionReply::Done)?)
        }
    }
}

fn accept(mut draft: Draft<'_>, message: InboundMessage) -> Decided {
    draft.emit(Body::MessageReceived {
        message: Box::new(message),
    });
    let turn = draft.session.last_turn;
    Ok(draft.into_decision(SessionReply::Accepted { turn })?)
}

impl Draft<'_> {
    fn finish_work(&mut self, effect: &EffectId, outcome: &WorkOutcome) {
        match outcome {
            WorkOutcome::Continue => self.start_next_turn(effect),
            WorkOutcome::Sent(result) => self.finish_send(effect, result),
            WorkOutcome::Code(done) if self.session.reporting.as_ref() == Some(effect) => {
                self.finish_report(effect, done);
            }
            _ => self.finish_turn_work(effect, outcome),
        }
    }

    fn start_next_turn(&mut self, effect: &EffectId) {
        let next = self.session.waiting.front();
        let is_due = next.is_some_and(|w| continue_id(&self.session, w.number) == *effect);
        if self.session.turn.is_none() && self.session.ended.is_none() && is_due {
            self.run_turn();
        }
    }

    fn finish_turn_work(&mut self, effect: &EffectId, outcome: &WorkOutcome) {
        let pending = self
            .session
            .turn
            .as_ref()
            .and_then(|turn| turn.pending.clone());
        let Some(pending) = pending.filter(|work| work.effect_id == *effect) else {
            return;
        };
        self.emit(Body::WorkFinished {
            effect_id: effect.clone(),
        });
        if self.session.ended.is_some() {
            // The session ended while the work was under way: nothing follows from it.
            return;
        }
        if let WorkOutcome::Code(done) | WorkOutcome::Tool(done) = outcome {
            self.apply_code(done);
        }
        let next = self.use_outcome(&pending, outcome);
        self.advance(next);
    }

    /// What a call of code did beside its result.
    pub(super) fn apply_code(&mut self, done: &CodeOutcome) {
        for (key, value) in &done.kv {
            self.emit(Body::KvChanged {
                key: key.clone(),
                value: value.clone(),
            });
        }
        for message in &done.side_messages {
            self.send_side_message(&message.to, &message.text);
        }
        if done.end_session && self.session.turn.is_some() {
            self.emit(Body::SessionEndRequested {
                reason: SessionEnd::Agent,
            });
        }
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
        }
    }

    /// Queues what is due before anything else happens.
    fn fire_due(&mut self) {
        let due: Vec<SessionTimer> = self
            .session
            .required_timers()
            .into_iter()
            .filter(|(timer, due)| *due <= self.now && *timer != SessionTimer::Idle)
            .map(|(timer, _)| timer)
            .collect();
        for timer in due {
            self.fire(&timer);
        }
    }
}
