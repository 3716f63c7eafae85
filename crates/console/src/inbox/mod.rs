//! The inbox: the list of open questions, and the chosen one in full.
//!
//! The URL holds the whole state: filter, order, page and chosen question. So a reload loses
//! nothing and the page works without the script. With the script, the list and the card follow the
//! log: a question is removed when the event that closed it arrives.

mod card;
mod kinds;
mod list;

#[cfg(test)]
mod tests;

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page_with};
use crate::links;
use crate::run_list::live_indicator;

pub(crate) use card::outcome_label;
pub use card::{CardConversation, CardView, Decided, FollowUpQuestion, NextStep, VoteView};
pub use kinds::read_answer;
pub(crate) use kinds::vote_label;
pub use list::InboxRow;
pub(crate) use list::kind_class;

#[derive(Debug, Clone, Default)]
pub struct InboxView {
    pub rows: Vec<InboxRow>,
    pub selection: InboxSelection,
    /// The kinds the filter offers.
    pub kinds: Vec<String>,
    /// The groups the filter offers.
    pub groups: Vec<String>,
    pub next_cursor: Option<String>,
    /// The question shown beside the list.
    pub chosen: Option<String>,
    pub card: Option<CardView>,
}

/// The selection of the list, as in the URL; an empty value is no filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxSelection {
    pub kind: Option<String>,
    pub group: Option<String>,
    /// `deadline`, `priority` or `newest`.
    pub sort: Option<String>,
    pub cursor: Option<String>,
}

pub fn inbox_page(chrome: &Chrome, view: &InboxView) -> String {
    let item = view.chosen.as_deref();
    let live = links::inbox_live(&view.selection, item);
    let body = html! {
        div.inbox .reading[item.is_some()] data-live-inbox=(live) {
            div.inbox-list {
                div.title-line { h1 { "Inbox" } (live_indicator()) }
                (list::filter_form(view))
                div.panel {
                    ol #inbox-rows .questions aria-label="Open questions" {
                        (list::rows(view))
                    }
                }
                @if let Some(cursor) = &view.next_cursor {
                    p.pager {
                        a.button href=(links::inbox_after(&view.selection, cursor)) { "More questions" }
                    }
                }
                p.hint.keys-hint {
                    button #keys-open .small type="button" hidden { "Keyboard " kbd { "?" } }
                }
            }
            div.inbox-card {
                @match &view.card {
                    Some(card) => (card::render(card)),
                    None => (nothing_chosen(view)),
                }
            }
        }
        (keys_help())
    };
    let title = view.card.as_ref().map_or("Inbox", |card| &card.title);
    page_with(
        chrome,
        Section::Inbox,
        title,
        &body,
        &["inbox.css", "desk.css"],
        &["inbox.js"],
    )
}

/// The URL of a question, percent-encoded.
pub fn question_link(id: &str, selection: &InboxSelection) -> String {
    links::question(id, selection)
}

/// Only the rows, for the live stream.
pub fn inbox_rows(view: &InboxView) -> String {
    list::rows(view).into_string()
}

/// Only the card, for the live stream.
pub fn inbox_card(card: &CardView) -> String {
    card::render(card).into_string()
}

fn nothing_chosen(view: &InboxView) -> Markup {
    html! {
        section #card .panel.pad aria-label="Question" {
            @if view.rows.is_empty() {
                p.empty { "There are no open questions for you. New questions appear here." }
            } @else {
                p.empty { "Choose a question to see its content, its history and the next steps." }
            }
        }
    }
}

const KEYS: [(&str, &str); 8] = [
    ("j k", "next, previous question"),
    ("Enter o", "open it"),
    (
        "a",
        "approve (with your changes, if you made any), or send the answer",
    ),
    ("r", "reject"),
    ("e", "edit what is proposed"),
    ("c", "write a comment"),
    ("Esc", "leave a field"),
    ("?", "show or hide this"),
];

fn keys_help() -> Markup {
    html! {
        dialog #keys-help .panel aria-labelledby="keys-title" {
            form.panel-head method="dialog" {
                h2 #keys-title { "Keyboard" }
                button.small type="submit" { "Close" }
            }
            dl.keys {
                @for (keys, what) in KEYS {
                    div {
                        dt { @for key in keys.split(' ') { kbd { (key) } " " } }
                        dd { (what) }
                    }
                }
            }
        }
    }
}
