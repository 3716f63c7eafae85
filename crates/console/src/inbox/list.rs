//! The list of open questions: its filter and its rows.

use maud::{Markup, html};

use super::{InboxSelection, InboxView};
use crate::{links, time};

#[derive(Debug, Clone, Default)]
pub struct InboxRow {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub workflow_id: String,
    pub node_id: String,
    pub created_at: String,
    pub deadline: Option<String>,
    /// Its time is up: nobody can answer it any more.
    pub expired: bool,
    /// 0 to 9, higher first; 0 is ordinary and not shown.
    pub priority: i32,
    pub groups: Vec<String>,
    /// Votes given and votes needed, when more than one is.
    pub votes: Option<(usize, u64)>,
}

const SORTS: [(&str, &str); 3] = [
    ("deadline", "Deadline first"),
    ("priority", "Priority first"),
    ("newest", "Newest first"),
];

pub(super) fn filter_form(view: &InboxView) -> Markup {
    let selection = &view.selection;
    let filtered = selection.kind.is_some() || selection.group.is_some();
    // A filter value from the URL stays selected even if it is not among the options.
    let foreign_kind = selection
        .kind
        .as_ref()
        .filter(|kind| !view.kinds.contains(kind));
    let foreign_group = selection
        .group
        .as_ref()
        .filter(|group| !view.groups.contains(group));
    html! {
        form.filter method="get" action=(links::INBOX) role="search" aria-label="Filter questions" {
            label for="filter-kind" { "Kind" }
            select #filter-kind name="kind" {
                option value="" { "Any" }
                @for kind in view.kinds.iter().chain(foreign_kind) {
                    option value=(kind) selected[selection.kind.as_ref() == Some(kind)] { (kind) }
                }
            }
            label for="filter-group" { "Group" }
            select #filter-group name="group" {
                option value="" { "Any" }
                @for group in view.groups.iter().chain(foreign_group) {
                    option value=(group) selected[selection.group.as_ref() == Some(group)] { (group) }
                }
            }
            label for="filter-sort" { "Order" }
            select #filter-sort name="sort" {
                @for (value, label) in SORTS {
                    option value=(value) selected[selection.sort.as_deref() == Some(value)] { (label) }
                }
            }
            button type="submit" { "Apply" }
            @if filtered { a href=(links::INBOX) { "Clear" } }
        }
    }
}

pub(super) fn rows(view: &InboxView) -> Markup {
    let chosen = view.chosen.as_deref();
    html! {
        @for row in &view.rows { (row_of(row, &view.selection, chosen == Some(row.id.as_str()))) }
        @if view.rows.is_empty() {
            li.empty {
                @if view.selection.kind.is_none() && view.selection.group.is_none() {
                    "No open questions."
                } @else {
                    "No open questions match this filter."
                }
            }
        }
    }
}

fn row_of(row: &InboxRow, selection: &InboxSelection, chosen: bool) -> Markup {
    html! {
        li data-id=(row.id) {
            a.question href=(links::question(&row.id, selection)) aria-current=[chosen.then_some("true")] {
                span.question-head {
                    span class={ "kind kind-" (kind_class(&row.kind)) } { (row.kind) }
                    @if row.priority > 0 { span.priority { "Priority " (row.priority) } }
                    @if let Some((given, needed)) = row.votes {
                        span.count { (given) " of " (needed) " votes" }
                    }
                    (time::ago(&row.created_at))
                }
                span.question-title { (row.title) }
                span.question-foot {
                    span { (row.workflow_id) " · " (row.node_id) }
                    @for group in &row.groups { span.group-name { (group) } }
                    @if row.expired {
                        span.hint { "Expired" }
                    } @else if let Some(deadline) = &row.deadline {
                        (time::countdown(deadline))
                    }
                }
            }
        }
    }
}

/// A colour for known kinds; vendor kinds share the neutral one.
pub(crate) fn kind_class(kind: &str) -> &'static str {
    match kind {
        "approval" => "approval",
        "clarification" => "clarification",
        "external-event" => "external",
        "low-confidence" => "confidence",
        _ => "other",
    }
}
