//! The smallest value a JSON Schema accepts, as far as its plain keywords determine it. The mock
//! provider returns it when a test has set no program.

use serde_json::{Map, Value, json};

/// Nested schema levels that are followed; deeper ones give null.
const MAX_DEPTH: usize = 16;
/// Longest text and longest list made to meet a minimum.
const MAX_LENGTH: u64 = 1_000;

/// A value for the schema. Deterministic.
pub(super) fn sample(schema: &Value) -> Value {
    build(schema, schema, 0)
}

fn build(root: &Value, schema: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return Value::Null;
    };
    for key in ["const", "default"] {
        if let Some(value) = fields.get(key) {
            return value.clone();
        }
    }
    for key in ["enum", "examples"] {
        if let Some(first) = fields.get(key).and_then(|values| values.get(0)) {
            return first.clone();
        }
    }
    let referred = fields.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|to| root.pointer(to.strip_prefix('#')?));
    if let Some(target) = referred {
        return build(root, target, depth + 1);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = fields.get(key).and_then(|choices| choices.get(0)) {
            return build(root, first, depth + 1);
        }
    }
    if let Some(Value::Array(parts)) = fields.get("allOf") {
        return merged(root, fields, parts, depth);
    }
    match type_name(fields) {
        Some("object") => object(root, fields, depth),
        Some("array") => {
            let items = fields.get("items").unwrap_or(&Value::Null);
            let length = at_least(fields, "minItems");
            (0..length).map(|_| build(root, items, depth + 1)).collect()
        }
        Some("string") => {
            let length = at_least(fields, "minLength").max(1);
            (0..length).map(|_| 'x').collect::<String>().into()
        }
        Some("integer" | "number") => number(fields),
        Some("boolean") => json!(false),
        _ => Value::Null,
    }
}

/// The first type the schema names, or the one its keywords imply.
fn type_name(fields: &Map<String, Value>) -> Option<&str> {
    match fields.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names.first().and_then(Value::as_str),
        _ if fields.contains_key("properties") || fields.contains_key("required") => Some("object"),
        _ if fields.contains_key("items") => Some("array"),
        _ => None,
    }
}

fn object(root: &Value, fields: &Map<String, Value>, depth: usize) -> Value {
    let required = fields.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    names
        .map(|name| {
            let property = fields.get("properties").and_then(|all| all.get(name));
            let value = build(root, property.unwrap_or(&Value::Null), depth + 1);
            (name.to_owned(), value)
        })
        .collect::<Map<String, Value>>()
        .into()
}

/// The fields that all parts require.
fn merged(root: &Value, fields: &Map<String, Value>, parts: &[Value], depth: usize) -> Value {
    let mut rest = fields.clone();
    rest.remove("allOf");
    let own = Value::Object(rest);
    let mut whole = Value::Null;
    for part in parts.iter().chain([&own]) {
        match (&mut whole, build(root, part, depth + 1)) {
            (Value::Object(whole), Value::Object(part)) => whole.extend(part),
            (whole, part) if whole.is_null() => *whole = part,
            _ => {}
        }
    }
    whole
}

fn number(fields: &Map<String, Value>) -> Value {
    if let Some(least) = fields.get("minimum") {
        return least.clone();
    }
    let above = fields.get("exclusiveMinimum").and_then(Value::as_i64);
    let most = fields.get("maximum").and_then(Value::as_i64);
    json!(
        above
            .map_or(0, |n| n.saturating_add(1))
            .min(most.unwrap_or(i64::MAX))
    )
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
