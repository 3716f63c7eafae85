//! Samples of schemas, checked by another implementation.

use super::sample;
use serde_json::json;

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
        // Several sources of rules for one value.
        json!({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}),
        json!({"allOf": [{"type": "number", "minimum": 3}, {"type": "integer", "maximum": 3}]}),
        json!({"$defs": {"p": {"type": "object", "properties": {"q": {"type": "string"}}}},
            "$ref": "#/$defs/p", "required": ["q", "r"],
            "properties": {"q": {"minLength": 4}, "r": {"type": "integer"}}}),
        json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}},
            "oneOf": [{"required": ["a"], "properties": {"a": {"type": "array", "minItems": 1}}},
                      {"required": ["b"]}]}),
        json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}},
                         {"type": "object", "properties": {"kind": {"const": "b"}}}]}),
        json!({"type": "array", "items": {"type": "object", "required": ["x"],
            "properties": {"x": {"anyOf": [{"const": 7}, {"const": 8}]}}}, "minItems": 2}),
        json!({"type": "array", "contains": {"const": 3}, "items": {"type": "integer"}, "minItems": 2}),
        json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"], "b": ["c"]},
            "properties": {"c": {"type": "boolean"}}}),
        // Bounds of numbers.
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        json!({"type": "number", "minimum": 5, "exclusiveMinimum": 5}),
        json!({"type": "number", "minimum": 6, "exclusiveMinimum": 5}),
        json!({"type": "number", "exclusiveMaximum": 0}),
        json!({"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6}),
        json!({"type": "integer", "multipleOf": 2.5, "minimum": 1}),
        json!({"type": "array", "uniqueItems": true, "minItems": 4, "items": {
            "type": "number", "minimum": 0, "maximum": 1}}),
        // What only looks like a value.
        json!({"type": "string", "default": null}),
        json!({"type": "integer", "examples": ["many"]}),
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

#[test]
fn a_schema_that_multiplies_gives_a_bounded_sample() {
    let names: Vec<String> = (0..30).map(|i| format!("p{i}")).collect();
    let properties: serde_json::Map<String, serde_json::Value> = names
        .iter()
        .map(|name| (name.clone(), json!({"$ref": "#"})))
        .collect();
    let schema = json!({"type": "object", "required": names, "properties": properties});
    assert!(sample(&schema).to_string().len() < 10_000_000);
    let doubled = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "object"}]});
    assert!(sample(&doubled).is_object());
}
