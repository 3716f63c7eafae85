//! Workflow documents: reading a document by id, and the host's registry.
//!
//! A registered document belongs to the caller's workspace, or to its tenant if its key is bound to
//! none. A workspace's document overrides the tenant's document of the same id, for runs of that
//! workspace only. Registering the same document twice changes nothing, so the response may be
//! stored after the mutation.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, ManifestRead, Workflows};
use crate::detached_request::run_to_completion;
use crate::mutation::{IdempotencyCheck, Mutation, Ticket};
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
use tandem_record::{Partition, WorkflowId, WorkspaceId};
use tandem_runtime::{
    ChildReference, ConformanceTypes, Permissions, RegisteredWorkflow, Registration,
};
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
    definition(&api, &owner(&caller, &params)?, id).await
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
    definition(&api, &owner(&caller, &params)?, id).await
}

/// The owner of the documents: the caller's partition. A key bound to no workspace may name one
/// with `workspace`.
fn owner(caller: &Identity, params: &Params) -> Result<Partition, Problem> {
    let mut owner = caller.partition();
    if let Some(named) = params.get("workspace").map(WorkspaceId::new) {
        if caller.workspace.as_ref().is_some_and(|own| *own != named) {
            return Err(Problem::forbidden("The key is bound to another workspace."));
        }
        if named.as_str().is_empty() {
            return Err(Problem::invalid("workspace", "must have a name"));
        }
        owner.workspace = Some(named);
    }
    Ok(owner)
}

async fn definition(api: &ApiState, owner: &Partition, id: String) -> Result<Response, Problem> {
    let found = api.runtime.workflow(owner, &WorkflowId::from(id)).await?;
    let registered = found.ok_or_else(Problem::workflow_not_found)?;
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
    let mut registered = api.runtime.workflows(&caller.partition()).await?;
    if caller.workspace.is_none() {
        let theirs = api.runtime.workflows_of_workspaces(&caller.tenant);
        registered.extend(theirs.await?);
    }
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
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let document: Value = request.json()?;
    if document["id"].as_str().is_some_and(|named| named != id) {
        let message = format!("must be the id in the path, {id:?}");
        return Err(Problem::invalid("/id", message));
    }
    register(&api, &caller, owner, ticket, document).await
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
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let document: Value = request.json()?;
    register(&api, &caller, owner, ticket, document).await
}

async fn register(
    api: &SharedState,
    caller: &Identity,
    owner: Partition,
    ticket: Ticket,
    document: Value,
) -> Result<Response, Problem> {
    let permissions = Permissions {
        conformance: match caller.permits_conformance() {
            true => ConformanceTypes::Everywhere,
            false => ConformanceTypes::ByWorkflowId,
        },
        ..Permissions::default()
    };
    let workflow_id = document["id"].clone();
    let runtime = api.runtime_of(caller);
    let registered = run_to_completion(async move {
        runtime
            .register_with_report(Some(&owner), &document, permissions)
            .await
    })
    .await?;
    let children = registered
        .unknown_children
        .iter()
        .map(ChildReference::unknown);
    let warnings = registered.warnings.into_iter().chain(children);
    let warnings: Vec<Value> = warnings
        .map(|w| json!({"path": w.path, "message": w.message}))
        .collect();
    let body = |outcome: &str| {
        let mut body = json!({"workflowId": workflow_id, "registration": outcome});
        if !warnings.is_empty() {
            body["warnings"] = json!(warnings);
        }
        body
    };
    let response = match registered.registration {
        Registration::Created => ApiResponse::created(body("created")),
        Registration::Changed => ApiResponse::ok(body("changed")),
        Registration::Unchanged => ApiResponse::ok(body("unchanged")),
    };
    ticket.complete(api, response).await
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
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let runtime = api.runtime_of(&caller);
    let (of, workflow) = (owner.clone(), WorkflowId::from(id));
    let named = workflow.clone();
    let existed =
        run_to_completion(async move { runtime.unregister(&of, &workflow).await }).await?;
    if !existed {
        let visible = api.runtime.workflow(&owner, &named).await?;
        if owner.workspace.is_some() && visible.is_some_and(|visible| !visible.shared) {
            let message = "The workflow belongs to the whole tenant, not to this workspace.";
            return Err(Problem::forbidden(message));
        }
        return Err(Problem::workflow_not_found());
    }
    ticket.complete(&api, ApiResponse::no_content()).await
}
