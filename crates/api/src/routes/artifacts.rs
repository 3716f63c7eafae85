//! Artifacts of a run.

use crate::api::SharedState;
use crate::caller::{ArtifactsRead, Caller};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_record::RunId;
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/runs/{runId}/artifacts/{artifactId}", tag = "runs",
    operation_id = "readArtifact",
    params(("runId" = String, Path), ("artifactId" = String, Path)),
    responses((status = 200, description = "The artifact and its content", body = Value))
)]
pub(super) async fn read_artifact(
    State(api): State<SharedState>,
    caller: Caller<ArtifactsRead>,
    PathParams((run, artifact)): PathParams<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let run = RunId::from(run);
    let found = api.app.read_artifact(&caller, &run, &artifact).await?;
    Ok(Json(json!({
        "artifactId": found.artifact_id,
        "artifactType": found.artifact_type,
        "runId": run,
        "nodeId": found.node,
        "createdAt": rfc3339(found.created_at),
        "content": found.content,
    })))
}
