//! `[mcp_servers.<id>]`: the tool servers that nodes may call, by the operator's names.

#[cfg(test)]
mod tests;

use super::Hidden;
use crate::failure::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use tandem_nodes::UrlGuard;
use url::Url;

/// Maximum number of servers.
const MAX_SERVERS: usize = 64;

/// The settings as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolServerLayer {
    url: Option<String>,
    /// Sent as a bearer token.
    key: Option<Hidden>,
    /// The address may be loopback or private.
    #[serde(default)]
    allow_private: bool,
}

/// A validated server.
#[derive(Clone, Debug)]
pub(crate) struct ToolServer {
    pub(crate) url: Url,
    pub(crate) key: Option<Hidden>,
    pub(crate) guard: UrlGuard,
}

/// Parses `TANDEM_MCP_SERVERS`. The error never quotes the value: it contains keys.
pub(super) fn from_json(text: &str) -> Result<BTreeMap<String, ToolServerLayer>, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Failure::new(
            format!(
                "TANDEM_MCP_SERVERS is not a JSON object of servers by id (line {line}, column \
                 {column})"
            ),
            "Write it like {\"docs\": {\"url\": \"https://mcp.example.com\", \"key\": \"s3cret\"}}; key may \
             be left out.",
        )
    })
}

/// `test_seams` permits servers on this machine, without encryption.
pub(super) fn tool_servers(
    layers: BTreeMap<String, ToolServerLayer>,
    test_seams: bool,
) -> Result<BTreeMap<String, ToolServer>, Failure> {
    if layers.len() > MAX_SERVERS {
        return Err(Failure::new(
            format!("there are {} tool servers", layers.len()),
            format!("A host may have {MAX_SERVERS}."),
        ));
    }
    let checked = layers.into_iter().map(|(id, layer)| {
        let server = tool_server(&id, layer, test_seams)?;
        Ok((id, server))
    });
    checked.collect()
}

fn tool_server(id: &str, layer: ToolServerLayer, test_seams: bool) -> Result<ToolServer, Failure> {
    let wrong = |what: String, next: &str| Failure::new(format!("mcp_servers.{id}: {what}"), next);
    let fits = (1..=64).contains(&id.len())
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !fits {
        return Err(wrong(
            "this name cannot be used".to_owned(),
            "A name has up to 64 letters, digits, hyphens, underscores and dots.",
        ));
    }
    let guard = UrlGuard {
        allow_private: test_seams || layer.allow_private,
        require_https: true,
        ..UrlGuard::default()
    };
    let Some(text) = layer.url else {
        return Err(wrong(
            "it has no url".to_owned(),
            "Say where the server is, like https://mcp.example.com.",
        ));
    };
    let url = guard.check_url(&text).map_err(|rejected| {
        wrong(
            format!("its url cannot be called: {rejected}"),
            "Write a public https address. A server on this machine or network needs allow_private \
             = true, or --test-seams.",
        )
    })?;
    if url.fragment().is_some() {
        return Err(wrong(
            "its url has a fragment".to_owned(),
            "Write an https address without one.",
        ));
    }
    let printable = |key: &Hidden| !key.0.is_empty() && key.0.chars().all(|c| c.is_ascii_graphic());
    if !layer.key.as_ref().is_none_or(printable) {
        return Err(wrong(
            "its key cannot be sent in a header".to_owned(),
            "Give the key in printable ASCII characters, without spaces.",
        ));
    }
    Ok(ToolServer {
        url,
        key: layer.key,
        guard,
    })
}
