//! One occurrence of a campaign: what became of it for each recipient.

use maud::{Markup, html};

use super::occurrence::{
    ScheduleRunListRow, ScheduledStartView, moment, outcome, recipients, starts,
};
use crate::chrome::{Chrome, Section, page_with};
use crate::{links, status, time};

#[derive(Debug, Clone, Default)]
pub struct ScheduleRunPageView {
    pub schedule_id: String,
    pub starts: ScheduledStartView,
    /// The user or the segment, in words.
    pub target: String,
    pub run: ScheduleRunListRow,
    pub recipients: Vec<RecipientListRow>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct RecipientListRow {
    pub user: String,
    /// `None` while their turn has not ended.
    pub outcome: Option<String>,
    pub reason: Option<String>,
    pub session_id: Option<String>,
}

pub fn schedule_run_page(chrome: &Chrome, view: &ScheduleRunPageView) -> String {
    let run = &view.run;
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::SCHEDULES) { "Schedules" } }
                    li { a.id href=(links::schedule(&view.schedule_id)) { (view.schedule_id) } }
                }
            }
        }
        header.run-head {
            div.title-line {
                h1 { span.visually-hidden { "Run of " } (moment(&run.scheduled_for)) }
                (outcome(run))
            }
            dl.facts {
                div { dt { "For" } dd { (view.target) } }
                div { dt { "Recipients" } dd { (recipients(run)) } }
                @match &view.starts {
                    ScheduledStartView::Flow(_) => div { dt { "Flow" } dd { (starts(&view.starts)) } },
                    ScheduledStartView::Workflow(_) => {
                        div { dt { "Workflow" } dd { (starts(&view.starts)) } }
                        @if let Some(id) = &run.workflow_run_id {
                            div { dt { "Run" } dd { a.id href=(links::run(id)) { (id) } } }
                        }
                    }
                }
                @if let Some(reason) = &run.reason { div { dt { "Reason" } dd { (reason) } } }
                div { dt { "Started" } dd { (time::ago(&run.started_at)) } }
                @if let Some(at) = &run.finished_at {
                    div { dt { "Took" } dd { (time::duration(&run.started_at, Some(at))) } }
                }
                @if run.attempt > 1 { div { dt { "Attempt" } dd { (run.attempt) } } }
            }
        }
        section.panel aria-labelledby="recipients-title" {
            div.panel-head { h2 #recipients-title { "Recipients" } }
            table.rows {
                thead {
                    tr {
                        th scope="col" { "Outcome" }
                        th scope="col" { "User" }
                        th scope="col" { "Reason" }
                    }
                }
                tbody {
                    @for row in &view.recipients { (recipient(row)) }
                    @if view.recipients.is_empty() {
                        tr.empty { td colspan="3" { "There are no recipients." } }
                    }
                }
            }
        }
        @if let Some(cursor) = &view.next_cursor {
            p.pager {
                a.button href=(links::schedule_run_page(&run.id, cursor)) { "More recipients" }
            }
        }
    };
    page_with(
        chrome,
        Section::Schedules,
        "Run of a schedule",
        &body,
        &["desk.css"],
        &[],
    )
}

fn recipient(row: &RecipientListRow) -> Markup {
    html! {
        tr {
            td.c-status { (status::badge(row.outcome.as_deref().unwrap_or("waiting"))) }
            td.c-run {
                @match &row.session_id {
                    Some(session) => a href=(links::conversation(session)) { (row.user) },
                    None => (row.user),
                }
            }
            td.c-workflow { (row.reason.as_deref().unwrap_or("–")) }
        }
    }
}
