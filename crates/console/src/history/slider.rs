//! The slider and the step links. It is a form that works without the script.

use maud::{Markup, html};

use super::HistoryPageView;
use crate::links;

pub(super) fn panel(view: &HistoryPageView) -> Markup {
    let run = &view.state.run_id;
    html! {
        section.panel.pad.slider aria-label="Moment" {
            form method="get" action=(links::history(run)) {
                label for="moment-seq" { "Event" }
                input #moment-seq type="range" name="seq" min="0" max=(view.last) step="1" value=(view.seq)
                    autocomplete="off" data-at=(links::history_at_prefix(run)) aria-describedby="moment-hint";
                output #moment-number for="moment-seq" { (view.seq) " of " (view.last) }
                button #moment-show type="submit" { "Show" }
            }
            (neighbours(view))
            p.hint #moment-hint hidden { "The arrow keys go from event to event." }
        }
    }
}

/// The events before and after, as links.
pub(super) fn neighbours(view: &HistoryPageView) -> Markup {
    let before = view.seq.checked_sub(1);
    let after = Some(view.seq + 1).filter(|seq| *seq <= view.last);
    html! {
        nav.steps data-part="neighbours" aria-label="Moments nearby" {
            (step(view, "first", "First", before.map(|_| 0)))
            (step(view, "previous", "Previous", before))
            (step(view, "next", "Next", after))
            (step(view, "last", "Last", after.map(|_| view.last)))
        }
    }
}

fn step(view: &HistoryPageView, name: &str, label: &str, seq: Option<u64>) -> Markup {
    let id = format!("moment-{name}");
    html! {
        @if let Some(seq) = seq {
            a.button id=(id) href=(links::history_at(&view.state.run_id, seq)) data-moment=(seq) {
                (label) span.visually-hidden { " event, " (seq) }
            }
        } @else {
            span.button.off id=(id) aria-disabled="true" { (label) }
        }
    }
}
