//! One question in full: its content, its history, the next steps, and the form that answers it. A
//! closed question shows who closed it and how.
//!
//! The part marked `standing` (whose work it is, votes, follow-up questions) is replaced while somebody types; the
//! form is not.

use maud::{Markup, html};
use serde_json::Value;

use super::{InboxSelection, kinds, list};
use crate::desk::{self, DeskEscalation, DeskPlace, TranscriptLine};
use crate::{EventRow, links, status, time};

/// Longer text of an artifact is folded at first.
const FOLDED_CHARS: usize = 2_000;

#[derive(Debug, Clone, Default)]
pub struct CardView {
    pub id: String,
    pub kind: String,
    pub title: String,
    pub run_id: String,
    pub run_status: String,
    pub workflow_id: String,
    pub node_id: String,
    pub created_at: String,
    pub deadline: Option<String>,
    pub priority: i32,
    pub groups: Vec<String>,
    /// The content of the question; its shape depends on the kind.
    pub data: Value,
    pub resume_schema: Option<Value>,
    pub digest: String,
    pub actions: Vec<String>,
    pub votes: Vec<VoteView>,
    /// The original proposal, once somebody accepted it with edits.
    pub proposed: Option<Value>,
    /// The edited value that was accepted.
    pub edited: Option<Value>,
    pub follow_up_questions: Vec<FollowUpQuestion>,
    /// The last events before the question, oldest first.
    pub history: Vec<EventRow>,
    pub next: Vec<NextStep>,
    pub decided: Option<Decided>,
    /// The conversation that asks; `None` for a workflow run.
    pub conversation: Option<CardConversation>,
    /// The open escalation that is decided here.
    pub escalation: Option<DeskEscalation>,
    /// The selection of the list beside the card.
    pub selection: InboxSelection,
    /// Why the content of the question is not shown and it cannot be answered here; `None` if it is shown.
    pub not_shown: Option<String>,
    /// Why this reader may not answer; `None` if they may.
    pub denied_reason: Option<String>,
    /// The vote this reader has already given.
    pub own_vote: Option<String>,
    pub csrf: String,
    /// Shown above the form when an answer was refused.
    pub refused: Option<String>,
    /// Places in the answer, as JSON pointers, and their errors.
    pub field_errors: Vec<(String, String)>,
    /// The entered values, when the form is shown again with errors.
    pub entered: Vec<(String, String)>,
}

impl CardView {
    /// The original and the edited value, if somebody edited it.
    pub(super) fn edit(&self) -> Option<(&Value, &Value)> {
        let data = &self.data;
        let shown = data.get("artifactData").or_else(|| data.get("decision"))?;
        match (&self.proposed, &self.edited) {
            (None, None) => None,
            (before, after) => Some((
                before.as_ref().unwrap_or(shown),
                after.as_ref().unwrap_or(shown),
            )),
        }
    }
}

/// The conversation a question belongs to.
#[derive(Debug, Clone, Default)]
pub struct CardConversation {
    pub session_id: String,
    pub agent_id: String,
    pub user: String,
    /// The last messages, oldest first.
    pub transcript: Vec<TranscriptLine>,
}

#[derive(Debug, Clone, Default)]
pub struct VoteView {
    pub voter: String,
    /// Whose key, or `link`, claimed that name; the host did not establish it.
    pub claimed_by: Option<String>,
    /// Who acted in the voter's place.
    pub delegate: Option<String>,
    pub action: String,
    pub at: String,
    pub feedback: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct FollowUpQuestion {
    pub by: Option<String>,
    pub question: String,
    pub at: String,
}

/// What would follow from one of the answers.
#[derive(Debug, Clone, Default)]
pub struct NextStep {
    pub action: String,
    /// As a sentence.
    pub text: String,
}

#[derive(Debug, Clone, Default)]
pub struct Decided {
    pub outcome: String,
    pub by: Option<String>,
    pub at: Option<String>,
}

pub(super) fn render(card: &CardView) -> Markup {
    html! {
        section #card .panel.card data-id=(card.id) data-digest=(card.digest)
            data-open[card.decided.is_none()] aria-labelledby="card-title" {
            (head(card))
            @if let Some(decided) = &card.decided { (outcome_notice(card, decided)) }
            (votes_part(card))
            @if let Some(why) = &card.not_shown {
                p.pad #card-not-shown { (why) }
            } @else {
                (kinds::question_part(card))
                @if card.decided.is_none() { (answer(card)) (next_steps_part(card)) }
            }
            (history(card))
        }
    }
}

fn head(card: &CardView) -> Markup {
    html! {
        header.card-head {
            p.back { a href=(links::inbox(&card.selection)) { "← Inbox" } }
            p.question-head {
                span class={ "kind kind-" (list::kind_class(&card.kind)) } { (card.kind) }
                @if card.priority > 0 { span.priority { "Priority " (card.priority) } }
                @for group in &card.groups { span.group-name { (group) } }
                @if card.decided.is_none() {
                    @if let Some(deadline) = &card.deadline { (time::countdown(deadline)) }
                }
            }
            h2 #card-title tabindex="-1" { (card.title) }
            @if let Some(text) = card.data["description"].as_str() { p.description { (text) } }
            @if let Some(conversation) = &card.conversation { (conversation_facts(card, conversation)) }
            @else { (run_facts(card)) }
        }
    }
}

fn conversation_facts(card: &CardView, conversation: &CardConversation) -> Markup {
    html! {
        dl.facts {
            div { dt { "Conversation" } dd { a.id href=(links::conversation(&conversation.session_id)) { (conversation.user) } } }
            div { dt { "Agent" } dd { (conversation.agent_id) } }
            @if !card.run_id.is_empty() {
                div { dt { "Flow run" } dd { a.id href=(links::run(&card.run_id)) { (card.run_id) } " " (status::badge(&card.run_status)) } }
            }
            div { dt { "Asked" } dd { (time::ago(&card.created_at)) } }
        }
    }
}

fn run_facts(card: &CardView) -> Markup {
    html! {
            dl.facts {
                div { dt { "Run" } dd { a.id href=(links::run(&card.run_id)) { (card.run_id) } " " (status::badge(&card.run_status)) } }
                div { dt { "Workflow" } dd { a href=(links::workflow(&card.workflow_id)) { (card.workflow_id) } " · " (card.node_id) } }
                div { dt { "Asked" } dd { (time::ago(&card.created_at)) } }
            }
    }
}

fn outcome_notice(card: &CardView, decided: &Decided) -> Markup {
    html! {
        div.notice.ended role="status" {
            p {
                strong #card-outcome { (outcome_label(&decided.outcome, card.edit().is_some())) }
                @if let Some(by) = &decided.by { " by " (by) }
                @if let Some(at) = &decided.at { ", " (time::ago(at)) }
                "."
            }
            @if let Some(refused) = &card.refused { p { (refused) } }
            @match &card.conversation {
                Some(of) => p { a href=(links::conversation(&of.session_id)) { "See the conversation" } },
                None => p { a href=(links::run(&card.run_id)) { "See the run" } },
            }
        }
    }
}

pub(crate) fn outcome_label(outcome: &str, edited: bool) -> &str {
    match outcome {
        "accepted" if edited => "Approved with changes",
        "accepted" => "Approved",
        "rejected" => "Rejected",
        "changes-requested" => "Changes requested",
        "answered" => "Answered",
        "resolved" => "Resolved",
        "cancelled" => "Gone with its run",
        "expired" => "Expired",
        other => other,
    }
}

fn votes_part(card: &CardView) -> Markup {
    let needed = card.data["requiredApprovals"].as_u64().unwrap_or(1);
    let given = card.votes.iter().filter(|v| v.action != "reject").count();
    html! {
        div data-part="standing" {
            @if let Some(escalation) = &card.escalation {
                section.pad aria-label="Who has it" {
                    (desk::desk_work(escalation, 0, DeskPlace::Question(&card.id), &card.csrf))
                }
            }
            @if needed > 1 || !card.votes.is_empty() {
                section.pad.votes aria-label="Votes" {
                    h3 { "Votes " span.count { (given) " of " (needed) " approvals" } }
                    ul.plain {
                        @for vote in &card.votes {
                            li {
                                strong { (vote.voter) }
                                @if let Some(by) = &vote.claimed_by { " (name claimed by " (by) ")" }
                                @if let Some(delegate) = &vote.delegate { " (through " (delegate) ")" }
                                " " (kinds::vote_label(&vote.action)) " " (time::ago(&vote.at))
                                @if let Some(text) = &vote.feedback { q.said { (text) } }
                            }
                        }
                    }
                }
            }
            @if !card.follow_up_questions.is_empty() {
                section.pad aria-label="Questions sent back" {
                    h3 { "Sent back" }
                    ul.plain {
                        @for question in &card.follow_up_questions {
                            li {
                                strong { (question.by.as_deref().unwrap_or("somebody")) }
                                " " (time::ago(&question.at)) q.said { (question.question) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn answer(card: &CardView) -> Markup {
    html! {
        section.pad.answer aria-label="Your answer" {
            @if let Some(refused) = &card.refused {
                div.notice.bad role="alert" {
                    p { (refused) }
                    @if !card.field_errors.is_empty() {
                        ul {
                            @for (place, why) in &card.field_errors {
                                li { @if place != "/action" { code { (place) } " " } (why) }
                            }
                        }
                    }
                }
            }
            div #card-changed .notice.bad role="alert" hidden {
                p { "The question has changed since it was shown. " a href=(links::question(&card.id, &card.selection)) { "Look again" } }
            }
            @match &card.denied_reason {
                Some(why) => p.hint #card-barred { (why) },
                None => {
                    @if let Some(action) = &card.own_vote {
                        p.hint { "You " (kinds::vote_label(action)) " already. You may change your vote." }
                    }
                    (kinds::answer_form(card))
                },
            }
        }
    }
}

fn next_steps_part(card: &CardView) -> Markup {
    html! {
        @if !card.next.is_empty() {
            section.pad aria-label="What happens next" {
                h3 { "What happens next" }
                dl.ahead {
                    @for step in &card.next {
                        div {
                            dt { (kinds::action_label(&step.action).1) }
                            dd { (step.text) }
                        }
                    }
                }
            }
        }
    }
}

fn history(card: &CardView) -> Markup {
    html! {
        @if let Some(conversation) = card.conversation.as_ref().filter(|of| !of.transcript.is_empty()) {
            details.pad.history open {
                summary { "Last messages " span.count { (conversation.transcript.len()) } }
                (desk::transcript_items(&conversation.transcript))
                p { a href=(links::conversation(&conversation.session_id)) { "The whole conversation" } }
            }
        }
        @if !card.history.is_empty() {
            details.pad.history open {
                summary { "Events before this question " span.count { (card.history.len()) " events" } }
                ol.plain {
                    @for event in &card.history {
                        li {
                            span.id { (event.kind) }
                            @if let Some(node) = &event.node_id { " " span.node { (node) } }
                            " " (time::ago(&event.at))
                        }
                    }
                }
                p { a href=(links::run(&card.run_id)) { "The whole run" } }
            }
        }
    }
}

/// A value in a readable form; a large one is folded at first.
pub(super) fn value(label: &str, value: &Value) -> Markup {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let json = !value.is_string();
    let body = html! {
        pre.json.artifact data-json[json] tabindex="0" aria-label=(label) { (text) }
    };
    html! {
        section.artifact-part {
            @if text.len() > FOLDED_CHARS {
                details {
                    summary.pad { (label) " " span.count { (text.len()) " characters" } }
                    (body)
                }
            } @else {
                h3.pad { (label) }
                (body)
            }
        }
    }
}
