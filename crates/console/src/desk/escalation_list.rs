//! The list of open escalations: whose work they are, by queue and assignee.

use maud::{Markup, html};

use super::escalation::{DeskEscalation, claim_button, holder, time_left};
use crate::chrome::{Chrome, Section};
use crate::links;
use crate::list_page::{ListPage, list_page, no_rows};
use crate::time;

const HEADINGS: [&str; 5] = ["Request", "Who has it", "Agent", "Left", "Asked"];

#[derive(Debug, Clone, Default)]
pub struct EscalationListView {
    pub rows: Vec<EscalationListRow>,
    pub selection: EscalationSelection,
    pub next_cursor: Option<String>,
    /// True on the newest page only.
    pub live: bool,
    pub csrf: String,
}

/// The selection of the list, as in the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EscalationSelection {
    pub queue: Option<String>,
    pub assignee: Option<String>,
    /// Only those that nobody has.
    pub unclaimed: bool,
}

#[derive(Debug, Clone, Default)]
pub struct EscalationListRow {
    pub escalation: DeskEscalation,
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
}

pub fn escalation_list_page(chrome: &Chrome, view: &EscalationListView) -> String {
    let selection = &view.selection;
    let older = view.next_cursor.as_deref();
    let older = older.map(|cursor| links::escalations(selection, Some(cursor)));
    let list = ListPage {
        section: Section::Escalations,
        title: "Escalations",
        filter: filter_form(selection),
        class: "escalations",
        headings: &HEADINGS,
        rows_id: "escalation-rows",
        rows: rows(view),
        live_url: view.live.then(|| links::escalations_live(selection)),
        older: older.map(|href| (href, "Older escalations")),
    };
    list_page(chrome, &list)
}

/// Only the table rows, for the live stream.
pub fn escalation_rows(view: &EscalationListView) -> String {
    rows(view).into_string()
}

/// The URL of a list, percent-encoded.
pub fn escalations_link(selection: &EscalationSelection) -> String {
    links::escalations(selection, None)
}

fn filter_form(selection: &EscalationSelection) -> Markup {
    let is_filtered = *selection != EscalationSelection::default();
    html! {
        form.filter method="get" action=(links::ESCALATIONS) role="search" aria-label="Filter escalations" {
            label for="filter-queue" { "Queue" }
            input #filter-queue name="queue" value=[&selection.queue] placeholder="Any" autocomplete="off";
            label for="filter-assignee" { "Assignee" }
            input #filter-assignee name="assignee" value=[&selection.assignee] placeholder="Anybody" autocomplete="off";
            label for="filter-unclaimed" { "Show" }
            select #filter-unclaimed name="unclaimed" {
                option value="" selected[!selection.unclaimed] { "All" }
                option value="true" selected[selection.unclaimed] { "Nobody has them" }
            }
            button type="submit" { "Apply" }
            @if is_filtered { a href=(links::ESCALATIONS) { "Clear" } }
        }
    }
}

fn rows(view: &EscalationListView) -> Markup {
    let is_filtered = view.selection != EscalationSelection::default();
    let text = match is_filtered {
        true => "No open escalations match this filter.",
        false => "No open escalations. They appear here when an agent asks for a person.",
    };
    html! {
        @for row in &view.rows { (row_of(row, &view.csrf)) }
        @if view.rows.is_empty() {
            (no_rows(HEADINGS.len(), text))
        }
    }
}

fn row_of(row: &EscalationListRow, csrf: &str) -> Markup {
    let escalation = &row.escalation;
    html! {
        tr {
            td.c-run {
                a href=(links::conversation(&row.session_id)) { (escalation.reason) }
                span.sub {
                    (row.user)
                    @if let Some(priority) = &escalation.priority { " · " span.priority { (priority) } }
                }
            }
            td.c-status.desk-holder { (holder(escalation)) " " (claim_button(escalation, csrf)) }
            td.c-workflow {
                (row.agent_id)
                @if let Some(queue) = &escalation.queue { span.sub { "queue " (queue) } }
            }
            td.c-duration { (time_left(escalation)) }
            td.c-created { (time::ago(&escalation.created_at)) }
        }
    }
}
