//! Approver groups of the caller's tenant. A member is a principal, `role:<role>` or
//! `group:<group>`. Membership is resolved when somebody decides, so a change takes effect at once.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, Groups, RunsRead};
use crate::detached_request::run_to_completion;
use crate::known_secrets::items;
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::{Identity, Member};
use tandem_runtime::GroupRecord;
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

const MAX_GROUPS: usize = 256;
const MAX_MEMBERS: usize = 512;
const MAX_NAME_CHARS: usize = 128;
const MAX_MEMBER_CHARS: usize = 256;

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
    let groups = api.runtime.groups(&caller.tenant).await?;
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
    let found = find(&api, &caller, &name).await?;
    let group = found.ok_or_else(|| Problem::not_found("group"))?;
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
    check_not_workspace_bound(&caller)?;
    let GroupRequest { members } = request.json()?;
    check(&name, &members)?;
    let named = [("name".to_owned(), name.as_str())];
    api.check_no_secrets(named.into_iter().chain(items("/members", &members)))?;
    let before = api.runtime.groups(&caller.tenant).await?;
    let exists = before.iter().any(|group| group.name == name);
    if !exists && before.len() >= MAX_GROUPS {
        let message = format!("would be one of more than {MAX_GROUPS} groups");
        return Err(Problem::invalid("name", message));
    }
    let group = GroupRecord {
        tenant: caller.tenant.clone(),
        name,
        members,
        changed_at: api.now(),
    };
    let body = to_json(&group);
    let runtime = api.runtime_of(&caller);
    run_to_completion(async move { runtime.put_group(group).await }).await?;
    let response = if exists {
        ApiResponse::ok(body)
    } else {
        ApiResponse::created(body)
    };
    ticket.complete(&api, response).await
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
    check_not_workspace_bound(&caller)?;
    if find(&api, &caller, &name).await?.is_none() {
        return Err(Problem::not_found("group"));
    }
    let (runtime, tenant) = (api.runtime_of(&caller), caller.tenant.clone());
    run_to_completion(async move { runtime.drop_group(&tenant, &name).await }).await?;
    ticket.complete(&api, ApiResponse::no_content()).await
}

/// Groups apply to every workspace, so a key bound to one may not change them.
pub(super) fn check_not_workspace_bound(caller: &Identity) -> Result<(), Problem> {
    if caller.workspace.is_some() {
        let message = "Groups and others' delegations hold for the whole tenant.";
        return Err(Problem::forbidden(message));
    }
    Ok(())
}

fn check(name: &str, members: &[String]) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.chars().all(plain) {
        let message = "must be 1 to 128 letters, digits, dots, dashes or underscores";
        return Err(Problem::invalid("name", message));
    }
    if members.len() > MAX_MEMBERS {
        let message = format!("must hold at most {MAX_MEMBERS}");
        return Err(Problem::invalid("/members", message));
    }
    for (i, text) in members.iter().enumerate() {
        let place = format!("/members/{i}");
        if text.chars().count() > MAX_MEMBER_CHARS {
            return Err(Problem::invalid(&place, "is too long for a name"));
        }
        match Member::parse(text) {
            None => return Err(Problem::invalid(&place, "names nobody")),
            Some(Member::Group(inner)) if inner == name => {
                return Err(Problem::invalid(&place, "is the group itself"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

async fn find(
    api: &ApiState,
    caller: &Identity,
    name: &str,
) -> Result<Option<GroupRecord>, Problem> {
    let groups = api.runtime.groups(&caller.tenant).await?;
    Ok(groups.into_iter().find(|group| group.name == name))
}

fn to_json(group: &GroupRecord) -> Value {
    json!({
        "name": group.name,
        "members": group.members,
        "changedAt": rfc3339(group.changed_at),
    })
}
