//! Approver groups of the caller's tenant. A member is a principal, `role:<role>` or
//! `group:<group>`. Membership is resolved when somebody decides, so a change takes effect at once.

use crate::api::SharedState;
use crate::caller::{Caller, Groups, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::{GroupRecord, SavedGroup, TenantResource};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Group)]
pub(super) struct GroupRequest {
    /// Principals, `role:<role>` or `group:<group>`.
    members: Vec<String>,
}

#[utoipa::path(
    get, path = "/v1/host/tandem/groups", tag = "people", operation_id = "listGroups",
    responses((status = 200, description = "Groups of the tenant, by name", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
) -> Result<Json<Value>, Problem> {
    let groups = api.app.list_groups(&caller).await?;
    let groups: Vec<Value> = groups.iter().map(to_json).collect();
    Ok(Json(json!({"groups": groups})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/groups/{name}", tag = "people", operation_id = "readGroup",
    params(("name" = String, Path)),
    responses((status = 200, description = "The group and its members as written", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(name): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let group = api.app.read_group(&caller, &name).await?;
    Ok(Json(to_json(&group)))
}

#[utoipa::path(
    put, path = "/v1/host/tandem/groups/{name}", tag = "people", operation_id = "putGroup",
    params(("name" = String, Path)), request_body = GroupRequest,
    responses((status = 201, description = "New", body = Value),
              (status = 200, description = "Changed", body = Value))
)]
pub(super) async fn put(
    State(api): State<SharedState>,
    caller: Caller<Groups>,
    PathParams(name): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    api.app.check_tenant_wide(&caller, TenantResource::People)?;
    let GroupRequest { members } = request.json()?;
    respond(ticket, render_saved, |idempotency| {
        api.app.put_group(&caller, name, members, idempotency)
    })
    .await
}

fn render_saved(SavedGroup { group, is_new }: &SavedGroup) -> ApiResponse {
    match is_new {
        true => ApiResponse::created(to_json(group)),
        false => ApiResponse::ok(to_json(group)),
    }
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/groups/{name}", tag = "people", operation_id = "deleteGroup",
    params(("name" = String, Path)),
    responses((status = 204, description = "Nobody belongs to it any more"))
)]
pub(super) async fn delete(
    State(api): State<SharedState>,
    caller: Caller<Groups>,
    PathParams(name): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    respond(
        ticket,
        |(): &()| ApiResponse::no_content(),
        |idempotency| api.app.delete_group(&caller, name, idempotency),
    )
    .await
}

fn to_json(group: &GroupRecord) -> Value {
    json!({
        "name": group.name,
        "members": group.members,
        "changedAt": rfc3339(group.changed_at),
    })
}
