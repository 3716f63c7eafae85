//! Comparison of two runs: their status, the first difference, and all differences.
//!
//! The wire crate computes the comparison; this page only shows it.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page_with};
use crate::run_page::timeline::tone;
use crate::run_page::{EventRow, ForkOrigin};
use crate::{links, status, time};

#[derive(Debug, Clone, Default)]
pub struct ComparePageView {
    pub a: ComparedRun,
    pub b: ComparedRun,
    pub diverged_at: Option<u64>,
    pub events: Vec<EventDifference>,
    /// More events differ than the page shows.
    pub more_events: bool,
    /// One of the two runs has not ended: the comparison may change.
    pub is_unfinished: bool,
    pub state: Vec<StateDifference>,
}

#[derive(Debug, Clone, Default)]
pub struct ComparedRun {
    pub run_id: String,
    pub workflow_id: String,
    pub status: String,
    pub forked_from: Option<ForkOrigin>,
}

#[derive(Debug, Clone, Default)]
pub struct EventDifference {
    pub seq: u64,
    /// `added` (only in b), `removed` (only in a) or `changed`.
    pub op: String,
    pub a: Option<EventRow>,
    pub b: Option<EventRow>,
}

#[derive(Debug, Clone, Default)]
pub struct StateDifference {
    /// `status`, or the kind of value: `variables`, `channels`.
    pub part: String,
    /// The name of the value.
    pub name: Option<String>,
    /// Pretty-printed; absent on the side without the value.
    pub a: Option<String>,
    pub b: Option<String>,
}

pub fn compare_page(chrome: &Chrome, view: &ComparePageView) -> String {
    let same = view.events.is_empty() && view.state.is_empty();
    let body = html! {
        nav aria-label="Breadcrumb" {
            ol.crumbs {
                li { a href=(links::RUNS) { "Runs" } }
                li { a.id href=(links::run(&view.a.run_id)) { (view.a.run_id) } }
            }
        }
        div.title-line {
            h1 { "Two runs side by side" }
            div.actions {
                a.button href=(links::compare(&view.b.run_id, &view.a.run_id)) { "Swap sides" }
            }
        }
        div.sides {
            (side("A", &view.a))
            (side("B", &view.b))
        }
        p #verdict .verdict {
            @match view.diverged_at {
                Some(seq) => { "The runs differ from event " strong { (seq) } " on." }
                None if same => "The runs do not differ.",
                None => "The events are the same; the states differ.",
            }
            @if view.is_unfinished { " At least one of them has not ended." }
        }
        section.panel aria-labelledby="state-title" {
            div.panel-head { h2 #state-title { "State" } span.count { (view.state.len()) } }
            @if view.state.is_empty() { p.empty { "Status, variables and channels are the same." } }
            @for difference in &view.state { (state(difference)) }
        }
        section.panel aria-labelledby="events-title" {
            div.panel-head { h2 #events-title { "Events" } span.count { (view.events.len()) } }
            @if view.events.is_empty() { p.empty { "No event differs." } }
            @for difference in &view.events { (event(view, difference)) }
            @if view.more_events {
                p.trimmed { "Only the first " (view.events.len()) " differing events are shown." }
            }
        }
    };
    let title = format!("{} and {}", view.a.run_id, view.b.run_id);
    page_with(chrome, Section::Runs, &title, &body, &["history.css"], &[])
}

fn side(letter: &str, run: &ComparedRun) -> Markup {
    html! {
        section.panel.pad aria-label={ "Run " (letter) } {
            p.side-name { strong { (letter) } " " a.id href=(links::run(&run.run_id)) { (run.run_id) } }
            p { (status::badge(&run.status)) " " span.count { (run.workflow_id) } }
            @if let Some(origin) = &run.forked_from {
                p.hint {
                    "Forked from " span.id { (origin.run_id) } " at event " (origin.from_seq)
                    " as a " (origin.mode) "."
                }
            }
            p { a href=(links::history(&run.run_id)) { "History" span.visually-hidden { " of run " (letter) } } }
        }
    }
}

fn state(difference: &StateDifference) -> Markup {
    let column = |letter: &str, value: &Option<String>| {
        html! {
            div.half data-side=(letter) {
                @if let Some(json) = value {
                    pre.json data-json tabindex="0" aria-label={ "In " (letter) } { (json) }
                } @else {
                    p.empty { "Not in " (letter) "." }
                }
            }
        }
    };
    html! {
        article.difference {
            h3 {
                (difference.part)
                @if let Some(name) = &difference.name { " " span.id { (name) } }
            }
            div.halves { (column("A", &difference.a)) (column("B", &difference.b)) }
        }
    }
}

fn event(view: &ComparePageView, difference: &EventDifference) -> Markup {
    let column = |letter: &str, run: &ComparedRun, event: &Option<EventRow>| {
        html! {
            div.half data-side=(letter) {
                @if let Some(event) = event {
                    p.half-head {
                        a class={ "code " (tone(&event.kind)) } href=(links::history_at(&run.run_id, event.sequence)) { (event.kind) }
                        @if let Some(node) = &event.node_id { " " span.where { (node) } }
                        " " (time::at(&event.at))
                    }
                    pre.json data-json tabindex="0" aria-label={ "Payload in " (letter) } { (event.payload_json) }
                } @else {
                    p.empty { "Not in " (letter) "." }
                }
            }
        }
    };
    html! {
        article class={ "difference " (kind_of(&difference.op)) } data-seq=(difference.seq) {
            h3 { "Event " (difference.seq) " " span.count { (difference.op) } }
            div.halves {
                (column("A", &view.a, &difference.a))
                (column("B", &view.b, &difference.b))
            }
        }
    }
}

fn kind_of(op: &str) -> &'static str {
    match op {
        "added" => "op-added",
        "removed" => "op-removed",
        _ => "op-changed",
    }
}
