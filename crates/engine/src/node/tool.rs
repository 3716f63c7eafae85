//! `core.mcp.toolCall` and related types: one request to a tool server. This module only parses the
//! configuration; the operator configures the servers.

use super::ParseContext;
use super::settings::{Setting, object, value};
use crate::tool::ToolServers;
use serde_json::Value;
use tandem_record::{ErrorInfo, Object, ToolOperation, ToolRequest};

/// The timeout of a call when its author sets none, and the maximum.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 5 * 60_000;
/// Maximum text of the arguments of one call.
const MAX_ARGUMENT_BYTES: usize = 256 * 1024;
const MAX_NAME_BYTES: usize = 256;
const MAX_URI_BYTES: usize = 8 * 1024;
const AGENT_ID_CHARS: std::ops::RangeInclusive<usize> = 3..=256;

pub(super) const CALL: &[Setting] = &[
    value("serverId"),
    value("toolName"),
    value("arguments"),
    value("timeoutMs"),
    value("agentId"),
];
pub(crate) const PROMPT: &[Setting] = &[
    object("mcp", MCP),
    value("serverId"),
    value("timeoutMs"),
    value("agentId"),
];
const MCP: &[Setting] = &[value("tool"), value("arguments")];
pub(crate) const CLIENT: &[Setting] = &[value("serverId"), value("timeoutMs")];

#[derive(Debug)]
pub(crate) struct ToolNode {
    /// Absent: the host's own server.
    server: Option<String>,
    pub(crate) agent_id: Option<String>,
    selection: ToolSelection,
    timeout_ms: u64,
}

#[derive(Debug)]
enum ToolSelection {
    /// Without arguments, those at the port of that name are used.
    Tool {
        tool: String,
        arguments: Option<Object>,
    },
    /// Test only: the request comes from the ports, or from variables.
    FromPorts,
}

impl ToolNode {
    /// `core.mcp.toolCall`.
    pub(super) fn call(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let server = cx.required_text(config, "serverId")?;
        let selection = tool(config, "toolName", "", cx)?;
        Self::common(Some(server), selection, config, cx)
    }

    /// A tool of the host's own server, named under `mcp`.
    pub(crate) fn prompt(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let Some(Value::Object(mcp)) = config.get("mcp") else {
            return cx.bad("mcp", "must be an object that names a tool");
        };
        let selection = tool(mcp, "tool", "mcp/", cx)?;
        let server = cx.text(config, "serverId")?;
        Self::common(server, selection, config, cx)
    }

    /// Test only.
    pub(crate) fn client(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let server = cx.text(config, "serverId")?;
        Self::common(server, ToolSelection::FromPorts, config, cx)
    }

    fn common(
        server: Option<String>,
        selection: ToolSelection,
        config: &Object,
        cx: &mut ParseContext<'_>,
    ) -> Option<Self> {
        let agent_id = cx.text(config, "agentId")?;
        let fits = |id: &String| AGENT_ID_CHARS.contains(&id.chars().count());
        if !agent_id.as_ref().is_none_or(fits) {
            return cx.bad("agentId", "must have 3 to 256 characters");
        }
        let timeout_ms = cx.whole(config, "timeoutMs", 1)?;
        if timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
            return cx.bad("timeoutMs", format!("must be at most {MAX_TIMEOUT_MS}"));
        }
        Some(Self {
            server: server.filter(|id| !id.is_empty()),
            agent_id,
            selection,
            timeout_ms: timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        })
    }

    /// The tool it calls, if its author names one.
    pub(crate) fn tool_name(&self) -> Option<&str> {
        match &self.selection {
            ToolSelection::Tool { tool, .. } => Some(tool),
            ToolSelection::FromPorts => None,
        }
    }

    /// Whether the host has a server for it.
    pub(crate) fn is_served(&self, servers: &ToolServers) -> bool {
        servers.choose(self.server.as_deref()).is_some()
    }

    /// The request and its server. `lookup` finds the value of a port, or of a variable.
    pub(crate) fn request(
        &self,
        servers: &ToolServers,
        lookup: impl Fn(&str) -> Option<Value>,
    ) -> Result<ToolRequest, ErrorInfo> {
        let port_server = || lookup("serverId").and_then(|id| id.as_str().map(str::to_owned));
        let (named, operation, unknown) = match &self.selection {
            ToolSelection::Tool { tool, arguments } => {
                let arguments = match (arguments, lookup("arguments")) {
                    (Some(arguments), _) => arguments.clone(),
                    (None, None | Some(Value::Null)) => Object::new(),
                    (None, Some(Value::Object(arguments))) => arguments,
                    (None, Some(_)) => {
                        let message = "the port \"arguments\" must bring an object";
                        return Err(ErrorInfo::new("validation_error", message));
                    }
                };
                let operation = ToolOperation::Call {
                    tool: tool.clone(),
                    arguments,
                };
                (self.server.clone(), operation, "mcp_server_not_configured")
            }
            ToolSelection::FromPorts => {
                let named = self.server.clone().or_else(port_server);
                (named, operation_from_ports(&lookup)?, "not_found")
            }
        };
        if let ToolOperation::Call { arguments, .. } = &operation {
            let bytes = Value::Object(arguments.clone()).to_string().len();
            if bytes > MAX_ARGUMENT_BYTES {
                let message = format!("a call takes {MAX_ARGUMENT_BYTES} bytes of arguments");
                return Err(ErrorInfo::new("content_too_long", message));
            }
        }
        let Some(server) = servers.choose(named.as_deref()) else {
            let message = match named {
                Some(id) => format!("{id:?} is not a tool server of this host"),
                None => "this host has no tool server, or several and none of them is meant".into(),
            };
            return Err(ErrorInfo::new(unknown, message));
        };
        Ok(ToolRequest {
            server: server.to_owned(),
            operation,
            timeout_ms: self.timeout_ms,
        })
    }
}

fn tool(
    config: &Object,
    key: &str,
    under: &str,
    cx: &mut ParseContext<'_>,
) -> Option<ToolSelection> {
    let tool = match config.get(key) {
        Some(Value::String(tool)) if (1..=MAX_NAME_BYTES).contains(&tool.len()) => tool.clone(),
        _ => {
            let message = format!("must name a tool, in up to {MAX_NAME_BYTES} bytes");
            return cx.bad(&format!("{under}{key}"), message);
        }
    };
    let arguments = match config.get("arguments") {
        None | Some(Value::Null) => None,
        Some(Value::Object(arguments)) => Some(arguments.clone()),
        Some(_) => return cx.bad(&format!("{under}arguments"), "must be an object"),
    };
    Some(ToolSelection::Tool { tool, arguments })
}

/// A method of the conformance client, by the names its workflow uses.
fn operation_from_ports(
    lookup: &impl Fn(&str) -> Option<Value>,
) -> Result<ToolOperation, ErrorInfo> {
    let text = |name: &str, limit: usize| -> Result<Option<String>, ErrorInfo> {
        match lookup(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= limit => Ok(Some(text)),
            Some(_) => {
                let message = format!("{name} must be text of up to {limit} bytes");
                Err(ErrorInfo::new("validation_error", message))
            }
        }
    };
    let missing = |name: &str| {
        let message = format!("{name} is required");
        ErrorInfo::new("validation_error", message)
    };
    match text("method", MAX_NAME_BYTES)?.as_deref() {
        Some("callTool") => Ok(ToolOperation::Call {
            tool: text("name", MAX_NAME_BYTES)?.ok_or_else(|| missing("name"))?,
            arguments: match lookup("arguments") {
                Some(Value::Object(arguments)) => arguments,
                _ => Object::new(),
            },
        }),
        Some("listTools") => Ok(ToolOperation::List {
            cursor: text("cursor", MAX_URI_BYTES)?,
        }),
        Some("readResource") => Ok(ToolOperation::Read {
            uri: text("uri", MAX_URI_BYTES)?.ok_or_else(|| missing("uri"))?,
        }),
        _ => {
            let message = "method must be callTool, listTools or readResource";
            Err(ErrorInfo::new("validation_error", message))
        }
    }
}
