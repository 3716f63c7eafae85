//! Errors of calls to tool servers. Messages contain the operator's name of the server: not its
//! address, and nothing the server wrote. That is untrusted data, which errors in the log of a run
//! do not contain.

use crate::failure::retry_after_ms;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::json;
use tandem_record::ErrorInfo;

pub(super) fn unknown(server: &str) -> ErrorInfo {
    ErrorInfo::new(
        "mcp_server_not_configured",
        format!("The tool server `{server}` is not configured on this host."),
    )
}

/// Its address may not be called from here. Only the operator's log names the address.
pub(super) fn address_rejected(server: &str) -> ErrorInfo {
    ErrorInfo::new(
        "url_rejected",
        format!("The tool server `{server}` is at an address this host may not call."),
    )
}

pub(super) fn timeout(server: &str, timeout_ms: u64) -> ErrorInfo {
    ErrorInfo::new(
        "mcp_timeout",
        format!("The tool server `{server}` did not answer within {timeout_ms} ms."),
    )
    .retryable()
}

/// The response did not arrive completely.
pub(super) fn transport(server: &str, error: &reqwest::Error) -> ErrorInfo {
    let what = if error.is_connect() {
        "could not be reached"
    } else {
        "broke off"
    };
    let message = format!("The tool server `{server}` {what}.");
    ErrorInfo::new("mcp_network_error", message).retryable()
}

pub(super) fn status(server: &str, status: StatusCode, headers: &HeaderMap) -> ErrorInfo {
    let code = status.as_u16();
    let mut details = json!({ "status": code });
    if let Some(ms) = retry_after_ms(headers) {
        details["retryAfterMs"] = json!(ms);
    }
    let message = format!("The tool server `{server}` answered {status}.");
    let error = ErrorInfo::new("mcp_server_error", message).with_details(details);
    if status.is_server_error() || code == 429 {
        error.retryable()
    } else {
        error
    }
}

pub(super) fn protocol(server: &str, what: &str) -> ErrorInfo {
    let message = format!("The tool server `{server}` {what}.");
    ErrorInfo::new("mcp_protocol_error", message)
}

pub(super) fn too_large(server: &str, limit_bytes: usize) -> ErrorInfo {
    let message =
        format!("The answer of the tool server `{server}` is larger than {limit_bytes} bytes.");
    ErrorInfo::new("response_too_large", message).with_details(json!({ "limitBytes": limit_bytes }))
}

/// The server returned an error.
pub(super) fn rpc_error(server: &str, code: i64) -> ErrorInfo {
    let message = format!("The tool server `{server}` refused the call (JSON-RPC {code}).");
    ErrorInfo::new("mcp_tool_error", message).with_details(json!({ "rpcCode": code }))
}

pub(super) fn revision(server: &str, requested: &str, supported: &[&str]) -> ErrorInfo {
    let message =
        format!("The tool server `{server}` does not speak the revision {requested} of MCP.");
    let details = json!({ "protocol": "mcp", "requested": requested, "supported": supported });
    ErrorInfo::new("interop_version_unsupported", message).with_details(details)
}
