//! The list of schedules: what they start, when, for whom, and how they went last.

use maud::{Markup, html};

use super::occurrence::{
    LocalMoment, ScheduleRunListRow, ScheduleTriggerView, ScheduledStartView, moment, outcome,
    starts, trigger_as_written, trigger_words,
};
use crate::chrome::{Chrome, Section};
use crate::list_page::{ListPage, list_page, no_rows};
use crate::{links, status, time};

const HEADINGS: [&str; 6] = [
    "Status",
    "Schedule",
    "Takes place",
    "For",
    "Next",
    "Last run",
];

#[derive(Debug, Clone, Default)]
pub struct ScheduleListView {
    pub rows: Vec<ScheduleListRow>,
    pub selection: ScheduleSelection,
    /// The agents and states the filter offers.
    pub agents: Vec<String>,
    pub statuses: Vec<&'static str>,
    pub next_cursor: Option<String>,
    /// True on the newest page only.
    pub live: bool,
}

/// The selection of the list, as in the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleSelection {
    pub agent: Option<String>,
    pub status: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct ScheduleListRow {
    pub id: String,
    /// `None` for a schedule of a workflow.
    pub agent_id: Option<String>,
    pub starts: ScheduledStartView,
    pub status: String,
    pub trigger: ScheduleTriggerView,
    pub timezone: String,
    /// The user, the segment or the trigger, in words.
    pub target: String,
    pub campaign: Option<String>,
    pub next: Option<LocalMoment>,
    pub last_run: Option<ScheduleRunListRow>,
}

pub fn schedule_list_page(chrome: &Chrome, view: &ScheduleListView) -> String {
    let selection = &view.selection;
    let older = view.next_cursor.as_deref();
    let older = older.map(|cursor| links::schedules(selection, Some(cursor)));
    let list = ListPage {
        section: Section::Schedules,
        title: "Schedules",
        filter: filter_form(view),
        class: "schedules",
        headings: &HEADINGS,
        rows_id: "schedule-rows",
        rows: rows(view),
        live_url: view.live.then(|| links::schedules_live(selection)),
        older: older.map(|href| (href, "Older schedules")),
    };
    list_page(chrome, &list)
}

/// Only the table rows, for the live stream.
pub fn schedule_rows(view: &ScheduleListView) -> String {
    rows(view).into_string()
}

fn filter_form(view: &ScheduleListView) -> Markup {
    let selection = &view.selection;
    let is_filtered = *selection != ScheduleSelection::default();
    // A filter value from the URL stays selected even if it is not among the options.
    let foreign = selection.agent.iter();
    let foreign = foreign.filter(|agent| !view.agents.contains(agent));
    html! {
        form.filter method="get" action=(links::SCHEDULES) role="search" aria-label="Filter schedules" {
            label for="filter-agent" { "Agent" }
            select #filter-agent name="agent" {
                option value="" { "Any" }
                @for agent in view.agents.iter().chain(foreign) {
                    option value=(agent) selected[selection.agent.as_ref() == Some(agent)] { (agent) }
                }
            }
            label for="filter-status" { "Status" }
            select #filter-status name="status" {
                option value="" { "Any" }
                @for status in &view.statuses {
                    option value=(status) selected[selection.status.as_deref() == Some(status)] { (status) }
                }
            }
            button type="submit" { "Apply" }
            @if is_filtered { a href=(links::SCHEDULES) { "Clear" } }
        }
    }
}

fn rows(view: &ScheduleListView) -> Markup {
    let is_filtered = view.selection != ScheduleSelection::default();
    let text = match is_filtered {
        true => "No schedules match this filter.",
        false => {
            "No schedules yet. They are written in the file of an agent, made over the API, or triggers of workflows."
        }
    };
    html! {
        @for row in &view.rows { (row_of(row)) }
        @if view.rows.is_empty() {
            (no_rows(HEADINGS.len(), text))
        }
    }
}

fn row_of(row: &ScheduleListRow) -> Markup {
    html! {
        tr {
            td.c-status { (status::badge(&row.status)) }
            td.c-run {
                a.id href=(links::schedule(&row.id)) { (row.id) }
                span.sub {
                    @if let Some(agent) = &row.agent_id { (agent) " · " }
                    (row.starts.kind()) " " (starts(&row.starts))
                }
            }
            td.c-workflow {
                @match trigger_words(&row.trigger) {
                    Some(words) => { (words) span.sub { (trigger_as_written(&row.trigger)) " " (row.timezone) } }
                    None => { (trigger_as_written(&row.trigger)) span.sub { (row.timezone) } }
                }
            }
            td.c-target {
                (row.target)
                @if let Some(campaign) = &row.campaign { span.sub { "campaign " (campaign) } }
            }
            td.c-created {
                @match &row.next { Some(next) => { (moment(next)) span.sub { (time::countdown(&next.at)) } }, None => "–" }
            }
            td.c-duration {
                @match &row.last_run {
                    Some(run) => { (outcome(run)) span.sub { (time::ago(&run.started_at)) } }
                    None => "–",
                }
            }
        }
    }
}
