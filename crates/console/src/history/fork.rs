//! The form that forks the run at the shown event.

use maud::{Markup, html};

use super::HistoryPageView;
use crate::links;

/// A fork that the reader may create.
#[derive(Debug, Clone, Default)]
pub struct ForkOffer {
    /// The first event that is not kept.
    pub from_seq: u64,
    pub csrf: String,
}

const MODES: [(&str, &str, &str); 2] = [
    (
        "replay",
        "Replay",
        "Repeats what was recorded. No calls are made, no questions are opened, nothing is written to memory.",
    ),
    (
        "branch",
        "Branch",
        "Executes again: calls are made, questions are opened, memory is written.",
    ),
];

pub(super) fn part(view: &HistoryPageView) -> Markup {
    html! {
        div data-part="fork" {
            @if let Some(offer) = &view.fork {
                form.stack.pad #fork method="post" action=(links::run_action(&view.state.run_id, "fork")) {
                    input type="hidden" name="csrf" value=(offer.csrf);
                    input type="hidden" name="fromSeq" value=(offer.from_seq);
                    p { (retained_events(view, offer)) }
                    fieldset.modes {
                        legend.visually-hidden { "How the fork continues" }
                        @for (mode, label, note) in MODES { (choice(mode, label, note)) }
                    }
                    div {
                        button.primary type="submit" {
                            "Fork" span.visually-hidden { " from event " (offer.from_seq) }
                        }
                    }
                }
            } @else {
                p.empty { "Your key may not create runs." }
            }
        }
    }
}

/// The text about the kept events. At the end of the log, a fork can only repeat the last event.
fn retained_events(view: &HistoryPageView, offer: &ForkOffer) -> Markup {
    let again = offer.from_seq <= view.seq;
    html! {
        @match offer.from_seq {
            0 => "The new run keeps no event; it starts from the beginning.",
            1 => "The new run keeps event 0.",
            n => { "The new run keeps events 0 to " (n - 1) "." }
        }
        @if again { " Event " (view.seq) " is the newest, and happens again." }
        " It reads memory as it was then; this run stays as it is."
    }
}

fn choice(mode: &str, label: &str, note: &str) -> Markup {
    let (id, hint) = (format!("fork-{mode}"), format!("fork-{mode}-hint"));
    html! {
        div.mode {
            input id=(id) type="radio" name="mode" value=(mode) checked[mode == "replay"] required aria-describedby=(hint);
            label for=(id) { (label) }
            p.hint id=(hint) { (note) }
        }
    }
}
