//! Escalations: the list, one of them, and their resolution.

use super::admin_call;
use super::admin_request::AdminRequest;
use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller, OfConversations, RunsRead};
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
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tandem_app::conversation::{
    EscalationFound, EscalationQuery, ResolveEscalation, ResolveTarget,
};
use tandem_app::{EscalationAssignee, ListingPage};
use tandem_record::{AgentId, EscalationId, SessionId};
use tandem_wire::conversation as wire;
use utoipa::ToSchema;

const PARAMETERS: [&str; 9] = [
    "status",
    "priority",
    "agentId",
    "sessionId",
    "queue",
    "assignee",
    "unclaimed",
    "limit",
    "cursor",
];

#[utoipa::path(
    get, path = "/v1/host/tandem/escalations", tag = "conversations",
    operation_id = "listEscalations",
    params(("status" = Option<String>, Query), ("priority" = Option<String>, Query),
           ("agentId" = Option<String>, Query), ("sessionId" = Option<String>, Query),
           ("queue" = Option<String>, Query), ("assignee" = Option<String>, Query),
           ("unclaimed" = Option<bool>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Escalations the admin may view, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let query = EscalationQuery {
        status: choice(&params, "status")?,
        priority: choice(&params, "priority")?,
        agent: params.get("agentId").map(AgentId::from),
        session: params.get("sessionId").map(SessionId::from),
        queue: params.get("queue").map(str::to_owned),
        assignee: assignee(&params)?,
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

/// Whose work the listed escalations are: somebody's, or nobody's.
fn assignee(params: &Params) -> Result<Option<EscalationAssignee>, Problem> {
    let of = params.get("assignee").map(str::to_owned);
    match (params.get("unclaimed"), of) {
        (Some("true"), None) => Ok(Some(EscalationAssignee::Nobody)),
        (Some("true"), Some(_)) => {
            let message = "cannot be true together with assignee";
            Err(Problem::invalid("unclaimed", message))
        }
        (Some("false") | None, of) => Ok(of.map(EscalationAssignee::Actor)),
        (Some(_), _) => Err(Problem::invalid("unclaimed", "must be true or false")),
    }
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
    caller: Caller<OfConversations<RunsRead>>,
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
    /// Which one of the session's, where the path names the session.
    #[serde(default)]
    escalation_id: Option<String>,
    /// The session it has to be of, where the path names the escalation.
    #[serde(default)]
    session_id: Option<String>,
}

/// What the path and the body name together.
fn target_of(named: ResolveTarget, sent: &ResolutionRequest) -> Result<ResolveTarget, Problem> {
    let ambiguous = || Problem::invalid("", "names the same thing in the path and in the body");
    match (named, &sent.session_id, &sent.escalation_id) {
        (named, None, None) => Ok(named),
        (ResolveTarget::Session(session), None, Some(id)) => Ok(ResolveTarget::EscalationOf(
            session,
            EscalationId::from(id.as_str()),
        )),
        (ResolveTarget::Escalation(id), Some(session), None) => Ok(ResolveTarget::EscalationOf(
            SessionId::from(session.as_str()),
            id,
        )),
        _ => Err(ambiguous()),
    }
}

#[utoipa::path(
    post, path = "/v1/host/tandem/escalations/{escalationId}/resolve", tag = "conversations",
    operation_id = "resolveEscalation", params(("escalationId" = String, Path)),
    request_body = ResolutionRequest,
    responses((status = 200, description = "The resolved escalation", body = Value))
)]
pub(super) async fn resolve(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ApprovalsRespond>>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let target = ResolveTarget::Escalation(EscalationId::from(escalation));
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    resolve_target(admin, target).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/resolve", tag = "conversations",
    operation_id = "resolveEscalationOfSession", params(("sessionId" = String, Path)),
    request_body = ResolutionRequest,
    responses((status = 200, description = "The session's open escalation, resolved", body = Value))
)]
pub(super) async fn resolve_of_session(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ApprovalsRespond>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let target = ResolveTarget::Session(SessionId::from(session));
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    resolve_target(admin, target).await
}

async fn resolve_target(
    admin: AdminRequest<'_>,
    target: ResolveTarget,
) -> Result<Response, Problem> {
    let parse = |request: &Mutation| {
        let sent: ResolutionRequest = request.json()?;
        Ok((target_of(target, &sent)?, sent))
    };
    let render = |found: &EscalationFound| ApiResponse::ok(shown(found));
    let api = admin.api;
    admin
        .answer(parse, render, async |call, sent, idempotency| {
            let (target, sent): (ResolveTarget, ResolutionRequest) = sent;
            let decision = ResolveEscalation {
                approved: sent.approved,
                message: sent.message,
                action_data: sent.action_data,
                resolved_by: sent.resolved_by,
            };
            api.app
                .resolve_escalation(&call, target, decision, idempotency)
                .await
        })
        .await
}

pub(super) fn shown(found: &EscalationFound) -> Value {
    let EscalationFound {
        record,
        session,
        agent,
        user_external_id,
    } = found;
    wire::escalation(record, session, agent, user_external_id)
}
