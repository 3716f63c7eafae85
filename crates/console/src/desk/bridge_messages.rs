//! What passed between the host and a desk, beside what the user and the agent wrote, by time; and the form to write as
//! the desk.

use maud::{Markup, html};

use super::escalation::DeskOffer;
use super::session_page::{TranscriptLine, line_of};
use crate::chrome::{Chrome, Section, page_with};
use crate::{links, time};

/// The bridges of a conversation, as far as the reader may view them.
#[derive(Debug, Clone, Default)]
pub struct BridgeMessages {
    /// The newest bridge.
    pub proxy_id: String,
    pub access: BridgeAccess,
    /// In order of their times.
    pub rows: Vec<BridgeRow>,
    /// There is more than these.
    pub is_trimmed: bool,
}

/// Whether the reader is shown the texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BridgeAccess {
    #[default]
    No,
    /// An admin token tells whether they are.
    WithToken,
    Yes,
}

#[derive(Debug, Clone)]
pub enum BridgeRow {
    /// What was said between the user and the agent, beside what passed between the host and the desk. Where both are
    /// there, one was made of the other.
    Texts {
        said: Option<TranscriptLine>,
        passed: Option<Box<BridgeLine>>,
    },
    /// A bridge began or ended.
    Mark { text: String, at: String },
}

/// One text between the host and the desk.
#[derive(Debug, Clone, Default)]
pub struct BridgeLine {
    /// `user`, `desk` or `host`.
    pub by: &'static str,
    pub name: String,
    pub text: String,
    pub at: String,
    /// What became of input, and the colour of that.
    pub outcome: Option<(&'static str, &'static str)>,
    pub decided_at: Option<String>,
    pub reason: Option<String>,
    /// What the user was sent instead.
    pub changed_to: Option<String>,
    /// What became of its delivery, unless it was delivered.
    pub delivery: Option<String>,
}

/// The form to write as the desk.
#[derive(Debug, Clone, Default)]
pub struct BridgeInput {
    pub proxy_id: String,
    pub desk: String,
    pub offer: DeskOffer,
    /// The identity of the next text: sent twice, it is relayed once.
    pub message_id: String,
}

/// The page of them by themselves, for those whom a token gives the right.
pub struct BridgePageView {
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
    pub messages: BridgeMessages,
}

pub fn bridge_page(chrome: &Chrome, view: &BridgePageView) -> String {
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::CONVERSATIONS) { "Conversations" } }
                    li { a href=(links::conversation(&view.session_id)) { (view.user) } }
                }
            }
        }
        div.title-line { h1 { "Bridge to a desk" } }
        p.hint { "Agent " (view.agent_id) ". This page does not follow changes: the token is kept nowhere." }
        (bridge_messages_part(Some(&view.messages), ""))
    };
    let title = format!("{} · Bridge", view.user);
    page_with(
        chrome,
        Section::Conversations,
        &title,
        &body,
        &["desk.css"],
        &[],
    )
}

pub(super) fn bridge_messages_part(view: Option<&BridgeMessages>, csrf: &str) -> Markup {
    let shown = view.filter(|view| view.access != BridgeAccess::No);
    html! {
        // An empty part stays, so that the live stream can fill it.
        section.panel.bridge-messages data-part="bridge-messages" aria-labelledby="bridge-messages-title" hidden[shown.is_none()] {
            div.panel-head { h2 #bridge-messages-title { "User and desk, side by side" } }
            @match shown {
                Some(view) if view.access == BridgeAccess::Yes => (rows(view)),
                Some(view) => {
                    form.desk-form.pad method="post" action=(links::bridge_messages(&view.proxy_id)) {
                        input type="hidden" name="csrf" value=(csrf);
                        label for="bridge-messages-token" { "Admin token" }
                        input #bridge-messages-token type="password" name="adminToken" autocomplete="off"
                            autocapitalize="none" spellcheck="false";
                        button #action-bridge-messages type="submit" { "Show" span.visually-hidden { " what passed over the bridge" } }
                    }
                }
                None => {}
            }
        }
    }
}

fn rows(view: &BridgeMessages) -> Markup {
    html! {
        @if view.is_trimmed { p.trimmed { "Earlier texts are not shown." } }
        div.side-by-side-head aria-hidden="true" {
            span { "User and agent" }
            span { "Host and desk" }
        }
        ol.side-by-side {
            @for row in &view.rows {
                @match row {
                    BridgeRow::Texts { said, passed } => li.texts.from-desk[is_from_desk(passed.as_deref())] {
                        @if let Some(line) = said { ol.lines.said { (line_of(line)) } }
                        @if let Some(line) = passed { ol.lines.passed { (line_passed(line)) } }
                    },
                    BridgeRow::Mark { text, at } => li.mark { (text) " " (time::ago(at)) },
                }
            }
        }
    }
}

/// What the desk wrote comes before what the user got of it.
fn is_from_desk(passed: Option<&BridgeLine>) -> bool {
    passed.is_some_and(|line| line.by == "desk")
}

fn line_passed(line: &BridgeLine) -> Markup {
    html! {
        li class={ "line " (line.by) } {
            p.line-head {
                strong { (line.name) }
                @match line.by { "desk" => " from the desk ", _ => " to the desk " }
                (time::ago(&line.at))
                @if let Some(delivery) = &line.delivery { " " span.delivery { (delivery) } }
            }
            p.line-text { (line.text) }
            @if let Some((outcome, tone)) = line.outcome {
                p.line-outcome {
                    span class={ "outcome " (tone) } { (outcome) }
                    @if let Some(at) = &line.decided_at { " " (time::ago(at)) }
                    @if let Some(reason) = &line.reason { ": " (reason) }
                }
            }
            @if let Some(text) = &line.changed_to {
                p.line-head { "The user was sent" }
                p.line-text { (text) }
            }
        }
    }
}

pub(super) fn bridge_input_part(form: Option<&BridgeInput>, csrf: &str) -> Markup {
    let form = form.filter(|form| form.offer != DeskOffer::Nothing);
    html! {
        // An empty part stays, so that the live stream can fill it.
        section.panel data-part="bridge-input" aria-labelledby="bridge-input-title" hidden[form.is_none()] {
            @if let Some(form) = form {
                div.panel-head { h2 #bridge-input-title { "Write as " (form.desk) } }
                form.reply.pad method="post" action=(links::bridge_input(&form.proxy_id)) {
                    input type="hidden" name="csrf" value=(csrf);
                    input type="hidden" name="messageId" value=(form.message_id);
                    label for="bridge-input" { "Text as if written at the desk. The flow decides what the user gets." }
                    textarea #bridge-input name="text" rows="3" required maxlength="16000" {}
                    div.desk-form {
                        button #action-bridge-input type="submit" { "Send" span.visually-hidden { " as the desk" } }
                        @if form.offer == DeskOffer::WithToken {
                            label for="bridge-input-token" { "Admin token" }
                            input #bridge-input-token type="password" name="adminToken" autocomplete="off"
                                autocapitalize="none" spellcheck="false";
                        }
                    }
                }
            }
        }
    }
}
