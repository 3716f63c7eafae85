//! The list of conversations: a filter, a live table, links to older pages.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section};
use crate::list_page::{ListPage, list_page, no_rows};
use crate::{links, time};

const HEADINGS: [&str; 5] = ["State", "User", "Agent", "Waiting", "Last active"];

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
    let older = view.next_cursor.as_deref();
    let older = older.map(|cursor| links::conversations(agent, view.with_ended, Some(cursor)));
    let list = ListPage {
        section: Section::Conversations,
        title: "Conversations",
        filter: filter_form(view),
        class: "conversations",
        headings: &HEADINGS,
        rows_id: "conversation-rows",
        rows: rows(view),
        live_url: view
            .live
            .then(|| links::conversations_live(agent, view.with_ended)),
        older: older.map(|href| (href, "Older conversations")),
    };
    list_page(chrome, &list)
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
    let text = match view.agent {
        Some(_) => "No conversations match this filter.",
        None => "No conversations yet. They appear here when somebody writes to an agent.",
    };
    html! {
        @for row in &view.rows { (conversation_row(row)) }
        @if view.rows.is_empty() {
            (no_rows(HEADINGS.len(), text))
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
