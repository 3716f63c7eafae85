//! Delegations: a person lets another person decide for them for some time. A caller with the scope
//! to answer may delegate its own authority; delegating for others needs the scope for groups.

use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::{Delegate, DelegationRecord};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewDelegation)]
pub(super) struct DelegationRequest {
    /// Principal who may act.
    to: String,
    /// Principal acted for; the caller when left out.
    #[serde(default)]
    from: Option<String>,
    /// RFC 3339; now, when left out.
    #[serde(default)]
    starts_at: Option<String>,
    ends_at: String,
}

#[utoipa::path(
    get, path = "/v1/host/tandem/delegations", tag = "people", operation_id = "listDelegations",
    responses((status = 200, description = "Delegations that have not ended: the caller's, or all with the scope tandem:groups", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
) -> Result<Json<Value>, Problem> {
    let visible = api.app.list_delegations(&caller).await?;
    let visible: Vec<Value> = visible.iter().map(to_json).collect();
    Ok(Json(json!({"delegations": visible})))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/delegations", tag = "people", operation_id = "delegate",
    request_body = DelegationRequest,
    responses((status = 201, description = "From its start until its end they may act", body = Value))
)]
pub(super) async fn create(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: DelegationRequest = request.json()?;
    let requested = Delegate {
        to: requested.to,
        from: requested.from,
        starts_at: requested.starts_at,
        ends_at: requested.ends_at,
    };
    let render = |delegation: &_| ApiResponse::created(to_json(delegation));
    respond(ticket, render, |idempotency| {
        api.app.create_delegation(&caller, requested, idempotency)
    })
    .await
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/delegations/{delegationId}", tag = "people",
    operation_id = "endDelegation", params(("delegationId" = String, Path)),
    responses((status = 204, description = "They may not act any more"))
)]
pub(super) async fn delete(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(id): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    respond(
        ticket,
        |(): &()| ApiResponse::no_content(),
        |idempotency| api.app.end_delegation(&caller, id, idempotency),
    )
    .await
}

fn to_json(delegation: &DelegationRecord) -> Value {
    json!({
        "delegationId": delegation.id,
        "from": delegation.from,
        "to": delegation.to,
        "startsAt": rfc3339(delegation.starts_at),
        "endsAt": rfc3339(delegation.ends_at),
        "createdAt": rfc3339(delegation.created_at),
    })
}
