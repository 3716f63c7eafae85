//! The configured tool servers, for the runtime and for calls.

use crate::config::Settings;
use tandem_nodes::{CallLimits, ClientError, McpServer, McpServers};
use tandem_runtime::ToolServers;

/// The configured servers.
pub(super) fn tool_servers(settings: &Settings) -> ToolServers {
    settings.tools.keys().cloned().collect()
}

/// The clients of the servers.
pub(super) fn mcp_servers(settings: &Settings) -> Result<McpServers, ClientError> {
    let mut servers = McpServers::default();
    for (id, server) in &settings.tools {
        let endpoint = McpServer {
            url: server.url.clone(),
            key: server.key.as_ref().map(|key| key.0.clone()),
            guard: server.guard.clone(),
        };
        servers.add(id, endpoint, CallLimits::default())?;
    }
    Ok(servers)
}
