//! The source of a fork, and links from the run page to its history.

use maud::{Markup, html};

use super::RunPageView;
use crate::links;

/// The source run of a fork, and its mode.
#[derive(Debug, Clone, Default)]
pub struct ForkOrigin {
    pub run_id: String,
    /// Events below this sequence are shared with the source.
    pub from_seq: u64,
    /// `replay` or `branch`.
    pub mode: String,
}

pub(super) fn links_out(view: &RunPageView) -> Markup {
    html! {
        @if let Some(origin) = &view.forked_from {
            a.button #compare-source href=(links::compare(&origin.run_id, &view.run_id)) {
                "Compare with its source"
            }
        }
        a.button #history href=(links::history(&view.run_id)) {
            "History" span.visually-hidden { " of this run" }
        }
    }
}

pub(super) fn fact(origin: &ForkOrigin) -> Markup {
    html! {
        div {
            dt { "Forked from" }
            dd {
                a.id #forked-from href=(links::run(&origin.run_id)) { (origin.run_id) }
                " at " a href=(links::history_at(&origin.run_id, origin.from_seq)) { "event " (origin.from_seq) }
                " as a " (origin.mode)
            }
        }
    }
}
