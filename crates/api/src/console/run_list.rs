//! The list of runs, as a page and as a stream that keeps its newest page fresh.

use super::page::{Detour, chrome};
use super::session::SignedIn;
use crate::api::{Doors, Shared};
use crate::follow::stopped;
use crate::paging::{cursor, position};
use crate::params::Params;
use crate::problem::Problem;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::response::{Html, Response};
use futures_util::stream;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_console::{RunFilter, RunListView, RunRow, rows_json, run_list_page};
use tandem_record::{RunStatus, WorkflowId};
use tandem_runtime::{Fault, Page, RunPosition};
use tandem_wire::v1::time::rfc3339;
use tokio::sync::watch;

const ROWS: usize = 50;
/// Changes are gathered this long; a busy host would otherwise redraw the table all the time.
const GATHERED: Duration = Duration::from_millis(500);

pub(super) async fn show(
    State(doors): State<Shared>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::RunsRead)?;
    let before = params.get("cursor").map(position).transpose()?;
    let filter = filter(&params)?;
    let mut view = view(&doors, &reader, filter, before).await?;
    let registered = doors.runtime.workflows(&reader.partition()).await?;
    view.workflows = registered.iter().map(|r| r.workflow.to_string()).collect();
    Ok(Html(run_list_page(&chrome(&doors, &reader), &view)))
}

fn filter(params: &Params) -> Result<RunFilter, Problem> {
    let status = params.get("status");
    if status.is_some_and(|status| RunStatus::parse(status).is_none()) {
        return Err(Problem::invalid("status", "is not a status of a run"));
    }
    Ok(RunFilter {
        status: status.map(str::to_owned),
        workflow_id: params.get("workflow").map(str::to_owned),
    })
}

async fn view(
    doors: &Doors,
    reader: &Identity,
    filter: RunFilter,
    before: Option<RunPosition>,
) -> Result<RunListView, Fault> {
    let wanted = tandem_runtime::RunFilter {
        status: filter.status.as_deref().and_then(RunStatus::parse),
        workflow: filter.workflow_id.as_deref().map(WorkflowId::new),
        parent: None,
        workspace: reader.workspace.clone(),
    };
    let page = Page {
        before,
        limit: ROWS,
    };
    let listing = doors
        .runtime
        .list_runs(&reader.tenant, &wanted, &page)
        .await?;
    let last = listing.runs.last().filter(|_| listing.more);
    Ok(RunListView {
        next_cursor: last.map(|listed| cursor(listed.position)),
        rows: listing.runs.iter().map(|listed| row(&listed.row)).collect(),
        filter,
        statuses: RunStatus::ALL.iter().map(|s| s.as_str()).collect(),
        workflows: Vec::new(),
        live: before.is_none(),
    })
}

fn row(row: &tandem_runtime::RunRow) -> RunRow {
    RunRow {
        run_id: row.run_id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        status: row.status.as_str().to_owned(),
        created_at: rfc3339(row.created_at),
        ended_at: row.ended_at.map(rfc3339),
        parent_run_id: row.parent.as_ref().map(ToString::to_string),
        error_code: row.error_code.clone(),
    }
}

pub(super) async fn live(
    State(doors): State<Shared>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, Detour> {
    reader.may(Scope::RunsRead)?;
    let guard = doors.open_session_stream(reader.session())?;
    let rows = LiveRows {
        filter: filter(&params)?,
        reader: Identity::clone(&reader),
        bell: doors.runtime.bell().listen_any(),
        stopping: doors.stopping.clone(),
        stale: true,
        doors,
    };
    let frames = stream::unfold(rows, |mut rows| async move {
        let chunk = rows.chunk().await?;
        Some((chunk, rows))
    });
    Ok(sse::response(guard, frames))
}

struct LiveRows {
    doors: Shared,
    reader: Identity,
    filter: RunFilter,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// Something may have changed since the reader's rows were read; true at first, because the
    /// page was rendered before the stream began.
    stale: bool,
}

impl LiveRows {
    async fn chunk(&mut self) -> Option<String> {
        if !self.stale {
            tokio::select! {
                rung = self.bell.changed() => rung.ok()?,
                () = tokio::time::sleep_until(next_keep_alive()) => {
                    return Some(KEEP_ALIVE_FRAME.to_owned());
                }
                () = stopped(&mut self.stopping) => return None,
            }
            tokio::time::sleep(GATHERED).await;
        }
        self.bell.mark_unchanged();
        self.stale = false;
        let rows = view(&self.doors, &self.reader, self.filter.clone(), None).await;
        // On trouble the stream ends and the browser comes back later.
        let data = rows_json(&rows.ok()?);
        let mut out = String::new();
        write_frame(&mut out, None, "rows", &data);
        Some(out)
    }
}
