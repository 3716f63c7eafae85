//! One conversation: who talks, what was said, what its flow waits for, which questions are open.
//!
//! The page is made of parts marked `data-part`. The live stream sends those that changed; the script puts each in
//! its place. Text that a model is writing is shown below the transcript until it is said.

use maud::{Markup, html};

use super::bridge::{DeskBridge, bridge_part};
use super::bridge_messages::{
    BridgeInput, BridgeMessages, bridge_input_part, bridge_messages_part,
};
use super::escalation::{DeskEscalation, DeskPlace, desk_work, time_left};
use super::list::state_badge;
use super::takeover_panel::{TakeoverPanel, takeover_part};
use crate::chrome::{Chrome, Section, page_with};
use crate::inbox::{InboxSelection, kind_class};
use crate::run_list::live_indicator;
use crate::{links, time};

#[derive(Debug, Clone, Default)]
pub struct ConversationPageView {
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
    pub state: String,
    pub tone: &'static str,
    pub started_at: String,
    pub last_active_at: String,
    pub ended_at: Option<String>,
    pub waiting_since: Option<String>,
    pub takeover: TakeoverPanel,
    pub flow: Option<ConversationFlow>,
    /// The one that relays now.
    pub bridge: Option<DeskBridge>,
    /// What passed over its bridges, if it had one.
    pub bridge_messages: Option<BridgeMessages>,
    pub bridge_input: Option<BridgeInput>,
    /// Those that are open.
    pub escalations: Vec<DeskEscalation>,
    pub questions: Vec<DeskQuestion>,
    pub transcript: Vec<TranscriptLine>,
    /// Earlier messages that the page omits.
    pub lines_omitted: u64,
    /// The reader may end the conversation.
    pub can_end: bool,
    /// A person answered in place of the agent, and the reader may ask what the agent would have said.
    pub can_compare: bool,
    pub csrf: String,
}

#[derive(Debug, Clone, Default)]
pub struct ConversationFlow {
    pub flow_id: String,
    pub run_id: String,
    /// What it waits for; `None` while it runs.
    pub paused_on: Option<String>,
    pub deadline: Option<String>,
    pub answers: Vec<(String, String)>,
}

/// An open question of the conversation, as the inbox lists it.
#[derive(Debug, Clone, Default)]
pub struct DeskQuestion {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub created_at: String,
    pub deadline: Option<String>,
    /// An admin may answer it, not only the user.
    pub is_for_admins: bool,
}

/// One message.
#[derive(Debug, Clone, Default)]
pub struct TranscriptLine {
    /// `user`, `agent` or `human`.
    pub by: &'static str,
    /// The agent, the person who wrote for it, or the word for the user.
    pub name: String,
    pub text: String,
    pub at: String,
    /// What became of its delivery, unless it was delivered.
    pub delivery: Option<String>,
}

pub fn conversation_page(chrome: &Chrome, view: &ConversationPageView) -> String {
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::CONVERSATIONS) { "Conversations" } }
                    li { a href=(links::conversations(Some(&view.agent_id), false, None)) { (view.agent_id) } }
                }
            }
            (live_indicator())
        }
        div #conversation data-live-conversation=(links::conversation_live(&view.session_id)) {
            (header_part(view))
            div.columns {
                section.panel.transcript aria-labelledby="transcript-title" {
                    div.panel-head { h2 #transcript-title { "Transcript" } }
                    div #transcript-scroll .transcript-scroll tabindex="0" aria-label="Transcript" {
                        (transcript_part(view))
                        div #writing .line.agent hidden {
                            p.line-head { strong { (view.agent_id) } " is writing" }
                            p #writing-text .line-text {}
                        }
                    }
                    (takeover_part(&view.takeover, &view.session_id, &view.csrf))
                    (compare_part(view))
                }
                div.side {
                    (questions_part(view))
                    (escalations_part(view))
                    (bridge_part(view.bridge.as_ref(), &view.csrf))
                    (bridge_input_part(view.bridge_input.as_ref(), &view.csrf))
                    (flow_part(view))
                }
            }
            (bridge_messages_part(view.bridge_messages.as_ref(), &view.csrf))
        }
    };
    let title = format!("{} · {}", view.user, view.state);
    page_with(
        chrome,
        Section::Conversations,
        &title,
        &body,
        &["desk.css"],
        &["desk.js"],
    )
}

/// The URL of a conversation, percent-encoded.
pub fn conversation_link(session_id: &str) -> String {
    links::conversation(session_id)
}

/// The parts of the page with their names, for the live stream.
pub fn conversation_parts(view: &ConversationPageView) -> [(&'static str, String); 10] {
    [
        ("header", header_part(view).into_string()),
        (
            "takeover",
            takeover_part(&view.takeover, &view.session_id, &view.csrf).into_string(),
        ),
        ("compare", compare_part(view).into_string()),
        ("questions", questions_part(view).into_string()),
        ("escalations", escalations_part(view).into_string()),
        (
            "bridge",
            bridge_part(view.bridge.as_ref(), &view.csrf).into_string(),
        ),
        (
            "bridge-input",
            bridge_input_part(view.bridge_input.as_ref(), &view.csrf).into_string(),
        ),
        (
            "bridge-messages",
            bridge_messages_part(view.bridge_messages.as_ref(), &view.csrf).into_string(),
        ),
        ("flow", flow_part(view).into_string()),
        ("transcript", transcript_part(view).into_string()),
    ]
}

/// The last messages alone, for the card of a question.
pub(crate) fn transcript_items(lines: &[TranscriptLine]) -> Markup {
    html! { ol.lines { @for line in lines { (line_of(line)) } } }
}

fn header_part(view: &ConversationPageView) -> Markup {
    let question = format!(
        "End the conversation with {}? Its flow and its questions end too.",
        view.user
    );
    html! {
        header.run-head data-part="header" data-status=(view.state) {
            div.title-line {
                h1 { span.visually-hidden { "Conversation with " } span.id { (view.user) } }
                (state_badge(&view.state, view.tone))
                @if view.can_end && view.ended_at.is_none() {
                    div.actions {
                        form method="post" action=(links::conversation_end(&view.session_id)) data-confirm=(question) {
                            input type="hidden" name="csrf" value=(view.csrf);
                            button.danger #action-end type="submit" { "End" span.visually-hidden { " this conversation" } }
                        }
                    }
                }
            }
            dl.facts {
                div { dt { "Agent" } dd { (view.agent_id) } }
                div { dt { "Session" } dd { span.id { (view.session_id) } } }
                div { dt { "Started" } dd { (time::ago(&view.started_at)) } }
                @match &view.ended_at {
                    Some(at) => div { dt { "Ended" } dd { (time::ago(at)) } },
                    None => div { dt { "Last active" } dd { (time::ago(&view.last_active_at)) } },
                }
                @if let Some(since) = &view.waiting_since {
                    div { dt { "Waiting" } dd { (time::duration(since, None)) } }
                }
            }
        }
    }
}

/// Leads to what the agent would have said where a person answered.
fn compare_part(view: &ConversationPageView) -> Markup {
    html! {
        // An empty part stays, so that the live stream can fill it.
        div.transcript-actions data-part="compare" {
            @if view.can_compare {
                form.desk-form method="post" action=(links::conversation_compare_answers(&view.session_id)) {
                    input type="hidden" name="csrf" value=(view.csrf);
                    button #action-compare type="submit" { "What would the agent have said?" }
                    p.hint { "The agent answers the user's messages again, for you alone. This calls its model." }
                }
            }
        }
    }
}

fn questions_part(view: &ConversationPageView) -> Markup {
    html! {
        section.panel data-part="questions" aria-labelledby="questions-title" {
            div.panel-head { h2 #questions-title { "Open questions" } span.count { (view.questions.len()) } }
            @if view.questions.is_empty() { p.empty { "Nobody has to answer anything." } }
            ul.desk-questions {
                @for question in &view.questions {
                    li {
                        p.question-head {
                            span class={ "kind kind-" (kind_class(&question.kind)) } { (question.kind) }
                            @if let Some(deadline) = &question.deadline { (time::countdown(deadline)) }
                        }
                        p.question-title { (question.title) }
                        p.hint {
                            @if question.is_for_admins { "Waits for a decision, asked " } @else { "The user was asked " }
                            (time::ago(&question.created_at))
                        }
                        p {
                            a.button href=(links::question(&question.id, &InboxSelection::default())) {
                                @if question.is_for_admins { "Decide in the inbox" } @else { "Open in the inbox" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn escalations_part(view: &ConversationPageView) -> Markup {
    html! {
        // An empty part stays, so that the live stream can fill it.
        section.panel data-part="escalations" aria-labelledby="escalations-title" hidden[view.escalations.is_empty()] {
            div.panel-head { h2 #escalations-title { "Who has it" } span.count { (view.escalations.len()) } }
            ul.desk-questions {
                @for (number, escalation) in view.escalations.iter().enumerate() {
                    li {
                        p.question-head {
                            @if let Some(priority) = &escalation.priority { span.priority { (priority) } }
                            "Asked " (time::ago(&escalation.created_at))
                            (time_left(escalation))
                        }
                        p.question-title { (escalation.reason) }
                        (desk_work(escalation, number, DeskPlace::Conversation, &view.csrf))
                    }
                }
            }
        }
    }
}

fn flow_part(view: &ConversationPageView) -> Markup {
    html! {
        section.panel data-part="flow" aria-labelledby="flow-title" {
            div.panel-head { h2 #flow-title { "Flow" } }
            @match &view.flow {
                None => p.empty { "No flow is active: the agent answers with its model." },
                Some(flow) => {
                    dl.pad.flow-facts {
                        div { dt { "Flow" } dd { (flow.flow_id) } }
                        div { dt { "Run" } dd { a.id href=(links::run(&flow.run_id)) { (flow.run_id) } } }
                        div {
                            dt { "State" }
                            dd { @match &flow.paused_on { Some(what) => { "Paused on " code { (what) } }, None => "Running" } }
                        }
                        @if let Some(deadline) = &flow.deadline {
                            div { dt { "Deadline" } dd { (time::countdown(deadline)) } }
                        }
                        @for (key, answer) in &flow.answers {
                            div { dt { "Answer " code { (key) } } dd { (answer) } }
                        }
                    }
                }
            }
        }
    }
}

fn transcript_part(view: &ConversationPageView) -> Markup {
    html! {
        div data-part="transcript" {
            @if view.lines_omitted > 0 {
                p.trimmed { (view.lines_omitted) " earlier messages are not shown." }
            }
            @if view.transcript.is_empty() { p.empty { "Nothing was said yet." } }
            (transcript_items(&view.transcript))
        }
    }
}

pub(super) fn line_of(line: &TranscriptLine) -> Markup {
    html! {
        li class={ "line " (line.by) } {
            p.line-head {
                strong { (line.name) }
                @if line.by == "human" { " for the agent" }
                " " (time::ago(&line.at))
                @if let Some(delivery) = &line.delivery { " " span.delivery { (delivery) } }
            }
            p.line-text { (line.text) }
        }
    }
}
