//! What each kind of question shows, the form that answers it, and how that form is read.
//!
//! There is one module for each way of answering: a decision (approvals and held decisions of
//! agents), a set of questions, and any other answer. An unknown kind is shown and answered as
//! JSON, so a host may use kinds that this console does not support yet.

mod clarification;
mod decision;
mod open;

use maud::{Markup, html};
use serde_json::Value;

use super::CardView;
use crate::links;
use crate::schema_form::{FormRenderer, PostedFields};

/// A place in the answer, as a JSON pointer, and its error.
type FieldErrors = Vec<(String, String)>;

/// How a question is answered.
enum AnswerMode {
    Decision,
    Questions,
    Open,
}

impl AnswerMode {
    fn of(card: &CardView) -> Self {
        match card.kind.as_str() {
            "approval" => Self::Decision,
            "clarification" => Self::Questions,
            // Any kind that lists the actions of a decision is one.
            _ if card.data["actions"].is_array() => Self::Decision,
            _ => Self::Open,
        }
    }
}

/// The content of the question.
pub(super) fn question_part(card: &CardView) -> Markup {
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::question_part(card),
        AnswerMode::Questions => clarification::question_part(card),
        AnswerMode::Open => open::question_part(card),
    }
}

/// The form that answers it.
pub(super) fn answer_form(card: &CardView) -> Markup {
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::answer_form(card),
        AnswerMode::Questions => clarification::answer_form(card),
        AnswerMode::Open => open::answer_form(card),
    }
}

/// Reads the answer from a posted form.
pub fn read_answer(card: &CardView, fields: &[(String, String)]) -> Result<Value, FieldErrors> {
    let posted = PostedFields::new(fields);
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::read(card, &posted),
        AnswerMode::Questions => clarification::read(card, &posted),
        AnswerMode::Open => open::read(card, &posted),
    }
}

/// The keyboard key and the label of an approval action.
pub(super) fn action_label(action: &str) -> (&'static str, &str) {
    match action {
        "accept" => ("a", "Approve"),
        "reject" => ("r", "Reject"),
        "refine" => ("", "Request changes"),
        "edit-accept" => ("e", "Approve with changes"),
        "ask" => ("", "Ask back"),
        "answer" | "resolve" | "deliver" => ("a", "Send"),
        other => ("", other),
    }
}

/// The text after a voter's name.
pub(crate) fn vote_label(action: &str) -> &str {
    match action {
        "accept" => "approved",
        "edit-accept" => "approved with changes",
        "reject" => "rejected",
        "refine" => "requested changes",
        other => other,
    }
}

/// A form that posts to the question; `inside` has the fields and the buttons.
fn form(card: &CardView, id: &str, inside: &Markup) -> Markup {
    html! {
        form.stack id=(id) method="post" action=(links::answer(&card.id, &card.selection)) data-answer {
            input type="hidden" name="csrf" value=(card.csrf);
            input type="hidden" name="digest" value=(card.digest);
            (inside)
            @if card.conversation.is_some() { (admin_token()) }
        }
    }
}

/// Rules of an agent that are written as data know admins by a token. It is sent with the answer and not kept.
fn admin_token() -> Markup {
    html! {
        details.admin-token {
            summary { "The agent asks for an admin token" }
            label for="admin-token" { "Admin token" }
            input #admin-token type="password" name="adminToken" autocomplete="off" autocapitalize="none"
                spellcheck="false";
        }
    }
}

fn button(action: &str, primary: bool) -> Markup {
    let (key, label) = action_label(action);
    // The key of an edit opens its form. While there are edits, the script gives this button the
    // key of an approval.
    let key = Some(key).filter(|key| !key.is_empty() && *key != "e");
    // A proposal that does not fit its own schema can still be approved or refused unchanged.
    let unchecked = matches!(action, "accept" | "reject" | "refine" | "ask");
    html! {
        button type="submit" name="action" value=(action) data-key=[key] .primary[primary]
            .danger[action == "reject"] formnovalidate[unchecked] {
            (label)
            @if let Some(key) = key { " " kbd aria-hidden="true" { (key) } }
        }
    }
}

fn form_renderer<'a>(card: &'a CardView, posted: Option<&'a PostedFields<'a>>) -> FormRenderer<'a> {
    FormRenderer::new(posted, &card.field_errors)
}

/// The entered values, if the form is shown again.
fn entered(card: &CardView) -> Option<PostedFields<'_>> {
    (!card.entered.is_empty()).then(|| PostedFields::new(&card.entered))
}
