//! Reminders of open questions, and answers that somebody gives for the user.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::lifetime::reminder_of;
use super::turn::Next;
use serde_json::Value;
use tandem_record::InterruptId;
use tandem_record::conversation::{
    CandidateOrigin, ConfirmOutcome, FlowPause, SessionEventBody as Body, SessionReply,
    SessionTimer, TurnCause,
};

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
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        let is_open = pause.is_some_and(|pause| pause.interrupt_id() == interrupt);
        let is_user_question = matches!(
            pause,
            Some(FlowPause::Ask { .. } | FlowPause::Confirm { .. })
        );
        if !is_open || !is_user_question {
            return Err(SessionRefusal::QuestionClosed);
        }
        self.emit(Body::TurnQueued {
            cause: TurnCause::Answered {
                interrupt: interrupt.clone(),
                value,
            },
        });
        let turn = self.session.last_turn;
        Ok(SessionReply::Accepted { turn })
    }

    pub(super) fn answer_for_user(&mut self, interrupt: &InterruptId, value: Value) -> Next {
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.clone());
        let pause = pause.filter(|pause| pause.interrupt_id() == interrupt);
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match pause {
            Some(FlowPause::Ask { key, .. }) => self.take_ask_answer(interrupt, key, text),
            Some(FlowPause::Confirm { .. }) => {
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
