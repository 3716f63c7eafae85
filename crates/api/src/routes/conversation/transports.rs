//! `/agents/{agentId}/transports/{name}`: what a network delivers, which proves itself, and its question whether the
//! address is right. `GET /transports/{id}/auth`: whether a transport is ready.

use super::inbound::answer;
use crate::api::{ApiState, SharedState};
use crate::body;
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::{FromRequest, Query, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_record::AgentId;
use tandem_wire::conversation::{self as wire, InboundAnswers};

/// A request as its transport verifies it: every header, and the body's own bytes.
pub(super) struct SignedRequest {
    headers: BTreeMap<String, String>,
    body: Bytes,
}

impl FromRequest<SharedState> for SignedRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<ApiState>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, &api.settings).await?;
        let headers = parts.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        Ok(Self {
            headers: headers.collect(),
            body,
        })
    }
}

#[utoipa::path(
    post, path = "/v1/host/tandem/agents/{agentId}/transports/{name}", tag = "conversations",
    operation_id = "deliverFromNetwork", security(()),
    params(("agentId" = String, Path), ("name" = String, Path)),
    request_body = serde_json::Value,
    responses((status = 200, description = "What became of each message", body = serde_json::Value),
              (status = 403, description = "Not signed by the network, or too old"),
              (status = 404, description = "Nothing is delivered to this transport"))
)]
pub(super) async fn deliver(
    State(api): State<SharedState>,
    PathParams((agent, name)): PathParams<(String, String)>,
    request: SignedRequest,
) -> Result<Response, Problem> {
    let SignedRequest { headers, body } = &request;
    let agent = AgentId::from(agent);
    let delivered = api
        .app
        .deliver_from_network(&agent, &name, (headers, body), wire::session)
        .await?;
    if let Some(text) = delivered.text {
        return Ok(text.into_response());
    }
    let messages = delivered.messages.into_iter().map(answer).collect();
    Ok(ApiResponse::ok(InboundAnswers { messages }).into_response())
}

#[utoipa::path(
    get, path = "/v1/host/tandem/agents/{agentId}/transports/{name}", tag = "conversations",
    operation_id = "verifyTransportAddress", security(()),
    params(("agentId" = String, Path), ("name" = String, Path)),
    responses((status = 200, description = "What the network wants to read", body = String, content_type = "text/plain"),
              (status = 403, description = "The network does not know the secret"),
              (status = 404, description = "The network of this transport asks nothing"))
)]
pub(super) async fn verify(
    State(api): State<SharedState>,
    PathParams((agent, name)): PathParams<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Response, Problem> {
    let agent = AgentId::from(agent);
    let answer = api.app.verify_network_address(&agent, &name, &query)?;
    Ok(answer.into_response())
}

#[utoipa::path(
    get, path = "/v1/host/tandem/transports/{id}/auth", tag = "conversations",
    operation_id = "readTransportAuth",
    params(("id" = String, Path, description = "The agent's id, a dot, and the name of its transport")),
    responses((status = 200, description = "Whether the transport is ready. None of the kinds is paired with a device: each has its secrets in environment variables", body = serde_json::Value),
              (status = 404, description = "The agent has no such transport"))
)]
pub(super) async fn pairing(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let (agent, name) = id.rsplit_once('.').unwrap_or((id.as_str(), ""));
    let agent = AgentId::from(agent);
    let state = api.app.transport_state(&caller, &agent, name)?;
    let mut shown = json!({"agentId": agent, "transport": name, "pairing": "none"});
    match state {
        Ok(()) => shown["status"] = json!("ready"),
        Err(reason) => {
            shown["status"] = json!("not_ready");
            shown["reason"] = json!(reason);
        }
    }
    Ok(Json(shown))
}
