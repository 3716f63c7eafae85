//! Reminders of open questions, and answers that somebody gives for the user.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::lifetime::reminder_of;
use super::turn::Next;
use crate::flow::AuthorSchema;
use serde_json::Value;
use tandem_record::InterruptId;
use tandem_record::conversation::{
    CandidateOrigin, ConfirmOutcome, FlowPause, SessionEventBody as Body, SessionReply,
    SessionTimer, TurnCause, WaitFor,
};
use tandem_schema::{MAX_WORK, Meter};

/// Bytes of an answer given for the user, as JSON: as many as a message may have.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

impl Draft<'_> {
    pub(super) fn queue_reminder(&mut self, timer: &SessionTimer) {
        if let SessionTimer::Reminder { id, index } = timer
            && self.is_due(timer)
        {
            self.emit(Body::TurnQueued {
                cause: TurnCause::Reminder {
                    interrupt: id.clone(),
                    index: *index,
                },
            });
        }
    }

    /// The question is still open: the user is reminded of it.
    pub(super) fn remind(&mut self, interrupt: &InterruptId, index: u32) -> Next {
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        let origin = match pause {
            Some(pause) if pause.interrupt_id() != interrupt => return Next::DONE,
            Some(FlowPause::Ask { .. }) => CandidateOrigin::Ask,
            Some(FlowPause::Confirm { .. }) => CandidateOrigin::Confirm,
            _ => return Next::DONE,
        };
        let effect = flow.and_then(|flow| flow.current.as_ref());
        let Some(reminder) = effect.and_then(|effect| reminder_of(effect, index)) else {
            return Next::DONE;
        };
        self.emit(Body::ReminderSent {
            interrupt_id: interrupt.clone(),
            index,
        });
        self.respond(&reminder.text, origin, None)
    }

    /// Somebody with the right answers the open question.
    pub(super) fn queue_answer(
        &mut self,
        interrupt: &InterruptId,
        value: Value,
    ) -> Result<SessionReply, SessionRefusal> {
        let asks_consent = self.session.user_approval();
        if asks_consent.is_some_and(|request| request.interrupt_id == *interrupt) {
            if !value.is_boolean() {
                let why = "the answer to this question is true or false";
                return Err(SessionRefusal::InvalidInput(why.to_owned()));
            }
            return Ok(self.queue_answered(interrupt, value));
        }
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        let is_open = pause.is_some_and(|pause| pause.interrupt_id() == interrupt);
        let is_user_question = match pause {
            Some(FlowPause::Ask { .. } | FlowPause::Confirm { .. }) => true,
            Some(FlowPause::Wait { wait_for, .. }) => *wait_for == WaitFor::ConfirmResponse,
            Some(FlowPause::Workflow { .. } | FlowPause::ProxyWait { .. }) | None => false,
        };
        if !is_open || !is_user_question {
            return Err(SessionRefusal::QuestionClosed);
        }
        self.check_answer(&value)?;
        Ok(self.queue_answered(interrupt, value))
    }

    fn queue_answered(&mut self, interrupt: &InterruptId, value: Value) -> SessionReply {
        self.emit(Body::TurnQueued {
            cause: TurnCause::Answered {
                interrupt: interrupt.clone(),
                value,
                actor: self.actor.clone(),
            },
        });
        let turn = self.session.last_turn;
        SessionReply::Accepted { turn }
    }

    /// Whether an answer given for the user fits the question. A schema that is code is not looked at.
    fn check_answer(&self, value: &Value) -> Result<(), SessionRefusal> {
        let invalid = |why: &str| Err(SessionRefusal::InvalidInput(why.to_owned()));
        if value.to_string().len() > MAX_ANSWER_BYTES {
            return invalid("the answer takes more than 64 KiB");
        }
        let flow = self.session.flow.as_ref();
        if let Some(FlowPause::Ask { .. }) = flow.and_then(|flow| flow.pause.as_ref()) {
            return match value.is_string() {
                true => Ok(()),
                false => invalid("the answer to this question is a text"),
            };
        }
        let confirm = self.awaited_confirm();
        let Some(source) = confirm.and_then(|confirm| confirm.response_schema) else {
            return match value.is_boolean() {
                true => Ok(()),
                false => invalid("the answer to this question is true or false"),
            };
        };
        let schema = AuthorSchema::compile(&source);
        let errors = schema.map(|schema| schema.errors(value, &Meter::with_limit(MAX_WORK)));
        match errors {
            Ok(errors) if errors.is_empty() => Ok(()),
            Ok(errors) => invalid(&errors.join("; ")),
            Err(_) => invalid("the schema of the question cannot be read"),
        }
    }

    pub(super) fn answer_for_user(&mut self, interrupt: &InterruptId, value: Value) -> Next {
        if let Some(next) = self.consent_for_user(interrupt, &value) {
            return next;
        }
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.clone());
        let pause = pause.filter(|pause| pause.interrupt_id() == interrupt);
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match pause {
            Some(FlowPause::Ask { key, .. }) => self.take_ask_answer(interrupt, key, text),
            Some(FlowPause::Confirm { .. } | FlowPause::Wait { .. }) => {
                let decision = match value {
                    Value::Null | Value::Bool(false) => ConfirmOutcome::Negative,
                    _ => ConfirmOutcome::Positive,
                };
                self.resolve_confirm(decision, None, &text, value)
            }
            _ => {
                self.emit(Body::InterruptLate {
                    interrupt_id: interrupt.clone(),
                });
                Next::DONE
            }
        }
    }
}
