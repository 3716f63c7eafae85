//! The messages of a session and the delivery of its texts, as its events tell them.

use super::{
    CandidateOrigin, IntentStatus, LedgerMessage, MessageRole, SessionEvent,
    SessionEventBody as Body,
};
use crate::{EffectId, Recorded, Timestamp};
use serde::{Deserialize, Serialize};

/// Everything that was said in a session. Folded from its whole log, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionLedger {
    /// Messages of the user, and texts that were put into the outbox.
    pub messages: Vec<LedgerMessage>,
    pub outbox: Vec<OutboxIntent>,
    transport: String,
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
    /// Why it was not delivered.
    pub reason: Option<String>,
    pub at: Timestamp,
}

impl SessionLedger {
    pub fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        match &recorded.event.body {
            Body::SessionStarted(start) => self.transport.clone_from(&start.transport),
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
                ..
            } => {
                self.messages.push(message.clone());
                self.outbox.push(OutboxIntent {
                    key: effect_id.clone(),
                    turn: recorded.event.turn,
                    to: to.clone(),
                    transport: self.transport.clone(),
                    text: candidate.text.clone(),
                    origin: candidate.origin,
                    status: IntentStatus::Pending,
                    provider_message_id: None,
                    reason: None,
                    at: recorded.at,
                });
            }
            Body::ResponseSent {
                effect_id,
                provider_message_id,
            } => {
                if let Some(intent) = self.close(effect_id, IntentStatus::Sent) {
                    intent.provider_message_id.clone_from(provider_message_id);
                }
            }
            Body::SendFailed { effect_id, reason } => {
                if let Some(intent) = self.close(effect_id, IntentStatus::Failed) {
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

    fn close(&mut self, key: &EffectId, status: IntentStatus) -> Option<&mut OutboxIntent> {
        let intent = self.outbox.iter_mut().find(|intent| intent.key == *key)?;
        intent.status = status;
        Some(intent)
    }

    /// What a turn sends to an address, in order, without suppressed texts.
    pub fn sent_by<'a>(&'a self, turn: u64, to: &'a str) -> impl Iterator<Item = &'a OutboxIntent> {
        let of_turn = move |intent: &&OutboxIntent| intent.turn == Some(turn) && intent.to == to;
        let shown = |intent: &&OutboxIntent| intent.status != IntentStatus::Suppressed;
        self.outbox.iter().filter(of_turn).filter(shown)
    }
}
