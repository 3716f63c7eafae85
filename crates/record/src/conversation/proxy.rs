//! Bridges between a session and a desk: what they relay, and what is said over them.

use super::AdminActor;
use crate::{FlowId, MessageId, ProxyId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyMode {
    /// Both sides see each other.
    #[default]
    Mirror,
    /// The admin watches and advises the flow; the user is not addressed.
    Shadow,
}

/// What a bridge relays: the flags of the effect over the defaults of its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyFlags {
    pub forward_user_messages: bool,
    pub forward_admin_messages: bool,
    pub auto_prefix: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyTimeoutBehavior {
    #[default]
    Continue,
    EndProxy,
    FallbackEscalation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyStatus {
    Active,
    Stopped,
}

impl ProxyStatus {
    pub const ALL: [Self; 2] = [Self::Active, Self::Stopped];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stopped => "stopped",
        }
    }
}

/// A bridge, from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyBridge {
    pub id: ProxyId,
    /// The key of the target that is used: the one that was named, or a fallback of it.
    pub target: String,
    /// Where the target is. A bridge keeps its desk when the agent's file changes.
    pub transport: String,
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub mode: ProxyMode,
    pub flags: ProxyFlags,
    pub flow_id: FlowId,
    pub flow_run_id: RunId,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    pub status: ProxyStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// A text that an admin wrote for a bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyInput {
    /// Unique within the bridge.
    pub id: MessageId,
    pub text: String,
    /// The message as its network delivered it; absent for input over the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    pub source: ProxyInputSource,
}

/// Who wrote a text for a bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum ProxyInputSource {
    /// Somebody over the API. Whether they may was decided before.
    Actor(AdminActor),
    /// Somebody in the chat of the desk. The turn decides whether they may.
    Desk { transport: String, address: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyDirection {
    UserToAdmin,
    AdminToUser,
}

/// Whose time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyTimeoutScope {
    /// A flow's wait for input.
    Wait,
    Bridge,
}

impl ProxyId {
    /// Characters of [`Self::short`].
    pub const SHORT_CHARS: usize = 6;

    /// The number by which people name a bridge: `#1a2b3c`.
    pub fn short(&self) -> &str {
        let digits = self.as_str().rsplit('-').next().unwrap_or_default();
        digits.get(..Self::SHORT_CHARS).unwrap_or(digits)
    }
}
