//! What a user's message does while a flow waits.

use super::confirm::{ConfirmReader, ConfirmReading};
use super::draft::Draft;
use super::keywords::Keywords;
use super::program::Resume;
use super::turn::Next;
use crate::agent::{AsyncPendingPolicy, ConfirmTimeoutBehavior, UnrecognizedReply};
use crate::flow::effect::ConfirmEffect;
use crate::flow::{AuthorSchema, FlowEffect, FlowError};
use serde_json::{Value, json};
use tandem_record::conversation::{
    CandidateOrigin, ChatAnswer, ChatMessage, ChatRole, ConfirmOutcome, FlowPause, FlowRecord,
    ModelPurpose, ResumedBy, SessionEventBody as Body, SessionWork, TurnCause, WaitFor,
    WorkPurpose,
};
use tandem_record::{InterruptId, Seq};

impl Draft<'_> {
    pub(super) fn gate(&mut self) -> Next {
        let Some(flow) = &self.session.flow else {
            return Next::Router;
        };
        match flow.pause.clone() {
            None => Next::Router,
            Some(FlowPause::Ask {
                interrupt_id, key, ..
            }) => self.answer_ask(&interrupt_id, key),
            Some(FlowPause::Confirm { asked, .. }) => self.answer_confirm(asked),
            Some(FlowPause::Wait {
                wait_for: WaitFor::ConfirmResponse,
                interrupt_id,
                ..
            }) => self.answer_confirm_wait(&interrupt_id),
            Some(FlowPause::Wait { .. } | FlowPause::Workflow { .. }) => self.hold_message(),
        }
    }

    fn answer_ask(&mut self, interrupt: &InterruptId, key: String) -> Next {
        if let TurnCause::QueueReplay { .. } = self.turn().cause {
            // A question issued after the message was received: the message waits on.
            return self.hold_message();
        }
        let text = self.turn().text().to_owned();
        self.note_resumed(interrupt, ResumedBy::UserReply, "answered");
        self.emit(Body::FlowResumed {
            by: ResumedBy::UserReply,
            answer: Some((key, text.clone())),
        });
        self.resume_flow(Resume::Value(Some(Value::String(text))))
    }

    /// Records on the run that its wait is over, and that a turn goes on with it.
    pub(super) fn note_resumed(&mut self, interrupt: &InterruptId, by: ResumedBy, outcome: &str) {
        let Some(run) = self.session.flow.as_ref().map(|flow| flow.run.clone()) else {
            return;
        };
        let turn = self.turn();
        let (number, trigger) = (turn.number, turn.trigger());
        let inbound = turn.cause.message().map(super::context_data::inbound);
        self.record(
            &run,
            FlowRecord::Resumed {
                interrupt_id: interrupt.clone(),
                by,
                outcome: outcome.to_owned(),
            },
        );
        self.record(
            &run,
            FlowRecord::Segment {
                turn: number,
                trigger,
                inbound,
            },
        );
    }

    /// The confirmation the flow waits at, as its author wrote it.
    fn current_confirm(&self) -> Option<ConfirmEffect> {
        let effect = self.session.flow.as_ref()?.current.as_ref()?;
        match FlowEffect::parse(effect).ok()? {
            FlowEffect::Confirm(confirm) => Some(confirm),
            _ => None,
        }
    }

    /// Reads a reply. `None` when a model should be asked what it means.
    fn read_reply(
        &self,
        confirm: Option<&ConfirmEffect>,
        text: &str,
        extracted: Option<Option<&Value>>,
    ) -> Option<ConfirmReading> {
        let agent = self.cx.agent;
        let keywords = Keywords::of(confirm, &agent.hitl.confirm, agent.language);
        let schema = confirm.and_then(|confirm| confirm.response_schema.as_ref());
        let schema = schema.and_then(|source| AuthorSchema::compile(source).ok());
        let reader = ConfirmReader {
            keywords: &keywords,
            schema: schema.as_ref(),
            language: agent.language,
        };
        if let Some(reading) = reader.read_directly(text) {
            return Some(reading);
        }
        match extracted {
            None if agent.extraction_model.is_some() => None,
            None | Some(None) => Some(reader.read_refusal(text)),
            Some(Some(value)) => {
                let read = reader.read_extracted(value.clone());
                Some(read.unwrap_or_else(|| reader.read_refusal(text)))
            }
        }
    }

    fn answer_confirm(&mut self, asked: Seq) -> Next {
        let received = match &self.turn().cause {
            TurnCause::Message { received, .. } => *received,
            TurnCause::QueueReplay { message } => message.received,
            _ => Seq(u64::MAX),
        };
        let text = self.turn().text().to_owned();
        if received < asked {
            return self.reprompt(&text, false);
        }
        self.use_confirm_reply(&text, None)
    }

    fn use_confirm_reply(&mut self, text: &str, extracted: Option<Option<&Value>>) -> Next {
        let confirm = self.current_confirm();
        match self.read_reply(confirm.as_ref(), text, extracted) {
            None => self.extract(confirm.as_ref(), text),
            Some(ConfirmReading::Positive(value)) => {
                self.resolve_confirm(ConfirmOutcome::Positive, None, text, value)
            }
            Some(ConfirmReading::Negative(value)) => {
                self.resolve_confirm(ConfirmOutcome::Negative, None, text, value)
            }
            Some(ConfirmReading::Unrecognized) => self.reprompt(text, true),
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
        let purpose = ModelPurpose::Extract;
        let work = SessionWork::Model {
            purpose,
            messages,
            tools: Vec::new(),
        };
        self.request(WorkPurpose::Model { purpose }, work);
        Next::Wait
    }

    /// A model read a structured answer out of the reply, or could not.
    pub(super) fn use_extraction(&mut self, answer: Option<&ChatAnswer>) -> Next {
        let text = self.turn().text().to_owned();
        let value = answer.and_then(super::model_loop::structured_of);
        self.use_confirm_reply(&text, Some(value.as_ref()))
    }

    /// Asks again, or takes the reply for a refusal after too many of them.
    fn reprompt(&mut self, text: &str, counted: bool) -> Next {
        let Some(FlowPause::Confirm {
            interrupt_id,
            attempts,
            ..
        }) = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.pause.clone())
        else {
            return Next::DONE;
        };
        let settings = &self.cx.agent.hitl.confirm;
        let gives_up = settings.unrecognized == UnrecognizedReply::Decline
            || attempts >= settings.max_reprompts;
        let confirm = self.current_confirm();
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

    fn resolve_confirm(
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
        let interrupt_id = pause.interrupt_id().clone();
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
        self.leave_pause(&interrupt_id, "confirm", ResumedBy::UserReply, outcome);
        self.resume_flow(Resume::Value(Some(value)))
    }

    /// The wait is over: events of the session and records of the run.
    pub(super) fn leave_pause(
        &mut self,
        interrupt: &InterruptId,
        kind: &str,
        by: ResumedBy,
        outcome: &str,
    ) {
        self.note_resumed(interrupt, by, outcome);
        self.emit(Body::InterruptResumed {
            interrupt_id: interrupt.clone(),
            kind: kind.to_owned(),
            by,
            outcome: outcome.to_owned(),
        });
        self.emit(Body::FlowResumed { by, answer: None });
    }

    fn answer_confirm_wait(&mut self, interrupt: &InterruptId) -> Next {
        let text = self.turn().text().to_owned();
        let last = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.last_confirm.clone());
        let confirm = match last.as_ref().map(FlowEffect::parse) {
            Some(Ok(FlowEffect::Confirm(confirm))) => Some(confirm),
            _ => None,
        };
        let reading = self.read_reply(confirm.as_ref(), &text, Some(None));
        let (outcome, value) = match reading {
            Some(ConfirmReading::Positive(value)) => ("positive", value),
            Some(ConfirmReading::Negative(value)) => ("negative", value),
            Some(ConfirmReading::Unrecognized) | None => return self.hold_message(),
        };
        let payload = json!({"outcome": outcome, "value": value, "text": text});
        self.leave_pause(interrupt, "wait", ResumedBy::UserReply, outcome);
        self.resume_flow(Resume::Value(Some(payload)))
    }

    /// A person is awaited: the message is stored, acknowledged or queued.
    fn hold_message(&mut self) -> Next {
        let settings = &self.cx.agent.hitl.async_pending;
        let Some(message_id) = self.turn().cause.message().map(|m| m.message_id.clone()) else {
            return Next::DONE;
        };
        let is_replay = matches!(self.turn().cause, TurnCause::QueueReplay { .. });
        let policy = match settings.policy {
            _ if is_replay => AsyncPendingPolicy::Queue,
            policy => policy,
        };
        let is_full = self.session.queued.len() >= settings.max_queued;
        let behavior = match policy {
            AsyncPendingPolicy::Noop => "noop",
            AsyncPendingPolicy::Ack => "ack",
            AsyncPendingPolicy::Queue if is_full => "refused",
            AsyncPendingPolicy::Queue => "queue",
        };
        self.emit(Body::PendingMessage {
            message_id,
            behavior: behavior.to_owned(),
        });
        match (&settings.ack_text, policy) {
            (Some(text), AsyncPendingPolicy::Ack) => {
                self.respond(&text.clone(), CandidateOrigin::Ack, None)
            }
            _ => Next::DONE,
        }
    }

    /// The deadline of the interrupt the flow waits at has passed.
    pub(super) fn pass_deadline(&mut self, interrupt: &InterruptId) -> Next {
        let pause = self
            .session
            .flow
            .as_ref()
            .and_then(|flow| flow.pause.clone());
        let Some(pause) = pause.filter(|pause| pause.interrupt_id() == interrupt) else {
            self.emit(Body::InterruptLate {
                interrupt_id: interrupt.clone(),
            });
            return Next::DONE;
        };
        match pause {
            FlowPause::Confirm { deadline, .. } => self.time_out_confirm(interrupt, deadline),
            FlowPause::Wait {
                wait_for,
                escalation_id,
                ..
            } => {
                if let Some(id) = &escalation_id {
                    self.close_as_timed_out(id);
                }
                let outcome = match wait_for {
                    WaitFor::Timeout => "elapsed",
                    _ => "timed_out",
                };
                let mut payload = json!({
                    "outcome": outcome,
                    "at": self.now.rfc3339(),
                    "queuedInbound": self.session.queued_inbound(),
                });
                if wait_for != WaitFor::Timeout {
                    payload["timedOut"] = json!(true);
                    payload["approved"] = json!(false);
                }
                if let Some(id) = &escalation_id {
                    payload["escalationId"] = json!(id);
                }
                self.leave_pause(interrupt, "wait", ResumedBy::Timeout, outcome);
                self.resume_flow(Resume::Value(Some(payload)))
            }
            FlowPause::Ask { .. } | FlowPause::Workflow { .. } => Next::DONE,
        }
    }

    fn time_out_confirm(
        &mut self,
        interrupt: &InterruptId,
        deadline: tandem_record::Timestamp,
    ) -> Next {
        let behavior = self.cx.agent.hitl.confirm.timeout_behavior;
        let name = match behavior {
            ConfirmTimeoutBehavior::Decline => "decline",
            ConfirmTimeoutBehavior::EndFlow => "end_flow",
            ConfirmTimeoutBehavior::Throw => "throw",
        };
        self.emit(Body::ConfirmTimedOut {
            interrupt_id: interrupt.clone(),
            deadline,
            behavior: name.to_owned(),
        });
        let schema = self
            .current_confirm()
            .is_some_and(|c| c.response_schema.is_some());
        self.leave_pause(interrupt, "confirm", ResumedBy::Timeout, "timed_out");
        match behavior {
            ConfirmTimeoutBehavior::Decline => {
                let value = if schema {
                    Value::Null
                } else {
                    Value::Bool(false)
                };
                self.resume_flow(Resume::Value(Some(value)))
            }
            ConfirmTimeoutBehavior::EndFlow => {
                self.end_flow(Some("confirm_timed_out"), false);
                Next::DONE
            }
            ConfirmTimeoutBehavior::Throw => {
                let error = FlowError::interrupt_timeout("nobody answered in time");
                self.resume_flow(Resume::Throw(error))
            }
        }
    }
}
