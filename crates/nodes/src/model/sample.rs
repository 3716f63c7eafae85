//! A small value that a JSON Schema accepts, as far as that follows from its plain keywords. The mock
//! provider answers with it when a test has programmed nothing.
//!
//! Bounds: levels, length of texts and lists, and the number of schemas that are looked at.

mod combine;
mod number;
#[cfg(test)]
mod tests;
mod text;

use combine::combined;
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// Nested schema levels that are followed; deeper ones give null.
const MAX_DEPTH: usize = 16;
/// Longest text and longest list made to meet a minimum.
const MAX_LENGTH: u64 = 1_000;
/// Values that are tried to find one that a list of different items does not hold yet.
const MAX_VARIANTS: usize = 64;
/// Schemas that are looked at for one sample; the rest gives null.
const MAX_SCHEMAS: usize = 20_000;

/// A value for the schema. Deterministic.
pub(super) fn sample(schema: &Value) -> Value {
    let sampler = Sampler {
        root: schema,
        left: Cell::new(MAX_SCHEMAS),
    };
    sampler.build(schema, 0, 0)
}

struct Sampler<'a> {
    root: &'a Value,
    /// Schemas that may still be looked at.
    left: Cell<usize>,
}

impl Sampler<'_> {
    /// `variant` counts from 0; another one gives another value where the schema has several.
    fn build(&self, schema: &Value, depth: usize, variant: usize) -> Value {
        let is_followed = depth < MAX_DEPTH && self.take_schema();
        let Some(fields) = schema.as_object().filter(|_| is_followed) else {
            return any(variant);
        };
        let fields = &self.flat(fields, 0);
        if let Some(value) = fields.get("const") {
            return value.clone();
        }
        if let Some(Value::Array(listed)) = fields.get("enum") {
            let chosen = listed.get(variant).or(listed.first());
            return chosen.cloned().unwrap_or(Value::Null);
        }
        match type_name(fields) {
            Some("object") => self.object(fields, depth, variant),
            Some("array") => self.array(fields, depth, variant),
            Some("string") => text::sample(fields, variant).into(),
            Some(name @ ("integer" | "number")) => {
                number::sample(fields, name == "integer", variant)
            }
            Some("boolean") => json!(variant % 2 == 1),
            Some(_) => Value::Null,
            None => any(variant),
        }
    }

    /// Whether another schema may be looked at.
    fn take_schema(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// The schema together with what it refers to, all that it combines, and its first choices.
    fn flat(&self, schema: &Map<String, Value>, level: usize) -> Map<String, Value> {
        let mut whole = schema.clone();
        for key in ["$ref", "allOf", "anyOf", "oneOf"] {
            whole.remove(key);
        }
        if level == MAX_DEPTH {
            return whole;
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|to| self.root.pointer(to.strip_prefix('#')?));
        let list = |key: &str| {
            let list = schema.get(key).and_then(Value::as_array);
            list.map_or(&[][..], Vec::as_slice)
        };
        let parts = target.into_iter().chain(list("allOf"));
        let parts = parts.chain(list("anyOf").first()).cloned();
        // What distinguishes a choice from the others must be there.
        let parts = parts.chain(list("oneOf").first().map(with_constants));
        for part in parts.take_while(|_| self.take_schema()) {
            if let Value::Object(part) = part {
                whole = combined(whole, self.flat(&part, level + 1));
            }
        }
        whole
    }

    fn array(&self, fields: &Map<String, Value>, depth: usize, variant: usize) -> Value {
        let first = fields.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        let rest = fields.get("items").unwrap_or(&Value::Null);
        let unique = fields.get("uniqueItems") == Some(&json!(true));
        let contained = fields.get("contains");
        let least_contained = match contained {
            Some(_) if fields.contains_key("minContains") => at_least(fields, "minContains"),
            Some(_) => 1,
            None => 0,
        };
        let least = at_least(fields, "minItems").max(least_contained);
        // Lists differ in their first item, or in having one.
        let length = least.max(u64::from(variant > 0));
        let mut items: Vec<Value> = Vec::new();
        for i in 0..usize::try_from(length).unwrap_or(0) {
            let schema = first.get(i).unwrap_or(rest);
            let schema = match contained {
                Some(contained) if (i as u64) < least_contained => {
                    json!({"allOf": [schema, contained]})
                }
                _ => schema.clone(),
            };
            let begin = if i == 0 { variant } else { 0 };
            let mut item = self.build(&schema, depth + 1, begin);
            for another in begin..begin + MAX_VARIANTS.max(i + 1) {
                if !unique || !items.contains(&item) {
                    break;
                }
                item = self.build(&schema, depth + 1, another + 1);
            }
            items.push(item);
        }
        items.into()
    }

    fn object(&self, fields: &Map<String, Value>, depth: usize, variant: usize) -> Value {
        let properties = fields.get("properties").and_then(Value::as_object);
        let others = fields.get("additionalProperties").unwrap_or(&Value::Null);
        let value = |name: &str| {
            let property = properties.and_then(|all| all.get(name));
            self.build(property.unwrap_or(others), depth + 1, variant)
        };
        let names = |list: Option<&Value>| -> Vec<String> {
            let list = list.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut object = Map::new();
        let mut wanted = names(fields.get("required"));
        while let Some(name) = wanted.pop() {
            if !object.contains_key(&name) {
                object.insert(name.clone(), value(&name));
                let dependent = fields.get("dependentRequired");
                wanted.extend(names(dependent.and_then(|of| of.get(&name))));
            }
        }
        // Objects differ in their values, or in having one.
        let least = at_least(fields, "minProperties").max(u64::from(variant > 0));
        let least = usize::try_from(least).unwrap_or(0);
        let optional = properties.into_iter().flat_map(Map::keys);
        let missing: Vec<&String> = optional
            .filter(|name| !object.contains_key(*name))
            .collect();
        let room = least.saturating_sub(object.len());
        for name in missing.into_iter().take(room) {
            object.insert(name.clone(), value(name));
        }
        if *others != json!(false) {
            for i in 0.. {
                if object.len() >= least {
                    break;
                }
                let name = format!("x{i}");
                object.insert(name.clone(), value(&name));
            }
        }
        object.into()
    }
}

/// A choice whose properties with a fixed value are required.
fn with_constants(choice: &Value) -> Value {
    let mut choice = choice.clone();
    let properties = choice.get("properties").and_then(Value::as_object);
    let fixed = properties.into_iter().flatten();
    let fixed = fixed.filter(|(_, property)| property.get("const").is_some());
    let names: Vec<Value> = fixed.map(|(name, _)| json!(name)).collect();
    if let Some(fields) = choice.as_object_mut()
        && !names.is_empty()
    {
        let required = fields.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            required.extend(names);
        }
    }
    choice
}

/// A value where everything is accepted.
fn any(variant: usize) -> Value {
    match variant {
        0 => Value::Null,
        n => json!(n),
    }
}

/// The first type the schema names, or the one its keywords imply.
fn type_name(fields: &Map<String, Value>) -> Option<&str> {
    let about = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    match fields.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names.first().and_then(Value::as_str),
        _ if about(&["properties", "required", "minProperties"]) => Some("object"),
        _ if about(&["items", "prefixItems", "minItems", "contains"]) => Some("array"),
        _ if about(&["pattern", "minLength"]) => Some("string"),
        _ => None,
    }
}

fn at_least(fields: &Map<String, Value>, key: &str) -> u64 {
    let asked = fields.get(key).and_then(Value::as_u64);
    asked.unwrap_or(0).min(MAX_LENGTH)
}
