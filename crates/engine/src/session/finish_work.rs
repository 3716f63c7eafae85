//! The outcome of work: which turn, delivery or report it belongs to.

use super::draft::{Draft, continue_id};
use tandem_record::EffectId;
use tandem_record::conversation::{CodeOutcome, SessionEnd, SessionEventBody as Body, WorkOutcome};

/// Texts that one call of code may send.
const MAX_SIDE_MESSAGES: usize = 100;

impl Draft<'_> {
    pub(super) fn finish_work(&mut self, effect: &EffectId, outcome: &WorkOutcome) {
        match outcome {
            WorkOutcome::Continue => self.start_next_turn(effect),
            WorkOutcome::Sent(result) => self.finish_send(effect, result),
            WorkOutcome::Reported => {}
            WorkOutcome::WorkflowAnswered { interrupt, error } => {
                self.note_workflow_answer(interrupt, error.as_ref());
            }
            WorkOutcome::NoticeFailed(error) => self.report_failure("notify", &error.message),
            WorkOutcome::Code(done) if self.session.is_report(effect) => {
                self.finish_report(effect, done);
            }
            _ => self.finish_turn_work(effect, outcome),
        }
    }

    fn start_next_turn(&mut self, effect: &EffectId) {
        let next = self.next_turn();
        let is_due = next.is_some_and(|w| continue_id(&self.session, w.number) == *effect);
        if self.session.ended.is_none() && is_due {
            self.run_turn();
        }
    }

    /// Work of a turn that was cut off changes nothing any more.
    fn finish_turn_work(&mut self, effect: &EffectId, outcome: &WorkOutcome) {
        let turn = self.session.turn_of_work(effect);
        let pending = turn.and_then(|turn| turn.pending.clone());
        let Some(pending) = pending.filter(|work| work.effect_id == *effect) else {
            return;
        };
        self.emit(Body::WorkFinished {
            effect_id: effect.clone(),
        });
        if let WorkOutcome::Code(done) | WorkOutcome::Tool(done) = outcome {
            self.apply_code(done);
        }
        let next = self.use_outcome(&pending, outcome);
        self.advance(next);
    }

    /// What a call of code did beside its result.
    pub(super) fn apply_code(&mut self, done: &CodeOutcome) {
        for (key, value) in &done.kv {
            if self.note_takeover_write(key, value.as_ref()) {
                continue;
            }
            match self.session.check_key(key, value.as_ref()) {
                Ok(()) => {
                    self.emit(Body::KvChanged {
                        key: key.clone(),
                        value: value.clone(),
                    });
                }
                Err(error) => self.report_failure("kv", &error.message),
            }
        }
        for message in done.side_messages.iter().take(MAX_SIDE_MESSAGES) {
            self.send_side_message(&message.to, &message.text);
        }
        if let Some(change) = &done.profile {
            self.emit(Body::ProfileChanged(change.clone()));
        }
        if !done.end_session || self.session.ended.is_some() {
            return;
        }
        let reason = SessionEnd::Agent;
        match self.session.turn {
            Some(_) => {
                self.emit(Body::SessionEndRequested { reason });
            }
            None => self.end_session(reason),
        }
    }

    /// Something failed that leaves the turn as it is.
    pub(super) fn report_failure(&mut self, stage: &str, reason: &str) {
        self.emit(Body::ResponseFailed {
            stage: stage.to_owned(),
            reason: reason.to_owned(),
            fatal: false,
        });
    }
}
