//! Times on the page.
//!
//! The server renders the exact time; the script makes it relative to the reader's clock. Without
//! the script the exact text stays, so each function renders a usable fallback. Nothing is parsed:
//! a malformed time is shown unchanged.

use maud::{Markup, html};

/// "3 minutes ago", updated while the page is open.
pub(crate) fn ago(at: &str) -> Markup {
    html! { time datetime=(at) data-as="ago" title=(at) { (at) } }
}

/// The exact time, for times in the future.
pub(crate) fn at(at: &str) -> Markup {
    html! { time datetime=(at) title=(at) { (at) } }
}

/// "2 hours left", updated while the page is open.
pub(crate) fn countdown(at: &str) -> Markup {
    html! { time.countdown datetime=(at) data-as="countdown" title=(at) { "due " (at) } }
}

/// Offset from the start of the run ("+1.24s"), for the timeline, where order and gaps matter more
/// than the wall clock.
pub(crate) fn offset(at: &str) -> Markup {
    html! { time datetime=(at) data-as="offset" title=(at) { (clock(at)) } }
}

/// The duration of a run, so far when `to` is absent.
pub(crate) fn duration(from: &str, to: Option<&str>) -> Markup {
    html! { time datetime=(from) data-as="duration" data-to=[to] { "–" } }
}

/// The `HH:MM:SS` part of an RFC 3339 time, or the whole text when it is not one.
fn clock(at: &str) -> &str {
    let Some((_, rest)) = at.split_once('T') else {
        return at;
    };
    let end = rest.find(['Z', '+', '-', '.']).unwrap_or(rest.len());
    &rest[..end]
}
