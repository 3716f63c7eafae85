//! A form made from a JSON Schema, and the value read back from it.
//!
//! Owns the kind of field for a schema ([`Shape`]), its markup ([`render`]) and the parsing of
//! posted fields ([`read`]). It does not validate: the receiver of the value checks it against the
//! schema and passes field errors back, to be shown beside their fields.
//!
//! Invariants:
//! - A field is named by the JSON pointer of its value, so an error can be matched to its field.
//! - A value without its own kind of field is a JSON text: no part of a proposed value is lost.
//! - The shape depends on schema and proposed value only, so that rendering and reading agree.

mod read;
mod render;

#[cfg(test)]
mod tests;

pub(crate) use read::{PostedFields, read};
pub(crate) use render::{FormRenderer, initial_fields};

use serde_json::Value;

/// Deeper values are edited as JSON.
const MAX_DEPTH: usize = 5;
/// A longer list is edited as JSON.
const MAX_ITEMS: usize = 50;
/// A longer text gets several lines.
const LONG_TEXT: usize = 80;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) field: Field,
    pub(crate) title: Option<String>,
    pub(crate) hint: Option<String>,
    /// An empty field means `null`.
    pub(crate) nullable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    Text(Text),
    Number {
        integer: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    Flag,
    Choice(Vec<Value>),
    List(Box<Shape>),
    Group(Vec<Member>),
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    Line,
    Long,
    Date,
    DateTime,
    Email,
    Url,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
}

impl Shape {
    /// From a schema, a proposed value, or both; where the schema has no type, the value decides.
    pub(crate) fn of(schema: Option<&Value>, value: Option<&Value>) -> Self {
        let root = schema.unwrap_or(&Value::Null);
        build(root, root, value, 0)
    }

    fn plain(field: Field) -> Self {
        Self {
            field,
            title: None,
            hint: None,
            nullable: false,
        }
    }
}

fn build(root: &Value, schema: &Value, value: Option<&Value>, depth: usize) -> Shape {
    let Some((schema, nullable)) = resolve(root, schema) else {
        return Shape::plain(Field::Json);
    };
    let text = |key: &str| schema[key].as_str().map(str::to_owned);
    let field = field_of(root, schema, value, depth);
    let fits = value.is_none_or(|v| fits(&field, v) || (nullable && v.is_null()));
    Shape {
        // A proposed value that does not fit its schema is kept as JSON.
        field: if fits { field } else { Field::Json },
        title: text("title"),
        hint: text("description"),
        nullable,
    }
}

/// Follows local references and removes "or null". `None` for schemas without a field.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> Option<(&'a Value, bool)> {
    let (mut schema, mut nullable) = (schema, false);
    for _ in 0..8 {
        if let Some(pointer) = schema["$ref"].as_str() {
            schema = root.pointer(pointer.strip_prefix('#')?)?;
            continue;
        }
        let either = ["anyOf", "oneOf"].iter().find_map(|k| schema[k].as_array());
        if let Some(options) = either {
            let is_null = |option: &&Value| option["type"] == "null";
            let mut others = options.iter().filter(|option| !is_null(option));
            let (Some(only), None) = (others.next(), others.next()) else {
                return None;
            };
            nullable |= options.iter().any(|option| is_null(&option));
            schema = only;
            continue;
        }
        let beyond = ["allOf", "not", "if", "patternProperties", "prefixItems"];
        if beyond.iter().any(|key| !schema[key].is_null()) {
            return None;
        }
        let kinds = schema["type"].as_array();
        nullable |= kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
        return Some((schema, nullable));
    }
    None
}

fn field_of(root: &Value, schema: &Value, value: Option<&Value>, depth: usize) -> Field {
    let scalar = |v: &&Value| !v.is_array() && !v.is_object();
    if let Some(options) = schema["enum"].as_array() {
        let all = options.iter().all(|option| scalar(&option));
        return if all && options.len() <= MAX_ITEMS {
            let options = options.iter().filter(|option| !option.is_null());
            Field::Choice(options.cloned().collect())
        } else {
            Field::Json
        };
    }
    if let Some(only) = schema.get("const").filter(scalar) {
        return Field::Choice(vec![only.clone()]);
    }
    match kind(schema, value) {
        Some("string") => Field::Text(text(schema, value)),
        Some(number @ ("integer" | "number")) => Field::Number {
            integer: number == "integer",
            min: schema["minimum"].as_f64(),
            max: schema["maximum"].as_f64(),
        },
        Some("boolean") => Field::Flag,
        Some("array") if depth < MAX_DEPTH => list(root, schema, value, depth),
        Some("object") if depth < MAX_DEPTH => group(root, schema, value, depth),
        _ => Field::Json,
    }
}

fn kind<'a>(schema: &'a Value, value: Option<&Value>) -> Option<&'a str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            let mut other = kinds.by_ref().filter(|kind| *kind != "null");
            // A field supports one type only.
            match (other.next(), other.next()) {
                (Some(only), None) => Some(only),
                _ => None,
            }
        }
        _ if schema["properties"].is_object() => Some("object"),
        _ if schema["items"].is_object() => Some("array"),
        _ => match value? {
            Value::String(_) => Some("string"),
            Value::Number(_) => Some("number"),
            Value::Bool(_) => Some("boolean"),
            Value::Array(_) => Some("array"),
            Value::Object(_) => Some("object"),
            Value::Null => None,
        },
    }
}

fn text(schema: &Value, value: Option<&Value>) -> Text {
    let roomy = schema["maxLength"]
        .as_u64()
        .is_some_and(|n| n > 4 * LONG_TEXT as u64);
    let shown = value.and_then(Value::as_str).unwrap_or_default();
    match schema["format"].as_str() {
        Some("date") => Text::Date,
        Some("date-time") => Text::DateTime,
        Some("email") => Text::Email,
        Some("uri" | "url") => Text::Url,
        _ if roomy || shown.contains('\n') || shown.len() > LONG_TEXT => Text::Long,
        _ => Text::Line,
    }
}

fn list(root: &Value, schema: &Value, value: Option<&Value>, depth: usize) -> Field {
    let items = value.and_then(Value::as_array);
    if items.is_some_and(|items| items.len() > MAX_ITEMS) {
        return Field::Json;
    }
    // Without a schema the first item defines the shape; if others differ, the list is JSON.
    let example = items.and_then(|items| items.first());
    let item_schema = &schema["items"];
    let item = match item_schema.is_object() {
        true => build(root, item_schema, None, depth + 1),
        false => build(root, item_schema, example, depth + 1),
    };
    let odd = |v: &&Value| !fits(&item.field, v);
    let strange = items.is_some_and(|items| items.iter().any(|v| odd(&v)));
    // A list of JSON texts is easier to edit as one JSON text.
    if item.field == Field::Json || strange {
        return Field::Json;
    }
    Field::List(Box::new(item))
}

fn group(root: &Value, schema: &Value, value: Option<&Value>, depth: usize) -> Field {
    let declared = schema["properties"].as_object();
    let proposed = value.and_then(Value::as_object);
    let required = schema["required"].as_array();
    let demanded = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let mut members: Vec<Member> = declared
        .into_iter()
        .flatten()
        .map(|(name, schema)| Member {
            name: name.clone(),
            required: demanded(name),
            shape: build(root, schema, proposed.and_then(|p| p.get(name)), depth + 1),
        })
        .collect();
    let others = proposed.into_iter().flatten();
    for (name, value) in others.filter(|(name, _)| declared.is_none_or(|d| !d.contains_key(*name)))
    {
        members.push(Member {
            name: name.clone(),
            // The value exists, so its field is required.
            required: true,
            shape: build(
                root,
                &schema["additionalProperties"],
                Some(value),
                depth + 1,
            ),
        });
    }
    if members.is_empty() {
        return Field::Json;
    }
    Field::Group(members)
}

fn fits(field: &Field, value: &Value) -> bool {
    match field {
        Field::Text(_) => value.is_string(),
        Field::Number { integer, .. } => {
            value.is_number() && (!integer || value.as_f64().is_some_and(|n| n.fract() == 0.0))
        }
        Field::Flag => value.is_boolean(),
        Field::Choice(options) => options.contains(value),
        Field::List(_) => value.is_array(),
        Field::Group(_) => value.is_object(),
        Field::Json => true,
    }
}

/// Appends a segment to a JSON pointer.
pub(crate) fn child_pointer(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The form field name of a value.
pub(crate) fn field_name(path: &str) -> String {
    format!("v{path}")
}
