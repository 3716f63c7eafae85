//! `GET /v1/host/tandem/runs/{runId}/memory`: the memory of a run as of one of its events.

use crate::api::SharedState;
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_record::{MemoryEntry, RunId, Seq};
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/host/tandem/runs/{runId}/memory", tag = "runs", operation_id = "readMemory",
    params(("runId" = String, Path),
           ("atSeq" = Option<u64>, Query, description = "What a fork from this event would read"),
           ("scope" = Option<String>, Query, description = "Another scope of the run's workspace, or of its tenant if it has none")),
    responses((status = 200, description = "Entries, newest first", body = Value))
)]
pub(super) async fn read_memory(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let run = RunId::from(run);
    let stored = api.app.read_run(&caller, &run).await?;
    params.only(&["atSeq", "scope"])?;
    let at = params.number("atSeq", 0..=u64::MAX)?.map(Seq);
    let scope = params.get("scope");
    let memory = api.app.read_memory(&stored, at, scope).await?;
    let entries: Vec<Value> = memory.entries.iter().map(entry).collect();
    Ok(Json(
        json!({"runId": run, "atSeq": memory.at, "entries": entries}),
    ))
}

fn entry(entry: &MemoryEntry) -> Value {
    let mut shown = json!({
        "key": entry.key,
        "value": entry.visible_value(),
        "memoryId": entry.id,
        "memoryRef": entry.memory_ref,
        "writtenAt": rfc3339(entry.written_at),
    });
    if let Some(at) = entry.expires_at {
        shown["expiresAt"] = json!(rfc3339(at));
    }
    if !entry.tags.is_empty() {
        shown["tags"] = json!(entry.tags);
    }
    shown
}
