//! The run list, as a page and as a stream that updates its newest page.

use super::page::{PageError, chrome};
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::paging::cursor;
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::run_cursor;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::response::{Html, Response};
use futures_util::stream;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_app::{AppError, Page, RunFilter, RunPosition, RunRow, wait_until_stopping};
use tandem_console::{RunListFilter, RunListRow, RunListView, rows_json, run_list_page};
use tandem_record::{RunStatus, WorkflowId};
use tandem_wire::v1::time::rfc3339;
use tokio::sync::watch;

const ROWS: usize = 50;
/// Changes are collected for this long, so that a busy host does not redraw the table constantly.
const DEBOUNCE: Duration = Duration::from_millis(500);

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let before = run_cursor(&api, &reader, &params).await?;
    let filter = filter(&params)?;
    let mut view = view(&api, &reader, filter, before).await?;
    let ids = api.app.list_workflow_ids(&reader).await?;
    view.workflows = ids.iter().map(ToString::to_string).collect();
    Ok(Html(run_list_page(&chrome(&api, &reader), &view)))
}

fn filter(params: &Params) -> Result<RunListFilter, Problem> {
    let status = params.get("status");
    if status.is_some_and(|status| RunStatus::parse(status).is_none()) {
        return Err(Problem::invalid("status", "is not a status of a run"));
    }
    Ok(RunListFilter {
        status: status.map(str::to_owned),
        workflow_id: params.get("workflow").map(str::to_owned),
    })
}

async fn view(
    api: &ApiState,
    reader: &Identity,
    filter: RunListFilter,
    before: Option<RunPosition>,
) -> Result<RunListView, AppError> {
    let run_filter = RunFilter {
        status: filter.status.as_deref().and_then(RunStatus::parse),
        workflow: filter.workflow_id.as_deref().map(WorkflowId::new),
        ..RunFilter::default()
    };
    let page = Page {
        before,
        limit: ROWS,
    };
    let listing = api.app.list_runs(reader, run_filter, &page).await?;
    let last = listing.runs.last().filter(|_| listing.more);
    Ok(RunListView {
        next_cursor: last.map(|listed| cursor(listed.row.run_id.as_str())),
        rows: listing.runs.iter().map(|listed| row(&listed.row)).collect(),
        filter,
        statuses: RunStatus::ALL.iter().map(|s| s.as_str()).collect(),
        workflows: Vec::new(),
        live: before.is_none(),
    })
}

fn row(row: &RunRow) -> RunListRow {
    RunListRow {
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
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let guard = api.open_session_stream(reader.session())?;
    let rows = LiveRows {
        filter: filter(&params)?,
        reader: Identity::clone(&reader),
        bell: api.app.listen_runs(),
        stopping: api.stopping.clone(),
        sent: String::new(),
        stale: true,
        api,
    };
    let frames = stream::unfold(rows, |mut rows| async move {
        let chunk = rows.chunk().await?;
        Some((chunk, rows))
    });
    Ok(sse::response(guard, frames))
}

struct LiveRows {
    api: SharedState,
    reader: Identity,
    filter: RunListFilter,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// The rows the reader has; the same are not sent twice.
    sent: String,
    /// Something may have changed since the reader's rows were read; true at first, because the
    /// page was rendered before the stream began.
    stale: bool,
}

impl LiveRows {
    /// The next bytes; `None` when the host goes down or the store is in trouble. The browser comes
    /// back by itself.
    async fn chunk(&mut self) -> Option<String> {
        let keep_alive = next_keep_alive();
        loop {
            if !self.stale {
                tokio::select! {
                    rung = self.bell.changed() => rung.ok()?,
                    () = tokio::time::sleep_until(keep_alive) => {
                        return Some(KEEP_ALIVE_FRAME.to_owned());
                    }
                    () = wait_until_stopping(&mut self.stopping) => return None,
                }
                tokio::time::sleep(DEBOUNCE).await;
            }
            self.bell.mark_unchanged();
            self.stale = false;
            let rows = view(&self.api, &self.reader, self.filter.clone(), None).await;
            let data = rows_json(&rows.ok()?);
            // The bell rings for runs of every tenant; a frame for them would tell of their activity.
            if data != self.sent {
                let mut out = String::new();
                write_frame(&mut out, None, "rows", &data);
                self.sent = data;
                return Some(out);
            }
        }
    }
}
