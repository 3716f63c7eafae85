//! The run list, as a page and as a stream that updates its newest page.

use super::live_rows;
use super::page::{PageError, chrome};
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::paging::cursor;
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::run_cursor;
use crate::sse;
use axum::extract::State;
use axum::response::{Html, Response};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::{AppError, Page, RunFilter, RunPosition, RunRow};
use tandem_console::{RunListFilter, RunListRow, RunListView, rows_json, run_list_page};
use tandem_record::{RunStatus, WorkflowId};
use tandem_wire::v1::time::rfc3339;

const ROWS: usize = 50;

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
    let filter = filter(&params)?;
    let reader = Arc::new(Identity::clone(&reader));
    let of = Arc::clone(&api);
    let frames = live_rows::frames(&api, live_rows::ROWS, move || {
        let (api, reader, filter) = (Arc::clone(&of), Arc::clone(&reader), filter.clone());
        async move {
            let rows = view(&api, &reader, filter, None).await.ok()?;
            Some(rows_json(&rows))
        }
    });
    Ok(sse::response(guard, frames))
}
