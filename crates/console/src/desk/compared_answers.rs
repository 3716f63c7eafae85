//! What people said during takeovers, beside what the agent would have said.

use maud::{Markup, html};

use super::session_page::{TranscriptLine, transcript_items};
use crate::chrome::{Chrome, Section, page_with};
use crate::links;

#[derive(Debug, Clone, Default)]
pub struct ComparedAnswersView {
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
    /// Oldest first.
    pub pairs: Vec<ComparedPair>,
    /// The pairs as JSON lines; `None` when they are too long for a page.
    pub lines: Option<String>,
}

/// Messages of the user with both answers.
#[derive(Debug, Clone, Default)]
pub struct ComparedPair {
    pub user: Vec<TranscriptLine>,
    pub human: Vec<TranscriptLine>,
    pub agent: Vec<String>,
    /// What the agent would have done besides.
    pub actions: Vec<String>,
    /// Why there is no whole answer.
    pub error: Option<String>,
}

pub fn compared_answers_page(chrome: &Chrome, view: &ComparedAnswersView) -> String {
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::CONVERSATIONS) { "Conversations" } }
                    li { a href=(links::conversation(&view.session_id)) { (view.user) } }
                }
            }
        }
        div.title-line {
            h1 { "What would the agent have said?" }
        }
        p.hint {
            "The conversation as it was before the takeover, continued by the agent as it is now with the user's "
            "messages, one after the other. Tools answer what they answered in this conversation. Nothing of it is stored "
            "or sent."
        }
        @if view.pairs.is_empty() {
            div.panel { p.empty { "Nobody answered the user in place of the agent." } }
        }
        @for (number, pair) in view.pairs.iter().enumerate() { (pair_of(view, number + 1, pair)) }
        @if !view.pairs.is_empty() { (as_lines(view)) }
    };
    page_with(
        chrome,
        Section::Conversations,
        "Compared answers",
        &body,
        &["desk.css"],
        &["compared.js"],
    )
}

fn pair_of(view: &ComparedAnswersView, number: usize, pair: &ComparedPair) -> Markup {
    let title = format!("pair-{number}");
    html! {
        section.panel.compared aria-labelledby=(title) {
            div.panel-head { h2 id=(title) { "The user wrote" } span.count { (number) " of " (view.pairs.len()) } }
            (transcript_items(&pair.user))
            div.answers {
                div.answer {
                    h3 { "The person answered" }
                    (transcript_items(&pair.human))
                }
                div.answer {
                    h3 { "The agent would have answered" }
                    (agent_answer(&view.agent_id, pair))
                }
            }
        }
    }
}

fn agent_answer(agent_id: &str, pair: &ComparedPair) -> Markup {
    html! {
        ol.lines {
            @for text in &pair.agent {
                li.line.agent {
                    p.line-head { strong { (agent_id) } }
                    p.line-text { (text) }
                }
            }
        }
        @if pair.agent.is_empty() { p.empty { "No text." } }
        @if !pair.actions.is_empty() {
            ul.compared-actions aria-label="What it would have done" {
                @for action in &pair.actions { li { (action) } }
            }
        }
        @if let Some(error) = &pair.error { p.notice.bad { "No whole answer: " (error) } }
    }
}

/// The script saves the text as a file. Without it the text can be copied.
fn as_lines(view: &ComparedAnswersView) -> Markup {
    html! {
        @match &view.lines {
            Some(lines) => {
                div.desk-form {
                    button #save-lines type="button" data-name={ "compared-" (view.session_id) ".jsonl" } hidden {
                        "Download as JSON lines"
                    }
                }
                details.json-lines {
                    summary { "Show the JSON lines" }
                    label.visually-hidden for="lines" { "JSON lines" }
                    textarea #lines .json rows="8" readonly { (lines) }
                }
            }
            None => p.hint { "The pairs are too long for a download from here. The API returns them." },
        }
    }
}
