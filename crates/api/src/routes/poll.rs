//! `GET /v1/runs/{runId}/events/poll`, and the log at once.
//!
//! A page shows the log exactly up to the row it was read with, so its status never runs ahead of
//! its events. A log that is too long for one answer is cut: `isComplete` is false then, and
//! `lastEventSeq` is where the next page begins.

use crate::api::{Doors, Shared};
use crate::at::At;
use crate::caller::{Caller, RunsRead};
use crate::follow::{PAGE, stopped};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{Recorded, RunId, RunStatus, Seq};
use tandem_runtime::{Fault, PageLimit, StoredRun};
use tandem_wire::v1::project;
use tokio::time::Instant;

/// Without an explicit timeout the hold stays well below what clients give up after.
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
    State(doors): State<Shared>,
    caller: Caller<RunsRead>,
    At(run): At<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let run = RunId::from(run);
    let mut bell = doors.runtime.bell().listen(&run);
    let mut stored = doors.visible(&caller, &run).await?;
    let seen = params.number("lastSequence", 0..=u64::MAX)?;
    let seen = match seen {
        Some(seen) => Some(seen),
        None => params.number("since", 0..=u64::MAX)?,
    };
    let after = seen.map(Seq);
    let hold = params.number("timeout", 1..=MAX_HOLD_SECONDS)?;
    let until = Instant::now() + Duration::from_secs(hold.unwrap_or(DEFAULT_HOLD_SECONDS));
    let mut stopping = doors.stopping.clone();
    let nothing_new =
        |stored: &StoredRun| after >= Some(stored.head) && !stored.row.status.is_terminal();
    let mut guard = match nothing_new(&stored) {
        true => Some(doors.open_stream(&caller, &headers).await?),
        false => None,
    };
    while let Some(guard) = guard.as_mut().filter(|_| nothing_new(&stored)) {
        tokio::select! {
            why = guard.wait() => return Err(why.into()),
            rung = bell.changed() => {
                if rung.is_err() {
                    bell = doors.runtime.bell().listen(&run);
                }
            }
            () = tokio::time::sleep_until(until) => break,
            () = stopped(&mut stopping) => break,
        }
        if let Some(why) = guard.over() {
            return Err(why.into());
        }
        stored = doors.visible(&caller, &run).await?;
    }
    Ok(Json(whole_log(&doors, &stored, after).await?))
}

/// Everything after the cursor that fits into one answer, in the poll shape.
pub(super) async fn whole_log(
    doors: &Doors,
    stored: &StoredRun,
    after: Option<Seq>,
) -> Result<Value, Fault> {
    let sensitivity = doors.runtime.sensitivity(stored).await?;
    let run = &stored.row.run_id;
    let events = events_up_to(doors, run, after, stored.head).await?;
    let last = events.last().map(|recorded| recorded.seq);
    let cut = last.is_some_and(|last| last < stored.head);
    let events: Vec<Value> = events
        .iter()
        .map(|recorded| project::event(run, recorded, &sensitivity))
        .collect();
    // The status belongs to the row's head. Before it, the run had not ended.
    let status = match stored.row.status {
        ended if cut && ended.is_terminal() => RunStatus::Running,
        status => status,
    };
    let ended = status.is_terminal();
    Ok(json!({
        "runId": run,
        "events": events,
        "isComplete": ended,
        "lastEventSeq": last.filter(|_| cut).unwrap_or(stored.head),
        "runStatus": status.as_str(),
        "isTerminal": ended,
    }))
}

/// Bytes of a log that are read into one answer, unless one event alone has more.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Events after the cursor and not beyond `head`, as far as one answer goes.
pub(crate) async fn events_up_to(
    doors: &Doors,
    run: &RunId,
    after: Option<Seq>,
    head: Seq,
) -> Result<Vec<Recorded>, Fault> {
    let mut events: Vec<Recorded> = Vec::new();
    let mut after = after;
    let mut room = ANSWER_BYTES;
    while after < Some(head) && room > 0 {
        let limit = PageLimit {
            bytes: PAGE.bytes.min(room),
            ..PAGE
        };
        let Some(page) = doors.runtime.event_page(run, after, limit).await? else {
            break;
        };
        if page.bytes > room && !events.is_empty() {
            break;
        }
        room = room.saturating_sub(page.bytes);
        let Some(last) = page.events.last() else {
            break;
        };
        after = Some(last.seq);
        events.extend(page.events.into_iter().filter(|e| e.seq <= head));
    }
    Ok(events)
}
