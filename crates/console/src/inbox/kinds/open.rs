//! All other questions: external events, custom kinds, ratification of a decision, vendor kinds.
//! The form is made from the schema of the answer; without a schema the answer is JSON.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::card;
use super::{CardView, FieldErrors, button, entered, form, form_renderer};
use crate::schema_form::{Field, PostedFields, Shape, read as read_form};

pub(super) fn question_part(card: &CardView) -> Markup {
    match card.kind.as_str() {
        "external-event" => html! {
            p.pad.hint {
                "The run waits for the event " code { (card.data["eventType"].as_str().unwrap_or("?")) }
                ". Delivering it here stands in for the outside."
            }
            (card::value("Must match", &card.data["correlation"]))
        },
        "custom" if card.data["payload"].is_null() => html! {},
        "custom" => card::value("Attached", &card.data["payload"]),
        _ => card::value("Asked", &card.data),
    }
}

/// The initial value of the form.
fn proposed(card: &CardView) -> Option<Value> {
    let value = match card.kind.as_str() {
        "external-event" => &card.data["correlation"],
        "low-confidence" => &card.data["decision"],
        _ => &Value::Null,
    };
    Some(value).filter(|v| !v.is_null()).cloned()
}

fn shape(card: &CardView, proposed: Option<&Value>) -> Shape {
    match &card.resume_schema {
        Some(schema) => Shape::of(Some(schema), proposed),
        // The answer may need other keys than the proposed ones, so it is a JSON text.
        None => Shape {
            field: Field::Json,
            title: None,
            hint: None,
            nullable: false,
        },
    }
}

pub(super) fn answer_form(card: &CardView) -> Markup {
    let proposed = proposed(card);
    let posted = entered(card);
    let shape = shape(card, proposed.as_ref());
    let empty = json!({});
    let free = proposed.is_none() && shape.field == Field::Json;
    let value = proposed.as_ref().or(free.then_some(&empty));
    let inside = html! {
        (form_renderer(card, posted.as_ref()).field(&shape, "", "Answer", value, true))
        div.buttons { (button("resolve", true)) }
    };
    form(card, "decide", &inside)
}

pub(super) fn read(card: &CardView, posted: &PostedFields<'_>) -> Result<Value, FieldErrors> {
    let proposed = proposed(card);
    let shape = shape(card, proposed.as_ref());
    let mut field_errors = FieldErrors::new();
    let value = read_form(
        &shape,
        "",
        posted,
        proposed.as_ref(),
        true,
        &mut field_errors,
    );
    match field_errors.is_empty() {
        true => Ok(value.unwrap_or_default()),
        false => Err(field_errors),
    }
}
