//! `GET /v1/runs/{runId}/events/poll`, and the log as one JSON response.
//!
//! A page shows the log exactly up to the head of the row it was read with, so its status is never
//! newer than its events. A log too long for one response is cut: `isComplete` is then false, and
//! the next page starts at `lastEventSeq`.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::json;
use std::time::Duration;
use tandem_access::Identity;
use tandem_app::{AppError, StoredRun, wait_until_stopping};
use tandem_record::{RunId, Seq};
use tandem_wire::project::{self, Reader};
use tokio::time::Instant;

/// The default wait is shorter than common client timeouts.
const DEFAULT_HOLD_SECONDS: u64 = 10;
const MAX_HOLD_SECONDS: u64 = 60;

#[utoipa::path(
    get, path = "/v1/runs/{runId}/events/poll", tag = "events", operation_id = "pollEvents",
    params(("runId" = String, Path),
           ("lastSequence" = Option<u64>, Query, description = "The highest sequence already seen"),
           ("timeout" = Option<u64>, Query, description = "Seconds to wait for news, 1 to 60")),
    responses((status = 200, description = "What follows the cursor", body = Value))
)]
pub(super) async fn poll_events(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    let mut bell = api.app.listen_run(&run);
    let mut stored = api.app.read_run(&caller, &run).await?;
    let last_sequence = params.number("lastSequence", 0..=u64::MAX)?;
    let last_sequence = match last_sequence {
        Some(last_sequence) => Some(last_sequence),
        None => params.number("since", 0..=u64::MAX)?,
    };
    let after = last_sequence.map(Seq);
    let hold = params.number("timeout", 1..=MAX_HOLD_SECONDS)?;
    let until = Instant::now() + Duration::from_secs(hold.unwrap_or(DEFAULT_HOLD_SECONDS));
    let mut stopping = api.stopping.clone();
    let nothing_new =
        |stored: &StoredRun| after >= Some(stored.head) && !stored.row.status.is_terminal();
    let mut guard = match nothing_new(&stored) {
        true => Some(api.open_stream(&caller, &headers).await?),
        false => None,
    };
    while let Some(guard) = guard.as_mut().filter(|_| nothing_new(&stored)) {
        tokio::select! {
            why = guard.wait_for_end() => return Err(why.into()),
            rung = bell.changed() => {
                if rung.is_err() {
                    bell = api.app.listen_run(&run);
                }
            }
            () = tokio::time::sleep_until(until) => break,
            () = wait_until_stopping(&mut stopping) => break,
        }
        if let Some(why) = guard.end_reason() {
            return Err(why.into());
        }
        stored = api.app.read_run(&caller, &run).await?;
    }
    respond_with_page(&api, &caller, &stored, after).await
}

/// One page of the log, within the tenant's share of memory for pages.
pub(super) async fn respond_with_page(
    api: &ApiState,
    caller: &Identity,
    stored: &StoredRun,
    after: Option<Seq>,
) -> Result<Response, Problem> {
    let build = || async { Ok(poll_page(api, stored, after).await?) };
    api.pages.respond(&caller.tenant, build).await
}

/// Everything after the cursor that fits into one answer, in the poll shape. Events become text as they
/// are read, because as values they take several times the memory.
async fn poll_page(
    api: &ApiState,
    stored: &StoredRun,
    after: Option<Seq>,
) -> Result<Vec<u8>, AppError> {
    let sensitivity = api.app.sensitivity(stored).await?;
    let run = &stored.row.run_id;
    let reader = Reader::v1(&sensitivity);
    let mut text = b"{\"events\":[".to_vec();
    let mut is_first = true;
    let page = api.app.read_log_page(stored, after, |recorded| {
        if !std::mem::take(&mut is_first) {
            text.push(b',');
        }
        project::append_event(run, &recorded, reader, &mut text);
    });
    let page = page.await?;
    let ended = page.status.is_terminal();
    let rest = json!({
        "runId": run,
        "isComplete": ended,
        "lastEventSeq": page.last_seq,
        "runStatus": page.status.as_str(),
        "isTerminal": ended,
    });
    text.extend_from_slice(b"],");
    text.extend_from_slice(rest.to_string().trim_start_matches('{').as_bytes());
    Ok(text)
}
