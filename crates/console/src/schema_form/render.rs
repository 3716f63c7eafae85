//! The fields of a shape as markup: labelled, with errors beside their fields.

use super::read::{FieldError, PostedFields};
use super::{Field, Shape, Text, child_pointer, field_name};
use maud::{Markup, html};
use serde_json::Value;
use std::cell::Cell;

/// The entered values, when a form is shown again with errors.
pub(crate) type Entered<'a> = Option<&'a PostedFields<'a>>;

/// One form being rendered; keeps field ids unique.
pub(crate) struct FormRenderer<'a> {
    pub(crate) entered: Entered<'a>,
    pub(crate) field_errors: &'a [FieldError],
    fields: Cell<usize>,
}

/// The position of a field.
struct FieldContext<'a> {
    path: &'a str,
    label: &'a str,
    value: Option<&'a Value>,
    required: bool,
}

impl<'a> FormRenderer<'a> {
    pub(crate) fn new(entered: Entered<'a>, field_errors: &'a [FieldError]) -> Self {
        Self {
            entered,
            field_errors,
            fields: Cell::new(0),
        }
    }

    /// The field of the value at `path`, with a label of the caller.
    pub(crate) fn field(
        &self,
        shape: &Shape,
        path: &str,
        label: &str,
        value: Option<&Value>,
        required: bool,
    ) -> Markup {
        let label = shape.title.as_deref().unwrap_or(label);
        let at = FieldContext {
            path,
            label,
            value,
            required,
        };
        match &shape.field {
            Field::Group(members) => html! {
                fieldset.group {
                    legend { (label) }
                    (self.hint_and_errors(shape, path, &self.next_id()))
                    @for member in members {
                        @let value = value.and_then(|v| v.get(&member.name));
                        (self.field(&member.shape, &child_pointer(path, &member.name), &member.name, value,
                            member.required))
                    }
                }
            },
            Field::List(item) => self.list(shape, item, &at),
            Field::Flag => self.flag(shape, &at),
            Field::Choice(options) => self.choice(shape, options, &at),
            Field::Text(_) | Field::Number { .. } | Field::Json => self.typed(shape, &at),
        }
    }

    fn typed(&self, shape: &Shape, at: &FieldContext<'_>) -> Markup {
        let (id, name) = (self.next_id(), field_name(at.path));
        let shown = self.shown(&name, typed_text(&shape.field, at.value));
        let (invalid, described) = (self.invalid(at.path), format!("{id}-about"));
        let required = at.required && !shape.nullable;
        let kind = match shape.field {
            Field::Text(Text::Date) => "date",
            Field::Text(Text::Email) => "email",
            Field::Text(Text::Url) => "url",
            Field::Number { .. } => "number",
            _ => "text",
        };
        html! {
            div.field {
                label for=(id) { (at.label) (mark(at.required)) }
                @match &shape.field {
                    Field::Json => {
                        textarea id=(id) name=(name) rows=(rows(&shown, 4)) data-json-field
                            spellcheck="false" autocapitalize="none" aria-describedby=(described)
                            aria-invalid=[invalid] { (shown) }
                        p.hint { "JSON" }
                    }
                    Field::Text(Text::Long) => {
                        textarea.prose id=(id) name=(name) rows=(rows(&shown, 3))
                            aria-describedby=(described) aria-invalid=[invalid] { (shown) }
                    }
                    Field::Number { integer, min, max } => {
                        input id=(id) name=(name) type=(kind) value=(shown) required[required]
                            step=(if *integer { "1" } else { "any" }) min=[*min] max=[*max]
                            aria-describedby=(described) aria-invalid=[invalid];
                    }
                    _ => {
                        @let sample = (shape.field == Field::Text(Text::DateTime))
                            .then_some("2026-01-31T09:00:00Z");
                        input id=(id) name=(name) type=(kind) value=(shown) placeholder=[sample]
                            aria-describedby=(described) aria-invalid=[invalid];
                    }
                }
                (self.hint_and_errors(shape, at.path, &described))
            }
        }
    }

    fn flag(&self, shape: &Shape, at: &FieldContext<'_>) -> Markup {
        let (id, name) = (self.next_id(), field_name(at.path));
        let on = match self.entered {
            Some(entered) => entered.get(&name) == Some("true"),
            None => at.value.and_then(Value::as_bool).unwrap_or(false),
        };
        let described = format!("{id}-about");
        html! {
            div.field.tick {
                input id=(id) name=(name) type="checkbox" value="true" checked[on]
                    aria-describedby=(described);
                label for=(id) { (at.label) }
                (self.hint_and_errors(shape, at.path, &described))
            }
        }
    }

    fn choice(&self, shape: &Shape, options: &[Value], at: &FieldContext<'_>) -> Markup {
        let (id, name) = (self.next_id(), field_name(at.path));
        let proposed = at.value.and_then(|v| options.iter().position(|o| o == v));
        let chosen = match self.entered {
            Some(entered) => entered.get(&name).and_then(|text| text.parse().ok()),
            None => proposed,
        };
        let described = format!("{id}-about");
        html! {
            div.field {
                label for=(id) { (at.label) (mark(at.required)) }
                select id=(id) name=(name) aria-describedby=(described)
                    aria-invalid=[self.invalid(at.path)] {
                    @if !at.required || shape.nullable || proposed.is_none() {
                        option value="" selected[chosen.is_none()] { "–" }
                    }
                    @for (place, option) in options.iter().enumerate() {
                        option value=(place) selected[chosen == Some(place)] { (display_text(option)) }
                    }
                }
                (self.hint_and_errors(shape, at.path, &described))
            }
        }
    }

    /// The existing entries, and an empty one for the next.
    fn list(&self, shape: &Shape, item: &Shape, at: &FieldContext<'_>) -> Markup {
        let known = at.value.and_then(Value::as_array).map_or(0, Vec::len);
        let mut places: Vec<usize> = match self.entered {
            Some(entered) => entered.places(at.path).into_iter().collect(),
            None => (0..known).collect(),
        };
        places.push(places.last().map_or(0, |last| last + 1));
        html! {
            fieldset.group data-list=(field_name(at.path)) {
                legend { (at.label) (mark(at.required)) }
                (self.hint_and_errors(shape, at.path, &self.next_id()))
                @for (i, place) in places.iter().enumerate() {
                    @let value = at.value.and_then(|v| v.get(*place));
                    @let label = format!("{} {}", at.label, i + 1);
                    div.entry data-place=(place) {
                        (self.field(item, &child_pointer(at.path, &place.to_string()), &label, value, false))
                    }
                }
                p.hint { "An entry left empty is left out." }
            }
        }
    }

    /// The schema's description of a field, and its errors.
    fn hint_and_errors(&self, shape: &Shape, path: &str, id: &str) -> Markup {
        let wrong = self.field_errors.iter().filter(|(place, _)| place == path);
        html! {
            div.about id=(id) {
                @if let Some(hint) = &shape.hint { p.hint { (hint) } }
                @for (_, why) in wrong { p.wrong { (why) } }
            }
        }
    }

    fn invalid(&self, path: &str) -> Option<&'static str> {
        let wrong = self.field_errors.iter().any(|(place, _)| place == path);
        wrong.then_some("true")
    }

    fn shown(&self, name: &str, proposed: String) -> String {
        match self.entered {
            Some(entered) => entered.get(name).unwrap_or_default().to_owned(),
            None => proposed,
        }
    }

    fn next_id(&self) -> String {
        let n = self.fields.get() + 1;
        self.fields.set(n);
        format!("field-{n}")
    }
}

/// The initial text of a typed field.
fn typed_text(field: &Field, value: Option<&Value>) -> String {
    match (field, value) {
        (_, None) | (Field::Number { .. } | Field::Text(_), Some(Value::Null)) => String::new(),
        (Field::Text(_), Some(value)) => value.as_str().unwrap_or_default().to_owned(),
        (_, Some(value)) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// What a browser sends for an unchanged form; empty fields are left out.
pub(crate) fn initial_fields(
    shape: &Shape,
    path: &str,
    value: Option<&Value>,
) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let sent = match &shape.field {
        Field::Group(members) => {
            for member in members {
                let value = value.and_then(|v| v.get(&member.name));
                fields.extend(initial_fields(
                    &member.shape,
                    &child_pointer(path, &member.name),
                    value,
                ));
            }
            return fields;
        }
        Field::List(item) => {
            let items = value.and_then(Value::as_array).into_iter().flatten();
            for (i, value) in items.enumerate() {
                fields.extend(initial_fields(
                    item,
                    &child_pointer(path, &i.to_string()),
                    Some(value),
                ));
            }
            return fields;
        }
        Field::Flag => {
            let on = value.and_then(Value::as_bool) == Some(true);
            on.then(|| "true".to_owned())
        }
        Field::Choice(options) => {
            let chosen = value.and_then(|v| options.iter().position(|o| o == v));
            chosen.map(|place| place.to_string())
        }
        Field::Text(_) | Field::Number { .. } | Field::Json => {
            Some(typed_text(&shape.field, value)).filter(|text| !text.is_empty())
        }
    };
    fields.extend(sent.map(|sent| (field_name(path), sent)));
    fields
}

fn mark(required: bool) -> Markup {
    html! { @if required { span.must aria-hidden="true" { " *" } } }
}

fn display_text(option: &Value) -> String {
    match option {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rows(text: &str, least: usize) -> usize {
    text.lines().count().clamp(least, 24)
}
