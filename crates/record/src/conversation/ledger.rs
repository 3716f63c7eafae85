//! The messages of a session and the delivery of its texts, as its events tell them.

use super::{
    BridgeLedger, Candidate, CandidateOrigin, IntentStatus, LedgerMessage, MessageRole,
    SessionEvent, SessionEventBody as Body,
};
use crate::{EffectId, MessageId, Recorded, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// Why a text was not delivered: the network does not let anybody write to the user any more (Z-240).
pub const WINDOW_CLOSED: &str = "window_closed";

/// Everything that was said in a session. Folded from its whole log, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionLedger {
    /// Messages of the user, and texts that were put into the outbox.
    pub messages: Vec<LedgerMessage>,
    pub outbox: Vec<OutboxIntent>,
    /// What passed between the host and desks.
    pub bridges: BridgeLedger,
    session: Option<SessionId>,
    transport: String,
    address: String,
    /// The last candidate, until it is known what becomes of it.
    prepared: Option<Candidate>,
    /// The last message of the turn under way.
    answered: Option<MessageId>,
    has_answer_of_person: bool,
}

/// One text on its way to a transport, or delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxIntent {
    /// Given to the transport at every attempt.
    pub key: EffectId,
    /// The turn that made it.
    pub turn: Option<u64>,
    pub to: String,
    pub transport: String,
    pub text: String,
    pub origin: CandidateOrigin,
    pub status: IntentStatus,
    pub provider_message_id: Option<String>,
    /// The network's template that was sent instead of the text.
    #[serde(default)]
    pub template: Option<String>,
    /// Why it was not delivered.
    pub reason: Option<String>,
    pub at: Timestamp,
}

impl SessionLedger {
    /// Somebody answered in place of the agent.
    pub fn has_answer_of_person(&self) -> bool {
        self.has_answer_of_person
    }

    pub fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        self.bridges.evolve(recorded);
        match &recorded.event.body {
            Body::SessionStarted(start) => {
                self.session = Some(start.session_id.clone());
                self.transport.clone_from(&start.transport);
                self.address.clone_from(&start.address);
            }
            Body::TurnStarted { message_ids, .. } => self.answered = message_ids.last().cloned(),
            Body::MessageTranscribed { text: Some(text) } => self.transcribe(text),
            Body::ResponsePrepared { candidate, .. } => self.prepared = Some(candidate.clone()),
            Body::ResponseCanceled { index, reason } => self.cancel(recorded, *index, reason),
            Body::MessageReceived { message, .. } => self.messages.push(LedgerMessage {
                id: message.message_id.to_string(),
                role: MessageRole::User,
                text: message.body.clone(),
                author: None,
                at: message.received_at,
            }),
            Body::ResponseQueued {
                effect_id,
                to,
                message,
                candidate,
                transport,
                ..
            } => {
                // What a bridge tells its desk is not said in the conversation.
                if candidate.origin != CandidateOrigin::Proxy || *to == self.address {
                    self.messages.push(message.clone());
                }
                self.has_answer_of_person |= candidate.origin == CandidateOrigin::Human;
                self.outbox.push(OutboxIntent {
                    key: effect_id.clone(),
                    turn: recorded.event.turn,
                    to: to.clone(),
                    transport: transport.as_ref().unwrap_or(&self.transport).clone(),
                    text: candidate.text.clone(),
                    origin: candidate.origin,
                    status: IntentStatus::Pending,
                    provider_message_id: None,
                    template: None,
                    reason: None,
                    at: recorded.at,
                });
            }
            Body::LiveTakeoverForwarded(forwarded) => self.outbox.push(OutboxIntent {
                key: forwarded.effect_id.clone(),
                turn: recorded.event.turn,
                to: forwarded.to.clone(),
                transport: forwarded.transport.clone(),
                text: forwarded.text.clone(),
                origin: CandidateOrigin::Forward,
                status: IntentStatus::Pending,
                provider_message_id: None,
                template: None,
                reason: None,
                at: recorded.at,
            }),
            Body::ExternalReplyRecorded { message, .. } => {
                self.has_answer_of_person = true;
                self.messages.push((**message).clone());
            }
            Body::ResponseSent {
                effect_id,
                provider_message_id,
                template,
                ..
            } => {
                if let Some(intent) = self.close(effect_id, IntentStatus::Sent) {
                    intent.provider_message_id.clone_from(provider_message_id);
                    intent.template.clone_from(template);
                }
            }
            Body::SendFailed { effect_id, reason } => {
                let status = match reason.as_str() {
                    WINDOW_CLOSED => IntentStatus::WindowClosed,
                    _ => IntentStatus::Failed,
                };
                if let Some(intent) = self.close(effect_id, status) {
                    intent.reason = Some(reason.clone());
                }
            }
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                reason,
            } => {
                if let Some(intent) = self.close(effect_id, IntentStatus::Suppressed) {
                    intent.reason = Some(reason.clone());
                }
            }
            // Nothing else is said or delivered.
            _ => {}
        }
    }

    /// What was spoken is shown as text (Z-19).
    fn transcribe(&mut self, text: &str) {
        let Some(id) = &self.answered else {
            return;
        };
        let mut messages = self.messages.iter_mut().rev();
        if let Some(message) = messages.find(|message| message.id == id.as_str()) {
            text.clone_into(&mut message.text);
        }
    }

    /// A hook dropped the text: it was never said.
    fn cancel(&mut self, recorded: &Recorded<SessionEvent>, index: u32, reason: &Option<String>) {
        let (session, turn) = (self.session.as_ref(), recorded.event.turn);
        let prepared = self.prepared.take_if(|candidate| candidate.index == index);
        let (Some(session), Some(turn), Some(candidate)) = (session, turn, prepared) else {
            return;
        };
        self.outbox.push(OutboxIntent {
            key: EffectId::from(format!("{}:{index}", session.turn_id(turn))),
            turn: Some(turn),
            to: self.address.clone(),
            transport: self.transport.clone(),
            text: candidate.text,
            origin: candidate.origin,
            status: IntentStatus::Canceled,
            provider_message_id: None,
            template: None,
            reason: reason.clone(),
            at: recorded.at,
        });
    }

    fn close(&mut self, key: &EffectId, status: IntentStatus) -> Option<&mut OutboxIntent> {
        let intent = self.outbox.iter_mut().find(|intent| intent.key == *key)?;
        intent.status = status;
        Some(intent)
    }

    /// What a turn sends to an address, in order, without cancelled and suppressed texts.
    pub fn sent_by<'a>(&'a self, turn: u64, to: &'a str) -> impl Iterator<Item = &'a OutboxIntent> {
        // What a person writes meanwhile is no answer of the turn.
        let of_turn = move |intent: &&OutboxIntent| {
            intent.turn == Some(turn) && intent.to == to && intent.origin != CandidateOrigin::Human
        };
        let shown = |intent: &&OutboxIntent| match intent.status {
            IntentStatus::Suppressed | IntentStatus::Canceled => false,
            IntentStatus::Pending
            | IntentStatus::Sent
            | IntentStatus::Failed
            | IntentStatus::WindowClosed => true,
        };
        self.outbox.iter().filter(of_turn).filter(shown)
    }
}
