//! Texts and calls of the agent that wait for somebody's consent.

use super::ChatToolCall;
use crate::{EscalationId, InterruptId, Seq, Timestamp};
use serde::{Deserialize, Serialize};

/// Who writes to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    #[default]
    Auto,
    /// Every text of the agent waits for a person's approval.
    DraftOnly,
    Off,
}

/// What a person decides about a held text.
#[derive(Clone, Debug, PartialEq)]
pub enum DraftDecision {
    Accept,
    /// This text is sent instead, as the person's own.
    Edit(String),
    Reject,
}

/// How a held text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftOutcome {
    Accepted,
    Edited,
    Rejected,
    /// The session ended, or too many texts were held.
    Dropped,
}

/// A call of the model that is not made before somebody allows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    pub call: ChatToolCall,
    pub interrupt_id: InterruptId,
    pub asked: ApprovalAsked,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum ApprovalAsked {
    #[serde(rename_all = "camelCase")]
    User {
        question: String,
        deadline: Timestamp,
        /// Questions sent so far, without the first.
        attempts: u32,
        /// The event of the question: a message received before it does not answer it.
        asked: Seq,
    },
    #[serde(rename_all = "camelCase")]
    Admin { escalation_id: EscalationId },
}
