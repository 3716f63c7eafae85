//! The parent of a run, and the documentation of this host's own interrupt kinds.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_record::RunId;
use tandem_wire::project::{self, ProtocolMajor};

const VENDOR_KINDS: &str = "/v1/host/tandem/vendor-kinds";

#[utoipa::path(
    get, path = "/v1/runs/{runId}/ancestry", tag = "runs", operation_id = "readAncestry",
    params(("runId" = String, Path)),
    responses((status = 200, description = "The run's immediate parent, if it has one", body = Value))
)]
pub(super) async fn read_ancestry(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let observed = api.app.observe_run(&caller, &RunId::from(run)).await?;
    let (view, host_id) = (&observed.view, api.app.host_id());
    Ok(Json(project::ancestry(view, host_id, ProtocolMajor::V1)))
}

/// Public, like discovery: every client that receives the kind in an event must be able to look it
/// up.
#[utoipa::path(
    get, path = "/v1/host/tandem/vendor-kinds", tag = "discovery", operation_id = "vendorKinds",
    security(()),
    responses((status = 200, description = "What this host's own interrupt kinds mean", body = Value))
)]
pub(super) async fn vendor_kinds(State(api): State<SharedState>) -> Json<Value> {
    let kinds = api.app.agent_policy().vendor_kind().map(|own| {
        let consumer = |name: &str, matches: &str| json!({"name": name, "matches": matches});
        json!({
            "kind": own.kind,
            "correspondsTo": own.meaning,
            "runStatus": own.status,
            "consumers": [
                consumer("inbox and console", "interrupt.kind"),
                consumer("audit log", "interrupt.requested.kind"),
                consumer("webhooks", "interrupt.requested.kind"),
            ],
        })
    });
    Json(kinds.into_iter().collect())
}

/// Absolute if the host has a public URL, else relative to discovery.
pub(super) fn vendor_kinds_url(api: &ApiState) -> String {
    let base = api.host.public_url.as_deref().unwrap_or_default();
    format!("{base}{VENDOR_KINDS}")
}
