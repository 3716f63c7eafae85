//! Users, sessions and escalations as JSON.

use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatUser, EscalationRecord, EscalationResolution, EscalationVote, SessionView,
};
use tandem_record::{AgentId, SessionId, Timestamp};

/// `GET /sessions/{id}`, and what the rights of an admin are checked against.
pub fn session(view: &SessionView) -> Value {
    let time = |at: Option<Timestamp>| at.map(Timestamp::rfc3339);
    let flow = view.flow.as_ref().map(|flow| {
        json!({
            "flowId": flow.flow_id,
            "flowRunId": flow.flow_run_id,
            "status": if flow.is_paused { "paused" } else { "running" },
            "pausedOn": flow.paused_on,
            "deadline": time(flow.deadline),
            "answers": flow.answers,
        })
    });
    json!({
        "id": view.id,
        "agentId": view.agent_id,
        "userId": view.user_id,
        "userExternalId": view.user_external_id,
        "startedAt": view.started_at.rfc3339(),
        "lastActiveAt": view.last_active_at.rfc3339(),
        "endedAt": time(view.ended_at),
        "messageCount": view.message_count,
        "hitl": {
            "mode": view.hitl.mode,
            "escalationId": view.hitl.escalation_id,
            "proxyId": view.hitl.proxy_id,
            "pendingSince": time(view.hitl.pending_since),
        },
        "flow": flow,
    })
}

/// An escalation with the conversation it belongs to.
pub fn escalation(
    record: &EscalationRecord,
    session: &SessionId,
    agent: &AgentId,
    user_external_id: &str,
) -> Value {
    let EscalationRecord {
        id,
        mode,
        reason,
        priority,
        metadata,
        flow_id,
        flow_run_id,
        client_id,
        status,
        detached,
        created_at,
        deadline,
        resolution,
        interrupt_id,
        cancel_reason,
        required_approvals,
        approvers,
        votes,
        context,
        queue,
        assignee,
        claimed_at,
        stopped,
    } = record;
    let mut out = Fields::default();
    out.set("id", id);
    out.set("agentId", agent);
    out.set("sessionId", session);
    out.set("userExternalId", user_external_id);
    out.set("flowId", flow_id);
    out.set("flowRunId", flow_run_id);
    out.opt("clientId", client_id.as_ref());
    out.opt("interruptId", interrupt_id.as_ref());
    out.set("mode", mode);
    out.set("reason", reason);
    out.set("priority", priority);
    out.set("metadata", metadata);
    out.set("status", status);
    out.set("detached", detached);
    out.set("createdAt", created_at.rfc3339());
    out.set("deadline", deadline.map(Timestamp::rfc3339));
    out.opt("resolution", resolution.as_ref().map(shown_resolution));
    out.opt("cancelReason", cancel_reason.as_ref());
    out.set("requiredApprovals", required_approvals);
    out.opt("approvers", some_unless_empty(approvers));
    let votes: Vec<Value> = votes.iter().map(shown_vote).collect();
    out.opt("votes", some_unless_empty(&votes));
    out.opt("context", context.as_ref());
    out.opt("queue", queue.as_ref());
    out.opt("assignee", assignee.as_ref());
    out.opt("claimedAt", claimed_at.map(Timestamp::rfc3339));
    if let Some(stopped) = stopped {
        out.set("timeoutStopped", true);
        out.opt(
            "timeLeftSeconds",
            stopped.left_ms.map(|ms| ms.div_ceil(1_000)),
        );
    }
    json!(out.0)
}

fn shown_vote(vote: &EscalationVote) -> Value {
    let mut out = Fields::default();
    out.set("by", &vote.by);
    out.opt("message", vote.message.as_ref());
    out.opt("actionData", vote.action_data.as_ref());
    out.set("at", vote.at.rfc3339());
    json!(out.0)
}

fn some_unless_empty<T>(list: &[T]) -> Option<&[T]> {
    Some(list).filter(|list| !list.is_empty())
}

fn shown_resolution(resolution: &EscalationResolution) -> Value {
    let EscalationResolution {
        approved,
        message,
        action_data,
        resolved_by,
        claimed_by,
        resolved_at,
        channel,
    } = resolution;
    let mut out = Fields::default();
    out.set("approved", approved);
    out.opt("message", message.as_ref());
    out.opt("actionData", action_data.as_ref());
    out.set("resolvedBy", resolved_by);
    out.opt("claimedBy", claimed_by.as_ref());
    out.set("resolvedAt", resolved_at.rfc3339());
    out.set("channel", channel);
    json!(out.0)
}

/// A user of an agent.
pub fn user(
    profile: &ChatUser,
    agent: &AgentId,
    created_at: Timestamp,
    last_active_at: Timestamp,
) -> Value {
    let ChatUser {
        id,
        external_user_id,
        display_name,
        name_is_chosen: _,
        tags,
        preferences,
        consent,
    } = profile;
    let mut shown = json!({
        "id": id,
        "agentId": agent,
        "externalUserId": external_user_id,
        "displayName": display_name,
        "tags": tags,
        "preferences": preferences,
        "createdAt": created_at.rfc3339(),
        "lastActiveAt": last_active_at.rfc3339(),
    });
    if let Some(consent) = consent {
        shown["consent"] = json!(consent);
    }
    shown
}
