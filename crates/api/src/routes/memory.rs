//! `GET /v1/host/tandem/runs/{runId}/memory`: the memory of a run as of one of its events, in pages.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::paging::{cursor, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tandem_app::StoredRun;
use tandem_record::{MemoryEntry, RunId, Seq, Timestamp};
use tandem_wire::v1::time::rfc3339;

/// Entries of one page, unless the first is longer.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

#[utoipa::path(
    get, path = "/v1/host/tandem/runs/{runId}/memory", tag = "runs", operation_id = "readMemory",
    params(("runId" = String, Path),
           ("atSeq" = Option<u64>, Query, description = "What a fork from this event would read"),
           ("scope" = Option<String>, Query, description = "Another scope of the run's workspace, or of its tenant if it has none"),
           ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before")),
    responses((status = 200, description = "Entries, newest first; `nextCursor` if there are more", body = Value))
)]
pub(super) async fn read_memory(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    let stored = api.app.read_run(&caller, &run).await?;
    params.only(&["atSeq", "scope", "cursor"])?;
    let view = View {
        at: params.number("atSeq", 0..=u64::MAX)?.map(Seq),
        scope: params.get("scope"),
        after: params.get("cursor").map(LastEntry::parse).transpose()?,
    };
    let build = || page(&api, &stored, &view);
    api.pages.respond(&caller.tenant, build).await
}

/// Which entries are read.
struct View<'a> {
    at: Option<Seq>,
    scope: Option<&'a str>,
    after: Option<LastEntry>,
}

/// The entry a page ended with.
struct LastEntry {
    written_at: Timestamp,
    id: String,
}

impl LastEntry {
    fn cursor(entry: &MemoryEntry) -> String {
        cursor(&format!("{}.{}", entry.written_at.0, entry.id))
    }

    fn parse(cursor: &str) -> Result<Self, Problem> {
        let text = parse_cursor(cursor)?;
        let (written_at, id) = text.split_once('.').ok_or_else(unknown_cursor)?;
        let written_at = written_at.parse().map_err(|_| unknown_cursor())?;
        Ok(Self {
            written_at: Timestamp(written_at),
            id: id.to_owned(),
        })
    }

    /// The entries that follow. If the entry itself was deleted in the meantime, those of its instant may be
    /// repeated, and none is skipped.
    fn rest<'a>(&self, entries: &'a [MemoryEntry]) -> &'a [MemoryEntry] {
        let place = entries.iter().position(|entry| entry.id == self.id);
        let first = place.map_or_else(
            || entries.partition_point(|entry| entry.written_at > self.written_at),
            |place| place + 1,
        );
        &entries[first..]
    }
}

/// The entries after the cursor that fit into one response. They become text one by one, because as values
/// they take several times the memory.
async fn page(api: &ApiState, stored: &StoredRun, view: &View<'_>) -> Result<Vec<u8>, Problem> {
    let memory = api.app.read_memory(stored, view.at, view.scope).await?;
    let rest = match &view.after {
        Some(last) => last.rest(&memory.entries),
        None => &memory.entries,
    };
    let mut bytes = 0;
    let mut shown: Vec<Box<RawValue>> = Vec::new();
    for found in rest {
        let text = entry(found).to_string();
        bytes += text.len();
        if bytes > PAGE_BYTES && !shown.is_empty() {
            break;
        }
        shown.push(RawValue::from_string(text).expect("a value is written as valid JSON"));
    }
    let last = shown
        .len()
        .checked_sub(1)
        .filter(|_| shown.len() < rest.len());
    let body = MemoryPage {
        run_id: &stored.row.run_id,
        at_seq: memory.at,
        next_cursor: last.map(|last| LastEntry::cursor(&rest[last])),
        entries: shown,
    };
    Ok(serde_json::to_vec(&body).expect("pages are plain data with text keys"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryPage<'a> {
    run_id: &'a RunId,
    at_seq: Seq,
    entries: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
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
