//! The run list: a filter, a live table, links to older pages.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page};
use crate::{links, status, time};

#[derive(Debug, Clone, Default)]
pub struct RunListView {
    pub rows: Vec<RunListRow>,
    pub filter: RunListFilter,
    /// The statuses the filter offers.
    pub statuses: Vec<&'static str>,
    /// The workflow ids the filter offers.
    pub workflows: Vec<String>,
    pub next_cursor: Option<String>,
    /// True on the newest page only: the stream always sends that page, so an older page must not
    /// subscribe to it.
    pub live: bool,
}

/// Sent by the filter form as `?status=…&workflow=…`; an empty value is no filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunListFilter {
    pub status: Option<String>,
    pub workflow_id: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct RunListRow {
    pub run_id: String,
    pub workflow_id: String,
    pub status: String,
    /// RFC 3339, as all times given to the console.
    pub created_at: String,
    pub ended_at: Option<String>,
    pub parent_run_id: Option<String>,
    pub error_code: Option<String>,
}

pub fn run_list_page(chrome: &Chrome, view: &RunListView) -> String {
    let live_url = view.live.then(|| links::runs_live(&view.filter));
    let body = html! {
        div.title-line {
            h1 { "Runs" }
            @if view.live { (live_indicator()) }
        }
        (filter_form(view))
        div.panel {
            table.rows {
                thead {
                    tr {
                        th scope="col" { "Status" }
                        th scope="col" { "Run" }
                        th scope="col" { "Workflow" }
                        th scope="col" { "Created" }
                        th scope="col" { "Duration" }
                    }
                }
                tbody #run-rows data-live-rows=[live_url] { (rows(view)) }
            }
        }
        @if let Some(cursor) = &view.next_cursor {
            p.pager {
                a.button href=(links::runs_filtered(&view.filter, Some(cursor))) { "Older runs" }
            }
        }
    };
    page(chrome, Section::Runs, "Runs", &body)
}

/// Only the table rows, for the live stream.
pub fn run_list_rows(view: &RunListView) -> String {
    rows(view).into_string()
}

/// Starts hidden: without the script the page is not live.
pub(crate) fn live_indicator() -> Markup {
    html! { span #live .live hidden { span.dot {} span.text {} } }
}

fn filter_form(view: &RunListView) -> Markup {
    let filter = &view.filter;
    let filtered = *filter != RunListFilter::default();
    // A filter value from the URL may not be among the options; it stays selected so that the form
    // matches the table.
    let foreign_status = filter
        .status
        .as_deref()
        .filter(|s| !view.statuses.contains(s));
    let foreign_workflow = filter
        .workflow_id
        .as_ref()
        .filter(|w| !view.workflows.contains(w));
    html! {
        form.filter method="get" action=(links::RUNS) role="search" aria-label="Filter runs" {
            label for="filter-status" { "Status" }
            select #filter-status name="status" {
                option value="" { "Any" }
                @for s in view.statuses.iter().copied().chain(foreign_status) {
                    option value=(s) selected[filter.status.as_deref() == Some(s)] { (s) }
                }
            }
            label for="filter-workflow" { "Workflow" }
            select #filter-workflow name="workflow" {
                option value="" { "Any" }
                @for w in view.workflows.iter().chain(foreign_workflow) {
                    option value=(w) selected[filter.workflow_id.as_ref() == Some(w)] { (w) }
                }
            }
            button type="submit" { "Apply" }
            @if filtered { a href=(links::RUNS) { "Clear" } }
        }
    }
}

fn rows(view: &RunListView) -> Markup {
    html! {
        @for row in &view.rows { (run_row(row)) }
        @if view.rows.is_empty() {
            tr.empty {
                td colspan="5" {
                    @if view.filter == RunListFilter::default() {
                        "No runs yet. Start one from " a href=(links::WORKFLOWS) { "Workflows" } "."
                    } @else {
                        "No runs match this filter."
                    }
                }
            }
        }
    }
}

fn run_row(row: &RunListRow) -> Markup {
    html! {
        tr {
            td.c-status {
                (status::badge(&row.status))
                @if let Some(code) = &row.error_code { span.code { (code) } }
            }
            td.c-run {
                a.id href=(links::run(&row.run_id)) { (row.run_id) }
                @if let Some(parent) = &row.parent_run_id {
                    span.sub { "child of " a.id href=(links::run(parent)) { (parent) } }
                }
            }
            td.c-workflow { a href=(links::workflow(&row.workflow_id)) { (row.workflow_id) } }
            td.c-created { (time::ago(&row.created_at)) }
            td.c-duration { (time::duration(&row.created_at, row.ended_at.as_deref())) }
        }
    }
}
