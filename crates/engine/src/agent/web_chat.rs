//! `transports.web`: whether anybody on the web may talk to the agent, and from which sites.

use crate::node::settings::{Setting, unknown_keys, value};
use crate::object_reader::ObjectReader;
use tandem_record::{TenantId, WorkspaceId};

/// The name of the transport, in agent files and on sessions.
pub const WEB_TRANSPORT: &str = "web";

const MAX_ORIGINS: usize = 100;
const MAX_STATE_KEYS: usize = 100;
const MAX_TITLE_CHARS: usize = 80;
const DEFAULT_CONNECTIONS: u64 = 500;
const DEFAULT_TENANT: &str = "default";

const SETTINGS: &[Setting] = &[
    value("title"),
    value("origins"),
    value("tenant"),
    value("workspace"),
    value("maxConnections"),
    value("stateKeys"),
];

/// The web chat of an agent. Without it nobody reaches the agent without a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebChatSpec {
    /// Shown above the conversation; the agent's id if absent.
    pub title: Option<String>,
    /// Sites that may show the chat in a frame, as `https://host[:port]`. None but this host by default.
    pub origins: Vec<String>,
    /// Whose conversations these are.
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    /// Visitors connected at once.
    pub max_connections: usize,
    /// The keys of the session that visitors are shown; all but reserved ones if absent.
    pub state_keys: Option<Vec<String>>,
}

pub(super) fn web_chat(config: &ObjectReader<'_>) -> Option<WebChatSpec> {
    let transports = config.object("transports")?;
    let settings = transports.object(WEB_TRANSPORT)?;
    if let Some(given) = transports.json_object(WEB_TRANSPORT) {
        for problem in unknown_keys("the web chat", SETTINGS, &given) {
            let key = problem.path.trim_start_matches('/');
            settings.report(key, problem.message);
        }
    }
    let title = settings.text("title");
    if title
        .as_ref()
        .is_some_and(|title| title.chars().count() > MAX_TITLE_CHARS)
    {
        settings.report("title", format!("has at most {MAX_TITLE_CHARS} characters"));
    }
    let origins = settings.texts("origins", MAX_ORIGINS).unwrap_or_default();
    if let Some(bad) = origins.iter().find(|origin| !is_origin(origin)) {
        let message = format!("{bad:?} is no origin; write `https://host` or `https://host:port`");
        settings.report("origins", message);
    }
    let tenant = settings.text("tenant");
    Some(WebChatSpec {
        title,
        origins,
        tenant: TenantId::from(tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned())),
        workspace: settings.text("workspace").map(WorkspaceId::from),
        max_connections: settings
            .integer("maxConnections", 1..=100_000)
            .unwrap_or(DEFAULT_CONNECTIONS) as usize,
        state_keys: settings.texts("stateKeys", MAX_STATE_KEYS),
    })
}

/// Scheme, host and port as a browser writes them. The text becomes part of a policy header, so nothing else
/// passes.
fn is_origin(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or(text.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    let is_host = !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-'));
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}
