//! Sessions: the list, one session, who writes in it, and its end.

use super::admin_request::{AdminRequest, no_body};
use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsCancel, RunsCreate, RunsRead};
use crate::mutation::Mutation;
use crate::paging::{cursor, limit, parse_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::{ListingPage, SessionFilter};
use tandem_record::conversation::{AgentMode, SessionView};
use tandem_record::{AgentId, SessionId};
use tandem_wire::conversation as wire;
use utoipa::ToSchema;

const PARAMETERS: [&str; 5] = ["agentId", "userExternalId", "active", "limit", "cursor"];

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions", tag = "conversations", operation_id = "listSessions",
    params(("agentId" = Option<String>, Query), ("userExternalId" = Option<String>, Query),
           ("active" = Option<bool>, Query), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Sessions, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let active = match params.get("active") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Problem::invalid("active", "must be true or false")),
    };
    let filter = SessionFilter {
        workspace: None,
        agent: params.get("agentId").map(AgentId::from),
        user_external_id: params.filled("userExternalId")?,
        active,
    };
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(SessionId::from),
        limit: limit(&params)?,
    };
    let listed = api.app.list_sessions(&caller, filter, &page).await?;
    let sessions: Vec<Value> = listed.sessions.iter().map(wire::session).collect();
    let mut body = json!({"sessions": sessions});
    if let Some(next) = listed.next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}", tag = "conversations",
    operation_id = "readSession", params(("sessionId" = String, Path)),
    responses((status = 200, description = "One session with its flow and what a person has to do", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let view = api.app.read_chat_session(&caller, &session).await?;
    Ok(Json(wire::session(&view)))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/end", tag = "conversations",
    operation_id = "endSession", params(("sessionId" = String, Path)),
    responses((status = 200, description = "The ended session", body = Value))
)]
pub(super) async fn end(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCancel>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let render = |view: &SessionView| ApiResponse::ok(wire::session(view));
    let session = SessionId::from(session);
    admin
        .answer(no_body, render, async |call, (), idempotency| {
            api.app.end_session(&call, session, idempotency).await
        })
        .await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SessionMode)]
pub(super) struct ModeRequest {
    /// `auto`, `draft_only` (a person approves every text of the agent) or `off`.
    #[schema(value_type = String)]
    agent_mode: AgentMode,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/mode", tag = "conversations",
    operation_id = "setSessionMode", params(("sessionId" = String, Path)),
    request_body = ModeRequest,
    responses((status = 200, description = "The session", body = Value))
)]
pub(super) async fn set_mode(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let render = |view: &SessionView| ApiResponse::ok(wire::session(view));
    let session = SessionId::from(session);
    admin
        .answer(Mutation::json, render, async |call, sent, idempotency| {
            let ModeRequest { agent_mode } = sent;
            api.app
                .set_session_mode(&call, session, agent_mode, idempotency)
                .await
        })
        .await
}
