//! Forms from schemas and values, and the values read back.

use super::*;
use crate::tests::scan::tags;
use serde_json::json;

fn order() -> Value {
    json!({
        "type": "object",
        "required": ["amount", "currency", "to"],
        "properties": {
            "amount": {"type": "number", "minimum": 0, "maximum": 500, "title": "Amount"},
            "currency": {"enum": ["EUR", "USD"]},
            "count": {"type": "integer"},
            "gift": {"type": "boolean"},
            "note": {"type": ["string", "null"], "description": "Shown to the customer"},
            "due": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "to": {"$ref": "#/$defs/person"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {
                "sku": {"type": "string"}, "n": {"type": "integer"}}}},
            "odd": {"oneOf": [{"type": "string"}, {"type": "number"}]}
        },
        "$defs": {"person": {"type": "object", "required": ["email"], "properties": {
            "email": {"type": "string", "format": "email"}, "name": {"type": "string"}}}}
    })
}

fn proposed() -> Value {
    json!({
        "amount": 40.5, "currency": "EUR", "count": 2, "gift": true, "note": null,
        "due": "2026-01-31", "tags": ["a", "b"], "to": {"email": "ada@example.com"},
        "lines": [{"sku": "x", "n": 1}], "odd": 7, "extra": "kept"
    })
}

/// What a browser would send for an unchanged rendered form.
fn untouched(html: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut select = None;
    for tag in tags(html) {
        let attribute = |name: &str| tag.attribute(name).unwrap_or_default().to_owned();
        let sent = attribute("type") != "checkbox" || tag.attribute("checked").is_some();
        match tag.name.as_str() {
            "input" if sent => fields.push((attribute("name"), attribute("value"))),
            "select" => select = Some(attribute("name")),
            "option" if tag.attribute("selected").is_some() => {
                fields.push((select.clone().unwrap(), attribute("value")));
            }
            "textarea" => {
                let (_, rest) = html
                    .split_once(&format!("name=\"{}\"", attribute("name")))
                    .unwrap();
                let (_, rest) = rest.split_once('>').unwrap();
                let text = rest.split("</textarea>").next().unwrap();
                fields.push((attribute("name"), text.replace("&quot;", "\"")));
            }
            _ => {}
        }
    }
    fields
}

#[test]
fn initial_fields_match_what_a_browser_sends() {
    let value = proposed();
    for (schema, value) in [
        (Some(order()), Some(&value)),
        (None, Some(&value)),
        (Some(order()), None),
    ] {
        let shape = Shape::of(schema.as_ref(), value);
        let mut sent = untouched(&render(&shape, value));
        sent.retain(|(_, text)| !text.is_empty());
        let mut expected = super::initial_fields(&shape, "", value);
        sent.sort();
        expected.sort();
        assert_eq!(expected, sent);
    }
}

fn render(shape: &Shape, value: Option<&Value>) -> String {
    FormRenderer::new(None, &[])
        .field(shape, "", "Value", value, true)
        .into_string()
}

fn read_back(
    shape: &Shape,
    fields: &[(String, String)],
    before: Option<&Value>,
) -> Result<Value, Vec<(String, String)>> {
    let mut field_errors = Vec::new();
    let value = read(
        shape,
        "",
        &PostedFields::new(fields),
        before,
        true,
        &mut field_errors,
    );
    match field_errors.is_empty() {
        true => Ok(value.unwrap_or_default()),
        false => Err(field_errors),
    }
}

fn set(fields: &mut Vec<(String, String)>, name: &str, value: &str) {
    fields.retain(|(n, _)| n != name);
    fields.push((name.to_owned(), value.to_owned()));
}

#[test]
fn an_untouched_form_gives_the_proposed_value() {
    let schema = order();
    for (schema, value) in [
        (Some(&schema), proposed()),
        (None, proposed()),
        (
            None,
            json!({"deep": {"er": {"list": [1, 2], "none": null, "mixed": [1, "a"]}}}),
        ),
        (None, json!([])),
        (None, json!("text\nof two lines")),
        (None, json!({})),
        (Some(&json!({"type": "string"})), json!({"not": "a text"})),
        (Some(&json!({"type": "integer"})), json!(1.5)),
    ] {
        let shape = Shape::of(schema, Some(&value));
        let fields = untouched(&render(&shape, Some(&value)));
        assert_eq!(read_back(&shape, &fields, Some(&value)), Ok(value));
    }
}

#[test]
fn each_type_has_its_field() {
    let html = render(
        &Shape::of(Some(&order()), Some(&proposed())),
        Some(&proposed()),
    );
    let tags = tags(&html);
    let of = |name: &str| {
        let tag = tags.iter().find(|t| t.attribute("name") == Some(name));
        tag.unwrap_or_else(|| panic!("no field {name}"))
    };
    for (name, kind) in [
        ("v/amount", "number"),
        ("v/count", "number"),
        ("v/gift", "checkbox"),
        ("v/due", "date"),
        ("v/to/email", "email"),
        ("v/tags/2", "text"),
        ("v/lines/0/sku", "text"),
    ] {
        assert_eq!(of(name).attribute("type"), Some(kind), "{name}");
    }
    assert_eq!(of("v/amount").attribute("max"), Some("500"));
    assert_eq!(of("v/amount").attribute("step"), Some("any"));
    assert_eq!(of("v/count").attribute("step"), Some("1"));
    assert_eq!(of("v/currency").name, "select");
    assert_eq!(of("v/odd").name, "textarea");
    assert!(html.contains("Shown to the customer") && html.contains(">Amount"));
}

#[test]
fn edits_are_read_by_type() {
    let (schema, value) = (order(), proposed());
    let shape = Shape::of(Some(&schema), Some(&value));
    let mut fields = untouched(&render(&shape, Some(&value)));
    set(&mut fields, "v/amount", "12");
    set(&mut fields, "v/currency", "1");
    set(&mut fields, "v/note", "two\r\nlines");
    set(&mut fields, "v/tags/0", "");
    set(&mut fields, "v/tags/2", "new");
    set(&mut fields, "v/lines/1/sku", "y");
    set(&mut fields, "v/odd", "\"word\"");
    fields.retain(|(name, _)| name != "v/gift");
    let read = read_back(&shape, &fields, Some(&value)).unwrap();
    assert_eq!(read["amount"], 12);
    assert_eq!(read["currency"], "USD");
    assert_eq!(read["note"], "two\nlines");
    assert_eq!(read["tags"], json!(["b", "new"]));
    assert_eq!(read["lines"], json!([{"sku": "x", "n": 1}, {"sku": "y"}]));
    assert_eq!(read["odd"], "word");
    assert_eq!(read["gift"], false);
}

#[test]
fn empty_optional_fields_are_omitted() {
    let shape = Shape::of(Some(&order()), None);
    let read = read_back(&shape, &[], None).unwrap();
    assert_eq!(
        read,
        json!({"to": {"email": ""}}),
        "the rest is for the schema to miss"
    );
}

#[test]
fn unparsable_text_is_refused_with_its_path() {
    let (schema, value) = (order(), proposed());
    let shape = Shape::of(Some(&schema), Some(&value));
    let mut fields = untouched(&render(&shape, Some(&value)));
    set(&mut fields, "v/amount", "a lot");
    set(&mut fields, "v/count", "1.5");
    set(&mut fields, "v/currency", "9");
    set(&mut fields, "v/odd", "{");
    let field_errors = read_back(&shape, &fields, Some(&value)).unwrap_err();
    let places: Vec<&str> = field_errors
        .iter()
        .map(|(place, _)| place.as_str())
        .collect();
    assert_eq!(places, ["/amount", "/count", "/currency", "/odd"]);
    // Shown again: the entered text, with the error beside it.
    let posted = PostedFields::new(&fields);
    let again = FormRenderer::new(Some(&posted), &field_errors);
    let html = again
        .field(&shape, "", "Value", Some(&value), true)
        .into_string();
    assert!(html.contains("value=\"a lot\"") && html.contains("must be a number"));
    assert_eq!(html.matches("aria-invalid=\"true\"").count(), 4, "{html}");
}

#[test]
fn unsupported_schemas_fall_back_to_json() {
    let long: Vec<u32> = (0..100).collect();
    let mut deep = json!(1);
    for _ in 0..10 {
        deep = json!({"in": deep});
    }
    let looping = json!({"$ref": "#"});
    for (schema, value) in [
        (Some(&json!({"allOf": [{}]})), Some(json!(1))),
        (Some(&looping), Some(json!(1))),
        (Some(&json!({"type": ["string", "number"]})), Some(json!(1))),
        (None, Some(json!(long))),
        (None, Some(json!(null))),
        (None, None),
    ] {
        assert_eq!(
            Shape::of(schema, value.as_ref()).field,
            Field::Json,
            "{schema:?}"
        );
    }
    assert!(render(&Shape::of(None, Some(&deep)), Some(&deep)).contains("data-json-field"));
}
