//! Workflow documents: reading what an id means, and the host's registry.
//!
//! A document put here belongs to the caller's workspace, or to its tenant if its key is bound to
//! none. What a workspace registers stands over the tenant's document of that id, for its own runs
//! only. Putting the same document twice changes nothing, so an answer kept after the deed is safe to
//! lose.

use crate::api::{Doors, Shared};
use crate::at::At;
use crate::caller::{Caller, ManifestRead, Workflows};
use crate::mutation::{Begun, Mutation, Ticket};
use crate::params::Params;
use crate::problem::Problem;
use crate::said::Said;
use crate::to_the_end::to_the_end;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_record::{Partition, WorkflowId, WorkspaceId};
use tandem_runtime::{ChildReference, ConformanceTypes, Permissions, Registered, Registration};
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/workflows/{workflowId}", tag = "workflows", operation_id = "readWorkflow",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 200, description = "The workflow definition", body = Value))
)]
pub(super) async fn read(
    State(doors): State<Shared>,
    caller: Caller<ManifestRead>,
    At(id): At<String>,
    params: Params,
) -> Result<Response, Problem> {
    definition(&doors, &owner(&caller, &params)?, id).await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/workflows/{workflowId}", tag = "workflows",
    operation_id = "readRegistered",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 200, description = "The workflow definition", body = Value))
)]
pub(super) async fn read_own(
    State(doors): State<Shared>,
    caller: Caller<ManifestRead>,
    At(id): At<String>,
    params: Params,
) -> Result<Response, Problem> {
    definition(&doors, &owner(&caller, &params)?, id).await
}

/// Whose documents are meant: the caller's. A key bound to no workspace may name one with `workspace`.
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

async fn definition(doors: &Doors, owner: &Partition, id: String) -> Result<Response, Problem> {
    let found = doors.runtime.workflow(owner, &WorkflowId::from(id)).await?;
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
    State(doors): State<Shared>,
    caller: Caller<ManifestRead>,
) -> Result<Json<Value>, Problem> {
    let mut registered = doors.runtime.workflows(&caller.partition()).await?;
    if caller.workspace.is_none() {
        let theirs = doors.runtime.workflows_of_workspaces(&caller.tenant);
        registered.extend(theirs.await?);
    }
    let rows: Vec<Value> = registered.iter().map(row).collect();
    Ok(Json(json!({"workflows": rows})))
}

fn row(registered: &Registered) -> Value {
    // Stored documents were checked, so they parse; a row without a name is better than no list.
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
    State(doors): State<Shared>,
    caller: Caller<Workflows>,
    At(id): At<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let document: Value = request.json()?;
    if document["id"].as_str().is_some_and(|named| named != id) {
        let message = format!("must be the id in the path, {id:?}");
        return Err(Problem::invalid("/id", message));
    }
    register(&doors, &caller, owner, ticket, document).await
}

#[utoipa::path(
    post, path = "/v1/workflows", tag = "workflows", operation_id = "registerWorkflow",
    params(("workspace" = Option<String>, Query)), request_body = Value,
    responses((status = 201, description = "New", body = Value),
              (status = 200, description = "Changed, or the same as before", body = Value))
)]
pub(super) async fn post(
    State(doors): State<Shared>,
    caller: Caller<Workflows>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let document: Value = request.json()?;
    register(&doors, &caller, owner, ticket, document).await
}

async fn register(
    doors: &Shared,
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
    let runtime = doors.runtime_of(caller);
    let told = to_the_end(async move {
        runtime
            .register_and_tell(Some(&owner), &document, permissions)
            .await
    })
    .await?;
    let children = told.unknown_children.iter().map(ChildReference::unknown);
    let warnings = told.warnings.into_iter().chain(children);
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
    let said = match told.registration {
        Registration::Created => Said::created(body("created")),
        Registration::Changed => Said::ok(body("changed")),
        Registration::Unchanged => Said::ok(body("unchanged")),
    };
    ticket.done(doors, said).await
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/workflows/{workflowId}", tag = "workflows",
    operation_id = "deleteWorkflow",
    params(("workflowId" = String, Path), ("workspace" = Option<String>, Query)),
    responses((status = 204, description = "The id means nothing any more; runs keep their version"))
)]
pub(super) async fn delete(
    State(doors): State<Shared>,
    caller: Caller<Workflows>,
    At(id): At<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    let owner = owner(&caller, &params)?;
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let runtime = doors.runtime_of(&caller);
    let (of, workflow) = (owner.clone(), WorkflowId::from(id));
    let named = workflow.clone();
    let was_there = to_the_end(async move { runtime.unregister(&of, &workflow).await }).await?;
    if !was_there {
        let seen = doors.runtime.workflow(&owner, &named).await?;
        if owner.workspace.is_some() && seen.is_some_and(|seen| !seen.shared) {
            let message = "The workflow belongs to the whole tenant, not to this workspace.";
            return Err(Problem::forbidden(message));
        }
        return Err(Problem::workflow_not_found());
    }
    ticket.done(&doors, Said::nothing()).await
}
