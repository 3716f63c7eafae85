//! Reads a value from posted fields. Only unparsable text is refused here (not a number, not JSON);
//! the receiver validates the value against its schema.

use super::{Field, MAX_ITEMS, Shape, child_pointer, field_name};
use serde_json::{Map, Number, Value};
use std::collections::{BTreeSet, HashMap};

/// Posted fields; the last field of a name counts.
pub(crate) struct PostedFields<'a>(HashMap<&'a str, &'a str>);

impl<'a> PostedFields<'a> {
    pub(crate) fn new(fields: &'a [(String, String)]) -> Self {
        let pairs = fields.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        Self(pairs.collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// Whether any field of a value was posted.
    pub(crate) fn has_values(&self) -> bool {
        self.0
            .keys()
            .any(|name| name.starts_with("v/") || *name == "v")
    }

    /// Indices of list entries that have fields, in order.
    pub(super) fn places(&self, path: &str) -> BTreeSet<usize> {
        let prefix = format!("{}/", field_name(path));
        let below = self.0.keys().filter_map(|name| name.strip_prefix(&*prefix));
        below
            .filter_map(|rest| rest.split('/').next()?.parse().ok())
            .collect()
    }
}

/// A place, as a JSON pointer, and its error.
pub(crate) type FieldError = (String, String);

/// The value at `path`; `None` when it is left out. `before` is the proposed value.
pub(crate) fn read(
    shape: &Shape,
    path: &str,
    posted: &PostedFields<'_>,
    before: Option<&Value>,
    required: bool,
    field_errors: &mut Vec<FieldError>,
) -> Option<Value> {
    let sent = posted.get(&field_name(path));
    let blank = sent.is_none_or(|text| text.trim().is_empty());
    let nothing = || {
        let was_null = before.is_some_and(Value::is_null);
        (shape.nullable && (required || was_null)).then_some(Value::Null)
    };
    let mut wrong = |why: String| {
        field_errors.push((path.to_owned(), why));
        None
    };
    match &shape.field {
        Field::Text(_) if blank => {
            let empty = || required.then(|| Value::from(""));
            nothing().or_else(empty)
        }
        // A browser sends line ends as CR LF.
        Field::Text(_) => sent.map(|text| Value::from(text.replace("\r\n", "\n"))),
        Field::Number { .. } | Field::Json | Field::Choice(_) if blank => nothing(),
        Field::Number { integer, .. } => {
            let text = sent.unwrap_or_default().trim();
            let number = text.parse::<Number>().ok();
            let whole = |n: &Number| n.as_f64().is_some_and(|n| n.fract() == 0.0);
            match number.filter(|n| !integer || whole(n)) {
                Some(number) => Some(Value::Number(number)),
                None if *integer => wrong("must be a whole number".to_owned()),
                None => wrong("must be a number".to_owned()),
            }
        }
        Field::Flag => {
            let is_present = required || before.is_some_and(Value::is_boolean);
            let set = sent == Some("true");
            (set || is_present).then_some(Value::Bool(set))
        }
        Field::Choice(options) => {
            let chosen = sent.and_then(|text| text.parse::<usize>().ok());
            match chosen.and_then(|place| options.get(place)) {
                Some(option) => Some(option.clone()),
                None => wrong("is none of the choices".to_owned()),
            }
        }
        Field::Json => match serde_json::from_str(sent.unwrap_or_default()) {
            Ok(value) => Some(value),
            Err(error) => wrong(format!("is not JSON: {error}")),
        },
        Field::List(item) => {
            let places = posted.places(path);
            if places.len() > 2 * MAX_ITEMS {
                return wrong(format!("has more than {} entries", 2 * MAX_ITEMS));
            }
            let items: Vec<Value> = places
                .into_iter()
                .filter_map(|place| {
                    let path = child_pointer(path, &place.to_string());
                    let before = before.and_then(|b| b.get(place));
                    // An empty entry is not an entry.
                    read(item, &path, posted, before, false, field_errors)
                })
                .collect();
            let is_present = required || before.is_some_and(Value::is_array) || !items.is_empty();
            is_present.then_some(Value::Array(items))
        }
        Field::Group(members) => {
            let mut object = Map::new();
            for member in members {
                let path = child_pointer(path, &member.name);
                let before = before.and_then(|b| b.get(&member.name));
                let inside = required || before.is_some();
                let required = member.required && inside;
                let value = read(&member.shape, &path, posted, before, required, field_errors);
                if let Some(value) = value {
                    object.insert(member.name.clone(), value);
                }
            }
            (required || !object.is_empty()).then_some(Value::Object(object))
        }
    }
}
