//! Converts the errors of other crates to problems. The match is exhaustive on purpose: a new
//! refusal does not compile until it has a status here.

use super::Problem;
use axum::http::StatusCode;
use serde_json::json;
use std::fmt::Display;
use tandem_access::{AuthenticateError, Denied, KeyError, RetryAfter, Unauthenticated};
use tandem_app::{
    AppError, DocumentProblem, Fault, Refusal, ResourceKind, ShareRefused, ShareScope, Unforkable,
    WebhookError,
};
use tandem_record::{Denial, Principal};

/// `Retry-After` for a full disk; somebody has to free space first.
const DISK_FULL_RETRY_SECONDS: u64 = 60;

/// `Retry-After` when too many connections or streams are open.
const SHARE_RETRY_SECONDS: u64 = 5;

impl Problem {
    /// The share of connections with requests in progress is used up.
    pub(crate) fn too_many_connections(refused: ShareRefused) -> Self {
        let ShareRefused { scope, limit } = refused;
        let whose = match scope {
            ShareScope::Key => "this key",
            ShareScope::Tenant => "this tenant",
            ShareScope::Host => "other tenants",
        };
        let message = format!("{limit} connections of {whose} are in use; wait until one is free.");
        Self::share_used_up(refused, message)
    }

    pub(crate) fn too_many_streams(refused: ShareRefused) -> Self {
        let limit = refused.limit;
        let message = format!("{limit} event streams and polls are open already; close one first.");
        Self::share_used_up(refused, message)
    }

    fn share_used_up(refused: ShareRefused, message: String) -> Self {
        let scope = match refused.scope {
            ShareScope::Key => "key",
            ShareScope::Tenant => "tenant",
            ShareScope::Host => "global",
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            .with("retryAfterMs", SHARE_RETRY_SECONDS * 1000)
            .with("scope", scope)
            .with("limit", refused.limit as u64)
            .with_retry_after(SHARE_RETRY_SECONDS)
    }
}

impl From<Unauthenticated> for Problem {
    fn from(why: Unauthenticated) -> Self {
        let code = match why {
            Unauthenticated::Missing | Unauthenticated::Malformed | Unauthenticated::Unknown => {
                "unauthenticated"
            }
            Unauthenticated::Expired => "key_expired",
            Unauthenticated::Revoked => "key_revoked",
        };
        Self::new(StatusCode::UNAUTHORIZED, code, to_message(&why))
    }
}

impl From<AuthenticateError> for Problem {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::Unauthenticated(why) => why.into(),
            AuthenticateError::Fault(fault) => fault.into(),
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::scope_missing(denied.scope)
    }
}

impl From<RetryAfter> for Problem {
    fn from(wait: RetryAfter) -> Self {
        let seconds = wait.ms.div_ceil(1000).max(1);
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limited",
            "Too many requests; slow down.",
        )
        .with("retryAfterMs", wait.ms)
        .with("scope", "key")
        .with("limit", wait.limit)
        .with_retry_after(seconds)
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        if fault.code == "disk_full" {
            tracing::error!(cause = %fault, "the store is full");
            return Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "storage_full",
                "The store is full; free space on the host's disk, then try again.",
            )
            .with_retry_after(DISK_FULL_RETRY_SECONDS)
            .with_correlation_id();
        }
        if fault.retryable || fault.code == "closed" {
            tracing::warn!(code = fault.code, cause = %fault, "the store is not available");
            return Self::busy();
        }
        Self::internal(&fault)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let message = to_message(&refusal);
        match refusal {
            Refusal::Invalid(problems) => {
                Self::validation(problems.into_iter().map(|p| (p.path, p.message)).collect())
            }
            Refusal::CapabilityRequired {
                capability,
                type_id,
                node,
            } => Self::new(StatusCode::BAD_REQUEST, "capability_required", message)
                .with("requiredCapability", capability)
                .with("offendingTypeId", type_id)
                .with("nodeId", node.as_str()),
            Refusal::TypeRefused { type_id, node } => {
                let why = "the workflow id must start with \"conformance-\", or the tenant's key must \
                           have the role \"conformance\", on a host where conformance types exist";
                Self::validation(vec![(
                    "/workflowId".to_owned(),
                    format!("{message}: {why}"),
                )])
                .with("reason", "typeId_refused")
                .with("offendingTypeId", type_id)
                .with("nodeId", node.as_str())
            }
            Refusal::NotPausable { status, paused_at } => {
                Self::wrong_state(message, status, paused_at)
            }
            Refusal::NotPaused { status } => Self::wrong_state(message, status, None),
            Refusal::InterruptNotFound { .. } => {
                Self::new(StatusCode::NOT_FOUND, "interrupt_not_found", message)
            }
            Refusal::AlreadyResolved(closed) => {
                let by = closed.decided_by();
                Self::already_resolved(&closed.outcome, by, closed.at)
            }
            Refusal::NotAnswerable { .. } => Self::not_answerable(),
            Refusal::InterruptGone => Self::new(StatusCode::GONE, "interrupt_gone", message),
            Refusal::RunEnded { status } => Self::wrong_state(message, status, None),
            Refusal::TooManyEvents { limit } => {
                Self::new(StatusCode::CONFLICT, "too_many_events", message)
                    .with("limit", limit as u64)
            }
            Refusal::CorrelationMismatch { keys } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "correlation_mismatch",
                message,
            )
            .with("keys", keys),
        }
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        match error {
            AppError::NotFound(kind) => kind.into(),
            AppError::Forbidden(reason) => reason.into(),
            AppError::Invalid(fields) => {
                Self::validation(fields.into_iter().map(|f| (f.path, f.message)).collect())
            }
            AppError::InvalidDocument(problems) => Self::invalid_document(problems),
            AppError::TooManyRuns { limit } => Self::too_many_run_ids(limit),
            AppError::UrlRejected(reason) => Self::webhook_url_rejected(&reason),
            AppError::UnsupportedMockProvider(id) => Self::unsupported_mock_provider(&id),
            AppError::UnsupportedEngineVersion { served } => {
                Self::unsupported_engine_version(served)
            }
            AppError::NotProvided(capability) => Self::capability_not_provided(capability),
            AppError::Refused(refusal) => refusal.into(),
            AppError::Unforkable(why) => why.into(),
            AppError::ScopeBusy { active, host } => Self::scope_busy(active.as_ref(), &host),
            AppError::MayNotDecide { by, why } => Self::may_not_decide(by.as_ref(), why),
            AppError::ArtifactChanged { digest } => Self::artifact_changed(&digest),
            AppError::AlreadyResolved { outcome, by, at } => {
                Self::already_resolved(&outcome, by.as_deref(), at)
            }
            AppError::LinkExpired => Self::link_expired(),
            AppError::RunExpired => Self::run_expired(),
            AppError::BeyondEnd { seq, last } => Self::beyond_end(seq, last),
            AppError::LogTooLarge => Self::log_too_large(),
            AppError::IdempotencyKeyMismatch => Self::key_mismatch(),
            AppError::IdempotencyKeyInFlight => Self::key_in_flight(),
            AppError::Key(error) => error.into(),
            AppError::Webhook(error) => error.into(),
            AppError::AgentInvalid => Self::agent_invalid(),
            AppError::AdminDenied(denial) => Self::admin_denied(denial),
            AppError::SessionRefused(refusal) => refusal.into(),
            AppError::ScheduleRefused(refusal) => refusal.into(),
            AppError::InvalidSignature => Self::forbidden(
                "The request is not signed with the secret of the transport, or is too old.",
            ),
            AppError::NotAnswerable => Self::not_answerable(),
            AppError::FlowRun => Self::flow_run(),
            AppError::Fault(fault) => fault.into(),
        }
    }
}

impl From<ResourceKind> for Problem {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Interrupt => Self::interrupt_not_found(),
            ResourceKind::Workflow => Self::workflow_not_found(),
            ResourceKind::Webhook => Self::subscription_not_found(),
            ResourceKind::Run
            | ResourceKind::Artifact
            | ResourceKind::Receipt
            | ResourceKind::Key
            | ResourceKind::Group
            | ResourceKind::Delegation
            | ResourceKind::Delivery
            | ResourceKind::ParkedSubject
            | ResourceKind::Agent
            | ResourceKind::Session
            | ResourceKind::ChatUser
            | ResourceKind::Escalation
            | ResourceKind::Proxy
            | ResourceKind::Transport
            | ResourceKind::Media
            | ResourceKind::Schedule
            | ResourceKind::ScheduleRun => Self::not_found(kind.as_str()),
        }
    }
}

impl From<Unforkable> for Problem {
    fn from(why: Unforkable) -> Self {
        match why {
            Unforkable::BeyondEnd { from_seq, last } => Self::beyond_end(from_seq, last),
            Unforkable::TooLarge => Self::log_too_large(),
            Unforkable::NotRetained {
                source_run,
                from_seq,
                reason,
            } => Self::snapshot_unavailable(&source_run, from_seq, reason),
        }
    }
}

impl Problem {
    fn invalid_document(problems: Vec<DocumentProblem>) -> Self {
        let (warnings, mut problems): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.warning);
        // Problems with a protocol code are listed first.
        problems
            .sort_by_key(|p| p.capability.is_none() && p.reason.is_none() && p.type_id.is_none());
        let first = problems.first().cloned();
        let errors = problems.into_iter().map(|p| (p.path, p.message)).collect();
        let mut problem = Self::validation(errors);
        if !warnings.is_empty() {
            let entries = warnings.iter();
            let entries = entries.map(|w| json!({"path": w.path, "message": w.message}));
            problem = problem.with("warnings", entries.collect::<Vec<_>>());
        }
        if first.as_ref().is_some_and(|p| p.capability.is_some()) {
            problem.code = "capability_required";
        }
        let is_beyond = |p: &DocumentProblem| p.reason == Some(tandem_app::HORIZON_EXCEEDED);
        if first.as_ref().is_some_and(is_beyond) {
            problem.code = tandem_app::HORIZON_EXCEEDED;
            problem = problem.with("maxFutureHorizon", tandem_app::MAX_FUTURE_HORIZON);
        }
        // Fields the protocol requires when there is a single cause.
        if let Some(first) = first {
            let node = first.node.map(|n| n.to_string());
            let named = [
                ("reason", first.reason.map(str::to_owned)),
                ("offendingTypeId", first.type_id),
                ("nodeId", node),
                ("requiredCapability", first.capability.map(str::to_owned)),
            ];
            for (name, value) in named {
                if let Some(value) = value {
                    problem = problem.with(name, value);
                }
            }
        }
        problem
    }
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NotFound => Self::subscription_not_found(),
            WebhookError::TooMany | WebhookError::Failed => {
                Self::new(StatusCode::CONFLICT, "conflict", to_message(&error))
            }
            WebhookError::TooManySecrets { next_rotation_at } => {
                Self::new(StatusCode::CONFLICT, "conflict", to_message(&error))
                    .with("nextRotationAt", next_rotation_at.rfc3339())
            }
            // The application layer answers this one with the stored response.
            WebhookError::IdempotencyKeyUsed => Self::key_in_flight(),
            WebhookError::Fault(fault) => fault.into(),
        }
    }
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::IdempotencyKeyUsed => Self::key_in_flight(),
            KeyError::NotFound => Self::not_found("key"),
            KeyError::MakerRevoked => Unauthenticated::Revoked.into(),
            KeyError::Inactive => Self::new(StatusCode::CONFLICT, "conflict", to_message(&error)),
            KeyError::AlreadyExpired => Self::invalid("/expiresAt", "is in the past"),
            KeyError::InvalidName => Self::invalid("/workspace", "must have 1 to 256 characters"),
            KeyError::PrincipalName(why) => Self::invalid("/principal", why.to_string()),
            KeyError::WeakSecret | KeyError::UnusableSecret => Self::internal(&error),
            KeyError::Fault(fault) => fault.into(),
        }
    }
}

impl Problem {
    /// The caller may not decide this interrupt; it stays open.
    pub(crate) fn may_not_decide(by: Option<&Principal>, why: Denial) -> Self {
        let (code, message) = match why {
            Denial::LinkTooWeak => (
                "auth_elevation_required",
                "This question needs an authenticated decision, not a link.",
            ),
            Denial::NotEligible => (
                "forbidden",
                "You are not among those who may decide this question.",
            ),
            Denial::SelfApproval => (
                "forbidden",
                "A principal that started or forked the run may not decide this question, nor may a delegate of that principal.",
            ),
            Denial::NotDelegated => (
                "forbidden",
                "No current delegation lets you act for that principal.",
            ),
            Denial::OtherVoter => (
                "forbidden",
                "The key or link is that of one principal, which votes for itself only. To act for somebody else, \
                 name them as actingFor; they must have delegated to you.",
            ),
        };
        let problem = Self::new(StatusCode::FORBIDDEN, code, message).with("reason", why.as_str());
        match by {
            Some(by) => problem.with("principal", by.as_str()),
            None => problem,
        }
    }
}

/// Errors of our crates start in lower case and end without a period; user messages do not.
pub(super) fn to_message(error: &dyn Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => text,
    }
}
