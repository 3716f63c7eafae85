//! A session as readers see it.

use super::state::ChatSession;
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_record::conversation::{ActiveFlowView, HitlView, SessionView};

impl ChatSession {
    pub fn view(&self) -> SessionView {
        let flow = self.flow.as_ref().map(|flow| ActiveFlowView {
            flow_id: flow.flow.clone(),
            flow_run_id: flow.run.clone(),
            is_paused: flow.pause.is_some(),
            paused_on: flow.pause.as_ref().map(|pause| pause.name().to_owned()),
            deadline: flow.pause.as_ref().and_then(|pause| pause.deadline()),
            answers: flow.answers.clone(),
        });
        SessionView {
            id: self.start.session_id.clone(),
            agent_id: self.start.agent_id.clone(),
            user_id: self.start.user.id.clone(),
            user_external_id: self.start.user.external_user_id.clone(),
            started_at: self.started_at,
            last_active_at: self.last_active_at,
            ended_at: self.ended.map(|(at, _)| at),
            message_count: self.message_count,
            last_received_at: self.last_received_at(),
            summary: self.summary(),
            hitl: HitlView {
                mode: self.hitl_mode().map(str::to_owned),
                escalation_id: self.shown_escalation().map(|e| e.id.clone()),
                proxy_id: self.bridge().map(|bridge| bridge.id.clone()),
                pending_since: self.pending_since,
            },
            flow,
        }
    }

    /// The session as `GET /sessions/{id}` and the rules of admins see it.
    pub fn shown(&self) -> Value {
        shown_view(&self.view())
    }
}

/// The same of its view.
pub fn shown_view(view: &SessionView) -> Value {
    let text = |at: Option<Timestamp>| at.map(|at| at.rfc3339());
    let flow = view.flow.as_ref().map(|flow| {
        json!({
            "flowId": flow.flow_id,
            "flowRunId": flow.flow_run_id,
            "status": if flow.is_paused { "paused" } else { "running" },
            "pausedOn": flow.paused_on,
            "deadline": text(flow.deadline),
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
        "endedAt": text(view.ended_at),
        "messageCount": view.message_count,
        "hitl": {
            "mode": view.hitl.mode,
            "escalationId": view.hitl.escalation_id,
            "proxyId": null,
            "pendingSince": text(view.hitl.pending_since),
        },
        "flow": flow,
    })
}
