//! A status badge of a run, a webhook, a delivery or a schedule.
//!
//! Statuses are protocol words and are shown unchanged; only the colour is decided here. An unknown
//! word gets the neutral colour, because a newer host may send statuses that this console does not
//! know.

use maud::{Markup, html};

pub(crate) fn badge(status: &str) -> Markup {
    html! { span class={ "badge tone-" (tone(status)) } { (status) } }
}

fn tone(status: &str) -> &'static str {
    match status {
        "running" => "active",
        "completed" | "delivered" | "active" | "success" => "good",
        "failed" | "dead-lettered" => "bad",
        "paused" | "suspended" | "canceled_hitl" => "held",
        s if s.starts_with("waiting") => "held",
        _ => "quiet",
    }
}
