//! Reads typed fields of a JSON object that an author wrote, and collects every problem with the
//! place it was found at. `null` counts as absent, as `undefined` does in the author's language.
//!
//! Bounds: the number of problems, the length of lists and of each text.

use crate::flow::SchemaSource;
use crate::value_kind::kind_of;
use serde_json::Value;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use tandem_record::Object;
use tandem_schema::{Budget, Schema};

/// Problems reported for one object. A hostile one must not produce an unlimited answer.
const MAX_PROBLEMS: usize = 50;
/// Bytes of one text, unless its reader says otherwise.
const MAX_TEXT_BYTES: usize = 64 * 1024;

static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);

/// One thing that is wrong, with a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldProblem {
    pub(crate) path: String,
    pub(crate) message: String,
}

/// What was found so far. Shared by the readers of one document.
#[derive(Debug, Default)]
pub(crate) struct FieldProblems(RefCell<Vec<FieldProblem>>);

impl FieldProblems {
    pub(crate) fn report(&self, path: impl Into<String>, message: impl Into<String>) {
        let mut problems = self.0.borrow_mut();
        if problems.len() < MAX_PROBLEMS {
            problems.push(FieldProblem {
                path: path.into(),
                message: message.into(),
            });
        }
    }

    pub(crate) fn into_inner(self) -> Vec<FieldProblem> {
        self.0.into_inner()
    }
}

pub(crate) struct ObjectReader<'a> {
    at: String,
    object: &'a Object,
    problems: &'a FieldProblems,
}

impl<'a> ObjectReader<'a> {
    /// A reader of the value at `at`, which must be an object.
    pub(crate) fn new(
        value: &'a Value,
        at: impl Into<String>,
        problems: &'a FieldProblems,
    ) -> Option<Self> {
        let at = at.into();
        let Value::Object(object) = value else {
            problems.report(at, format!("must be an object, not {}", kind_of(value)));
            return None;
        };
        Some(Self {
            at,
            object,
            problems,
        })
    }

    /// A reader of the object at `at`.
    pub(crate) fn of(
        object: &'a Object,
        at: impl Into<String>,
        problems: &'a FieldProblems,
    ) -> Self {
        Self {
            at: at.into(),
            object,
            problems,
        }
    }

    /// A problem of the object as a whole.
    pub(crate) fn report_all(&self, message: impl Into<String>) {
        self.problems.report(self.at.as_str(), message);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"))
    }

    pub(crate) fn report(&self, name: &str, message: impl Into<String>) {
        self.problems.report(self.path(name), message);
    }

    /// A problem inside the value of a field.
    fn report_inside(&self, name: &str, pointer: &str, message: impl Into<String>) {
        let path = format!("{}{pointer}", self.path(name));
        self.problems.report(path, message);
    }

    fn expected(&self, name: &str, what: &str, found: &Value) {
        self.report(name, format!("must be {what}, not {}", kind_of(found)));
    }

    fn missing(&self, name: &str) {
        self.report(name, "is required");
    }

    /// A text, blank or not.
    pub(crate) fn raw_text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) if text.len() <= MAX_TEXT_BYTES => Some(text.clone()),
            Value::String(_) => {
                self.report(name, format!("has at most {MAX_TEXT_BYTES} bytes"));
                None
            }
            other => {
                self.expected(name, "text", other);
                None
            }
        }
    }

    /// An optional text. A blank one counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.raw_text(name).filter(|text| !text.trim().is_empty())
    }

    /// A text that must be there and may be blank. Problems are reported; the value is then empty.
    pub(crate) fn any_text(&self, name: &str) -> String {
        if self.get(name).is_none() {
            self.missing(name);
        }
        self.raw_text(name).unwrap_or_default()
    }

    /// A text that must be there and must not be blank.
    pub(crate) fn required_text(&self, name: &str) -> String {
        let text = self.any_text(name);
        if text.trim().is_empty() && self.get(name).is_some_and(Value::is_string) {
            self.report(name, "must not be empty");
        }
        text
    }

    /// An optional URL.
    pub(crate) fn http_url(&self, name: &str) -> Option<String> {
        let url = self.raw_text(name)?;
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            self.report(name, "must begin with https:// or http://");
        }
        Some(url)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                self.expected(name, "true or false", other);
                None
            }
        }
    }

    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.get(name)?;
        let Some(number) = value.as_f64() else {
            self.expected(name, "a whole number", value);
            return None;
        };
        let (least, most) = (*range.start(), *range.end());
        let whole = number.fract() == 0.0;
        if !whole || number < least as f64 || number > most as f64 {
            self.report(
                name,
                format!("must be a whole number from {least} to {most}"),
            );
            return None;
        }
        Some(number as u64)
    }

    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.get(name)?;
        let Some(number) = value.as_f64() else {
            self.expected(name, "a number", value);
            return None;
        };
        if !range.contains(&number) {
            let (least, most) = (range.start(), range.end());
            self.report(name, format!("must be a number from {least} to {most}"));
            return None;
        }
        Some(number)
    }

    /// A positive number of seconds, in milliseconds. Fractions are allowed.
    pub(crate) fn seconds_as_ms(&self, name: &str, max_seconds: u64) -> Option<u64> {
        let value = self.get(name)?;
        let Some(seconds) = value.as_f64() else {
            self.expected(name, "a number of seconds", value);
            return None;
        };
        if !(seconds > 0.0 && seconds <= max_seconds as f64) {
            let message = format!("must be above 0 and at most {max_seconds} seconds");
            self.report(name, message);
            return None;
        }
        Some((seconds * 1000.0).ceil() as u64)
    }

    /// One of some names.
    pub(crate) fn choice<T: Copy>(&self, name: &str, among: &[(&str, T)]) -> Option<T> {
        let value = self.get(name)?;
        let found = value.as_str();
        let chosen = among.iter().find(|(known, _)| Some(*known) == found);
        if chosen.is_none() {
            let names: Vec<&str> = among.iter().map(|(known, _)| *known).collect();
            self.report(name, format!("must be one of {}", names.join(", ")));
        }
        chosen.map(|(_, value)| *value)
    }

    /// A list of at most `max` texts that are not blank.
    pub(crate) fn texts(&self, name: &str, max: usize) -> Option<Vec<String>> {
        let items = self.list(name, max)?;
        let mut texts = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) if text.trim().is_empty() => {
                    self.report_inside(name, &format!("/{i}"), "must not be empty");
                }
                Some(text) if text.len() > MAX_TEXT_BYTES => {
                    let message = format!("has at most {MAX_TEXT_BYTES} bytes");
                    self.report_inside(name, &format!("/{i}"), message);
                }
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let message = format!("must be text, not {}", kind_of(item));
                    self.report_inside(name, &format!("/{i}"), message);
                }
            }
        }
        Some(texts)
    }

    /// A list of at most `max` items.
    pub(crate) fn list(&self, name: &str, max: usize) -> Option<&'a [Value]> {
        match self.get(name)? {
            Value::Array(items) if items.len() <= max => Some(items),
            Value::Array(_) => {
                self.report(name, format!("has at most {max} entries"));
                None
            }
            other => {
                self.expected(name, "a list", other);
                None
            }
        }
    }

    /// The readers of a list of objects.
    pub(crate) fn objects(&self, name: &str, max: usize) -> Vec<ObjectReader<'a>> {
        let items = self.list(name, max).unwrap_or_default().iter().enumerate();
        let at = self.path(name);
        items
            .filter_map(|(i, item)| ObjectReader::new(item, format!("{at}/{i}"), self.problems))
            .collect()
    }

    /// The reader of a field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<ObjectReader<'a>> {
        ObjectReader::new(self.get(name)?, self.path(name), self.problems)
    }

    /// Like [`Self::object`], but an absent object reads as an empty one.
    pub(crate) fn section(&self, name: &str) -> ObjectReader<'a> {
        self.object(name).unwrap_or_else(|| ObjectReader {
            at: self.path(name),
            object: &EMPTY,
            problems: self.problems,
        })
    }

    /// The entries of a field that maps at most `max` names to values.
    pub(crate) fn entries(&self, name: &str, max: usize) -> Vec<(&'a str, &'a Value)> {
        let Some(reader) = self.object(name) else {
            return Vec::new();
        };
        if reader.object.len() > max {
            self.report(name, format!("has at most {max} entries"));
            return Vec::new();
        }
        let entries = reader.object.iter();
        entries.map(|(key, value)| (key.as_str(), value)).collect()
    }

    /// A JSON object kept as it is.
    pub(crate) fn json_object(&self, name: &str) -> Option<Object> {
        match self.get(name)? {
            Value::Object(object) => Some(object.clone()),
            other => {
                self.expected(name, "an object", other);
                None
            }
        }
    }

    /// Whether the field is a function of the author. Anything else that is there is a problem.
    pub(crate) fn function(&self, name: &str) -> bool {
        match self.get(name) {
            None => false,
            Some(value) if crate::flow::is_function(value) => true,
            Some(other) => {
                self.expected(name, "a function", other);
                false
            }
        }
    }

    pub(crate) fn schema(
        &self,
        name: &str,
        budget: &mut Budget,
    ) -> Option<(SchemaSource, Option<Schema>)> {
        let read = SchemaSource::read(self.get(name)?, budget);
        read.map_err(|why| self.report_inside(name, &why.at, why.message.as_str()))
            .ok()
    }
}
