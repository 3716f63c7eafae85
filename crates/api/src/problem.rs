//! Every error response of this crate. The only module that assigns an HTTP status to an error.
//!
//! A problem is the protocol's closed envelope `{error, message, details?}` and, where a retry can
//! help, a `Retry-After`. Faults of the host carry a correlation id that is also in the log, and no
//! other internal detail. [`translate`] converts errors of other crates.

mod access;
mod advice;
mod conversation;
mod redact;
#[cfg(test)]
mod tests;
mod translate;

use crate::stored_response::FinalRefusal;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
pub(crate) use redact::{ProblemBody, redact};
use serde_json::{Value, json};
use std::fmt::Display;
use tandem_access::{Scope, TEST_PREFIX};
use tandem_app::{MOCK_PROVIDERS, StoredResponse};
use tandem_record::{Object, RunId, RunStatus, Seq, Timestamp};
use tandem_wire::v1::error::ErrorEnvelope;
use tandem_wire::v1::{stream, time::rfc3339};

/// `Retry-After` of a busy host.
pub(crate) const BUSY_RETRY_SECONDS: u64 = 1;
/// `Retry-After` for an exclusive scope in use; runs rarely end sooner.
const SCOPE_RETRY_SECONDS: u64 = 5;

#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Object,
    retry_after: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: Object::new(),
            retry_after: None,
        }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    // --- 400 ---

    /// The request is invalid; each error names its place as a JSON pointer or as the name of a
    /// header or parameter.
    pub(crate) fn validation(errors: Vec<(String, String)>) -> Self {
        let message = match errors.as_slice() {
            [] => "The request is not valid.".to_owned(),
            [(path, message)] => format!("{} {message}.", subject(path)),
            [(path, message), rest @ ..] => {
                format!("{} {message} (and {} more).", subject(path), rest.len())
            }
        };
        let errors: Vec<Value> = errors
            .into_iter()
            .map(|(path, message)| json!({"path": path, "message": message}))
            .collect();
        Self::new(StatusCode::BAD_REQUEST, "validation_error", message).with("errors", errors)
    }

    pub(crate) fn invalid(path: &str, message: impl Into<String>) -> Self {
        Self::validation(vec![(path.to_owned(), message.into())])
    }

    fn too_many_run_ids(limit: usize) -> Self {
        Self::invalid("/runIds", format!("must hold 1 to {limit} run ids"))
            .with("maxRunIds", limit as u64)
    }

    pub(crate) fn unversioned(path: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "validation_error",
            "Paths of the API start with /v1/.",
        )
        .with("path", path)
    }

    pub(crate) fn unsupported_stream_mode() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "unsupported_stream_mode",
            "This stream mode, or this combination of modes, is not served.",
        )
        .with("supported", json!(stream::SUPPORTED))
    }

    fn unsupported_engine_version(served: u32) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "unsupported_force_engine_version",
            format!("Only engine version {served} is served."),
        )
        .with("supported", json!([served]))
    }

    fn unsupported_mock_provider(requested: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "unsupported_mock_provider",
            format!("The mock providers are {}.", MOCK_PROVIDERS.join(", ")),
        )
        .with("requestedProvider", requested)
        .with("supportedProviders", json!(MOCK_PROVIDERS))
    }

    fn webhook_url_rejected(reason: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "webhook_url_rejected",
            format!("Nothing may be delivered to this URL: {reason}."),
        )
        .with("reason", reason)
    }

    // --- 403 ---

    fn tenant_membership_required() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "tenant_membership_required",
            "The key does not belong to this tenant or workspace.",
        )
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn scope_missing(scope: Scope) -> Self {
        Self::forbidden("Key lacks the required scope.").with("scopeRequired", scope.as_str())
    }

    fn run_forbidden() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "run_forbidden",
            "The run belongs to another workspace.",
        )
    }

    fn engine_version_forbidden() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "force_engine_version_forbidden",
            "Only test keys may force an engine version.",
        )
    }

    fn mock_provider_forbidden(requested: Option<&str>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "mock_provider_forbidden",
            format!("Only test keys, which begin with {TEST_PREFIX}, may name a mock provider."),
        )
        .with("requestedProvider", requested)
        .with("supportedProviders", json!(MOCK_PROVIDERS))
    }

    // --- 404, 405 ---

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("There is no such {what}."),
        )
    }

    fn workflow_not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "workflow_not_found",
            "There is no such workflow.",
        )
    }

    fn subscription_not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "subscription_not_found",
            "There is no such webhook.",
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "The path exists, but not with this method.",
        )
    }

    // --- 409, 410, 413 ---

    fn key_mismatch() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "idempotency_key_mismatch",
            "The idempotency key was used before with a different request.",
        )
    }

    pub(crate) fn key_in_flight() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "idempotency_in_flight",
            "Another request with this idempotency key is under way.",
        )
        .with("retryAfter", BUSY_RETRY_SECONDS)
        .with_retry_after(BUSY_RETRY_SECONDS)
    }

    pub(crate) fn scope_busy(active: Option<&RunId>, host: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "run_already_active",
            "Another run of this scope has not ended yet.",
        )
        .with("activeRunId", active.map(RunId::as_str))
        .with("activeHost", host)
        .with("retryAfter", SCOPE_RETRY_SECONDS)
        .with_retry_after(SCOPE_RETRY_SECONDS)
    }

    /// The run's state does not allow the command.
    fn wrong_state(message: String, status: RunStatus, paused_at: Option<Timestamp>) -> Self {
        let code = if status.is_terminal() {
            "run_terminal"
        } else {
            "conflict"
        };
        let problem =
            Self::new(StatusCode::CONFLICT, code, message).with("runStatus", status.as_str());
        match paused_at {
            Some(at) => problem.with("pausedAt", rfc3339(at)),
            None => problem,
        }
    }

    fn already_resolved(outcome: &str, by: Option<&str>, at: Timestamp) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "interrupt_already_resolved",
            "The question was decided before.",
        )
        .with("outcome", outcome)
        .with("decidedBy", by)
        .with("decidedAt", rfc3339(at))
    }

    fn interrupt_not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "interrupt_not_found",
            "There is no such question.",
        )
    }

    /// The run is known, but its log is past retention.
    fn run_expired() -> Self {
        Self::new(
            StatusCode::GONE,
            "run_expired",
            "The run is past its retention period; its log is no longer stored.",
        )
    }

    fn link_expired() -> Self {
        Self::new(
            StatusCode::GONE,
            "interrupt_expired",
            "The link has expired; read the run again for a new one.",
        )
    }

    fn artifact_changed(shown: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "artifact_changed",
            "The question has changed since it was shown; read it again.",
        )
        .with("digest", shown)
    }

    pub(crate) fn payload_too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "payload_too_large",
            format!("The body is larger than {limit} bytes."),
        )
        .with("maxRequestBodyBytes", limit as u64)
    }

    // --- 422 ---

    fn beyond_end(from_seq: Seq, last: Seq) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_from_seq",
            format!("The run has no event {from_seq}; its last one is {last}."),
        )
        .with("fromSeq", from_seq.0)
        .with("lastSequence", last.0)
    }

    fn log_too_large() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "log_too_large",
            "The run's log is too large for this. Read it in pages instead.",
        )
    }

    fn snapshot_unavailable(source: &RunId, from_seq: Seq, reason: &str) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "replay_memory_snapshot_unavailable",
            "The run's log and its memory at that event are no longer stored.",
        )
        .with("fromSeq", from_seq.0)
        .with("sourceRunId", source.as_str())
        .with("reason", reason)
        .with("oldestAvailableIdx", Value::Null)
    }

    // --- 501, 503, 500 ---

    pub(crate) fn capability_not_provided(capability: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            "capability_not_provided",
            format!("This host does not provide {capability}."),
        )
        .with("requiredCapability", capability)
        .with_correlation_id()
    }

    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "service_unavailable",
            "The host is busy; try again shortly.",
        )
        .with("retryAfter", BUSY_RETRY_SECONDS)
        .with_retry_after(BUSY_RETRY_SECONDS)
        .with_correlation_id()
    }

    /// For health probes: names the reason, which contains no user data.
    pub(crate) fn not_ready(reason: &str) -> Self {
        Self {
            message: format!("The host is not ready: {reason}."),
            ..Self::busy().with("reason", reason)
        }
    }

    /// A fault of the host. The cause is logged; the caller gets a correlation id.
    pub(crate) fn internal(cause: &dyn Display) -> Self {
        let problem = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong inside the host; details.correlationId finds it in the log.",
        )
        .with_correlation_id();
        let correlation_id = problem.details["correlationId"].as_str();
        tracing::error!(correlation_id, %cause, "request failed");
        problem
    }

    fn with_correlation_id(self) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.with("correlationId", id)
    }

    // --- for problems that are not rendered as an API response ---

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the fault is the host's and not the request's.
    pub(crate) fn is_server_error(&self) -> bool {
        self.status.is_server_error()
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Places in the request and their errors.
    pub(crate) fn field_errors(&self) -> Vec<(String, String)> {
        let errors = self.details.get("errors").and_then(Value::as_array);
        let text = |error: &Value, key: &str| error[key].as_str().unwrap_or_default().to_owned();
        errors
            .into_iter()
            .flatten()
            .map(|error| (text(error, "path"), text(error, "message")))
            .collect()
    }

    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The response to store under an idempotency key. `None` if a retry may succeed: for invalid
    /// and unauthorized requests, and for everything with `Retry-After`.
    pub(crate) fn stored(&self) -> Option<StoredResponse> {
        let is_final = self.status.is_client_error()
            && self.retry_after.is_none()
            && !matches!(
                self.status,
                StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            );
        is_final.then(|| StoredResponse {
            status: self.status(),
            body: self.body(),
        })
    }

    fn body(&self) -> String {
        let envelope = ErrorEnvelope {
            error: self.code.into(),
            message: self.message.clone(),
            details: (!self.details.is_empty()).then(|| self.details.clone()),
        };
        serde_json::to_string(&envelope).expect("an envelope is plain data with text keys")
    }
}

fn subject(path: &str) -> &str {
    if path.is_empty() { "The body" } else { path }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.body();
        let content_type = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (self.status, content_type, body.clone()).into_response();
        response.extensions_mut().insert(ProblemBody::Json(body));
        if let Some(stored) = self.stored() {
            response.extensions_mut().insert(FinalRefusal(stored));
        }
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
