//! The state of a run at one event: memory, channels, nodes, open questions.

use maud::{Markup, html};

use super::HistoryPageView;
use crate::graph::NodeState;
use crate::inbox::InboxSelection;
use crate::{links, time};

/// Memory as a fork at this event would read it.
#[derive(Debug, Clone, Default)]
pub struct MemoryPanelView {
    /// Newest first.
    pub entries: Vec<MemoryEntryRow>,
    /// Entries the page leaves out.
    pub omitted: u64,
    /// The memory of that time is past retention.
    pub lost: bool,
}

#[derive(Debug, Clone, Default)]
pub struct MemoryEntryRow {
    pub key: String,
    /// The namespace inside the run's scope.
    pub memory_ref: String,
    /// Pretty-printed.
    pub value_json: String,
    pub tags: Vec<String>,
    pub written_at: String,
    pub expires_at: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct ReachedNode {
    pub id: String,
    pub state: NodeState,
    pub attempt: u32,
    /// Code, then message.
    pub error: Option<(String, String)>,
}

#[derive(Debug, Clone, Default)]
pub struct OpenQuestion {
    pub node_id: String,
    pub kind: String,
    pub title: String,
    /// The question, when it belongs to this run.
    pub interrupt_id: Option<String>,
}

pub(super) fn memory(view: &HistoryPageView) -> Markup {
    let memory = &view.memory;
    html! {
        div data-part="memory" {
            @if memory.lost {
                p.empty { "The memory of the run at this event is no longer stored." }
            } @else if memory.entries.is_empty() {
                p.empty { "Nothing." }
            } @else {
                dl.memory { @for row in &memory.entries { (entry(row)) } }
            }
            @if memory.omitted > 0 { p.trimmed { (memory.omitted) " older entries are not shown." } }
        }
    }
}

fn entry(row: &MemoryEntryRow) -> Markup {
    html! {
        div {
            dt {
                span.id { (row.key) }
                @if row.memory_ref != "default" { span.count { "in " (row.memory_ref) } }
                @for tag in &row.tags { span.tag { (tag) } }
            }
            dd {
                pre.json data-json tabindex="0" aria-label={ "Value of " (row.key) } { (row.value_json) }
                p.hint {
                    "written " (time::at(&row.written_at))
                    @if let Some(at) = &row.expires_at { ", expires " (time::at(at)) }
                }
            }
        }
    }
}

pub(super) fn channels(view: &HistoryPageView) -> Markup {
    html! {
        div data-part="channels" {
            @if let Some(json) = &view.channels_json {
                pre.json data-json tabindex="0" aria-label="Channels as JSON" { (json) }
            } @else {
                p.empty { "None." }
            }
        }
    }
}

pub(super) fn nodes(view: &HistoryPageView) -> Markup {
    html! {
        div data-part="nodes" {
            @if view.nodes.is_empty() { p.empty { "No node has started yet." } }
            ul.children {
                @for node in &view.nodes {
                    li {
                        span {
                            span.id { (node.id) }
                            @if let Some((code, message)) = &node.error {
                                span.sub.tone-bad { span.code { (code) } " " (message) }
                            }
                        }
                        span.count {
                            (node.state.as_str())
                            @if node.attempt > 1 { ", attempt " (node.attempt) }
                        }
                    }
                }
            }
            @if view.nodes_omitted > 0 { p.trimmed { (view.nodes_omitted) " more are not shown." } }
        }
    }
}

pub(super) fn questions(view: &HistoryPageView) -> Markup {
    html! {
        div data-part="questions" {
            @if view.questions.is_empty() { p.empty { "None." } }
            ul.children {
                @for question in &view.questions {
                    li {
                        @if let Some(id) = &question.interrupt_id {
                            a href=(links::question(id, &InboxSelection::default())) { (question.title) }
                        } @else {
                            span { (question.title) }
                        }
                        span.count { (question.kind) " at " (question.node_id) }
                    }
                }
            }
        }
    }
}
