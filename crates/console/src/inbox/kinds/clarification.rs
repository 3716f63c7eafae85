//! Clarifications: a set of questions, each with a field for its type of answer.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::card;
use super::{CardView, FieldErrors, button, entered, form, form_renderer};
use crate::schema_form::{PostedFields, Shape, child_pointer, read as read_form};

pub(super) fn question_part(card: &CardView) -> Markup {
    html! {
        @if let Some(context) = card.data["contextType"].as_str() {
            p.pad.hint { "About: " (context) }
        }
        @if !card.data["decision"].is_null() { (card::value("Held", &card.data["decision"])) }
    }
}

/// Id, text and shape of each question; without a schema the answer is a text.
fn questions(card: &CardView) -> impl Iterator<Item = (&str, &str, Shape)> {
    let listed = card.data["questions"].as_array().into_iter().flatten();
    listed.filter_map(|question| {
        let text = question["question"].as_str().unwrap_or_default();
        let plain = json!({"type": "string", "maxLength": 4000});
        let schema = question.get("schema").unwrap_or(&plain);
        Some((
            question["id"].as_str()?,
            text,
            Shape::of(Some(schema), None),
        ))
    })
}

pub(super) fn answer_form(card: &CardView) -> Markup {
    let posted = entered(card);
    let form_renderer = form_renderer(card, posted.as_ref());
    let inside = html! {
        @for (id, text, shape) in questions(card) {
            (form_renderer.field(&Shape { title: None, ..shape }, &child_pointer("/answers", id), text, None, true))
        }
        div.buttons { (button("answer", true)) }
    };
    form(card, "decide", &inside)
}

pub(super) fn read(card: &CardView, posted: &PostedFields<'_>) -> Result<Value, FieldErrors> {
    let mut field_errors = FieldErrors::new();
    let mut answers = Map::new();
    for (id, _, shape) in questions(card) {
        let path = child_pointer("/answers", id);
        let answer = read_form(&shape, &path, posted, None, true, &mut field_errors);
        let blank = answer.as_ref().is_some_and(|a| *a == "");
        match answer.filter(|_| !blank) {
            Some(answer) => {
                answers.insert(id.to_owned(), answer);
            }
            // The field already has a parse error.
            None if field_errors.iter().any(|(place, _)| *place == path) => {}
            None => field_errors.push((path, "an answer is missing".to_owned())),
        }
    }
    match field_errors.is_empty() {
        true => Ok(json!({"answers": answers})),
        false => Err(field_errors),
    }
}
