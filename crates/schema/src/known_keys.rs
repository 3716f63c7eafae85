//! The keys that a schema's author declares, so that a misspelt one can be found although JSON Schema
//! allows keys it says nothing about.
//!
//! An object is closed where `properties` are declared and nothing opens it: `additionalProperties`
//! or `unevaluatedProperties` with something allowed, or `patternProperties`. Schemas that apply to
//! the same value (`allOf`, `anyOf`, `oneOf`, `if`, `then`, `else`, `$ref`) add their keys.

use serde_json::Value;
use std::collections::BTreeMap;

/// References and nesting are followed this far; below, everything is allowed.
const MAX_DEPTH: usize = 16;
/// Objects of one schema whose keys are kept; the others allow everything.
const MAX_OBJECTS: usize = 1_000;
/// Unknown keys that are reported.
const MAX_FOUND: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct KnownKeys {
    properties: BTreeMap<String, KnownKeys>,
    items: Option<Box<KnownKeys>>,
    is_open: bool,
}

/// A key of a value that its schema does not declare.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownKey<'a> {
    /// JSON pointer to the object.
    pub at: String,
    pub key: &'a str,
    pub known: Vec<&'a str>,
}

impl KnownKeys {
    pub(crate) fn of(document: &Value) -> Self {
        let mut keys = Self::default();
        let mut left = MAX_OBJECTS;
        keys.add(document, document, MAX_DEPTH, &mut left);
        keys
    }

    /// Adds what a schema says about the same value.
    fn add(&mut self, schema: &Value, root: &Value, depth: usize, left: &mut usize) {
        let Some(schema) = schema.as_object() else {
            return;
        };
        if depth == 0 || *left == 0 {
            self.is_open = true;
            return;
        }
        *left -= 1;
        let allows = |key: &str| {
            schema
                .get(key)
                .is_some_and(|rest| *rest != Value::Bool(false))
        };
        self.is_open |= allows("additionalProperties")
            || allows("unevaluatedProperties")
            || ["patternProperties", "$dynamicRef", "dependentSchemas"]
                .iter()
                .any(|key| schema.contains_key(*key));
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, below) in properties {
                let known = self.properties.entry(name.clone()).or_default();
                known.add(below, root, depth - 1, left);
            }
        }
        if let Some(items) = schema.get("items") {
            let known = self.items.get_or_insert_default();
            known.add(items, root, depth - 1, left);
        }
        for list in ["allOf", "anyOf", "oneOf"] {
            for also in schema
                .get(list)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.add(also, root, depth - 1, left);
            }
        }
        for one in ["if", "then", "else"] {
            if let Some(also) = schema.get(one) {
                self.add(also, root, depth - 1, left);
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
            match target {
                Some(also) => self.add(also, root, depth - 1, left),
                None => self.is_open = true,
            }
        }
    }

    pub(crate) fn unknown_in<'a>(&'a self, value: &'a Value) -> Vec<UnknownKey<'a>> {
        let mut found = Vec::new();
        self.search(value, "", &mut found);
        found
    }

    fn search<'a>(&'a self, value: &'a Value, at: &str, found: &mut Vec<UnknownKey<'a>>) {
        match value {
            Value::Object(fields) => {
                let is_closed = !self.is_open && !self.properties.is_empty();
                for (key, below) in fields {
                    match self.properties.get(key) {
                        Some(known) => {
                            let key = key.replace('~', "~0").replace('/', "~1");
                            known.search(below, &format!("{at}/{key}"), found);
                        }
                        None if is_closed && found.len() < MAX_FOUND => found.push(UnknownKey {
                            at: at.to_owned(),
                            key,
                            known: self.properties.keys().map(String::as_str).collect(),
                        }),
                        None => {}
                    }
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let Some(known) = &self.items {
                        known.search(item, &format!("{at}/{i}"), found);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
