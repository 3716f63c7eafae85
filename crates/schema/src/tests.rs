//! Which schemas are accepted, what their evaluation costs, and that the estimate holds.

mod estimate;
mod stack;

use crate::{Budget, MAX_PATTERNS, Meter, Schema, SchemaRefusal, ValidationFailure, short_message};
use serde_json::{Value, json};

fn compile(schema: &Value) -> Result<Schema, SchemaRefusal> {
    Schema::compile(schema, &mut Budget::default())
}

fn refused(schema: &Value) -> SchemaRefusal {
    compile(schema).expect_err("refused")
}

fn errors(schema: &Schema, value: &Value) -> Vec<String> {
    let describe =
        |e: &crate::ValidationError<'_>| format!("{}: {}", e.instance_path(), short_message(e));
    match schema.check(value, &Meter::unlimited(), 50, describe) {
        Ok(()) => Vec::new(),
        Err(ValidationFailure::Errors(errors)) => errors,
        Err(other) => vec![format!("{other:?}")],
    }
}

/// `n` definitions, each of which is twice the next, at the same value.
fn doubled(n: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for i in 0..n {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), json!({"anyOf": [next, next]}));
    }
    defs.insert(format!("d{n}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

/// The same, one level of the value deeper each time.
fn doubled_down(n: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for i in 0..n {
        let next = json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", i + 1)}}});
        defs.insert(format!("d{i}"), json!({"anyOf": [next, next]}));
    }
    defs.insert(format!("d{n}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn patterns_that_need_backtracking_are_refused_with_path_and_advice() {
    for (pattern, what) in [
        (r"(?=x|(a|a)*b)^(a|aa)+$", "look-around"),
        (r"^(?!admin)", "look-around"),
        (r"(?<=a)b", "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
    ] {
        let why = refused(&json!({"properties": {"a/b": {"pattern": pattern}}}));
        assert_eq!(why.at, "/properties/a~1b/pattern", "{pattern}");
        assert!(why.message.contains(what), "{pattern}: {}", why.message);
        assert!(why.message.contains("allOf"), "{pattern}: {}", why.message);
        let why = refused(&json!({"patternProperties": {pattern: {}}}));
        assert!(why.at.starts_with("/patternProperties/"), "{}", why.at);
    }
}

#[test]
fn ordinary_patterns_are_accepted_and_match() {
    for (pattern, yes, no) in [
        (r"^[a-z0-9-]+$", "abc-1", "ABC"),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-17", "2026"),
        (r"^(a|aa)+$", "aaaa", "ab"),
        (r"^[\p{L} ]{1,64}$", "Ada Lindqvist", "A1"),
        (r"[(?=]", "=", "x"),
        (r"^\(?\d+\)$", "(1)", "x"),
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "a@b.c", "a@b"),
    ] {
        let schema = compile(&json!({"pattern": pattern})).expect(pattern);
        assert_eq!(errors(&schema, &json!(yes)), [""; 0], "{pattern}");
        assert_eq!(errors(&schema, &json!(no)).len(), 1, "{pattern}");
    }
}

#[test]
fn a_pattern_too_large_to_compile_is_refused() {
    let why = refused(&json!({"pattern": r"(\p{L}{1000}){1000}"}));
    assert!(why.message.contains("smaller repetitions"), "{why}");
    let why = refused(&json!({"pattern": "a".repeat(20_000)}));
    assert!(why.message.contains("bytes"), "{why}");
}

#[test]
fn the_patterns_of_a_document_are_counted_together() {
    let mut budget = Budget::default();
    let one = json!({"pattern": "^x"});
    for _ in 0..MAX_PATTERNS {
        Schema::compile(&one, &mut budget).expect("within the budget");
    }
    let why = Schema::compile(&one, &mut budget).expect_err("one too many");
    assert_eq!(why.at, "/pattern");
    assert!(why.message.contains("256 patterns"), "{why}");
}

#[test]
fn many_large_patterns_are_refused_before_compiling_all() {
    let heavy = |i: usize| json!({"pattern": format!(r"^(\p{{L}}{{1,40}}){i}$")});
    let all: Vec<Value> = (0..1_500).map(heavy).collect();
    let why = refused(&json!({ "anyOf": all }));
    assert!(why.message.contains("patterns"), "{why}");
    let some: Vec<Value> = (0..MAX_PATTERNS).map(heavy).collect();
    let why = refused(&json!({ "anyOf": some }));
    assert!(why.message.contains("too large together"), "{why}");
}

#[test]
fn alternatives_that_multiply_are_refused() {
    for n in [16, 23, 30] {
        for schema in [doubled(n), doubled_down(n)] {
            let why = refused(&schema);
            assert!(why.message.contains("multiplies"), "{n}: {why}");
        }
    }
    let few = compile(&doubled(4)).expect("few are fine");
    assert_eq!(errors(&few, &json!(1)), [""; 0]);
    assert_eq!(errors(&few, &json!("x")).len(), 1);
}

#[test]
fn nested_unevaluated_properties_that_multiply_are_refused() {
    let mut schema = json!({"properties": {"a": {}}});
    for _ in 0..20 {
        schema = json!({"allOf": [schema], "unevaluatedProperties": false});
    }
    let why = refused(&schema);
    assert!(why.message.contains("multiplies"), "{why}");
    let plain = json!({
        "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false,
    });
    let plain = compile(&plain).expect("one is fine");
    assert_eq!(errors(&plain, &json!({"a": 1})), [""; 0]);
    assert_eq!(errors(&plain, &json!({"b": 1})).len(), 1);
}

#[test]
fn reference_cycles_at_the_same_value_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
               "$ref": "#/$defs/a"}),
        json!({"$anchor": "me", "not": {"$ref": "#me"}}),
    ] {
        let why = refused(&schema);
        assert!(why.message.contains("refers to itself"), "{schema}: {why}");
    }
}

#[test]
fn references_out_of_the_schema_and_embedded_identifiers_are_refused() {
    for reference in [
        "https://example.com/x",
        "file:///etc/passwd",
        "#/nowhere",
        "other.json",
    ] {
        let why = refused(&json!({"properties": {"a": {"$ref": reference}}}));
        assert_eq!(why.at, "/properties/a/$ref");
    }
    let why = refused(&json!({"$defs": {"a": {"$id": "x"}}, "$ref": "#/$defs/a"}));
    assert!(why.message.contains("$id"), "{why}");
    let base = json!({
        "$id": "https://example.com/s", "$defs": {"a": {"type": "integer"}},
        "$ref": "https://example.com/s#/$defs/a",
    });
    let base = compile(&base).expect("its own identifier is known");
    assert_eq!(errors(&base, &json!("x")).len(), 1);
}

#[test]
fn long_chains_and_deep_documents_are_refused() {
    let mut deep = json!({"type": "integer"});
    for _ in 0..60 {
        deep = json!({"items": {"items": deep}});
    }
    assert!(refused(&deep).message.contains("nested deeper"));
    let mut defs = serde_json::Map::new();
    for i in 0..200 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), next);
    }
    defs.insert("d200".to_owned(), json!({}));
    let why = refused(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
    assert!(why.message.contains("inside each other"), "{why}");
    let wide: Vec<Value> = (0..6_000).map(|_| json!({})).collect();
    assert!(
        refused(&json!({"prefixItems": wide}))
            .message
            .contains("parts")
    );
    let long = "x".repeat(600_000);
    assert!(refused(&json!({"const": long})).message.contains("bytes"));
}

#[test]
fn recursive_schemas_that_descend_into_the_value_are_accepted() {
    let tree = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}},
    });
    let any_json = json!({"anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
    ]});
    let list = json!({
        "$defs": {"node": {
            "type": "object", "required": ["value", "next"],
            "properties": {"value": {"type": "number"},
                           "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        }},
        "$ref": "#/$defs/node",
    });
    let expression = json!({"$defs": {"e": {"oneOf": [
        {"type": "object", "required": ["left", "right"],
         "properties": {"left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}}},
        {"type": "object", "required": ["operand"], "properties": {"operand": {"$ref": "#/$defs/e"}}},
        {"type": "number"},
    ]}}, "$ref": "#/$defs/e"});
    let nested =
        |n: usize, leaf: Value, wrap: fn(Value) -> Value| (0..n).fold(leaf, |v, _| wrap(v));
    for (schema, good, bad) in [
        (
            &tree,
            nested(
                60,
                json!({"name": "x"}),
                |v| json!({"name": "x", "children": [v]}),
            ),
            json!({"name": "x", "children": [{"name": 1}]}),
        ),
        (
            &any_json,
            nested(120, json!(1), |v| json!([v])),
            json!(null),
        ),
        (
            &list,
            nested(
                100,
                json!({"value": 1, "next": null}),
                |v| json!({"value": 1, "next": v}),
            ),
            json!({"value": 1, "next": 2}),
        ),
        (
            &expression,
            nested(10, json!(1), |v| json!({"left": v, "right": 1})),
            json!({"left": 1, "right": "x"}),
        ),
    ] {
        let schema = compile(schema).expect("compiles");
        assert_eq!(errors(&schema, &good), [""; 0]);
        if !bad.is_null() {
            assert_eq!(errors(&schema, &bad).len(), 1, "{bad}");
        }
    }
}

#[test]
fn a_recursive_schema_that_multiplies_refuses_deep_values_without_evaluating_them() {
    let branch = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = compile(&json!({"anyOf": [branch, branch]})).expect("compiles");
    let nested = |n| (0..n).fold(json!(1), |v, _| json!({"a": v}));
    assert_eq!(errors(&schema, &nested(8)), [""; 0]);
    assert_eq!(errors(&schema, &nested(100)), ["TooMuchWork"]);
}

#[test]
fn long_text_against_a_costly_pattern_is_refused_without_matching() {
    let schema = compile(&json!({"pattern": r"^(\p{L}{1,20}x){1,3}$"})).expect("compiles");
    assert_eq!(errors(&schema, &json!("abcx")), [""; 0]);
    assert_eq!(
        errors(&schema, &json!("a".repeat(400_000))),
        ["TooMuchWork"]
    );
    let member = compile(&json!({"patternProperties": {r"^(\p{L}{1,20}x){1,3}$": {}}}));
    let member = member.expect("compiles");
    assert_eq!(
        errors(&member, &json!({"a".repeat(400_000): 1})),
        ["TooMuchWork"]
    );
}

#[test]
fn values_nested_deeper_than_the_json_limit_are_refused() {
    let schema = compile(&json!({"type": "array"})).expect("compiles");
    let deep = (0..200).fold(json!([]), |v, _| json!([v]));
    assert_eq!(errors(&schema, &deep), ["TooMuchWork"]);
}

#[test]
fn errors_are_not_collected_when_they_would_be_too_many() {
    let items: Vec<Value> = (0..200_000).map(|i| json!(i)).collect();
    let items = Value::from(items);
    let plain = compile(&json!({"items": {"type": "string"}})).expect("compiles");
    assert_eq!(errors(&plain, &items).len(), 1, "the first error only");
    let tried = json!({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}});
    let tried = compile(&tried).expect("compiles");
    assert_eq!(errors(&tried, &items), ["Unlisted"]);
    assert_eq!(errors(&tried, &json!([1, 2])).len(), 2);
}

#[test]
fn error_message_for_a_large_value_is_truncated() {
    let schema = compile(&json!({"type": "integer"})).expect("compiles");
    let messages = errors(&schema, &json!("ä".repeat(100_000)));
    assert!(messages[0].chars().count() < 320, "{}", messages[0].len());
    assert!(messages[0].ends_with('…'));
}

#[test]
fn refused_schema_rejects_every_value_with_its_reason() {
    let why = refused(&json!({"pattern": "(?=x)"}));
    let schema = Schema::refused(why);
    let failed = schema
        .fits(&json!("x"), &Meter::unlimited())
        .expect_err("fails closed");
    assert_eq!(failed.code(), Some("schema_refused"));
    assert!(
        failed.message().contains("look-around"),
        "{}",
        failed.message()
    );
}

#[test]
fn meter_defers_work_over_its_limit_and_reports_exceeded() {
    let schema = compile(&json!({"items": {"type": "integer"}})).expect("compiles");
    let meter = Meter::with_limit(10_000);
    assert_eq!(schema.fits(&json!([1]), &meter), Ok(true));
    assert!(!meter.exceeded());
    let many = Value::from(vec![1; 1_000]);
    assert_eq!(schema.fits(&many, &meter), Err(ValidationFailure::Deferred));
    assert!(meter.exceeded());
    assert_eq!(schema.fits(&many, &Meter::unlimited()), Ok(true));
}
