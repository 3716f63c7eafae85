//! Requests for a person.

use crate::{EscalationId, FlowId, InterruptId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationMode {
    AsyncResolution,
    LiveTakeover,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationPriority {
    Low,
    #[default]
    Normal,
    High,
    Critical,
}

impl EscalationPriority {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationStatus {
    Open,
    Resolved,
    TimedOut,
    Canceled,
}

impl EscalationStatus {
    pub const ALL: [Self; 4] = [Self::Open, Self::Resolved, Self::TimedOut, Self::Canceled];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::TimedOut => "timed_out",
            Self::Canceled => "canceled",
        }
    }
}

/// A request for an admin's decision, from its creation to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationRecord {
    pub id: EscalationId,
    pub mode: EscalationMode,
    pub reason: String,
    pub priority: EscalationPriority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_run_id: Option<RunId>,
    /// The author's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    pub status: EscalationStatus,
    /// Its flow has ended: its resolution resumes nothing.
    pub detached: bool,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<EscalationResolution>,
    /// The interrupt of the wait for it, while a flow waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<InterruptId>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    /// How many people must approve; one refusal closes it.
    pub required_approvals: u32,
    /// Who may decide; empty means everybody with the right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Approvals given so far, while more are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<EscalationVote>,
    /// What the reviewer should know: last messages, profile, answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The desk it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Whose work it is: who claimed it, or whom it was assigned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Since when the assignee works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// Its time does not run while the assignee works on it; it then has no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StoppedTimeout>,
}

/// The time of an escalation while a claim stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoppedTimeout {
    /// What is left until its deadline; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
}

/// The deadlines of an escalation whose time runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartedTimeout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Of the flow's wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_deadline: Option<Timestamp>,
}

/// Whose work an escalation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscalationHolder {
    pub assignee: String,
    /// `None` when it was assigned to them and they have not claimed it.
    pub claimed_at: Option<Timestamp>,
}

/// One person's approval where several are needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationVote {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_data: Option<Value>,
    pub at: Timestamp,
}

/// An open escalation as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenEscalation {
    pub id: EscalationId,
    pub user_external_id: String,
    pub reason: String,
    pub priority: EscalationPriority,
}

impl EscalationRecord {
    pub fn is_open(&self) -> bool {
        self.status == EscalationStatus::Open
    }

    /// It is handed back, not decided.
    pub fn is_takeover(&self) -> bool {
        self.mode == EscalationMode::LiveTakeover
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationResolution {
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_data: Option<Value>,
    /// The actor the agent's rules resolved.
    pub resolved_by: String,
    /// Whom the caller named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    pub resolved_at: Timestamp,
    pub channel: String,
}

/// How an escalation was closed, for somebody who decides too late.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedEscalation {
    pub decided_by: Option<String>,
    pub decided_at: Option<Timestamp>,
    pub outcome: &'static str,
}
