//! What happens to an agent outside of its sessions: messages that were refused before a session saw them, rights
//! that were decided without a session, circuits of its providers.

use super::{AdminActor, AuthorizationDecision};
use crate::{MessageId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentLevelEvent {
    /// Whose it is beside the tenant; `None` for the tenant itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
    pub body: AgentLevelEventBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum AgentLevelEventBody {
    /// A message was refused and may be delivered again.
    #[serde(rename_all = "camelCase")]
    InboundRefused {
        refusal: InboundRefusal,
        transport: String,
        /// The address of the sender.
        from: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
        /// Refusals since the last event that have no event of their own.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        unlisted: u32,
    },
    AuthorizationDecided(Box<AuthorizationDecision>),
    /// A provider of models is called no more, or again.
    CircuitChanged(ProviderCircuitChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboundRefusal {
    /// The sender writes too often.
    RateLimited,
    /// Too many turns are under way.
    Overloaded,
}

/// The circuit of one provider of an agent changed its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCircuitChange {
    pub provider: String,
    pub from: ProviderCircuit,
    pub to: ProviderCircuit,
    /// When an open circuit is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderCircuit {
    Closed,
    Open,
    HalfOpen,
}

impl ProviderCircuit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
