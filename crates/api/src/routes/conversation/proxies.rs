//! Bridges: the list, what admins write for them, and stopping them.

use super::admin_call;
use super::admin_request::AdminRequest;
use crate::api::SharedState;
use crate::caller::{Caller, ConversationsTakeover, OfConversations, RunsRead};
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
use tandem_app::ListingPage;
use tandem_app::conversation::{ProxyFound, ProxyInputStatus, ProxyQuery, StoppedBridge};
use tandem_record::conversation::ProxyStatus;
use tandem_record::{AgentId, MessageId, ProxyId, SessionId};
use tandem_wire::conversation as wire;
use utoipa::ToSchema;

#[utoipa::path(
    get, path = "/v1/host/tandem/proxies", tag = "conversations", operation_id = "listProxies",
    params(("status" = Option<String>, Query), ("agentId" = Option<String>, Query),
           ("sessionId" = Option<String>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Bridges the admin may view, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&["status", "agentId", "sessionId", "limit", "cursor"])?;
    let status = params.get("status").map(|text| {
        let unknown = || Problem::invalid("status", "is neither active nor stopped");
        ProxyStatus::parse(text).ok_or_else(unknown)
    });
    let query = ProxyQuery {
        status: status.transpose()?,
        agent: params.get("agentId").map(AgentId::from),
        session: params.get("sessionId").map(SessionId::from),
    };
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(ProxyId::from),
        limit: limit(&params)?,
    };
    let call = admin_call(&caller, &headers);
    let (found, next) = api.app.list_proxies(&call, query, &page).await?;
    let proxies: Vec<Value> = found.iter().map(shown).collect();
    let mut body = json!({"proxies": proxies});
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

fn shown(found: &ProxyFound) -> Value {
    let ProxyFound {
        bridge,
        session,
        agent,
        user_external_id,
    } = found;
    wire::proxy(bridge, session, agent, user_external_id)
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ProxyInput)]
pub(super) struct InputRequest {
    /// One id is relayed once by its bridge.
    message_id: String,
    text: String,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/proxies/{proxyId}/input", tag = "conversations",
    operation_id = "sendProxyInput", params(("proxyId" = String, Path)),
    request_body = InputRequest,
    responses((status = 200, description = "The turn that follows is over, or the id was sent before", body = Value))
)]
pub(super) async fn input(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ConversationsTakeover>>,
    PathParams(proxy): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let proxy = ProxyId::from(proxy);
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        let sent: InputRequest = request.json()?;
        Ok((MessageId::from(sent.message_id), sent.text))
    };
    let render = |status: &ProxyInputStatus| {
        let status = match status {
            ProxyInputStatus::Accepted => "accepted",
            ProxyInputStatus::Duplicate => "duplicate",
        };
        ApiResponse::ok(json!({ "status": status }))
    };
    admin
        .answer(read, render, async |call, input, idempotency| {
            api.app
                .send_proxy_input(&call, proxy, input, idempotency)
                .await
        })
        .await
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ProxyStop)]
pub(super) struct StopRequest {
    #[serde(default)]
    reason: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/proxies/{proxyId}/stop", tag = "conversations",
    operation_id = "stopProxy", params(("proxyId" = String, Path)),
    request_body = StopRequest,
    responses((status = 200, description = "The bridge is stopped; `stopped` says whether it was active", body = Value))
)]
pub(super) async fn stop(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ConversationsTakeover>>,
    PathParams(proxy): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let proxy = ProxyId::from(proxy);
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        let sent: StopRequest = request.optional_json()?;
        Ok(sent.reason)
    };
    let render = |stopped: &StoppedBridge| {
        ApiResponse::ok(json!({ "stopped": stopped.stopped, "proxyId": stopped.proxy }))
    };
    admin
        .answer(read, render, async |call, reason, idempotency| {
            api.app.stop_proxy(&call, proxy, reason, idempotency).await
        })
        .await
}
