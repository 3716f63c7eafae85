//! What a user's message does while a flow waits.

use super::confirm::{ConfirmReader, ConfirmReading};
use super::draft::Draft;
use super::keywords::Keywords;
use super::program::Resume;
use super::turn::Next;
use crate::agent::UnrecognizedReply;
use crate::flow::effect::ConfirmEffect;
use crate::flow::{AuthorSchema, FlowEffect};
use serde_json::{Value, json};
use tandem_record::conversation::{
    CandidateOrigin, ChatAnswer, ChatMessage, ChatRole, ConfirmOutcome, FlowPause, FlowRecord,
    ModelPurpose, ResumedBy, SessionEventBody as Body, TurnCause, WaitFor,
};
use tandem_record::{InterruptId, RunId, Seq};

impl Draft<'_> {
    pub(super) fn gate(&mut self) -> Next {
        if let Some(turn) = self.turn().cause.scheduled().cloned() {
            return self.start_scheduled_flow(&turn);
        }
        if let Some(next) = self.answer_approval() {
            return next;
        }
        let Some(flow) = &self.session.flow else {
            // A person was called without a flow.
            return match self.session.attached_escalation() {
                Some(_) => self.hold_message(),
                None => self.answer_after_divergence().unwrap_or(Next::Router),
            };
        };
        let pause = flow.pause.clone();
        let is_forwarded = self.forward_user_message(pause.as_ref());
        match pause {
            None => Next::Router,
            Some(FlowPause::Ask {
                interrupt_id, key, ..
            }) => self.answer_ask(&interrupt_id, key),
            Some(FlowPause::Confirm { asked, .. }) => self.answer_confirm(asked),
            Some(FlowPause::Wait {
                wait_for: WaitFor::ConfirmResponse,
                ..
            }) => self.answer_confirm(Seq(0)),
            Some(FlowPause::Workflow { .. }) => match self.answer_workflow_question() {
                Some(next) => next,
                None => self.hold_message(),
            },
            Some(FlowPause::Wait { .. }) => self.hold_message(),
            Some(FlowPause::ProxyWait { .. }) => {
                if !is_forwarded {
                    self.note_held_silently();
                }
                Next::DONE
            }
        }
    }

    /// A run diverged while the user wrote nothing: they are told now, once (Z-216).
    fn answer_after_divergence(&mut self) -> Option<Next> {
        let text = self.cx.agent.texts.fallback_reply.clone();
        let is_owed = self.session.owes_fallback && self.turn().cause.is_of_user();
        let is_told = is_owed && !text.trim().is_empty();
        is_told.then(|| self.respond(&text, CandidateOrigin::Fallback, None))
    }

    fn answer_ask(&mut self, interrupt: &InterruptId, key: String) -> Next {
        if let TurnCause::QueueReplay { .. } = self.turn().cause {
            // A question issued after the message was received: the message waits on.
            return self.hold_message();
        }
        let text = self.turn().text().to_owned();
        self.take_ask_answer(interrupt, key, text)
    }

    pub(super) fn take_ask_answer(
        &mut self,
        interrupt: &InterruptId,
        key: String,
        text: String,
    ) -> Next {
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        let answer = Some((key, text.clone()));
        self.note_resumed(interrupt, ResumedBy::UserReply, "answered", answer);
        self.resume_flow(Resume::Value(Some(Value::String(text))))
    }

    /// Records that a wait is over, and that a turn goes on with the run.
    fn note_resumed(
        &mut self,
        interrupt: &InterruptId,
        by: ResumedBy,
        outcome: &str,
        answer: Option<(String, String)>,
    ) {
        let Some(run) = self.session.flow.as_ref().map(|flow| flow.run.clone()) else {
            return;
        };
        let user = &self.session.start.user.external_user_id;
        let answered_by = (by == ResumedBy::UserReply)
            .then(|| self.actor.as_ref().map_or(user, |actor| &actor.id).clone());
        self.record(
            &run,
            FlowRecord::Resumed {
                interrupt_id: interrupt.clone(),
                by,
                outcome: outcome.to_owned(),
                answered_by,
            },
        );
        self.emit(Body::FlowResumed { by, answer });
        let turn = self.turn();
        let record = FlowRecord::Segment {
            turn: turn.number,
            trigger: turn.trigger(),
            context: self.session.segment_context(turn),
        };
        self.record(&run, record);
    }

    /// The code of the flow that waits no longer fits its journal, as an earlier draft found.
    pub(super) fn leave_diverged(&mut self) -> Option<Next> {
        let run = self.session.flow.as_ref().map(|flow| flow.run.clone());
        let found = self
            .divergence
            .take_if(|found| Some(&found.run) == run.as_ref())?;
        Some(self.diverge_flow(found))
    }

    /// The confirmation a reply is about, as its author wrote it: the one the flow waits at, or the last one
    /// where the flow waits for a reply by itself.
    pub(super) fn awaited_confirm(&self) -> Option<ConfirmEffect> {
        let flow = self.session.flow.as_ref()?;
        let is_wait = matches!(flow.pause, Some(FlowPause::Wait { .. }));
        let effect = match is_wait {
            true => flow.last_confirm.as_ref()?,
            false => flow.current.as_ref()?,
        };
        let FlowEffect::Confirm(mut confirm) = FlowEffect::parse(effect).ok()? else {
            return None;
        };
        let schema = confirm.response_schema.as_ref();
        if is_wait && schema.is_some_and(|schema| schema.json().is_none()) {
            // A schema in code lives in the effect at which the code waits, which is another one now.
            confirm.response_schema = None;
        }
        Some(confirm)
    }

    /// Reads a reply by the keywords of the agent.
    pub(super) fn read_plainly(&self, text: &str) -> ConfirmReading {
        let agent = self.cx.agent;
        let keywords = Keywords::of(None, &agent.hitl.confirm, agent.language);
        let reader = ConfirmReader {
            keywords: &keywords,
            schema: None,
            language: agent.language,
        };
        reader.read(text)
    }

    /// Reads a reply. `extracted` is what a model read from it, once it was asked.
    fn read_reply(
        &mut self,
        confirm: Option<&ConfirmEffect>,
        text: &str,
        extracted: Option<Option<&Value>>,
    ) -> ReadReply {
        let agent = self.cx.agent;
        let keywords = Keywords::of(confirm, &agent.hitl.confirm, agent.language);
        let schema = confirm.and_then(|confirm| confirm.response_schema.as_ref());
        let schema = schema.and_then(|source| AuthorSchema::compile(source).ok());
        let reader = ConfirmReader {
            keywords: &keywords,
            schema: schema.as_ref(),
            language: agent.language,
        };
        let is_in_realm = schema.as_ref().is_some_and(AuthorSchema::is_in_realm);
        let direct = match is_in_realm {
            true => match self.check_in_realm(&reader.candidates(text)) {
                Ok(read) => read,
                Err(run) => return ReadReply::NeedsProgram(run),
            },
            false => reader.read_directly(text),
        };
        if let Some(reading) = direct {
            return ReadReply::Is(reading);
        }
        let extracted = match extracted {
            None if agent.extraction_model.is_some() => return ReadReply::AskModel,
            None | Some(None) => None,
            Some(Some(value)) if is_in_realm => {
                match self.check_in_realm(std::slice::from_ref(value)) {
                    Ok(read) => read,
                    Err(run) => return ReadReply::NeedsProgram(run),
                }
            }
            Some(Some(value)) => reader.read_extracted(value.clone()),
        };
        ReadReply::Is(extracted.unwrap_or_else(|| reader.read_refusal(text)))
    }

    /// The first value that the schema in the author's code takes. Fails with a run whose program is
    /// not loaded.
    fn check_in_realm(&self, values: &[Value]) -> Result<Option<ConfirmReading>, RunId> {
        let Some(run) = self.session.flow.as_ref().map(|flow| flow.run.clone()) else {
            return Ok(None);
        };
        let mut programs = self.cx.programs.borrow_mut();
        for value in values {
            match programs.check_reply(&run, value, self.now) {
                None => return Err(run),
                Some(Ok(parsed)) => return Ok(Some(super::confirm::payload(parsed))),
                Some(Err(_)) => {}
            }
        }
        Ok(None)
    }

    fn answer_confirm(&mut self, asked: Seq) -> Next {
        if let TurnCause::QueueReplay { .. } = self.turn().cause {
            // A question issued after the message was received: the message waits on.
            return self.hold_message();
        }
        let text = self.turn().text().to_owned();
        if self.turn().received() < asked {
            return self.reprompt(&text, false);
        }
        self.use_confirm_reply(&text, None)
    }

    fn use_confirm_reply(&mut self, text: &str, extracted: Option<Option<&Value>>) -> Next {
        let confirm = self.awaited_confirm();
        match self.read_reply(confirm.as_ref(), text, extracted) {
            ReadReply::AskModel => self.extract(confirm.as_ref(), text),
            ReadReply::NeedsProgram(run) => {
                self.needs_program = Some(run);
                Next::Wait
            }
            ReadReply::Is(ConfirmReading::Positive(value)) => {
                self.resolve_confirm(ConfirmOutcome::Positive, None, text, value)
            }
            ReadReply::Is(ConfirmReading::Negative(value)) => {
                self.resolve_confirm(ConfirmOutcome::Negative, None, text, value)
            }
            ReadReply::Is(ConfirmReading::Unrecognized) => self.reprompt(text, true),
        }
    }

    /// Asks a model what the reply means.
    fn extract(&mut self, confirm: Option<&ConfirmEffect>, text: &str) -> Next {
        let schema = confirm.and_then(|confirm| confirm.response_schema.as_ref()?.json().cloned());
        let task = json!({"question": confirm.map(|c| &c.question), "schema": schema});
        let messages = vec![
            ChatMessage::new(ChatRole::System, task.to_string()),
            ChatMessage::new(ChatRole::User, text),
        ];
        self.ask_model(ModelPurpose::Extract, messages)
    }

    /// A model read a structured answer out of the reply, or could not.
    pub(super) fn use_extraction(&mut self, answer: Option<&ChatAnswer>) -> Next {
        let text = self.turn().text().to_owned();
        let value = answer.and_then(super::model_loop::structured_of);
        self.use_confirm_reply(&text, Some(value.as_ref()))
    }

    /// Asks again, or takes the reply for a refusal after too many of them.
    fn reprompt(&mut self, text: &str, counted: bool) -> Next {
        let flow = self.session.flow.as_ref();
        let Some(
            FlowPause::Confirm {
                interrupt_id,
                attempts,
                ..
            }
            | FlowPause::Wait {
                interrupt_id,
                attempts,
                ..
            },
        ) = flow.and_then(|flow| flow.pause.clone())
        else {
            return Next::DONE;
        };
        let settings = &self.cx.agent.hitl.confirm;
        let gives_up = settings.unrecognized == UnrecognizedReply::Decline
            || attempts >= settings.max_reprompts;
        let confirm = self.awaited_confirm();
        if counted && gives_up {
            let schema = confirm.is_some_and(|c| c.response_schema.is_some());
            let value = if schema {
                Value::Null
            } else {
                Value::Bool(false)
            };
            let reason = Some("unrecognized");
            return self.resolve_confirm(ConfirmOutcome::Negative, reason, text, value);
        }
        self.emit(Body::ConfirmUnrecognized {
            interrupt_id,
            text: text.to_owned(),
            attempt: attempts + 1,
            counted,
        });
        let question = confirm.map(|confirm| confirm.question).unwrap_or_default();
        self.respond(&question, CandidateOrigin::Confirm, None)
    }

    pub(super) fn resolve_confirm(
        &mut self,
        decision: ConfirmOutcome,
        reason: Option<&str>,
        text: &str,
        value: Value,
    ) -> Next {
        let Some(pause) = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.pause.clone())
        else {
            return Next::DONE;
        };
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        let interrupt_id = pause.interrupt_id().clone();
        let by = ResumedBy::UserReply;
        if let FlowPause::Wait { .. } = pause {
            let outcome = match decision {
                ConfirmOutcome::Positive => "positive",
                _ => "negative",
            };
            let payload = json!({"outcome": outcome, "value": value, "text": text});
            let noted = reason.unwrap_or(outcome);
            self.leave_pause(&interrupt_id, "wait", by, noted, Some(text));
            return self.resume_flow(Resume::Value(Some(payload)));
        }
        self.emit(Body::ConfirmResolved {
            interrupt_id: interrupt_id.clone(),
            decision,
            reason: reason.map(str::to_owned),
            text: text.to_owned(),
            value: Some(value.clone()),
        });
        let outcome = match (decision, reason) {
            (_, Some(reason)) => reason,
            (ConfirmOutcome::Positive, None) => "positive",
            _ => "negative",
        };
        self.leave_pause(&interrupt_id, "confirm", by, outcome, Some(text));
        self.resume_flow(Resume::Value(Some(value)))
    }

    /// The wait is over: events of the session and records of the run.
    pub(super) fn leave_pause(
        &mut self,
        interrupt: &InterruptId,
        kind: &str,
        by: ResumedBy,
        outcome: &str,
        text: Option<&str>,
    ) {
        self.emit(Body::InterruptResumed {
            interrupt_id: interrupt.clone(),
            kind: kind.to_owned(),
            by,
            outcome: outcome.to_owned(),
            text: text.map(str::to_owned),
        });
        self.note_resumed(interrupt, by, outcome, None);
    }
}

/// What a reply means, or what is missing to know it.
enum ReadReply {
    Is(ConfirmReading),
    AskModel,
    NeedsProgram(RunId),
}
