//! Tool servers under the names an operator gave them, called with MCP over streamable HTTP. A
//! request is sent once, in its own session, and its result is returned unchanged. The address and
//! the key of a server stay here: neither is part of any result or error.

mod failure;
mod message;
mod server;

use crate::client::ClientError;
use crate::guard::UrlGuard;
use crate::http::CallLimits;
use server::Server;
use std::collections::BTreeMap;
use std::fmt;
use tandem_record::{EffectId, EffectOutcome, Object, ToolRequest, TraceContext};
use url::Url;

/// A tool server as configured by the operator.
pub struct McpServer {
    pub url: Url,
    /// Sent as a bearer token; `None` for a server that needs none.
    pub key: Option<String>,
    /// What may be called to reach it.
    pub guard: UrlGuard,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").finish_non_exhaustive()
    }
}

/// The tool servers of a host, by name.
#[derive(Default)]
pub struct McpServers(BTreeMap<String, Server>);

impl McpServers {
    pub fn add(
        &mut self,
        id: &str,
        server: McpServer,
        limits: CallLimits,
    ) -> Result<(), ClientError> {
        let server = Server::new(id, server, limits)?;
        self.0.insert(id.to_owned(), server);
        Ok(())
    }

    /// Sends a request once.
    pub(crate) async fn call(
        &self,
        request: &ToolRequest,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome {
        let answered = match self.0.get(&request.server) {
            Some(server) => server.call(request, effect, trace).await,
            None => Err(failure::unknown(&request.server)),
        };
        match answered {
            Ok(result) => EffectOutcome::Done {
                outputs: Object::from_iter([("result".to_owned(), result)]),
            },
            Err(error) => {
                tracing::debug!(%effect, server = request.server, code = error.code, "no result");
                EffectOutcome::Failed { error }
            }
        }
    }
}
