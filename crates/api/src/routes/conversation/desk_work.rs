//! Whose work an escalation is: claim, release, assign.

use super::admin_request::{AdminRequest, no_body};
use super::escalations::shown;
use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller, OfConversations};
use crate::mutation::Mutation;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use tandem_app::conversation::EscalationFound;
use tandem_record::EscalationId;
use tandem_record::conversation::DeskAction;
use utoipa::ToSchema;

/// Bytes of an actor's id.
const MAX_ACTOR: usize = 200;

#[utoipa::path(
    post, path = "/v1/host/tandem/escalations/{escalationId}/claim", tag = "conversations",
    operation_id = "claimEscalation", params(("escalationId" = String, Path)),
    responses((status = 200, description = "The escalation, which is the caller's work now", body = Value))
)]
pub(super) async fn claim(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ApprovalsRespond>>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| no_body(request).map(|()| DeskAction::Claim);
    carry_out(admin, escalation, read).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/escalations/{escalationId}/release", tag = "conversations",
    operation_id = "releaseEscalation", params(("escalationId" = String, Path)),
    responses((status = 200, description = "The escalation, which is nobody's work now", body = Value))
)]
pub(super) async fn release(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ApprovalsRespond>>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| no_body(request).map(|()| DeskAction::Release);
    carry_out(admin, escalation, read).await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EscalationAssignment)]
pub(super) struct AssignmentRequest {
    /// An id that the rules of the agent give to an admin.
    actor_id: String,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/escalations/{escalationId}/assign", tag = "conversations",
    operation_id = "assignEscalation", params(("escalationId" = String, Path)),
    request_body = AssignmentRequest,
    responses((status = 200, description = "The escalation, which waits for its assignee", body = Value))
)]
pub(super) async fn assign(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ApprovalsRespond>>,
    PathParams(escalation): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        let sent: AssignmentRequest = request.json()?;
        assignment(&sent.actor_id)
    };
    carry_out(admin, escalation, read).await
}

/// The assignment to an actor, by the id somebody entered.
pub(crate) fn assignment(actor: &str) -> Result<DeskAction, Problem> {
    let to = actor.trim();
    match to.len() {
        1..=MAX_ACTOR => Ok(DeskAction::Assign { to: to.to_owned() }),
        _ => {
            let message = format!("must have 1 to {MAX_ACTOR} bytes");
            Err(Problem::invalid("/actorId", message))
        }
    }
}

async fn carry_out(
    admin: AdminRequest<'_>,
    escalation: String,
    read: impl FnOnce(&Mutation) -> Result<DeskAction, Problem>,
) -> Result<Response, Problem> {
    let escalation = EscalationId::from(escalation);
    let render = |found: &EscalationFound| ApiResponse::ok(shown(found));
    let api = admin.api;
    admin
        .answer(read, render, async |call, action, idempotency| {
            api.app
                .do_desk_work(&call, escalation, action, idempotency)
                .await
        })
        .await
}
