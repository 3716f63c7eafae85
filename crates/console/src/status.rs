//! A status as a badge: of a run, a webhook or a delivery.
//!
//! Statuses arrive as protocol words and are shown unchanged; only the colour is
//! decided here. An unknown word gets the neutral tone, never a refusal: a newer
//! host may say something this console has not learned.

use maud::{Markup, html};

pub(crate) fn badge(status: &str) -> Markup {
    html! { span class={ "badge tone-" (tone(status)) } { (status) } }
}

fn tone(status: &str) -> &'static str {
    match status {
        "running" => "active",
        "completed" | "delivered" | "active" => "good",
        "failed" | "dead-lettered" => "bad",
        "paused" | "suspended" => "held",
        s if s.starts_with("waiting") => "held",
        _ => "quiet",
    }
}
