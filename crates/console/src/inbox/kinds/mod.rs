//! What each kind of question shows, the form it is answered with, and how that form is read.
//!
//! One module for each way of answering: a decision (approvals, and what agents decided but are not
//! trusted with), a set of questions, anything else. A kind nobody here knows is shown and answered as JSON, so a host may ask
//! new kinds of questions before this console has learned them.

mod clarification;
mod decision;
mod open;

use maud::{Markup, html};
use serde_json::Value;

use super::CardView;
use crate::links;
use crate::schema_form::{FormRenderer, PostedFields};

/// A place in the answer, as a JSON pointer, and what is wrong there.
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
            // Whatever its kind is called, it names the actions of a decision.
            _ if card.data["actions"].is_array() => Self::Decision,
            _ => Self::Open,
        }
    }
}

/// What the question is about.
pub(super) fn question_part(card: &CardView) -> Markup {
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::question_part(card),
        AnswerMode::Questions => clarification::question_part(card),
        AnswerMode::Open => open::question_part(card),
    }
}

/// The forms that answer it.
pub(super) fn answer_form(card: &CardView) -> Markup {
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::answer_form(card),
        AnswerMode::Questions => clarification::answer_form(card),
        AnswerMode::Open => open::answer_form(card),
    }
}

/// The answer a browser sent with one of those forms.
pub fn read_answer(card: &CardView, fields: &[(String, String)]) -> Result<Value, FieldErrors> {
    let posted = PostedFields::new(fields);
    match AnswerMode::of(card) {
        AnswerMode::Decision => decision::read(card, &posted),
        AnswerMode::Questions => clarification::read(card, &posted),
        AnswerMode::Open => open::read(card, &posted),
    }
}

/// The key and the words for an action of an approval.
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

/// What somebody did, after their name.
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
        }
    }
}

fn button(action: &str, primary: bool) -> Markup {
    let (key, label) = action_label(action);
    // The key of an edit opens its form. The script gives this button the key of an approval while
    // there are changes.
    let key = Some(key).filter(|key| !key.is_empty() && *key != "e");
    // What is proposed need not fit its own schema to be approved or refused as it is.
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

/// What was typed, if the form came back.
fn entered(card: &CardView) -> Option<PostedFields<'_>> {
    (!card.entered.is_empty()).then(|| PostedFields::new(&card.entered))
}
