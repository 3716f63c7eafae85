//! Decisions of people in a run: who, how, and their edits.

use maud::{Markup, html};
use serde_json::Value;

use super::RunPageView;
use crate::inbox::{InboxSelection, outcome_label, vote_label};
use crate::{VoteView, changes, links, time};

/// A question of the run, with its answer so far.
#[derive(Debug, Clone, Default)]
pub struct AnsweredView {
    pub interrupt_id: String,
    pub title: String,
    pub node_id: String,
    /// Absent while it is open.
    pub outcome: Option<String>,
    pub at: Option<String>,
    pub votes: Vec<VoteView>,
    /// The original and the accepted value.
    pub edit: Option<(Value, Value)>,
}

pub(super) fn part(view: &RunPageView) -> Markup {
    html! {
        div data-part="people" {
            @if !view.answered.is_empty() {
                section.panel.people aria-labelledby="people-title" {
                    div.panel-head { h2 #people-title { "Decided by people" } }
                    ol.plain { @for one in &view.answered { (answered(one)) } }
                }
            }
        }
    }
}

fn answered(one: &AnsweredView) -> Markup {
    html! {
        li.pad {
            p {
                a href=(links::question(&one.interrupt_id, &InboxSelection::default())) { (one.title) }
                " " span.hint { (one.node_id) }
                @match &one.outcome {
                    Some(outcome) => { ": " strong { (outcome_label(outcome, one.edit.is_some())) } }
                    None => ": open",
                }
                @if let Some(at) = &one.at { " " (time::ago(at)) }
            }
            @if !one.votes.is_empty() {
                ul.plain {
                    @for vote in &one.votes {
                        li {
                            strong { (vote.voter) }
                            @if let Some(by) = &vote.claimed_by { " (name claimed by " (by) ")" }
                            @if let Some(delegate) = &vote.delegate { " (through " (delegate) ")" }
                            " " (vote_label(&vote.action)) " " (time::ago(&vote.at))
                            @if let Some(text) = &vote.feedback { q.said { (text) } }
                        }
                    }
                }
            }
            @if let Some((before, after)) = &one.edit { (changes::table(before, after)) }
        }
    }
}
