//! A session as a reader sees it.

use crate::{AgentId, ChatUserId, EscalationId, FlowId, ProxyId, RunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    pub id: SessionId,
    pub agent_id: AgentId,
    pub user_id: ChatUserId,
    pub user_external_id: String,
    pub started_at: Timestamp,
    pub last_active_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub message_count: u64,
    /// When the user last wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_received_at: Option<Timestamp>,
    /// What it is about, as its agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub hitl: HitlView,
    /// `None` when no flow is active.
    pub flow: Option<ActiveFlowView>,
}

/// What a person has to do before the agent goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HitlView {
    pub mode: Option<String>,
    pub escalation_id: Option<EscalationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_id: Option<ProxyId>,
    pub pending_since: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveFlowView {
    pub flow_id: FlowId,
    pub flow_run_id: RunId,
    pub is_paused: bool,
    /// What it waits for, if it is paused.
    pub paused_on: Option<String>,
    pub deadline: Option<Timestamp>,
    pub answers: BTreeMap<String, String>,
}
