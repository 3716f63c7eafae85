//! The configured tool servers, as the runtime knows them and as they are called.

use crate::config::Settings;
use tandem_nodes::{CallLimits, ClientError, McpServer, McpServers};
use tandem_runtime::ToolServers;

/// Who may be called.
pub(super) fn tool_servers(settings: &Settings) -> ToolServers {
    settings.tools.keys().cloned().collect()
}

/// How they are called.
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
