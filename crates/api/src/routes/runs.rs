//! Reading one run.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use tandem_access::Identity;
use tandem_app::{AppError, ObservedRun, in_place};
use tandem_record::RunId;
use tandem_wire::project::{self, Reader, SignedLink, SnapshotExtras};

#[utoipa::path(
    get, path = "/v1/runs/{runId}", tag = "runs", operation_id = "readRun",
    params(("runId" = String, Path)),
    responses((status = 200, description = "The run as it stands", body = Value))
)]
pub(super) async fn read_run(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    // A state can be large, and the view, its values and their text are copies of it.
    let build = || snapshot(&api, &caller, &run);
    api.pages.respond(&caller.tenant, build).await
}

async fn snapshot(api: &ApiState, caller: &Identity, run: &RunId) -> Result<Vec<u8>, Problem> {
    let observed = api.app.observe_run(caller, run).await?;
    let extras = snapshot_extras(api, caller, &observed).await?;
    Ok(in_place(observed.bytes, || {
        let reader = Reader::v1(&observed.sensitivity);
        let shown = project::snapshot(&observed.view, &extras, reader);
        serde_json::to_vec(&shown).expect("a JSON value can be written")
    }))
}

/// Snapshot data that is not in the run's own log: the status of its open children, and a link to the
/// question it waits for.
pub(crate) async fn snapshot_extras(
    api: &ApiState,
    caller: &Identity,
    observed: &ObservedRun,
) -> Result<SnapshotExtras, AppError> {
    let view = &observed.view;
    let open = view.interrupts.first();
    let open = open.filter(|_| view.status.is_waiting());
    let link = open.map(|open| api.app.issue_link(caller, &view.run_id, open));
    Ok(SnapshotExtras {
        children: api.app.open_child_statuses(caller, observed).await?,
        outputs: observed.outputs.clone(),
        link: link.map(|link| SignedLink {
            token: link.token,
            expires_at: link.expires_at,
        }),
    })
}
