//! Workflow documents: reading a document by id, and the host's registry. A key bound to no workspace may
//! name one with `workspace`.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, ManifestRead, Workflows};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_app::{RegisteredDocument, RegisteredWorkflow, Registration};
use tandem_record::WorkflowId;
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/workflows/{workflowId}", tag = "workflows", operation_id = "readWorkflow",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 200, description = "The workflow definition", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<ManifestRead>,
    PathParams(id): PathParams<String>,
    params: Params,
) -> Result<Response, Problem> {
    definition(&api, &caller, &params, id).await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/workflows/{workflowId}", tag = "workflows",
    operation_id = "readRegistered",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 200, description = "The workflow definition", body = Value))
)]
pub(super) async fn read_own(
    State(api): State<SharedState>,
    caller: Caller<ManifestRead>,
    PathParams(id): PathParams<String>,
    params: Params,
) -> Result<Response, Problem> {
    definition(&api, &caller, &params, id).await
}

async fn definition(
    api: &ApiState,
    caller: &Identity,
    params: &Params,
    id: String,
) -> Result<Response, Problem> {
    let owner = api.app.workflow_owner(caller, params.get("workspace"))?;
    let id = WorkflowId::from(id);
    let registered = api.app.read_workflow(caller, &owner, &id).await?;
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((headers, registered.document.to_string()).into_response())
}

#[utoipa::path(
    get, path = "/v1/host/tandem/workflows", tag = "workflows", operation_id = "listWorkflows",
    description = "Every workflow the caller may run; with a key bound to no workspace also those of the \
                   tenant's workspaces, each with its `workspace`.",
    responses((status = 200, description = "Workflows by id", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<ManifestRead>,
) -> Result<Json<Value>, Problem> {
    let registered = api.app.list_workflows(&caller).await?;
    let rows: Vec<Value> = registered.iter().map(row).collect();
    Ok(Json(json!({"workflows": rows})))
}

fn row(registered: &RegisteredWorkflow) -> Value {
    // Stored documents were validated, so they parse; if one does not, its row is listed without a
    // name.
    let document: Value = serde_json::from_str(&registered.document).unwrap_or_default();
    let mut row = json!({
        "workflowId": registered.workflow,
        "name": document["name"],
        "version": document["version"],
        "hash": registered.hash,
        "shared": registered.shared,
        "registeredAt": rfc3339(registered.registered_at),
    });
    if let Some(workspace) = &registered.workspace {
        row["workspace"] = json!(workspace);
    }
    row
}

#[utoipa::path(
    put, path = "/v1/host/tandem/workflows/{workflowId}", tag = "workflows",
    operation_id = "putWorkflow",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)), request_body = Value,
    responses((status = 201, description = "New", body = Value),
              (status = 200, description = "Changed, or the same as before", body = Value))
)]
pub(super) async fn put(
    State(api): State<SharedState>,
    caller: Caller<Workflows>,
    PathParams(id): PathParams<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = api.app.workflow_owner(&caller, params.get("workspace"))?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let document: Value = request.json()?;
    if document["id"].as_str().is_some_and(|named| named != id) {
        let message = format!("must be the id in the path, {id:?}");
        return Err(Problem::invalid("/id", message));
    }
    respond(ticket, render_registered, |idempotency| {
        api.app
            .register_workflow(&caller, owner, document, idempotency)
    })
    .await
}

#[utoipa::path(
    post, path = "/v1/workflows", tag = "workflows", operation_id = "registerWorkflow",
    params(("workspace" = Option<String>, Query)), request_body = Value,
    responses((status = 201, description = "New", body = Value),
              (status = 200, description = "Changed, or the same as before", body = Value))
)]
pub(super) async fn post(
    State(api): State<SharedState>,
    caller: Caller<Workflows>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = api.app.workflow_owner(&caller, params.get("workspace"))?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let document: Value = request.json()?;
    respond(ticket, render_registered, |idempotency| {
        api.app
            .register_workflow(&caller, owner, document, idempotency)
    })
    .await
}

fn render_registered(registered: &RegisteredDocument) -> ApiResponse {
    let warnings = registered.warnings.iter();
    let warnings: Vec<Value> = warnings
        .map(|w| json!({"path": w.path, "message": w.message}))
        .collect();
    let body = |outcome: &str| {
        let mut body = json!({"workflowId": registered.workflow_id, "registration": outcome});
        if !warnings.is_empty() {
            body["warnings"] = json!(warnings);
        }
        body
    };
    match registered.registration {
        Registration::Created => ApiResponse::created(body("created")),
        Registration::Changed => ApiResponse::ok(body("changed")),
        Registration::Unchanged => ApiResponse::ok(body("unchanged")),
    }
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/workflows/{workflowId}", tag = "workflows",
    operation_id = "deleteWorkflow",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 204, description = "The id means nothing any more; runs keep their version"))
)]
pub(super) async fn delete(
    State(api): State<SharedState>,
    caller: Caller<Workflows>,
    PathParams(id): PathParams<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = api.app.workflow_owner(&caller, params.get("workspace"))?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let id = WorkflowId::from(id);
    respond(
        ticket,
        |(): &()| ApiResponse::no_content(),
        |idempotency| api.app.unregister_workflow(&caller, owner, id, idempotency),
    )
    .await
}
