//! Errors of conversations.

use super::Problem;
use super::translate::to_message;
use axum::http::StatusCode;
use serde_json::json;
use tandem_app::{AuthzDenial, ScheduleRefusal, SessionRefusal};
use tandem_record::EscalationId;

impl Problem {
    pub(super) fn agent_invalid() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "agent_unavailable",
            "The agent's files have errors and there is no earlier good version.",
        )
    }

    /// The rules of the agent name no actor, or do not allow the actor to do this.
    pub(super) fn admin_denied(denial: AuthzDenial) -> Self {
        let problem = match denial {
            AuthzDenial::NoActor => Self::new(
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "The agent's rules do not know who you are; send the credential they ask for.",
            ),
            AuthzDenial::NoAuthConfig => {
                Self::forbidden("The agent has no rules for admins, so nobody may do this.")
            }
            AuthzDenial::Forbidden => Self::forbidden("The agent's rules do not allow this."),
            AuthzDenial::Error | AuthzDenial::Timeout => {
                Self::forbidden("The agent's rules gave no answer, so this is not allowed.")
            }
        };
        problem.with("reason", json!(denial))
    }

    pub(super) fn flow_run() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conflict",
            "This run belongs to a conversation, which alone changes it. It can be cancelled, and read like any run.",
        )
    }

    pub(super) fn not_answerable() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conflict",
            "This question is answered by the conversation itself, not from outside.",
        )
    }
}

impl From<SessionRefusal> for Problem {
    fn from(refusal: SessionRefusal) -> Self {
        let message = to_message(&refusal);
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, message.clone());
        match refusal {
            SessionRefusal::Unknown => Self::not_found("session"),
            SessionRefusal::Ended => Self::new(StatusCode::GONE, "interrupt_gone", message),
            SessionRefusal::EscalationNotFound => Self::not_found("escalation"),
            SessionRefusal::EscalationAmbiguous(ids) => {
                let ids: Vec<&str> = ids.iter().map(EscalationId::as_str).collect();
                conflict("conflict").with("escalationIds", json!(ids))
            }
            SessionRefusal::EscalationElsewhere => conflict("conflict"),
            SessionRefusal::AlreadyResolved(closed) => conflict("interrupt_already_resolved")
                .with("decidedBy", closed.decided_by)
                .with("decidedAt", closed.decided_at.map(|at| at.rfc3339()))
                .with("outcome", closed.outcome),
            SessionRefusal::EscalationClaimed(holder) => conflict("escalation_claimed")
                .with("assignee", holder.assignee)
                .with("claimedAt", holder.claimed_at.map(|at| at.rfc3339())),
            SessionRefusal::TakeoverActive { holder } => {
                conflict("takeover_active").with("holder", holder)
            }
            SessionRefusal::NoTakeover => conflict("takeover_not_active"),
            SessionRefusal::TakeoverUnavailable => conflict("takeover_unavailable"),
            SessionRefusal::AgentUnavailable => conflict("agent_unavailable"),
            SessionRefusal::UnknownFlow(_) => Self::not_found("flow"),
            SessionRefusal::InvalidInput(why) => Self::invalid("/input", why),
            SessionRefusal::FlowActive => conflict("flow_active"),
            SessionRefusal::NoFlow => Self::not_found("active flow"),
            SessionRefusal::NotRetryable => conflict("conflict"),
            SessionRefusal::Overloaded => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            }
            SessionRefusal::DecisionTooLarge { .. } => Self::invalid("/actionData", message),
            SessionRefusal::NotAnApprover => Self::forbidden(message),
            SessionRefusal::DraftNotFound => Self::not_found("held text"),
            SessionRefusal::QuestionClosed => conflict("interrupt_already_resolved"),
            SessionRefusal::ProxyStopped => conflict("proxy_stopped"),
            SessionRefusal::ProxyFull => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            }
        }
    }
}

impl From<ScheduleRefusal> for Problem {
    fn from(refusal: ScheduleRefusal) -> Self {
        let message = to_message(&refusal);
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, message.clone());
        match refusal {
            ScheduleRefusal::Unknown => Self::not_found("schedule"),
            ScheduleRefusal::VersionConflict { version } => {
                conflict("version_conflict").with("version", version)
            }
            ScheduleRefusal::Canceled => conflict("conflict"),
        }
    }
}
