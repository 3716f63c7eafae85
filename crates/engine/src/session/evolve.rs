//! Folds events into a session. Never fails and never appends.

use super::state::{ActiveFlow, ChatSession, ConsumedOutcome, Turn, WaitingTurn};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tandem_record::conversation::{
    ChatMessage, ChatRole, EscalationStatus, FlowPause, HookStage, InboundMessage, LedgerMessage,
    MessageRole, ModelPurpose, QueuedMessage, ResponseSource, ResumedBy, SessionEvent,
    SessionEventBody as Body, SessionStart, TurnCause, TurnTrigger, WorkPurpose,
};
use tandem_record::{EscalationId, Recorded, Seq, Timestamp};

/// Messages kept for the model, whatever the agent's setting. The setting decides how many of them
/// a call shows.
const MAX_MEMORY: usize = 1_000;

impl ChatSession {
    /// The session after its first event.
    pub(super) fn new(start: SessionStart, at: Timestamp) -> Self {
        Self {
            head: Seq(0),
            start: Box::new(start),
            started_at: at,
            last_at: at,
            last_active_at: at,
            ended: None,
            message_count: 0,
            kv: BTreeMap::new(),
            preferences: BTreeMap::new(),
            memory: VecDeque::new(),
            last_turn: 0,
            turn: None,
            waiting: VecDeque::new(),
            flow: None,
            flows_started: 0,
            escalations: BTreeMap::new(),
            attached: None,
            queued: VecDeque::new(),
            pending_since: None,
            unsent: BTreeMap::new(),
            reports: VecDeque::new(),
            reporting: None,
        }
    }

    pub fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        self.head = recorded.seq;
        self.last_at = recorded.at;
        let mode_before = self.hitl_mode();
        self.apply(recorded);
        match (mode_before, self.hitl_mode()) {
            (before, after) if before == after => {}
            (_, Some(_)) => self.pending_since = Some(recorded.at),
            (_, None) => self.pending_since = None,
        }
    }

    fn apply(&mut self, recorded: &Recorded<SessionEvent>) {
        let (seq, at, event) = (recorded.seq, recorded.at, &recorded.event);
        match &event.body {
            Body::SessionStarted(start) => *self = Self::new((**start).clone(), at),
            Body::MessageReceived { message } => self.receive(message, seq, at),
            Body::TurnQueued { cause } => self.queue_turn(cause.clone()),
            Body::TurnStarted { remembered, .. } => self.start_turn(*remembered, at),
            Body::TurnEnded(_) => {
                self.turn = None;
                self.last_active_at = at;
            }
            Body::WorkRequested(work) => match (&work.purpose, &mut self.turn) {
                (WorkPurpose::Report { .. }, _) => {
                    self.reports.pop_front();
                    self.reporting = Some(work.effect_id.clone());
                }
                (_, Some(turn)) => turn.pending = Some((**work).clone()),
                (_, None) => {}
            },
            Body::WorkFinished { effect_id } => {
                if self.reporting.as_ref() == Some(effect_id) {
                    self.reporting = None;
                }
                if let Some(turn) = &mut self.turn {
                    turn.pending.take_if(|work| work.effect_id == *effect_id);
                }
            }
            Body::HookDecided { stage, decision } => self.note_decision(*stage, decision),
            Body::ModelAnswered { purpose, answer } => {
                let Some(turn) = &mut self.turn else { return };
                if *purpose != ModelPurpose::Chat {
                    return;
                }
                if !answer.tool_calls.is_empty() {
                    turn.exchange.push(ChatMessage {
                        tool_calls: answer.tool_calls.clone(),
                        ..ChatMessage::new(
                            ChatRole::Assistant,
                            answer.text.clone().unwrap_or_default(),
                        )
                    });
                    turn.tool_calls = answer.tool_calls.iter().cloned().collect();
                    turn.tool_rounds += 1;
                }
            }
            Body::ToolAnswered {
                call_id, content, ..
            } => {
                let Some(turn) = &mut self.turn else { return };
                turn.tool_calls.retain(|call| call.id != *call_id);
                turn.exchange.push(ChatMessage {
                    tool_call_id: Some(call_id.clone()),
                    ..ChatMessage::new(ChatRole::Tool, content.clone())
                });
            }
            Body::KvChanged { key, value } => match value {
                Some(value) => {
                    self.kv.insert(key.clone(), value.clone());
                }
                None => {
                    self.kv.remove(key);
                }
            },
            Body::PreferenceChanged { key, value } => {
                self.preferences.insert(key.clone(), value.clone());
            }
            Body::FlowStarted { version, .. } => {
                let Some(flow) = &event.flow else { return };
                self.flows_started += 1;
                self.flow = Some(ActiveFlow {
                    flow: flow.flow_id.clone(),
                    run: flow.flow_run_id.clone(),
                    version: version.clone(),
                    started_at: at,
                    answers: BTreeMap::new(),
                    steps: 0,
                    current: None,
                    pause: None,
                    last_confirm: None,
                    last_interrupt: None,
                    escalation: None,
                    records: 0,
                    last_message: None,
                    client_ids: Vec::new(),
                });
                if let Some(turn) = &mut self.turn {
                    turn.source = match turn.cause.trigger() {
                        TurnTrigger::Scheduled => ResponseSource::Scheduled,
                        _ => ResponseSource::Flow,
                    };
                    turn.flow_id = Some(flow.flow_id.clone());
                    turn.flow_run = Some(flow.flow_run_id.clone());
                }
            }
            Body::FlowEffectStarted { step, effect } => {
                if let Some(flow) = &mut self.flow {
                    flow.steps = step + 1;
                    // The effect and its result; context calls are counted by the runtime's limit.
                    flow.records += 2;
                    flow.current = Some(effect.clone());
                    let id = effect.get("id").and_then(Value::as_str);
                    flow.client_ids.extend(id.map(str::to_owned));
                    if effect.get("type").and_then(Value::as_str) == Some("interrupt.confirm") {
                        flow.last_confirm = Some(effect.clone());
                    }
                }
                if let Some(turn) = &mut self.turn {
                    turn.flow_effects += 1;
                }
            }
            Body::FlowPaused { pause } => {
                if let Some(flow) = &mut self.flow {
                    flow.pause = Some(pause.clone());
                }
            }
            Body::FlowResumed { answer, .. } => {
                if let Some(flow) = &mut self.flow {
                    flow.pause = None;
                    let turn = self.turn.as_ref();
                    let message = turn.and_then(|turn| turn.cause.message());
                    flow.last_message = message.map(|m| m.message_id.clone());
                    if let Some((key, text)) = answer {
                        flow.answers.insert(key.clone(), text.clone());
                    }
                }
                self.turn_speaks_for_flow();
            }
            Body::FlowHandoff { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.handoffs += 1;
                }
            }
            Body::FlowEnded { .. } | Body::FlowFailed { .. } | Body::FlowDiverged { .. } => {
                self.flow = None;
            }
            Body::InterruptPaused { .. }
            | Body::ConfirmRequested { .. }
            | Body::InterruptLate { .. }
            | Body::FlowStartRefused { .. }
            | Body::FlowEffectIgnored { .. }
            | Body::RouterDecided { .. }
            | Body::CommandHandled { .. }
            | Body::ModelFailed { .. }
            | Body::ResponsePersisted { .. }
            | Body::ResponseFailed { .. } => {}
            Body::AuthorizationDecided(decision) => {
                if let Some(turn) = &mut self.turn
                    && decision.granted
                {
                    turn.actor.clone_from(&decision.actor);
                }
            }
            Body::InterruptResumed {
                interrupt_id,
                kind,
                by,
                outcome,
            } => {
                if let Some(turn) = &mut self.turn {
                    turn.consumed = Some(match by {
                        ResumedBy::Timeout => ConsumedOutcome::TimedOut,
                        _ => ConsumedOutcome::Resolved,
                    });
                }
                if let Some(flow) = &mut self.flow {
                    flow.last_interrupt = Some(serde_json::json!({
                        "id": interrupt_id, "kind": kind, "outcome": outcome, "at": at.rfc3339(),
                    }));
                }
            }
            Body::ConfirmResolved { .. } | Body::ConfirmTimedOut { .. } => {}
            Body::ConfirmUnrecognized { counted, .. } => {
                if let Some(FlowPause::Confirm { attempts, .. }) = self.pause_mut() {
                    *attempts += u32::from(*counted);
                }
            }
            Body::EscalationCreated(escalation) => {
                let id = escalation.id.clone();
                if let Some(flow) = &mut self.flow {
                    flow.escalation = Some(id.clone());
                }
                self.attached = Some(id.clone());
                self.escalations.insert(id, (**escalation).clone());
            }
            Body::EscalationResolved {
                escalation_id,
                resolution,
                ..
            } => {
                self.close_escalation(escalation_id, EscalationStatus::Resolved);
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.resolution = Some(resolution.clone());
                }
            }
            Body::EscalationTimedOut { escalation_id, .. } => {
                self.close_escalation(escalation_id, EscalationStatus::TimedOut);
            }
            Body::EscalationCanceled { escalation_id, .. } => {
                self.close_escalation(escalation_id, EscalationStatus::Canceled);
            }
            Body::EscalationDetached { escalation_id } => {
                if let Some(escalation) = self.escalations.get_mut(escalation_id) {
                    escalation.detached = true;
                }
                self.attached.take_if(|id| id == escalation_id);
            }
            Body::PendingMessage {
                message_id,
                behavior,
            } => {
                let cause = self.turn.as_ref().map(|turn| &turn.cause);
                let queued = match cause {
                    Some(TurnCause::Message { message, received }) => Some(QueuedMessage {
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
            Body::ResponsePrepared { candidate, source } => {
                if let Some(turn) = &mut self.turn {
                    turn.candidates = candidate.index + 1;
                    turn.source = *source;
                }
            }
            Body::ResponseQueued {
                effect_id,
                message,
                candidate,
                remembered,
                ..
            } => {
                let turn = event.turn.unwrap_or(self.last_turn);
                self.unsent.insert(effect_id.clone(), turn);
                if *remembered {
                    self.message_count += 1;
                    self.remember(message.clone());
                }
                if let Some(turn) = &mut self.turn
                    && candidate.origin.passes_before_response()
                {
                    turn.texts.push(message.text.clone());
                    turn.structured = candidate.structured.clone().or(turn.structured.take());
                }
            }
            Body::ResponseCanceled { .. } => {}
            Body::ResponseSuppressed { effect_id, .. } => {
                if let Some(effect) = effect_id {
                    self.unsent.remove(effect);
                }
            }
            Body::ResponseSent { effect_id, .. } => {
                self.unsent.remove(effect_id);
            }
            Body::SendFailed { effect_id, .. } => {
                self.unsent.remove(effect_id);
            }
            Body::ReportQueued { call } => {
                let turn = event.turn.unwrap_or(self.last_turn);
                self.reports.push_back(super::state::PendingReport {
                    turn,
                    call: call.clone(),
                });
            }
            Body::SessionEndRequested { reason } => {
                if let Some(turn) = &mut self.turn {
                    turn.ends_session = Some(*reason);
                }
            }
            Body::SessionEnded { reason } => self.ended = Some((at, *reason)),
        }
    }

    fn receive(&mut self, message: &InboundMessage, received: Seq, at: Timestamp) {
        self.last_active_at = at;
        self.message_count += 1;
        let message = Box::new(message.clone());
        self.queue_turn(TurnCause::Message { message, received });
    }

    fn queue_turn(&mut self, cause: TurnCause) {
        self.last_turn += 1;
        if let TurnCause::QueueReplay { message } = &cause {
            let id = &message.message.message_id;
            self.queued
                .retain(|queued| queued.message.message_id != *id);
        }
        self.waiting.push_back(WaitingTurn {
            number: self.last_turn,
            cause,
        });
    }

    fn start_turn(&mut self, remembered: bool, at: Timestamp) {
        let Some(WaitingTurn { number, cause }) = self.waiting.pop_front() else {
            return;
        };
        if let Some(message) = cause.message().filter(|_| remembered) {
            self.remember(user_entry(message));
        }
        self.turn = Some(Turn {
            number,
            started_at: at,
            cause,
            pending: None,
            source: ResponseSource::Classic,
            before_llm_action: None,
            before_response_action: None,
            candidates: 0,
            texts: Vec::new(),
            structured: None,
            exchange: Vec::new(),
            tool_rounds: 0,
            tool_calls: VecDeque::new(),
            flow_effects: 0,
            handoffs: 0,
            consumed: None,
            flow_id: None,
            flow_run: None,
            ends_session: None,
            actor: None,
        });
    }

    fn turn_speaks_for_flow(&mut self) {
        let (Some(turn), Some(flow)) = (&mut self.turn, &self.flow) else {
            return;
        };
        turn.flow_id = Some(flow.flow.clone());
        turn.flow_run = Some(flow.run.clone());
        if turn.source == ResponseSource::Classic {
            turn.source = ResponseSource::Flow;
        }
    }

    fn note_decision(&mut self, stage: HookStage, decision: &Value) {
        let Some(turn) = &mut self.turn else { return };
        let action = decision.get("action").and_then(Value::as_str);
        let action = action.unwrap_or("continue");
        match stage {
            HookStage::BeforeLlm => turn.before_llm_action = Some(action.to_owned()),
            HookStage::BeforeResponse => {
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
            HookStage::OnResponse => {}
        }
    }

    fn pause_mut(&mut self) -> Option<&mut FlowPause> {
        self.flow.as_mut()?.pause.as_mut()
    }

    fn close_escalation(&mut self, id: &EscalationId, status: EscalationStatus) {
        if let Some(escalation) = self.escalations.get_mut(id) {
            escalation.status = status;
        }
        self.attached.take_if(|attached| attached == id);
    }

    fn remember(&mut self, message: LedgerMessage) {
        self.memory.push_back(message);
        if self.memory.len() > MAX_MEMORY {
            self.memory.pop_front();
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
