//! Listing runs, newest first.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::paging::{cursor, limit, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_app::{Page, RunFilter, RunPosition, RunRow};
use tandem_record::{RunId, RunStatus, WorkflowId};
use tandem_wire::v1::time::rfc3339;

const PARAMETERS: [&str; 5] = ["status", "workflowId", "parentRunId", "limit", "cursor"];

#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns",
    params(("status" = Option<String>, Query), ("workflowId" = Option<String>, Query),
           ("parentRunId" = Option<String>, Query), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Runs, newest first", body = Value))
)]
pub(super) async fn list_runs(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    listing(&api, &caller, &params).await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/runs", tag = "runs", operation_id = "listRunsOfHost",
    params(("status" = Option<String>, Query), ("workflowId" = Option<String>, Query),
           ("parentRunId" = Option<String>, Query), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "The same as `GET /v1/runs`", body = Value))
)]
pub(super) async fn list_runs_of_host(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    listing(&api, &caller, &params).await
}

async fn listing(
    api: &ApiState,
    caller: &Identity,
    params: &Params,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let status = match params.get("status") {
        Some(text) => Some(RunStatus::parse(text).ok_or_else(|| {
            let known: Vec<&str> = RunStatus::ALL.iter().map(|s| s.as_str()).collect();
            Problem::invalid("status", format!("must be one of {}", known.join(", ")))
        })?),
        None => None,
    };
    let page = Page {
        before: run_cursor(api, caller, params).await?,
        limit: limit(params)?,
    };
    let filter = RunFilter {
        status,
        workflow: params.get("workflowId").map(WorkflowId::new),
        parent: params.get("parentRunId").map(RunId::new),
        ..RunFilter::default()
    };
    let listing = api.app.list_runs(caller, filter, &page).await?;
    let rows: Vec<Value> = listing.runs.iter().map(|listed| row(&listed.row)).collect();
    let mut body = json!({"runs": rows});
    let last = listing.runs.last().filter(|_| listing.more);
    if let Some(last) = last {
        body["nextCursor"] = json!(cursor(last.row.run_id.as_str()));
    }
    Ok(Json(body))
}

/// Where the last page of a caller's runs ended.
pub(crate) async fn run_cursor(
    api: &ApiState,
    caller: &Identity,
    params: &Params,
) -> Result<Option<RunPosition>, Problem> {
    let Some(cursor) = params.get("cursor") else {
        return Ok(None);
    };
    let last = RunId::from(parse_cursor(cursor)?);
    let found = api.app.run_position(caller, &last).await?;
    found.ok_or_else(unknown_cursor).map(Some)
}

fn row(row: &RunRow) -> Value {
    let mut owner = json!({"tenant": row.tenant});
    if let Some(workspace) = &row.workspace {
        owner["workspace"] = json!(workspace);
    }
    let mut shown = json!({
        "runId": row.run_id,
        "workflowId": row.workflow_id,
        "status": row.status.as_str(),
        "createdAt": rfc3339(row.created_at),
        "owner": owner,
    });
    if let Some(at) = row.ended_at {
        shown["endedAt"] = json!(rfc3339(at));
    }
    if let Some(parent) = &row.parent {
        shown["parentRunId"] = json!(parent);
    }
    if let Some(code) = &row.error_code {
        shown["error"] = json!({"code": code});
    }
    shown
}
