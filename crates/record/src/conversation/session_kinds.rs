//! Words that events of a session use: how it begins and ends, why turns exist and how they end.

use super::{AdminActor, ChatUser};
use crate::{AgentId, EscalationId, Owner, ProxyId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a new session begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub owner: Owner,
    pub user: ChatUser,
    /// The transport the user writes by.
    pub transport: String,
    /// The user's address there.
    pub address: String,
    /// Text to greet a new user with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub welcome: Option<String>,
    /// The session ends when nothing happens for so long.
    pub idle_timeout_ms: u64,
    /// What the user's sessions before this one were about, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierSession>,
    /// When the user last wrote, in an earlier session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_received_at: Option<Timestamp>,
}

/// A session that ended, with the summary its agent wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierSession {
    pub id: SessionId,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub summary: String,
}

/// Why a turn exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    Inbound,
    Scheduled,
    Resolution,
    Handback,
    ProxyInput,
    Timer,
    QueueReplay,
    Workflow,
    /// An admin started or aborted a flow.
    Admin,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TurnOutcome {
    Processed,
    /// A hook ended the turn.
    EndedByPolicy {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Failed {
        reason: String,
    },
    /// A later message cancelled its model call; the turn of that message answers both.
    Interrupted,
    /// It was cut off from outside.
    Canceled {
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookStage {
    #[serde(rename = "beforeLLM")]
    BeforeLlm,
    #[serde(rename = "beforeResponse")]
    BeforeResponse,
    #[serde(rename = "onResponse")]
    OnResponse,
    /// The filter of a bridge.
    #[serde(rename = "processBeforeForward")]
    ProcessBeforeForward,
}

impl HookStage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeLlm => "beforeLLM",
            Self::BeforeResponse => "beforeResponse",
            Self::OnResponse => "onResponse",
            Self::ProcessBeforeForward => "processBeforeForward",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterReason {
    Selected,
    LowConfidence,
    UnknownFlow,
    ParseError,
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    Idle,
    Reset,
    /// The model or the agent's code ended it.
    Agent,
    Api,
}

/// Whether an actor was allowed an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationDecision {
    pub granted: bool,
    pub action: String,
    /// Stored under another name than the common field of every event.
    #[serde(
        rename = "resolvedActor",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub actor: Option<AdminActor>,
    /// What identified nobody, hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_id: Option<EscalationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_id: Option<ProxyId>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub adapter: String,
}
