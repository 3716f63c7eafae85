//! What is stored of a question beside the columns of its inbox row: what is shown, the votes, who
//! may decide, and the outcome.
//!
//! The machine that asks writes it, every reader of the inbox reads it. The form is the same for a
//! question of a workflow run and for one of a conversation. Bodies of earlier releases are read
//! too: a part that was added later is optional.

use crate::{RunId, SessionId, Timestamp, Vote, WorkflowId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The stored content of a question. A writer borrows it, a reader owns it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionBody<'a> {
    /// The name of the question within its stream.
    pub key: Cow<'a, str>,
    /// What is shown. Its members depend on the kind of the question.
    pub data: Cow<'a, Value>,
    /// SHA-256 of `data` in canonical form. A decision can be bound to it.
    pub digest: Cow<'a, str>,
    #[serde(default)]
    pub votes: Cow<'a, [Vote]>,
    #[serde(default)]
    pub approvers: Cow<'a, [String]>,
    #[serde(default)]
    pub approver_groups: Cow<'a, [String]>,
    #[serde(default)]
    pub approver_roles: Cow<'a, [String]>,
    /// Number of escalations to other deciders. Absent if the question cannot be escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Number of reminders sent. Absent if there are none for this question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminders: Option<u32>,
    /// The workflow of the run that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<Cow<'a, WorkflowId>>,
    /// The conversation that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, SessionId>>,
    /// The run that asks, where the stream of the question does not name it: a flow run of a
    /// conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Cow<'a, RunId>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub resume_schema: Option<Cow<'a, Value>>,
    /// From when on answers are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The original proposal, once a voter accepted it with changes.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub proposed: Option<Cow<'a, Value>>,
    /// What was accepted instead of what was shown. Only of a closed question, as all that follows.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub edited: Option<Cow<'a, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

impl QuestionBody<'_> {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a question is plain data with text keys")
    }
}

impl QuestionBody<'static> {
    /// Reads a stored body, also one of an earlier release.
    pub fn from_json(stored: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(stored)
    }
}

/// What a question proposes: the artifact of an approval, or the held decision of an agent.
pub fn proposed_artifact(data: &Value) -> Option<&Value> {
    data.get("artifactData").or_else(|| data.get("decision"))
}

fn present<'de, 'a, D>(d: D) -> Result<Option<Cow<'a, Value>>, D::Error>
where
    D: Deserializer<'de>,
{
    crate::present(d).map(|value| value.map(Cow::Owned))
}
