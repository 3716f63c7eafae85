//! Reading one run.

use super::links::link;
use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::Value;
use tandem_access::Identity;
use tandem_record::RunId;
use tandem_runtime::{Fault, ObservedRun};
use tandem_wire::v1::project::{self, SnapshotExtras};

#[utoipa::path(
    get, path = "/v1/runs/{runId}", tag = "runs", operation_id = "readRun",
    params(("runId" = String, Path)),
    responses((status = 200, description = "The run as it stands", body = Value))
)]
pub(super) async fn read_run(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    // A state can be large, and the view, its values and their text are copies of it.
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let observed = load_run_view(&api, &caller, &RunId::from(run)).await?;
    let extras = snapshot_extras(&api, &caller, &observed).await?;
    let sensitivity = &observed.sensitivity;
    Ok(Json(project::snapshot(
        &observed.view,
        sensitivity,
        &extras,
    )))
}

/// A run the caller may see, folded.
pub(super) async fn load_run_view(
    api: &ApiState,
    caller: &Identity,
    run: &RunId,
) -> Result<ObservedRun, Problem> {
    api.load_run(caller, run).await?;
    let observed = api.runtime.observe(&caller.tenant, run).await?;
    observed.ok_or_else(|| Problem::not_found("run"))
}

/// Snapshot data that is not in the run's own log. A parent learns of the end of a child late, so
/// children not yet reported as ended are read directly.
pub(crate) async fn snapshot_extras(
    api: &ApiState,
    caller: &Identity,
    observed: &ObservedRun,
) -> Result<SnapshotExtras, Fault> {
    let mut children = Vec::new();
    let unsettled = observed.view.children.iter();
    for child in unsettled.filter(|child| !child.status.is_terminal()) {
        let found = api.runtime.find_run(&caller.tenant, &child.run_id).await?;
        if let Some(found) = found {
            children.push((child.run_id.clone(), found.row.status));
        }
    }
    let waits = observed.view.status.is_waiting();
    let open = observed.view.interrupts.first().filter(|_| waits);
    let link = open.map(|open| link(api, caller, &observed.view.run_id, open));
    Ok(SnapshotExtras {
        children,
        outputs: observed.outputs.clone(),
        link,
    })
}
