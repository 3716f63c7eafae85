//! Live takeover: a person speaks with the user in the user's own thread, and the agent is silent.

use super::{AdminActor, LedgerMessage};
use crate::{EffectId, EscalationId};
use serde::{Deserialize, Serialize};

/// What started a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverOrigin {
    /// A flow asked for a person.
    Effect,
    /// A command of an admin in a chat.
    Command,
    Api,
    /// The user, or the model for them, asked for a person.
    UserRequest,
    /// Somebody answered the user from the agent's own account, past this host.
    ExternalReply,
}

/// Why a takeover ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverEndReason {
    Handback,
    Timeout,
    /// The person gave no sign for too long.
    Idle,
    SessionEnded,
    /// The user gave up waiting before a person came.
    Canceled,
}

impl TakeoverEndReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handback => "handback",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::SessionEnded => "session_ended",
            Self::Canceled => "canceled",
        }
    }
}

/// How a takeover is to end, as the turn knows it that ends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeoverEnding {
    pub escalation: EscalationId,
    pub reason: TakeoverEndReason,
    /// For the agent, not for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who hands back; absent where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
}

/// The end of a takeover, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedTakeover {
    pub escalation_id: EscalationId,
    pub reason: TakeoverEndReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Turns that waited for this.
    pub held_items: u32,
    /// What the model is told of it.
    pub entry: LedgerMessage,
}

/// A message of the user on its way to the chat of the desk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForwardedText {
    pub effect_id: EffectId,
    pub transport: String,
    pub to: String,
    pub text: String,
}

/// Who wrote a message of a takeover, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverDirection {
    UserToHuman,
    HumanToUser,
}
