//! `GET /v1/runs/{runId}:diff?against=`.

use super::runs::snapshot_extras;
use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::Value;
use tandem_access::Identity;
use tandem_record::RunId;
use tandem_wire::project::{self, Reader};
use tandem_wire::v1::diff::{self, Side};

#[utoipa::path(
    get, path = "/v1/runs/{runId}:diff", tag = "runs", operation_id = "diffRuns",
    params(("runId" = String, Path), ("against" = String, Query)),
    responses((status = 200, description = "Where the two runs differ", body = Value))
)]
pub(super) async fn diff_runs(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let run = RunId::from(run);
    api.app.read_run(&caller, &run).await?;
    let Some(against) = params.get("against") else {
        return Err(Problem::invalid("against", "names the run to compare with"));
    };
    let against = RunId::new(against);
    // Both logs are in memory until they are compared.
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let a = ProjectedRun::load(&api, &caller, &run).await?;
    let b = ProjectedRun::load(&api, &caller, &against).await?;
    Ok(Json(a.diff(&b)))
}

/// A run's events and snapshot as its reader sees them.
pub(crate) struct ProjectedRun {
    run: RunId,
    events: Vec<Value>,
    pub(crate) snapshot: Value,
    pub(crate) ended: bool,
}

impl ProjectedRun {
    pub(crate) async fn load(
        api: &ApiState,
        caller: &Identity,
        run: &RunId,
    ) -> Result<Self, Problem> {
        let observed = api.app.observe_run(caller, run).await?;
        let extras = snapshot_extras(api, caller, &observed).await?;
        let reader = Reader::v1(&observed.sensitivity);
        let log = api.app.read_whole_log(run, observed.view.head).await?;
        let events = log.iter().map(|r| project::event(run, r, reader));
        Ok(Self {
            run: run.clone(),
            events: events.collect(),
            snapshot: project::snapshot(&observed.view, &extras, reader),
            ended: observed.view.status.is_terminal(),
        })
    }

    /// The differences of the other run from this one.
    pub(crate) fn diff(&self, other: &Self) -> Value {
        diff::diff(&self.side(), &other.side())
    }

    fn side(&self) -> Side<'_> {
        Side {
            run_id: self.run.as_str(),
            events: &self.events,
            snapshot: &self.snapshot,
            ended: self.ended,
        }
    }
}
