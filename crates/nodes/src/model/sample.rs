//! A small value that a JSON Schema accepts, as far as that follows from its plain keywords. The mock
//! provider answers with it when a test has programmed nothing.

mod text;

use serde_json::{Map, Value, json};

/// Nested schema levels that are followed; deeper ones give null.
const MAX_DEPTH: usize = 16;
/// Longest text and longest list made to meet a minimum.
const MAX_LENGTH: u64 = 1_000;
/// Values that are tried to find one that a list of different items does not hold yet.
const MAX_VARIANTS: usize = 64;

/// A value for the schema. Deterministic.
pub(super) fn sample(schema: &Value) -> Value {
    Sampler { root: schema }.build(schema, 0, 0)
}

struct Sampler<'a> {
    root: &'a Value,
}

impl Sampler<'_> {
    /// `variant` counts from 0; another one gives another value where the schema has several.
    fn build(&self, schema: &Value, depth: usize, variant: usize) -> Value {
        let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
            return any(variant);
        };
        if let Some(value) = fields.get("const") {
            return value.clone();
        }
        let listed = || {
            let default = fields.get("default").into_iter();
            let lists = ["enum", "examples"].into_iter();
            let lists = lists.filter_map(|key| fields.get(key)?.as_array());
            default.chain(lists.flatten())
        };
        if let Some(first) = listed().next()
            && (variant == 0 || fields.contains_key("enum"))
        {
            return listed().nth(variant).unwrap_or(first).clone();
        }
        let referred = fields.get("$ref").and_then(Value::as_str);
        let referred = referred.and_then(|to| self.root.pointer(to.strip_prefix('#')?));
        if let Some(target) = referred {
            return self.build(target, depth + 1, variant);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(first) = fields.get(key).and_then(|choices| choices.get(0)) {
                return self.build(first, depth + 1, variant);
            }
        }
        if let Some(Value::Array(parts)) = fields.get("allOf") {
            return self.merged(fields, parts, depth, variant);
        }
        match type_name(fields) {
            Some("object") => self.object(fields, depth, variant),
            Some("array") => self.array(fields, depth, variant),
            Some("string") => text::sample(fields, variant).into(),
            Some(name @ ("integer" | "number")) => number(fields, name == "integer", variant),
            Some("boolean") => json!(variant % 2 == 1),
            Some(_) => Value::Null,
            None => any(variant),
        }
    }

    fn array(&self, fields: &Map<String, Value>, depth: usize, variant: usize) -> Value {
        let first = fields.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        let rest = fields.get("items").unwrap_or(&Value::Null);
        let unique = fields.get("uniqueItems") == Some(&json!(true));
        let least = at_least(fields, "minItems");
        // Lists differ in their first item, or in having one.
        let length = least.max(u64::from(variant > 0));
        let mut items: Vec<Value> = Vec::new();
        for i in 0..usize::try_from(length).unwrap_or(0) {
            let schema = first.get(i).unwrap_or(rest);
            let begin = if i == 0 { variant } else { 0 };
            let mut item = self.build(schema, depth + 1, begin);
            for another in begin..begin + MAX_VARIANTS.max(i + 1) {
                if !unique || !items.contains(&item) {
                    break;
                }
                item = self.build(schema, depth + 1, another + 1);
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
        let required = fields.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let mut object: Map<String, Value> = required
            .map(|name| (name.to_owned(), value(name)))
            .collect();
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

    /// The fields that all parts ask for.
    fn merged(
        &self,
        fields: &Map<String, Value>,
        parts: &[Value],
        depth: usize,
        variant: usize,
    ) -> Value {
        let mut rest = fields.clone();
        rest.remove("allOf");
        let own = Value::Object(rest);
        let mut whole = Value::Null;
        for part in parts.iter().chain([&own]) {
            match (&mut whole, self.build(part, depth + 1, variant)) {
                (Value::Object(whole), Value::Object(part)) => whole.extend(part),
                (whole, part) if whole.is_null() => *whole = part,
                _ => {}
            }
        }
        whole
    }
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
        _ if about(&["items", "prefixItems", "minItems"]) => Some("array"),
        _ if about(&["pattern", "minLength"]) => Some("string"),
        _ => None,
    }
}

fn number(fields: &Map<String, Value>, whole: bool, variant: usize) -> Value {
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let step = step.unwrap_or(1.0);
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|n| n - step));
    let least = bound("minimum");
    let above = bound("exclusiveMinimum");
    // Without a step a bound is a value itself; with one, values are its multiples.
    let on_step = whole || fields.contains_key("multipleOf");
    let first = match (least, above) {
        (Some(least), _) if on_step => (least / step).ceil() * step,
        (Some(least), _) => least,
        (None, Some(above)) if on_step => ((above / step).floor() + 1.0) * step,
        (None, Some(above)) => above + most.map_or(step, |most| (most - above) / 2.0),
        (None, None) => 0.0_f64.min(most.map_or(0.0, |most| (most / step).floor() * step)),
    };
    #[expect(clippy::cast_precision_loss)]
    let wanted = variant as f64 * step;
    let value = match most {
        // Downwards from where there is no lower bound.
        Some(most) if first + wanted > most && least.is_none() && above.is_none() => first - wanted,
        _ => first + wanted,
    };
    #[expect(clippy::cast_possible_truncation)]
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

fn at_least(fields: &Map<String, Value>, key: &str) -> u64 {
    let asked = fields.get(key).and_then(Value::as_u64);
    asked.unwrap_or(0).min(MAX_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_meets_the_schema_it_was_made_for() {
        let schemas = [
            json!({"type": "object", "required": ["name", "age", "tags"], "properties": {
                "name": {"type": "string", "minLength": 3}, "age": {"type": "integer", "minimum": 18},
                "tags": {"type": "array", "minItems": 2, "items": {"type": "boolean"}}, "note": {"type": "string"}}}),
            json!({"enum": ["a", "b"]}),
            json!({"const": {"x": 1}}),
            json!({"anyOf": [{"type": "number", "exclusiveMinimum": 4}, {"type": "null"}]}),
            json!({"$defs": {"p": {"type": "object", "required": ["q"], "properties": {"q": {"type": "number"}}}},
                   "$ref": "#/$defs/p"}),
            json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
                             {"required": ["b"], "properties": {"b": {"type": "boolean"}}}]}),
            json!({"type": ["string", "null"]}),
            json!({"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"}}}),
            json!({"type": "string", "pattern": "^(EUR|USD) \\d+\\.\\d{2}$", "minLength": 12}),
            json!({"type": "string", "pattern": "[a-f]+", "minLength": 5, "maxLength": 6}),
            json!({"type": "string", "pattern": "^\\w+@\\w+\\.(com|org)$"}),
            json!({"type": "string", "maxLength": 0}),
            json!({"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "integer"}}),
            json!({"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "string", "pattern": "^[a-z]{2}$"}}),
            json!({"type": "array", "uniqueItems": true, "minItems": 3, "items": {"enum": ["a", "b", "c"]}}),
            json!({"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "boolean"}}),
            json!({"type": "array", "uniqueItems": true, "minItems": 3, "items": {
                "type": "object", "required": ["n"], "properties": {"n": {"type": "number", "maximum": 0}}}}),
            json!({"type": "array", "uniqueItems": true, "minItems": 2}),
            json!({"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "array", "items": {"type": "string"}}}),
            json!({"type": "array", "minItems": 2, "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            json!({"type": "object", "minProperties": 1}),
            json!({"minProperties": 3, "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "minProperties": 2, "additionalProperties": false,
                "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}),
            json!({"type": "integer", "multipleOf": 5, "minimum": 7, "exclusiveMaximum": 11}),
            json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
            json!({"type": "integer", "maximum": -3}),
            json!({}),
        ];
        for schema in schemas {
            let value = sample(&schema);
            assert!(jsonschema::is_valid(&schema, &value), "{schema}: {value}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_gives_a_finite_sample() {
        let schema =
            json!({"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}});
        assert!(sample(&schema).is_object());
    }
}
