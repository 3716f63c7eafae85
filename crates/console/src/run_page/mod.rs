//! The page of one run: its identity, its state, its events.
//!
//! The page has two kinds of content. *State* (header, graph, variables, child runs) is replaced as
//! a whole when the run changes; *history* (the timeline) only grows. The state is rendered as
//! parts marked `data-part`. The same markup is used for the first load and for the live fragment,
//! from which the script puts each part in its place.

mod agents;
mod header;
mod lineage;
pub(crate) mod panels;
mod people;
pub(crate) mod timeline;

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page};
use crate::graph::GraphView;
use crate::links;
use crate::run_list::live_indicator;

pub use agents::{AgentsView, CheckView, HandoffView, IterationView, RunTreeView};
pub use lineage::ForkOrigin;
pub use people::AnsweredView;
pub use timeline::EventRow;

#[derive(Debug, Clone, Default)]
pub struct RunPageView {
    pub run_id: String,
    pub workflow_id: String,
    pub status: String,
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub parent_run_id: Option<String>,
    pub forked_from: Option<ForkOrigin>,
    /// Code, then message.
    pub error: Option<(String, String)>,
    pub graph: GraphView,
    pub events: Vec<EventRow>,
    /// How many earlier events the page omits; shown to the reader.
    pub events_omitted: u64,
    /// Pretty-printed.
    pub variables_json: String,
    /// Where the live stream continues.
    pub last_sequence: Option<u64>,
    pub can_cancel: bool,
    pub can_pause: bool,
    pub can_resume: bool,
    /// Run id, then status.
    pub child_runs: Vec<(String, String)>,
    /// The run has a supervisor.
    pub supervised: bool,
    pub agents: AgentsView,
    /// Questions put to people, newest first.
    pub answered: Vec<AnsweredView>,
    /// Its ancestors and descendants, as of page load.
    pub run_tree: Option<RunTreeView>,
    pub csrf: String,
}

pub fn run_page(chrome: &Chrome, view: &RunPageView) -> String {
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::RUNS) { "Runs" } }
                    li { a href=(links::workflow(&view.workflow_id)) { (view.workflow_id) } }
                }
            }
            (live_indicator())
        }
        div data-live-run=(links::run_live(&view.run_id)) data-after=[view.last_sequence] {
            (header::part(view))
            (panels::graph(view))
            (agents::panel(view))
            (people::part(view))
            div.columns {
                (timeline::panel(view))
                div.side {
                    (timeline::inspector())
                    (panels::variables(view))
                    (panels::children(view))
                    (agents::run_tree(view))
                }
            }
        }
    };
    let title = format!("{} · {}", view.run_id, view.status);
    page(chrome, Section::Runs, &title, &body)
}

/// The parts of the page that depend on the run's state, for a `state` message.
pub fn run_state_fragment(view: &RunPageView) -> String {
    let parts: Markup = html! {
        (header::part(view))
        (panels::graph_part(view))
        (agents::part(view))
        (people::part(view))
        (panels::variables_part(view))
        (panels::children_part(view))
    };
    parts.into_string()
}
