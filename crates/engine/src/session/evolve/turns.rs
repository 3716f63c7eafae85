//! Messages, turns, and the work turns wait for.

use crate::session::state::ChatSession;
use crate::session::takeover_state::waits_for_handback;
use crate::session::turn_state::{Burst, StartedReport, Turn, WaitingTurn, joined};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::conversation::{
    ChatAnswer, ChatMessage, ChatRole, HookStage, InboundMessage, LedgerMessage, MessageRole,
    ModelPurpose, QueuedMessage, RequestedWork, SessionEvent, SessionEventBody as Body, TurnCause,
    TurnOutcome, WorkPurpose,
};
use tandem_record::{Recorded, Seq, Timestamp};

impl ChatSession {
    pub(super) fn fold_turn(&mut self, recorded: &Recorded<SessionEvent>) {
        let (seq, at) = (recorded.seq, recorded.at);
        match &recorded.event.body {
            Body::MessageReceived {
                message,
                held_until,
            } => self.receive(message, *held_until, seq, at),
            Body::BurstClosed => self.close_burst(),
            Body::MessageTranscribed { text } => {
                if let Some(turn) = &mut self.turn {
                    turn.transcript = Some(text.clone());
                }
                self.remember_transcript(text.as_deref());
            }
            Body::TurnQueued { cause } => self.queue_turn(cause.clone()),
            Body::TurnStarted { remembered, .. } => {
                self.start_turn(recorded.event.turn, *remembered, at);
            }
            Body::TurnDropped { number, .. } => self.drop_turn(*number),
            Body::TurnEnded(outcome) => self.end_turn(outcome, at),
            Body::WorkRequested(work) => self.request_work(work),
            Body::WorkFinished { effect_id } => {
                self.reporting.take_if(|report| report.effect == *effect_id);
                let aside = self.aside.as_ref();
                if aside.is_some_and(|turn| turn.waits_for(effect_id)) {
                    std::mem::swap(&mut self.turn, &mut self.aside);
                }
                if let Some(turn) = &mut self.turn {
                    turn.pending.take_if(|work| work.effect_id == *effect_id);
                }
            }
            Body::HookDecided { stage, decision } => self.note_decision(*stage, decision),
            Body::ModelAnswered { purpose, answer } => self.take_answer(*purpose, answer),
            Body::ToolAnswered {
                call_id, content, ..
            } => {
                let Some(turn) = &mut self.turn else { return };
                turn.model.calls.retain(|call| call.id != *call_id);
                turn.model.exchange.push(ChatMessage {
                    tool_call_id: Some(call_id.clone()),
                    ..ChatMessage::new(ChatRole::Tool, content.clone())
                });
            }
            Body::PendingMessage {
                message_id,
                behavior,
            } => {
                if behavior == "ack" {
                    self.last_ack_at = Some(at);
                }
                let cause = self.turn.as_ref().map(|turn| &turn.cause);
                let queued = match cause {
                    Some(TurnCause::Message {
                        message, received, ..
                    }) => Some(QueuedMessage {
                        message: (**message).clone(),
                        received: *received,
                    }),
                    Some(TurnCause::QueueReplay { message }) => Some((**message).clone()),
                    _ => None,
                };
                let is_it = |m: &QueuedMessage| m.message.message_id == *message_id;
                if behavior == "queue"
                    && let Some(message) = queued.filter(is_it)
                {
                    self.queued.push_back(message);
                }
            }
            Body::QueueConsumed { message_ids } => {
                self.queued
                    .retain(|queued| !message_ids.contains(&queued.message.message_id));
            }
            _ => {}
        }
    }

    fn receive(
        &mut self,
        message: &InboundMessage,
        held_until: Option<Timestamp>,
        received: Seq,
        at: Timestamp,
    ) {
        self.last_active_at = at;
        // A message that arrives late was written before.
        let written_at = message.sent_at.map_or(at, |sent| sent.min(at));
        self.received_at = self.last_received_at().max(Some(written_at));
        self.message_count += 1;
        let bytes = message
            .media
            .as_ref()
            .and_then(|media| media["bytes"].as_u64());
        self.media_bytes = self.media_bytes.saturating_add(bytes.unwrap_or(0));
        let Some(closes_at) = held_until else {
            return self.queue_turn(TurnCause::Message {
                message: Box::new(message.clone()),
                received,
                joined: Vec::new(),
            });
        };
        if let Some(burst) = &mut self.burst {
            burst.messages.push(message.clone());
            burst.closes_at = closes_at;
            return;
        }
        self.last_turn += 1;
        self.burst = Some(Burst {
            number: self.last_turn,
            messages: vec![message.clone()],
            received,
            opened_at: at,
            closes_at,
        });
    }

    fn close_burst(&mut self) {
        let Some(burst) = self.burst.take() else {
            return;
        };
        let Some((message, joined)) = joined(&burst.messages) else {
            return;
        };
        self.waiting.push_back(WaitingTurn {
            number: burst.number,
            cause: TurnCause::Message {
                message: Box::new(message),
                received: burst.received,
                joined,
            },
            carried: None,
        });
    }

    fn queue_turn(&mut self, cause: TurnCause) {
        self.last_turn += 1;
        if let TurnCause::QueueReplay { message } = &cause {
            let id = &message.message.message_id;
            self.queued
                .retain(|queued| queued.message.message_id != *id);
        }
        if let TurnCause::StartFlow(request) = &cause {
            self.deferred.retain(|deferred| deferred != &**request);
        }
        let waiting = match self.takeover.is_some() && waits_for_handback(&cause) {
            true => &mut self.held,
            false => &mut self.waiting,
        };
        waiting.push_back(WaitingTurn {
            number: self.last_turn,
            cause,
            carried: None,
        });
    }

    /// A turn that begins beside another one may overtake those before it.
    fn start_turn(&mut self, number: Option<u64>, remembered: bool, at: Timestamp) {
        let is_it = |waiting: &WaitingTurn| Some(waiting.number) == number;
        let place = self.waiting.iter().position(is_it).unwrap_or(0);
        let Some(waiting) = self.waiting.remove(place) else {
            return;
        };
        if let Some(message) = waiting.cause.message().filter(|_| remembered) {
            self.remember(user_entry(message));
        }
        self.aside = self.turn.take();
        self.turn = Some(Turn {
            is_beside: self.aside.is_some(),
            ..Turn::new(waiting, at)
        });
    }

    fn drop_turn(&mut self, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number);
        self.held.retain(|held| held.number != number);
        self.burst.take_if(|burst| burst.number == number);
    }

    fn end_turn(&mut self, outcome: &TurnOutcome, at: Timestamp) {
        self.note_state_after_turn();
        let turn = self.turn.take();
        self.turn = self.aside.take();
        self.last_active_at = at;
        if *outcome == TurnOutcome::Interrupted
            && let Some(turn) = turn
        {
            self.carry_on(turn);
        }
    }

    /// The message of an interrupted turn goes into the next one, with what its model loop did.
    fn carry_on(&mut self, turn: Turn) {
        let TurnCause::Message {
            message: first,
            received: first_received,
            ..
        } = &turn.cause
        else {
            return;
        };
        let first_ids = turn.cause.message_ids();
        let next = self.waiting.iter_mut().find(|w| w.is_plain_message());
        let Some(next) = next else { return };
        let next_ids = next.cause.message_ids();
        if let TurnCause::Message {
            message,
            received,
            joined: ids,
        } = &mut next.cause
        {
            if let Some((both, _)) = joined(&[(**first).clone(), (**message).clone()]) {
                **message = both;
            }
            *received = *first_received;
            *ids = first_ids.iter().cloned().chain(next_ids).collect();
        }
        next.carried = Some(turn.model);
        let last_id = first.message_id.as_str();
        if let Some(at) = self.memory.iter().rposition(|entry| entry.id == last_id) {
            self.memory.remove(at);
        }
    }

    fn request_work(&mut self, work: &RequestedWork) {
        match (&work.purpose, &mut self.turn) {
            (WorkPurpose::Report { .. }, _) => {
                let report = self.reports.pop_front();
                self.reporting = report.map(|report| StartedReport {
                    effect: work.effect_id.clone(),
                    report,
                });
            }
            (purpose, Some(turn)) => {
                let is_step = matches!(
                    purpose,
                    WorkPurpose::Model { .. } | WorkPurpose::LoopTool { .. }
                );
                turn.steps += u32::from(is_step);
                turn.pending = Some(work.clone());
            }
            (_, None) => {}
        }
    }

    fn take_answer(&mut self, purpose: ModelPurpose, answer: &ChatAnswer) {
        if let Some(usage) = &answer.usage {
            let used = usage.input_tokens.saturating_add(usage.output_tokens);
            self.tokens = self.tokens.saturating_add(used);
        }
        let Some(turn) = &mut self.turn else { return };
        if purpose != ModelPurpose::Chat || answer.tool_calls.is_empty() {
            return;
        }
        turn.model.exchange.push(ChatMessage {
            tool_calls: answer.tool_calls.clone(),
            ..ChatMessage::new(ChatRole::Assistant, answer.text.clone().unwrap_or_default())
        });
        turn.model.calls = answer.tool_calls.iter().cloned().collect();
        turn.model.rounds += 1;
    }

    /// The model remembers what was said, not what stands beside it.
    fn remember_transcript(&mut self, text: Option<&str>) {
        let message = self.turn.as_ref().and_then(|turn| turn.cause.message());
        let id = message.map(|message| message.message_id.to_string());
        let entry = self
            .memory
            .iter_mut()
            .rev()
            .find(|e| Some(&e.id) == id.as_ref());
        if let (Some(entry), Some(text)) = (entry, text) {
            text.clone_into(&mut Arc::make_mut(entry).text);
        }
    }

    fn note_decision(&mut self, stage: HookStage, decision: &Value) {
        let Some(turn) = &mut self.turn else { return };
        let action = decision.get("action").and_then(Value::as_str);
        let action = action.unwrap_or("continue");
        match stage {
            HookStage::BeforeLlm => turn.before_llm_action = Some(action.to_owned()),
            HookStage::BeforeResponse => {
                turn.candidate_action = Some(action.to_owned());
                let rank = |action: &str| match action {
                    "cancel" => 2,
                    "replace" => 1,
                    _ => 0,
                };
                let known = turn.before_response_action.as_deref();
                if known.is_none_or(|known| rank(action) > rank(known)) {
                    turn.before_response_action = Some(action.to_owned());
                }
            }
            HookStage::OnResponse | HookStage::ProcessBeforeForward => {}
        }
    }
}

/// The entry of the ledger for a user's message.
fn user_entry(message: &InboundMessage) -> LedgerMessage {
    LedgerMessage {
        id: message.message_id.to_string(),
        role: MessageRole::User,
        text: message.body.clone(),
        author: None,
        at: message.received_at,
    }
}
