//! `GET /agents/{agentId}/ui`: the UI channel as a WebSocket.

use super::socket;
use crate::api::{ApiState, SharedState};
use crate::caller::peer_address;
use crate::connection_key::count_connection;
use crate::origin::{is_from_this_host, origin};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use std::sync::Arc;
use tandem_app::conversation::WebChat;
use tandem_record::AgentId;

/// A message of 8,000 characters of four bytes each, escaped, and what is around it.
const MAX_FRAME_BYTES: usize = 64 * 1024;
/// With a recording of 256 KiB in base64: about a minute and a half of speech. Only for an agent that understands it.
const MAX_SPOKEN_FRAME_BYTES: usize = MAX_FRAME_BYTES + 352 * 1024;
/// What is written and not yet taken by the connection.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
const MAX_WRITE_BUFFER_BYTES: usize = 4 * 1024 * 1024;

#[utoipa::path(
    get, path = "/v1/host/tandem/agents/{agentId}/ui", tag = "conversations",
    operation_id = "openUiChannel", params(("agentId" = String, Path)),
    responses((status = 101, description = "A WebSocket for a visitor of the agent's web chat"),
              (status = 404, description = "The agent has no web chat"))
)]
pub(super) async fn connect(
    State(api): State<SharedState>,
    PathParams(agent): PathParams<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let chat = api.app.web_chat(&AgentId::from(agent))?;
    check_origin(&parts.headers, &api, &chat)?;
    api.visitors
        .check_connect(peer_address(&parts), api.now())?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &api).await;
    let upgrade = upgrade
        .map_err(|_| Problem::invalid("upgrade", "this is a WebSocket; connect with ws or wss"))?;
    // All visitors of an agent share what one key may have.
    let key: Arc<str> = Arc::from(format!("web:{}", chat.agent));
    let tenant = &chat.owner().tenant;
    count_connection(&parts, tenant, &key)?;
    let permit = api.streams.acquire_for(tenant, &key)?;
    let place = api.visitors.enter(&chat.agent, chat.max_connections)?;
    let api = Arc::clone(&api);
    let max_bytes = match chat.hears_speech {
        true => MAX_SPOKEN_FRAME_BYTES,
        false => MAX_FRAME_BYTES,
    };
    let upgrade = upgrade
        .max_message_size(max_bytes)
        .max_frame_size(max_bytes)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES);
    Ok(upgrade.on_upgrade(move |connection| async move {
        let _permit = permit;
        socket::serve(connection, api, chat, place).await;
    }))
}

/// A page of another site may use the channel only if it may show the chat. Browsers name the site of every page that
/// opens a WebSocket; pages that have none, such as sandboxed frames, say `null`.
fn check_origin(headers: &HeaderMap, api: &ApiState, chat: &WebChat) -> Result<(), Problem> {
    let has_no_site = headers.get(header::ORIGIN).is_some_and(|o| o == "null");
    let is_listed = |origin: &str| chat.origins.iter().any(|listed| listed == origin);
    let is_allowed =
        is_from_this_host(headers, &api.host) || origin(headers).is_some_and(is_listed);
    match is_allowed && !has_no_site {
        true => Ok(()),
        false => Err(Problem::forbidden("This site may not use the chat.")),
    }
}
