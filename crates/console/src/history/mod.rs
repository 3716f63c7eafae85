//! A run as it was after one of its events, with a slider over all events.
//!
//! The frames of the panels and the slider stay on the page. Everything that depends on the event
//! is rendered as parts marked `data-part`, as on the run page, so that one fragment replaces them
//! all when the slider moves. Without the script the slider is a form and every event has its own
//! page.

mod fork;
mod slider;
mod state_panels;

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page_with};
use crate::run_page::panels;
use crate::run_page::timeline::tone;
use crate::run_page::{EventRow, RunPageView};
use crate::{links, status, time};

pub use fork::ForkOffer;
pub use state_panels::{MemoryEntryRow, MemoryPanelView, OpenQuestion, ReachedNode};

#[derive(Debug, Clone, Default)]
pub struct HistoryPageView {
    /// The run after that event: status, graph, variables, child runs.
    pub state: RunPageView,
    pub seq: u64,
    /// The sequence of the newest event.
    pub last: u64,
    /// The chosen event and some on either side, oldest first.
    pub around: Vec<EventRow>,
    /// Pretty-printed; absent when the run has no channels.
    pub channels_json: Option<String>,
    /// Nodes the run had reached.
    pub nodes: Vec<ReachedNode>,
    /// Reached nodes the page leaves out.
    pub nodes_omitted: u64,
    pub questions: Vec<OpenQuestion>,
    pub memory: MemoryPanelView,
    /// Absent for readers who may not create runs.
    pub fork: Option<ForkOffer>,
}

impl HistoryPageView {
    fn event(&self) -> Option<&EventRow> {
        self.around.iter().find(|e| e.sequence == self.seq)
    }
}

pub fn history_page(chrome: &Chrome, view: &HistoryPageView) -> String {
    let state = &view.state;
    let body = html! {
        nav aria-label="Breadcrumb" {
            ol.crumbs {
                li { a href=(links::RUNS) { "Runs" } }
                li { a href=(links::workflow(&state.workflow_id)) { (state.workflow_id) } }
                li { a.id href=(links::run(&state.run_id)) { (state.run_id) } }
            }
        }
        div.title-line { h1 { "History of run " span.id { (state.run_id) } } }
        (slider::panel(view))
        (head(view))
        section.panel aria-labelledby="graph-title" {
            div.panel-head {
                h2 #graph-title { "Graph" }
                button.small type="button" data-fit="past-graph" aria-pressed="false" hidden { "Fit" }
            }
            div.graph-view #past-graph tabindex="0" role="region" aria-label="Workflow graph at this moment, scrollable" {
                (panels::graph_part(state))
            }
        }
        div.columns {
            div {
                (frame("Variables", &panels::variables_part(state)))
                (frame("Memory", &state_panels::memory(view)))
                (frame("Channels", &state_panels::channels(view)))
            }
            div {
                (frame("Fork from here", &fork::part(view)))
                (frame("Events around it", &around(view)))
                (frame("Nodes", &state_panels::nodes(view)))
                (frame("Open questions", &state_panels::questions(view)))
                (frame("Child runs", &panels::children_part(state)))
            }
        }
    };
    let title = format!("{} · event {}", state.run_id, view.seq);
    page_with(
        chrome,
        Section::Runs,
        &title,
        &body,
        &["history.css"],
        &["history.js"],
    )
}

/// All parts that depend on the event, for the script that moves the slider.
pub fn history_fragment(view: &HistoryPageView) -> String {
    let parts = html! {
        (slider::neighbours(view))
        (head(view))
        (panels::graph_part(&view.state))
        (panels::variables_part(&view.state))
        (state_panels::memory(view))
        (state_panels::channels(view))
        (fork::part(view))
        (around(view))
        (state_panels::nodes(view))
        (state_panels::questions(view))
        (panels::children_part(&view.state))
    };
    parts.into_string()
}

fn frame(title: &str, part: &Markup) -> Markup {
    html! {
        details.panel open {
            summary.panel-head { h2 { (title) } }
            (part)
        }
    }
}

/// The chosen event and the run's status after it.
fn head(view: &HistoryPageView) -> Markup {
    html! {
        section.panel.moment data-part="moment" data-seq=(view.seq) data-last=(view.last) aria-labelledby="moment-title" {
            div.panel-head {
                h2 #moment-title {
                    "After event " (view.seq)
                    @if let Some(event) = view.event() { ": " span class={ "code " (tone(&event.kind)) } { (event.kind) } }
                }
                span #moment-status { (status::badge(&view.state.status)) }
            }
            @if let Some(event) = view.event() {
                dl.facts.pad {
                    @if let Some(node) = &event.node_id { div { dt { "Node" } dd.id { (node) } } }
                    div { dt { "Time" } dd { (time::at(&event.at)) } }
                }
                pre.json data-json tabindex="0" aria-label="Payload of the event as JSON" { (event.payload_json) }
            }
            @if let Some((code, message)) = &view.state.error {
                div.notice.bad { p { strong.code { (code) } " " (message) } }
            }
        }
    }
}

fn around(view: &HistoryPageView) -> Markup {
    html! {
        div data-part="around" {
            ol.around #events data-origin=(view.state.created_at) {
                @for event in &view.around {
                    @let here = event.sequence == view.seq;
                    li aria-current=[here.then_some("step")] {
                        a href=(links::history_at(&view.state.run_id, event.sequence)) data-moment=(event.sequence) {
                            span.count { (event.sequence) }
                            span class={ "code " (tone(&event.kind)) } { (event.kind) }
                            @if let Some(node) = &event.node_id { span.where { (node) } }
                            (time::offset(&event.at))
                        }
                    }
                }
            }
        }
    }
}
