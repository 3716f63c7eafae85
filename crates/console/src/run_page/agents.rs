//! A supervisor: its decisions, its confidence, and the outcome of each worker.

use maud::{Markup, html};

use super::RunPageView;
use crate::{links, status, time};

/// Additional data of a supervised run.
#[derive(Debug, Clone, Default)]
pub struct AgentsView {
    /// A decision below this confidence needs a person.
    pub floor: f64,
    pub iterations: Vec<IterationView>,
    /// Earlier iterations that the page omits.
    pub omitted: u64,
}

#[derive(Debug, Clone, Default)]
pub struct IterationView {
    pub number: u32,
    pub agent: String,
    /// `next-worker`, `ask-user` or `terminate`.
    pub kind: String,
    pub reason: Option<String>,
    pub confidence: Option<f64>,
    pub escalated: bool,
    pub handoffs: Vec<HandoffView>,
    /// Verifications of this iteration.
    pub checks: Vec<CheckView>,
}

/// A verifier and its verdict.
#[derive(Debug, Clone, Default)]
pub struct CheckView {
    pub critic: String,
    /// The run whose output is verified; absent when it is the decision itself.
    pub child: Option<String>,
    /// `pass`, `fail` or `revise`; absent until it is given.
    pub verdict: Option<String>,
    pub criteria: Vec<String>,
    pub confidence: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub struct HandoffView {
    pub worker: String,
    pub child: Option<String>,
    /// Phase, then time.
    pub steps: Vec<(String, String)>,
    pub error: Option<String>,
}

/// One run of a run tree, with its children.
#[derive(Debug, Clone, Default)]
pub struct RunTreeView {
    pub run_id: String,
    pub workflow_id: String,
    pub status: String,
    /// Whether this is the run of the page.
    pub is_current: bool,
    pub children: Vec<RunTreeView>,
    /// Children that the page omits.
    pub more: u64,
}

pub(super) fn panel(view: &RunPageView) -> Markup {
    html! {
        @if view.supervised {
            section.panel.agents aria-labelledby="agents-title" {
                div.panel-head { h2 #agents-title { "Decisions" } }
                (part(view))
            }
        }
    }
}

pub(super) fn part(view: &RunPageView) -> Markup {
    html! {
        @if view.supervised {
            div data-part="agents" {
                @if view.agents.iterations.is_empty() {
                    p.empty { "No decision yet." }
                }
                @if view.agents.omitted > 0 {
                    p.trimmed { (view.agents.omitted) " earlier turns are not shown." }
                }
                ol.turns {
                    @for iteration in &view.agents.iterations { (self::iteration(iteration, view.agents.floor)) }
                }
            }
        }
    }
}

fn iteration(iteration: &IterationView, floor: f64) -> Markup {
    html! {
        li.turn {
            p.decision {
                strong { "Turn " (iteration.number) }
                " " code { (iteration.kind) }
                @if let Some(reason) = &iteration.reason { " " (reason) }
                span.by { " by " (iteration.agent) }
            }
            @if let Some(confidence) = iteration.confidence { (self::confidence(confidence, floor)) }
            @if iteration.escalated { p.tone-held { "Held for a person before it is carried out." } }
            @for handoff in &iteration.handoffs { (self::handoff(handoff)) }
            @for check in &iteration.checks { (self::check(check)) }
        }
    }
}

fn check(check: &CheckView) -> Markup {
    let tone = match check.verdict.as_deref() {
        Some("pass") => "tone-good",
        Some("fail") => "tone-bad",
        _ => "tone-held",
    };
    html! {
        p.check class=(tone) {
            @match check.verdict.as_deref() {
                None => "Waits for the critic ",
                Some(verdict) => { "Checked: " strong { (verdict) } " by " }
            }
            span.by { (check.critic) }
            @if let Some(child) = &check.child {
                ", output of " a.id href=(links::run(child)) { (child) }
            }
            @if !check.criteria.is_empty() { ", for " (check.criteria.join(", ")) }
            @if let Some(confidence) = check.confidence { ", confidence " (confidence) }
        }
    }
}

/// The bar and the mark repeat the text for sighted users.
fn confidence(confidence: f64, floor: f64) -> Markup {
    let word = if confidence < floor {
        "below"
    } else {
        "at or above"
    };
    html! {
        p.confidence {
            meter min="0" max="1" low=(floor) value=(confidence) aria-hidden="true" {}
            " confidence " (confidence) ", " (word) " the floor of " (floor)
        }
    }
}

fn handoff(handoff: &HandoffView) -> Markup {
    html! {
        div.handoff {
            p {
                (handoff.worker)
                @if let Some(child) = &handoff.child { " " a.id href=(links::run(child)) { (child) } }
            }
            ol.steps {
                @for (phase, at) in &handoff.steps { li { (phase) " " (time::offset(at)) } }
            }
            @if let Some(error) = &handoff.error { p.tone-bad { (error) } }
        }
    }
}

/// The run tree as of page load; the page of each run is live.
pub(super) fn run_tree(view: &RunPageView) -> Markup {
    html! {
        @if let Some(root) = &view.run_tree {
            details.panel open {
                summary.panel-head { h2 { "Related runs" } }
                ul.run-tree { (run_tree_node(root)) }
            }
        }
    }
}

fn run_tree_node(run: &RunTreeView) -> Markup {
    html! {
        li {
            span {
                @if run.is_current {
                    strong aria-current="page" { (run.workflow_id) }
                } @else {
                    a href=(links::run(&run.run_id)) title=(run.run_id) { (run.workflow_id) }
                }
                " " (status::badge(&run.status))
            }
            @if !run.children.is_empty() || run.more > 0 {
                ul {
                    @for child in &run.children { (run_tree_node(child)) }
                    @if run.more > 0 { li.trimmed { "and " (run.more) " more" } }
                }
            }
        }
    }
}
