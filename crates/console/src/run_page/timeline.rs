//! The event timeline and the inspector that shows one event's payload.
//!
//! The markup of a row is defined twice: here and in `assets/console.js`, which appends rows as
//! events arrive. Both must agree on `data-seq`, `data-node`, the four cells and the `<template>`
//! that holds the hidden payload.

use maud::{Markup, html};

use super::RunPageView;
use crate::time;

#[derive(Debug, Clone, Default)]
pub struct EventRow {
    pub sequence: u64,
    pub at: String,
    pub kind: String,
    pub node_id: Option<String>,
    /// Pretty-printed.
    pub payload_json: String,
}

pub(super) fn panel(view: &RunPageView) -> Markup {
    html! {
        section.panel.timeline aria-labelledby="events-title" {
            div.panel-head {
                h2 #events-title { "Events" }
                span #event-count .count { (view.events.len()) }
                button #node-filter .chip type="button" hidden {}
            }
            p #trimmed .trimmed hidden[view.events_omitted == 0] {
                @if view.events_omitted > 0 {
                    (view.events_omitted) " earlier events are not shown."
                }
            }
            table.rows.events role="grid" aria-labelledby="events-title" {
                thead {
                    tr {
                        th scope="col" { "#" }
                        th scope="col" { "Time" }
                        th scope="col" { "Event" }
                        th scope="col" { "Node" }
                    }
                }
                tbody #events data-origin=(view.created_at) {
                    @for (i, event) in view.events.iter().enumerate() { (row(event, i == 0)) }
                }
            }
            p #no-events .empty hidden[!view.events.is_empty()] { "No events yet." }
        }
    }
}

/// Only one row at a time is a tab stop; the arrow keys move between rows. With hundreds of events,
/// a stop at each would trap a keyboard user in the table.
fn row(event: &EventRow, first: bool) -> Markup {
    html! {
        tr data-seq=(event.sequence) data-node=[event.node_id.as_deref()]
            tabindex=(if first { "0" } else { "-1" }) aria-selected="false" {
            td.c-seq { (event.sequence) }
            td.c-at { (time::offset(&event.at)) }
            td class={ "c-kind " (tone(&event.kind)) } { (event.kind) }
            td.c-node {
                (event.node_id.as_deref().unwrap_or_default())
                template { (event.payload_json) }
            }
        }
    }
}

/// Colours only important kinds. Kinds are open-ended, so this uses the last word of the name and
/// leaves the rest plain.
pub(crate) fn tone(kind: &str) -> &'static str {
    match kind.rsplit(['.', '-', '_']).next().unwrap_or_default() {
        "failed" | "error" | "errored" | "rejected" => "tone-bad",
        "completed" | "succeeded" | "approved" => "tone-good",
        "suspended" | "paused" | "requested" | "waiting" => "tone-held",
        _ => "tone-plain",
    }
}

pub(super) fn inspector() -> Markup {
    html! {
        section #inspector .panel.inspector aria-labelledby="inspector-title" {
            div.panel-head {
                h2 #inspector-title { "Payload" }
                span #inspector-meta .count {}
                button #inspector-copy .small type="button" hidden { "Copy" }
                button #inspector-close .small type="button" hidden { "Close" }
            }
            p #inspector-hint .empty { "Choose an event to see its payload." }
            pre #inspector-payload .json tabindex="0" aria-label="Event payload as JSON" hidden {}
        }
    }
}
