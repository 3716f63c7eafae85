//! The list of conversations: a filter, a live table, links to older pages.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page_with};
use crate::run_list::live_indicator;
use crate::{links, time};

#[derive(Debug, Clone, Default)]
pub struct ConversationListView {
    pub rows: Vec<ConversationRow>,
    /// The agents the filter offers.
    pub agents: Vec<String>,
    /// The chosen agent; all if absent.
    pub agent: Option<String>,
    /// Ended conversations are listed too.
    pub with_ended: bool,
    pub next_cursor: Option<String>,
    /// True on the newest page only.
    pub live: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ConversationRow {
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
    /// Whose turn it is, in words.
    pub state: String,
    /// The colour of the state: `held`, `active`, `good` or `quiet`.
    pub tone: &'static str,
    pub flow_id: Option<String>,
    /// Since when somebody is waited for.
    pub waiting_since: Option<String>,
    pub last_active_at: String,
    pub messages: u64,
}

pub fn conversation_list_page(chrome: &Chrome, view: &ConversationListView) -> String {
    let agent = view.agent.as_deref();
    let live_url = view
        .live
        .then(|| links::conversations_live(agent, view.with_ended));
    let body = html! {
        div.title-line {
            h1 { "Conversations" }
            @if view.live { (live_indicator()) }
        }
        (filter_form(view))
        div.panel {
            table.rows.conversations {
                thead {
                    tr {
                        th scope="col" { "State" }
                        th scope="col" { "User" }
                        th scope="col" { "Agent" }
                        th scope="col" { "Waiting" }
                        th scope="col" { "Last active" }
                    }
                }
                tbody #conversation-rows data-live-rows=[live_url] { (rows(view)) }
            }
        }
        @if let Some(cursor) = &view.next_cursor {
            p.pager {
                a.button href=(links::conversations(agent, view.with_ended, Some(cursor))) { "Older conversations" }
            }
        }
    };
    page_with(
        chrome,
        Section::Conversations,
        "Conversations",
        &body,
        &["desk.css"],
        &[],
    )
}

/// Only the table rows, for the live stream.
pub fn conversation_rows(view: &ConversationListView) -> String {
    rows(view).into_string()
}

fn filter_form(view: &ConversationListView) -> Markup {
    // A filter value from the URL stays selected even if it is not among the options.
    let foreign = view
        .agent
        .as_ref()
        .filter(|agent| !view.agents.contains(agent));
    html! {
        form.filter method="get" action=(links::CONVERSATIONS) role="search" aria-label="Filter conversations" {
            label for="filter-agent" { "Agent" }
            select #filter-agent name="agent" {
                option value="" { "Any" }
                @for agent in view.agents.iter().chain(foreign) {
                    option value=(agent) selected[view.agent.as_ref() == Some(agent)] { (agent) }
                }
            }
            label for="filter-ended" { "Show" }
            select #filter-ended name="ended" {
                option value="" selected[!view.with_ended] { "Active" }
                option value="true" selected[view.with_ended] { "All" }
            }
            button type="submit" { "Apply" }
        }
    }
}

fn rows(view: &ConversationListView) -> Markup {
    html! {
        @for row in &view.rows { (conversation_row(row)) }
        @if view.rows.is_empty() {
            tr.empty {
                td colspan="5" {
                    @if view.agent.is_some() { "No conversations match this filter." }
                    @else { "No conversations yet. They appear here when somebody writes to an agent." }
                }
            }
        }
    }
}

fn conversation_row(row: &ConversationRow) -> Markup {
    html! {
        tr {
            td.c-status { (state_badge(&row.state, row.tone)) }
            td.c-run {
                a.id href=(links::conversation(&row.session_id)) { (row.user) }
                span.sub { (row.messages) @if row.messages == 1 { " message" } @else { " messages" } }
            }
            td.c-workflow {
                (row.agent_id)
                @if let Some(flow) = &row.flow_id { span.sub { "flow " (flow) } }
            }
            td.c-duration {
                @if let Some(since) = &row.waiting_since { (time::duration(since, None)) } @else { "–" }
            }
            td.c-created { (time::ago(&row.last_active_at)) }
        }
    }
}

pub(super) fn state_badge(state: &str, tone: &str) -> Markup {
    html! { span class={ "badge tone-" (tone) } { (state) } }
}
