//! Decisions: the proposal, edited or unchanged, a comment and an action. Approvals propose an
//! artifact; a low-confidence interrupt proposes the agent's decision.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::card;
use super::{CardView, FieldErrors, button, entered, form, form_renderer};
use crate::schema_form::{PostedFields, Shape, child_pointer, initial_fields, read as read_form};
use crate::{changes as compared, links};

/// JSON pointers of errors about the comment.
const COMMENT: [&str; 4] = [
    "/feedback",
    "/question",
    "/refineFeedback",
    "/refineFeedback/text",
];

/// The name of the proposal in the question's data, and of its edited version in the answer.
fn proposal_fields(card: &CardView) -> (&'static str, &'static str) {
    match card.data["decision"].is_null() {
        true => ("artifactData", "editedArtifactData"),
        false => ("decision", "decision"),
    }
}

pub(super) fn question_part(card: &CardView) -> Markup {
    let number = |key: &str| card.data[key].as_f64();
    html! {
        @if let (Some(observed), Some(threshold)) = (number("observed"), number("threshold")) {
            p.pad.hint {
                (card.data["agentId"].as_str().unwrap_or("An agent")) " is " (observed)
                " sure of this; " (threshold) " is required."
            }
        }
        @if let Some((before, after)) = card.edit() { (compared::table(before, after)) }
        @match artifact(card) {
            Some(artifact) => (card::value(if card.edited.is_none() && card.proposed.is_some() { "Proposed, with the changes" } else { "Proposed" }, artifact)),
            None => p.pad.hint { "Nothing is attached: the decision is about the step itself." },
        }
    }
}

fn shape(card: &CardView) -> Shape {
    let schema = Some(&card.data["artifactSchema"]).filter(|schema| schema.is_object());
    Shape::of(schema, artifact(card))
}

fn artifact(card: &CardView) -> Option<&Value> {
    let proposed = card.data.get(proposal_fields(card).0);
    proposed.filter(|data| !data.is_null())
}

/// One form for all actions, so that edits are sent with every action: an approval with edits
/// cannot be mistaken for a plain approval.
pub(super) fn answer_form(card: &CardView) -> Markup {
    let posted = entered(card);
    let edited = posted.as_ref().is_some_and(|posted| changes(card, posted));
    let inside = html! {
        @if offers(card, "edit-accept") { (edit(card, posted.as_ref(), edited)) }
        (decision(card, posted.as_ref()))
    };
    html! {
        div #edits data-edited[edited] { (form(card, "decide", &inside)) }
    }
}

fn offers(card: &CardView, action: &str) -> bool {
    card.actions.iter().any(|offered| offered == action)
}

fn decision(card: &CardView, posted: Option<&PostedFields<'_>>) -> Markup {
    let comment = posted.and_then(|p| p.get("comment"));
    let wrong = card
        .field_errors
        .iter()
        .filter(|(place, _)| COMMENT.contains(&&**place));
    let wrong: Vec<&str> = wrong.map(|(_, why)| why.as_str()).collect();
    let invalid = (posted.is_some() && !wrong.is_empty()).then_some("true");
    html! {
        label for="comment" { "Comment " kbd aria-hidden="true" { "c" } }
        textarea #comment .prose name="comment" rows="2" aria-describedby="comment-about"
            aria-invalid=[invalid] { (comment.unwrap_or_default()) }
        div #comment-about .about {
            @if invalid.is_some() { @for why in &wrong { p.wrong { (why) } } }
        }
        div.buttons {
            @for action in &card.actions { (button(action, matches!(&**action, "accept" | "edit-accept"))) }
        }
    }
}

fn edit(card: &CardView, posted: Option<&PostedFields<'_>>, edited: bool) -> Markup {
    let fields = form_renderer(card, posted).field(
        &shape(card),
        &child_pointer("", proposal_fields(card).1),
        "Proposed",
        artifact(card),
        true,
    );
    html! {
        details #edit open[edited] {
            summary { "Change what is proposed " kbd aria-hidden="true" { "e" } }
            (fields)
            p #edited-note .notice hidden[!edited] {
                "You changed what is proposed. Approving sends your changes. "
                a href=(links::question(&card.id, &card.selection)) { "Undo them" }
            }
        }
    }
}

/// Whether the posted values differ from the proposal.
fn changes(card: &CardView, posted: &PostedFields<'_>) -> bool {
    if !posted.has_values() {
        return false;
    }
    let (shape, before) = (shape(card), artifact(card));
    let path = child_pointer("", proposal_fields(card).1);
    let initial_fields = initial_fields(&shape, &path, before);
    let value = |posted: &PostedFields<'_>| {
        let mut field_errors = FieldErrors::new();
        let read = read_form(&shape, &path, posted, before, true, &mut field_errors);
        field_errors.is_empty().then_some(read)
    };
    value(posted) != value(&PostedFields::new(&initial_fields))
}

pub(super) fn read(card: &CardView, posted: &PostedFields<'_>) -> Result<Value, FieldErrors> {
    let action = posted.get("action").unwrap_or_default();
    let comment = posted
        .get("comment")
        .map(str::trim)
        .filter(|t| !t.is_empty());
    let comment = comment.map(|text| text.replace("\r\n", "\n"));
    let demanded = |place: &str, why: &str| {
        let missing = || vec![(place.to_owned(), why.to_owned())];
        comment.clone().ok_or_else(missing)
    };
    let mut answer = json!({"action": action});
    match action {
        "accept" if changes(card, posted) => {
            let why = "you changed what is proposed: approve it with your changes, or undo them";
            return Err(vec![("/action".to_owned(), why.to_owned())]);
        }
        "edit-accept" if posted.has_values() && !changes(card, posted) => {
            let why = "you changed nothing: approve it as it is, or change something";
            return Err(vec![("/action".to_owned(), why.to_owned())]);
        }
        "refine" => {
            let text = demanded("/refineFeedback/text", "say what should change")?;
            answer["refineFeedback"] = json!({"scope": "whole", "text": text});
        }
        "ask" => answer["question"] = json!(demanded("/question", "what do you want to know?")?),
        "edit-accept" => {
            let mut field_errors = FieldErrors::new();
            let (shape, before) = (shape(card), artifact(card));
            let place = proposal_fields(card).1;
            let path = child_pointer("", place);
            let edited = read_form(&shape, &path, posted, before, true, &mut field_errors);
            if !field_errors.is_empty() {
                return Err(field_errors);
            }
            answer[place] = edited.unwrap_or_default();
        }
        _ => {}
    }
    if let Some(comment) = comment.filter(|_| !matches!(action, "refine" | "ask")) {
        answer["feedback"] = json!(comment);
    }
    Ok(answer)
}
