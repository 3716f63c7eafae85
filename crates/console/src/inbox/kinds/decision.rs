//! Decisions: what is proposed, a comment and a verdict; or the proposal changed in a form of its own.
//! Approvals propose an artifact; an agent that is not trusted with its decision proposes that.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::card;
use super::{CardView, Complaints, button, entered, form, rendering};
use crate::schema_form::{Posted, Shape, below, read as read_form};

/// Where the engine or we complain about the comment.
const COMMENT: [&str; 4] = [
    "/feedback",
    "/question",
    "/refineFeedback",
    "/refineFeedback/text",
];

/// Where the proposal stands in what is asked, and its changed version in the answer.
fn places(card: &CardView) -> (&'static str, &'static str) {
    match card.data["decision"].is_null() {
        true => ("artifactData", "editedArtifactData"),
        false => ("decision", "decision"),
    }
}

pub(super) fn shown(card: &CardView) -> Markup {
    let number = |key: &str| card.data[key].as_f64();
    html! {
        @if let (Some(observed), Some(threshold)) = (number("observed"), number("threshold")) {
            p.pad.hint {
                (card.data["agentId"].as_str().unwrap_or("An agent")) " is " (observed)
                " sure of this; " (threshold) " is asked for."
            }
        }
        @match artifact(card) {
            Some(artifact) => (card::value("Proposed", artifact)),
            None => p.pad.hint { "Nothing is attached: the decision is about the step itself." },
        }
    }
}

fn shape(card: &CardView) -> Shape {
    let schema = Some(&card.data["artifactSchema"]).filter(|schema| schema.is_object());
    Shape::of(schema, artifact(card))
}

fn artifact(card: &CardView) -> Option<&Value> {
    let proposed = card.data.get(places(card).0);
    proposed.filter(|data| !data.is_null())
}

pub(super) fn asked(card: &CardView) -> Markup {
    let editable = card.actions.iter().any(|action| action == "edit-accept");
    html! {
        (form(card, "decide", &decision(card)))
        @if editable { (edit(card)) }
    }
}

fn decision(card: &CardView) -> Markup {
    let posted = entered(card, false);
    let comment = posted.as_ref().and_then(|p| p.get("comment"));
    let wrong = card
        .complaints
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
            @for action in card.actions.iter().filter(|action| *action != "edit-accept") {
                (button(action, action == "accept"))
            }
        }
    }
}

fn edit(card: &CardView) -> Markup {
    let posted = entered(card, true);
    let fields = rendering(card, posted.as_ref()).field(
        &shape(card),
        &below("", places(card).1),
        "Proposed",
        artifact(card),
        true,
    );
    let comment = posted.as_ref().and_then(|p| p.get("comment"));
    let inside = html! {
        (fields)
        label for="edit-comment" { "Comment" }
        textarea #edit-comment .prose name="comment" rows="2" { (comment.unwrap_or_default()) }
        div.buttons { (button("edit-accept", true)) }
    };
    html! {
        details #edit open[posted.is_some()] {
            summary { "Change what is proposed " kbd aria-hidden="true" { "e" } }
            (form(card, "edit-form", &inside))
        }
    }
}

pub(super) fn read(card: &CardView, posted: &Posted<'_>) -> Result<Value, Complaints> {
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
        "refine" => {
            let text = demanded("/refineFeedback/text", "say what should change")?;
            answer["refineFeedback"] = json!({"scope": "whole", "text": text});
        }
        "ask" => answer["question"] = json!(demanded("/question", "what do you want to know?")?),
        "edit-accept" => {
            let mut complaints = Complaints::new();
            let (shape, before) = (shape(card), artifact(card));
            let place = places(card).1;
            let path = below("", place);
            let edited = read_form(&shape, &path, posted, before, true, &mut complaints);
            if !complaints.is_empty() {
                return Err(complaints);
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
