//! An interrupt of a run, to a person or to the outside, and its answer.

use crate::{DeciderSnapshot, InterruptId, Principal, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    pub id: InterruptId,
    pub kind: String,
    /// Deterministic name of this interrupt within the run.
    pub key: String,
    pub data: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub requested_at: Timestamp,
    /// When the first timeout action runs, if that is not simply `timeout_ms` later: an escalation
    /// or a reminder may come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// 0 to 9, higher first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

/// One person's vote in a decision that needs several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    pub voter: String,
    /// Who voted on the voter's behalf. One person has one vote, whether for themselves or for
    /// another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    pub action: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// An approval as it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    /// `accept`, `reject`, `refine`, `edit-accept` or `timeout`.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The voter, when several people share one key or link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voter: Option<String>,
    /// The decider's name as the client sent it. A claim: it is only shown.
    #[serde(rename = "said_by", default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    #[serde(
        rename = "standing",
        default,
        skip_serializing_if = "DeciderSnapshot::is_empty"
    )]
    pub decider: DeciderSnapshot,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub refine: Option<Value>,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub edited: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    pub interrupt: InterruptId,
    pub kind: String,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    #[serde(
        rename = "standing",
        default,
        skip_serializing_if = "DeciderSnapshot::is_empty"
    )]
    pub decider: DeciderSnapshot,
    /// The external event that answered it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
