//! `GET /v1/host/tandem/storage`: storage used by the caller's tenant, by cause.

use crate::api::SharedState;
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/host/tandem/storage", tag = "runs", operation_id = "readStorage",
    description = "Runs of the caller's tenant that are live, kept and purged, the workflows and runs with \
                   the most events, scopes of memory by size, and when the next history is removed. \
                   The newest 200,000 runs are looked at. Sizes of the file are the operator's: \
                   `tandem storage`.",
    responses((status = 200, description = "What uses space in the store", body = Value))
)]
pub(super) async fn read_storage(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&[])?;
    let (usage, next) = api.app.storage_usage(&caller).await?;
    let mut answer = json!(usage);
    answer["tenant"] = json!(caller.tenant);
    if let Some(at) = next {
        answer["nextPurgeAt"] = json!(rfc3339(at));
    }
    Ok(Json(answer))
}
