//! Escalations: the list, one of them, and their resolution.

use super::admin_call;
use crate::api::{ApiState, SharedState};
use crate::caller::{ApprovalsRespond, Caller, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
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
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_app::ListingPage;
use tandem_app::conversation::{
    EscalationFound, EscalationQuery, ResolveEscalation, ResolveTarget,
};
use tandem_record::{AgentId, EscalationId, SessionId};
use tandem_wire::conversation as wire;
use utoipa::ToSchema;

const PARAMETERS: [&str; 6] = [
    "status",
    "priority",
    "agentId",
    "sessionId",
    "limit",
    "cursor",
];

#[utoipa::path(
    get, path = "/v1/host/tandem/escalations", tag = "conversations",
    operation_id = "listEscalations",
    params(("status" = Option<String>, Query), ("priority" = Option<String>, Query),
           ("agentId" = Option<String>, Query), ("sessionId" = Option<String>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Escalations the admin may view, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let query = EscalationQuery {
        status: choice(&params, "status")?,
        priority: choice(&params, "priority")?,
        agent: params.get("agentId").map(AgentId::from),
        session: params.get("sessionId").map(SessionId::from),
    };
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(EscalationId::from),
        limit: limit(&params)?,
    };
    let call = admin_call(&caller, &headers);
    let (found, next) = api.app.list_escalations(&call, query, &page).await?;
    let escalations: Vec<Value> = found.iter().map(shown).collect();
    let mut body = json!({"escalations": escalations});
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

/// A parameter that is one of a few names.
fn choice<T: DeserializeOwned>(params: &Params, name: &str) -> Result<Option<T>, Problem> {
    let read = |text: &str| serde_json::from_value(json!(text));
    let chosen = params.get(name).map(read).transpose();
    chosen.map_err(|_| Problem::invalid(name, "is not one of the known names"))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/escalations/{escalationId}", tag = "conversations",
    operation_id = "readEscalation", params(("escalationId" = String, Path)),
    responses((status = 200, description = "One escalation, open or closed", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let escalation = EscalationId::from(escalation);
    let call = admin_call(&caller, &headers);
    let found = api.app.read_escalation(&call, &escalation).await?;
    Ok(Json(shown(&found)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EscalationResolution)]
pub(super) struct ResolutionRequest {
    approved: bool,
    /// Data for the flow. It is not sent to the user.
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    action_data: Option<Value>,
    /// Kept as a claim; the actor is the one the agent's rules resolve.
    #[serde(default)]
    resolved_by: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/escalations/{escalationId}/resolve", tag = "conversations",
    operation_id = "resolveEscalation", params(("escalationId" = String, Path)),
    request_body = ResolutionRequest,
    responses((status = 200, description = "The resolved escalation", body = Value))
)]
pub(super) async fn resolve(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let target = ResolveTarget::Escalation(EscalationId::from(escalation));
    resolve_target(&api, &caller, target, &headers, &request).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/resolve", tag = "conversations",
    operation_id = "resolveEscalationOfSession", params(("sessionId" = String, Path)),
    request_body = ResolutionRequest,
    responses((status = 200, description = "The session's open escalation, resolved", body = Value))
)]
pub(super) async fn resolve_of_session(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let target = ResolveTarget::Session(SessionId::from(session));
    resolve_target(&api, &caller, target, &headers, &request).await
}

async fn resolve_target(
    api: &ApiState,
    caller: &Identity,
    target: ResolveTarget,
    headers: &HeaderMap,
    request: &Mutation,
) -> Result<Response, Problem> {
    let begun = request.begin_for_admin(api, caller, headers).await?;
    let ticket = match begun {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let sent: ResolutionRequest = request.json()?;
    let decision = ResolveEscalation {
        approved: sent.approved,
        message: sent.message,
        action_data: sent.action_data,
        resolved_by: sent.resolved_by,
    };
    let call = admin_call(caller, headers);
    let render = |found: &EscalationFound| ApiResponse::ok(shown(found));
    respond(ticket, render, |idempotency| {
        api.app
            .resolve_escalation(&call, target, decision, idempotency)
    })
    .await
}

fn shown(found: &EscalationFound) -> Value {
    let EscalationFound {
        record,
        session,
        agent,
        user_external_id,
    } = found;
    wire::escalation(record, session, agent, user_external_id)
}
