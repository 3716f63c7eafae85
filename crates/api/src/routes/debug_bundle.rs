//! `GET /v1/runs/{runId}/debug-bundle`: one run, redacted, to attach to a bug report.

use super::runs::snapshot_extras;
use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::Value;
use tandem_access::Identity;
use tandem_record::RunId;
use tandem_wire::v1::bundle::{self, HostInfo};

#[utoipa::path(
    get, path = "/v1/runs/{runId}/debug-bundle", tag = "runs", operation_id = "readDebugBundle",
    params(("runId" = String, Path), ("maxEvents" = Option<u64>, Query)),
    responses((status = 200, description = "Snapshot, log, spans and counts", body = Value))
)]
pub(super) async fn read_bundle(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    api.app.read_run(&caller, &run).await?;
    let max_events = params.number("maxEvents", 0..=u64::MAX)?;
    let max_events = max_events.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let build = || async {
        let bundle = collect(&api, &caller, &run, max_events).await?;
        Ok(bundle.to_string().into_bytes())
    };
    let mut response = api.pages.respond(&caller.tenant, build).await?;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    Ok(response)
}

pub(super) async fn collect(
    api: &ApiState,
    caller: &Identity,
    run: &RunId,
    max_events: Option<usize>,
) -> Result<Value, Problem> {
    let observed = api.app.observe_run(caller, run).await?;
    let mut extras = snapshot_extras(api, caller, &observed).await?;
    // A bundle is passed on to others, and a link would let them decide.
    extras.link = None;
    let events = api.app.read_log(run, None, observed.view.head).await?;
    let host = HostInfo {
        name: api.host.name.clone(),
        version: api.host.version.to_owned(),
        vendor: None,
    };
    Ok(bundle::debug_bundle(
        &host,
        &observed.view,
        &observed.sensitivity,
        &events,
        &extras,
        api.now(),
        max_events,
    ))
}
