//! The workflow pages: the list, and one workflow with its graph and source. Both can
//! start a run.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page};
use crate::graph::{self, GraphView};
use crate::links;

#[derive(Debug, Clone, Default)]
pub struct WorkflowListView {
    pub rows: Vec<WorkflowRow>,
    pub csrf: String,
}

#[derive(Debug, Clone, Default)]
pub struct WorkflowRow {
    pub id: String,
    pub name: String,
    pub version: String,
    pub node_count: usize,
}

#[derive(Debug, Clone, Default)]
pub struct WorkflowPageView {
    pub id: String,
    pub name: String,
    pub version: String,
    /// Nodes of a definition are in [`crate::NodeState::Defined`].
    pub graph: GraphView,
    /// The definition, pretty-printed.
    pub source_json: String,
    pub csrf: String,
}

pub fn workflow_list_page(chrome: &Chrome, view: &WorkflowListView) -> String {
    let body = html! {
        div.title-line { h1 { "Workflows" } }
        @if view.rows.is_empty() {
            div.panel { p.empty { "No workflows are registered on this host." } }
        } @else {
            ul.workflows.panel {
                @for (i, row) in view.rows.iter().enumerate() {
                    li {
                        div.workflow-line {
                            a.workflow-name href=(links::workflow(&row.id)) { (row.name) }
                            span.id { (row.id) }
                            span.count { "version " (row.version) }
                            span.count { (row.node_count) @if row.node_count == 1 { " node" } @else { " nodes" } }
                        }
                        details.start {
                            summary { "Start a run" span.visually-hidden { " of " (row.name) } }
                            (start_form(&row.id, &view.csrf, i))
                        }
                    }
                }
            }
        }
    };
    page(chrome, Section::Workflows, "Workflows", &body)
}

pub fn workflow_page(chrome: &Chrome, view: &WorkflowPageView) -> String {
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::WORKFLOWS) { "Workflows" } }
                    li aria-current="page" { span.id { (view.id) } }
                }
            }
        }
        div.title-line {
            h1 { (view.name) }
            span.count { "version " (view.version) }
        }
        section.panel aria-labelledby="graph-title" {
            div.panel-head {
                h2 #graph-title { "Graph" }
                button.small type="button" data-fit="graph-view" aria-pressed="false" hidden { "Fit" }
            }
            div.graph-view #graph-view tabindex="0" role="region" aria-label="Workflow graph, scrollable" {
                (graph::svg(&view.graph))
            }
        }
        div.columns {
            section.panel aria-labelledby="source-title" {
                div.panel-head { h2 #source-title { "Source" } }
                pre.json data-json tabindex="0" aria-label="Workflow definition as JSON" { (view.source_json) }
            }
            div.side {
                section.panel aria-labelledby="start-title" {
                    div.panel-head { h2 #start-title { "Start a run" } }
                    (start_form(&view.id, &view.csrf, 0))
                }
            }
        }
    };
    page(chrome, Section::Workflows, &view.name, &body)
}

/// `ordinal` keeps field ids unique when a page has several of these forms.
fn start_form(workflow_id: &str, csrf: &str, ordinal: usize) -> Markup {
    let field = format!("input-{ordinal}");
    let hint = format!("input-hint-{ordinal}");
    html! {
        form.stack.pad method="post" action=(links::workflow_runs(workflow_id)) {
            input type="hidden" name="csrf" value=(csrf);
            label for=(field) { "Input" }
            textarea id=(field) name="input" rows="5" spellcheck="false" autocapitalize="none"
                data-json-field aria-describedby=(hint) { "{}" }
            p.hint id=(hint) { "A JSON object, the inputs of the run." }
            div { button.primary type="submit" { "Start run" } }
        }
    }
}
