//! The panels of a run's state: graph, variables, child runs.
//!
//! Each panel's frame stays on the page and only its part is replaced, so scroll positions and
//! opened panels are kept.

use maud::{Markup, html};

use super::RunPageView;
use crate::graph::{self, NodeState};
use crate::{links, status};

pub(super) fn graph(view: &RunPageView) -> Markup {
    html! {
        section.panel aria-labelledby="graph-title" {
            div.panel-head {
                h2 #graph-title { "Graph" }
                button.small type="button" data-fit="graph-view" aria-pressed="false" hidden { "Fit" }
            }
            div.graph-view #graph-view tabindex="0" role="region" aria-label="Workflow graph, scrollable" {
                (graph_part(view))
            }
        }
    }
}

pub(crate) fn graph_part(view: &RunPageView) -> Markup {
    html! {
        div data-part="graph" {
            @if view.graph.nodes.is_empty() {
                p.empty { "This run has no graph to show." }
            } @else {
                (graph::svg(&view.graph))
                (tally(view))
            }
        }
    }
}

/// The number of nodes in each state, for graphs that are too large to overview.
fn tally(view: &RunPageView) -> Markup {
    let count = |state: NodeState| view.graph.nodes.iter().filter(|n| n.state == state).count();
    html! {
        ul.tally aria-label="Nodes by state" {
            @for state in NodeState::ALL {
                @if let n @ 1.. = count(state) {
                    li class={ "state-" (state.as_str()) } { (n) " " (state.as_str()) }
                }
            }
        }
    }
}

pub(super) fn variables(view: &RunPageView) -> Markup {
    html! {
        details.panel open {
            summary.panel-head { h2 { "Variables" } }
            (variables_part(view))
        }
    }
}

pub(crate) fn variables_part(view: &RunPageView) -> Markup {
    html! {
        div data-part="variables" {
            pre.json data-json tabindex="0" aria-label="Variables as JSON" { (view.variables_json) }
        }
    }
}

pub(super) fn children(view: &RunPageView) -> Markup {
    html! {
        details.panel open {
            summary.panel-head { h2 { "Child runs" } }
            (children_part(view))
        }
    }
}

pub(crate) fn children_part(view: &RunPageView) -> Markup {
    html! {
        div data-part="children" {
            @if view.child_runs.is_empty() {
                p.empty { "None." }
            } @else {
                ul.children {
                    @for (run_id, run_status) in &view.child_runs {
                        li { a.id href=(links::run(run_id)) { (run_id) } (status::badge(run_status)) }
                    }
                }
            }
        }
    }
}
