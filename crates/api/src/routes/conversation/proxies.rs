//! Bridges: the list, one with what passed over it, what admins write for them, and stopping them.

use super::admin_call;
use super::admin_request::AdminRequest;
use super::inspection::page;
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
    let listing = ListingPage {
        after: after.map(ProxyId::from),
        limit: limit(&params)?,
    };
    let call = admin_call(&caller, &headers);
    let (found, next) = api.app.list_proxies(&call, query, &listing).await?;
    let proxies: Vec<Value> = found.iter().map(shown).collect();
    let mut body = json!({"proxies": proxies});
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/proxies/{proxyId}", tag = "conversations", operation_id = "readProxy",
    params(("proxyId" = String, Path), ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    description = "The bridge with a page of what passed between the host and the desk, oldest first: texts of the user \
                   as they were sent to the desk, input of the desk as it was received with what became of it, and what \
                   the host told the desk. Texts are masked as the agent's `redaction` says.",
    responses((status = 200, description = "The bridge, with `messages`", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(proxy): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let (from, limit) = page(&params)?;
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let call = admin_call(&caller, &headers);
    let proxy = ProxyId::from(proxy);
    let read = api.app.read_proxy(&call, &proxy, from, limit).await?;
    let messages = read.messages.iter();
    let messages: Vec<Value> = messages
        .map(|message| wire::proxy_message(message, read.texts))
        .collect();
    let mut body = shown(&read.found);
    body["messages"] = json!(messages);
    if let Some(next) = read.next {
        body["nextCursor"] = json!(cursor(&next.to_text()));
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
