//! A server's refusal: its code, its message, and advice for the user.

use crate::output::sanitize;
use serde_json::Value;
use std::fmt;

#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: u16,
    pub(crate) code: String,
    message: String,
    details: Value,
}

impl ErrorResponse {
    /// Parses the error envelope; any other body is wrapped in one.
    pub(crate) fn read(status: u16, body: &str) -> Self {
        let envelope: Value = serde_json::from_str(body).unwrap_or_default();
        let text = |key: &str| envelope[key].as_str().map(str::to_owned);
        Self {
            status,
            code: text("error").unwrap_or_else(|| format!("http_{status}")),
            message: text("message")
                .unwrap_or_else(|| format!("The server answered with status {status}.")),
            details: envelope["details"].clone(),
        }
    }

    fn next_step(&self) -> Option<String> {
        let step = match self.code.as_str() {
            // The rules of an agent ask for another credential than the key.
            "unauthenticated" if self.details["reason"].is_string() => {
                "Pass the token of an admin with --admin-token or TANDEM_ADMIN_TOKEN."
            }
            "unauthenticated" => {
                "Pass a key with --key or TANDEM_API_KEY. `tandem dev` keeps one in .tandem/dev-key, \
                 which commands in the same directory find by themselves."
            }
            "key_expired" | "key_revoked" => {
                "Get another key: `tandem keys create NAME` with a key that may make keys."
            }
            "forbidden" => {
                return Some(match self.details["scopeRequired"].as_str() {
                    Some(scope) => format!("Use a key with the scope {scope}."),
                    None => "Use a key that may do this.".to_owned(),
                });
            }
            "workflow_not_found" => {
                "Start the server with --workflows DIR, or PUT the document to \
                 /v1/host/tandem/workflows/ID."
            }
            "run_not_found" | "not_found" => "`tandem runs list` shows the runs this key may see.",
            "interrupt_not_found" => "`tandem inbox list` shows the open questions.",
            "interrupt_already_resolved" => {
                let part = |key: &str| self.details[key].as_str().unwrap_or("?");
                let (outcome, by, at) = (part("outcome"), part("decidedBy"), part("decidedAt"));
                return Some(format!("It was {outcome} by {by} at {at}."));
            }
            "escalation_claimed" => {
                let who = self.details["assignee"].as_str().unwrap_or("?");
                return Some(format!(
                    "Ask {who}, or take it over: `tandem inbox release ID`, then claim it."
                ));
            }
            "takeover_active" => {
                let who = self.details["holder"].as_str().unwrap_or("somebody else");
                return Some(format!(
                    "Ask {who} to hand back: `tandem inbox handback SESSION`."
                ));
            }
            "takeover_not_active" => "Take over first: `tandem inbox takeover SESSION`.",
            "interrupt_gone" => "Its run was cancelled; nothing waits for the answer.",
            "artifact_changed" => "Look again with `tandem inbox show ID`, then decide.",
            "rate_limited" | "service_unavailable" => "Wait a moment and try again.",
            "idempotency_key_mismatch" => {
                "The key was used for another request; choose a new --idempotency-key."
            }
            "http_404" => "Is that a tandem server? Check --url.",
            _ if self.status >= 500 => {
                return Some(match self.details["correlationId"].as_str() {
                    Some(id) => format!("Look for {id} in the server's log."),
                    None => "Look into the server's log.".to_owned(),
                });
            }
            _ => return None,
        };
        Some(step.to_owned())
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", sanitize(&self.code), sanitize(&self.message))?;
        for problem in self.details["errors"].as_array().into_iter().flatten() {
            let part = |key: &str| sanitize(problem[key].as_str().unwrap_or_default());
            write!(f, "\n  {}: {}", part("path"), part("message"))?;
        }
        match self.next_step() {
            Some(step) => write!(f, "\n  {}", sanitize(&step)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorResponse {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_code_message_problems_and_next_step() {
        let body = r#"{"error": "validation_error", "message": "Bad.",
            "details": {"errors": [{"path": "/inputs", "message": "must be an object"}]}}"#;
        assert_eq!(
            ErrorResponse::read(400, body).to_string(),
            "validation_error: Bad.\n  /inputs: must be an object"
        );
        let body = r#"{"error": "forbidden", "message": "No.",
            "details": {"scopeRequired": "runs:cancel"}}"#;
        assert_eq!(
            ErrorResponse::read(403, body).to_string(),
            "forbidden: No.\n  Use a key with the scope runs:cancel."
        );
    }

    #[test]
    fn already_resolved_error_names_the_decider() {
        let body = r#"{"error": "interrupt_already_resolved", "message": "Late.", "details":
            {"outcome": "accepted", "decidedBy": "ana", "decidedAt": "2026-01-01T00:00:00Z"}}"#;
        assert_eq!(
            ErrorResponse::read(409, body).to_string(),
            "interrupt_already_resolved: Late.\n  It was accepted by ana at 2026-01-01T00:00:00Z."
        );
    }

    #[test]
    fn unknown_error_code_is_shown_as_is() {
        // R-0039-29 (half: error codes)
        let body = r#"{"error": "some_day", "message": "New.", "details": {"more": [1]}}"#;
        assert_eq!(ErrorResponse::read(418, body).to_string(), "some_day: New.");
    }

    #[test]
    fn non_envelope_body_becomes_an_error_response() {
        let shown = ErrorResponse::read(502, "<html>").to_string();
        assert!(
            shown.starts_with("http_502: The server answered with status 502."),
            "{shown}"
        );
    }
}
