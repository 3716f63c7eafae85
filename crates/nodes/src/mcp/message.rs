//! The JSON-RPC messages of a session, and how their responses are read.

use super::failure;
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, ToolOperation};

/// The requested protocol revision.
pub(super) const REVISION: &str = "2025-06-18";
/// Also supported, for servers without the newer one. It has no header for the revision.
const EARLIER_REVISION: &str = "2025-03-26";

/// JSON-RPC ids of the requests of a session.
pub(super) const INITIALIZE: u64 = 1;
pub(super) const REQUEST: u64 = 2;

/// Error code of servers that do not support a revision.
const UNSUPPORTED_REVISION: i64 = -32022;
const INVALID_PARAMS: i64 = -32602;
/// Limit of a server's revisions that are passed on.
const MAX_REVISIONS: usize = 16;

pub(super) fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0", "id": INITIALIZE, "method": "initialize",
        "params": {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "tandem", "version": env!("CARGO_PKG_VERSION")},
        },
    })
}

pub(super) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

pub(super) fn request(operation: &ToolOperation) -> Value {
    let (method, params) = match operation {
        ToolOperation::Call { tool, arguments } => {
            ("tools/call", json!({"name": tool, "arguments": arguments}))
        }
        ToolOperation::List { cursor: None } => ("tools/list", json!({})),
        ToolOperation::List {
            cursor: Some(cursor),
        } => ("tools/list", json!({"cursor": cursor})),
        ToolOperation::Read { uri } => ("resources/read", json!({"uri": uri})),
    };
    json!({"jsonrpc": "2.0", "id": REQUEST, "method": method, "params": params})
}

/// Whether a message is the response to the request with this id. Servers may also send
/// notifications and requests, which are ignored.
pub(super) fn answers(message: &Value, id: u64) -> bool {
    message.get("id") == Some(&json!(id)) && message.get("method").is_none()
}

/// The result of a response.
pub(super) fn result(server: &str, id: u64, mut answer: Value) -> Result<Value, ErrorInfo> {
    if answer.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(failure::protocol(server, "does not answer in JSON-RPC 2.0"));
    }
    match (answer.get("error"), answer.get("result")) {
        (Some(error), None) => Err(error_of(server, id, error)),
        (None, Some(Value::Object(_))) => Ok(answer["result"].take()),
        _ => Err(failure::protocol(
            server,
            "answered with neither a result nor an error",
        )),
    }
}

/// An error of the server, of which only the number is passed on.
pub(super) fn error_of(server: &str, id: u64, error: &Value) -> ErrorInfo {
    let Some(code) = error.get("code").and_then(Value::as_i64) else {
        return failure::protocol(server, "answered with an error that has no code");
    };
    let supported = || {
        let listed = error.pointer("/data/supported").and_then(Value::as_array);
        let revisions = listed.into_iter().flatten().filter_map(Value::as_str);
        let dates = revisions.filter(|text| is_revision(text));
        dates.take(MAX_REVISIONS).collect::<Vec<&str>>()
    };
    match code {
        UNSUPPORTED_REVISION => failure::revision(server, REVISION, &supported()),
        INVALID_PARAMS if id == INITIALIZE && !supported().is_empty() => {
            failure::revision(server, REVISION, &supported())
        }
        _ => failure::rpc_error(server, code),
    }
}

/// The revision of a server's `initialize` response, if it is supported here. Returns whether later
/// requests name it.
pub(super) fn negotiated_revision(
    server: &str,
    result: &Value,
) -> Result<Option<&'static str>, ErrorInfo> {
    match result.get("protocolVersion").and_then(Value::as_str) {
        Some(REVISION) => Ok(Some(REVISION)),
        Some(EARLIER_REVISION) => Ok(None),
        Some(other) if is_revision(other) => Err(failure::revision(server, REVISION, &[other])),
        _ => Err(failure::protocol(server, "named no revision to speak")),
    }
}

/// Accepts only the form `2025-06-18`; nothing else a server writes there is passed on.
fn is_revision(text: &str) -> bool {
    text.len() == 10 && text.chars().all(|c| c.is_ascii_digit() || c == '-')
}

/// Whether a result has the right shape for the operation.
pub(super) fn has_expected_shape(operation: &ToolOperation, result: &Value) -> bool {
    let list = match operation {
        ToolOperation::Call { .. } => "content",
        ToolOperation::List { .. } => "tools",
        ToolOperation::Read { .. } => "contents",
    };
    let flag = result.get("isError").unwrap_or(&Value::Bool(false));
    result.get(list).is_some_and(Value::is_array) && flag.is_boolean()
}
