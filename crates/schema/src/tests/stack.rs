//! Accepted evaluations fit on the stack of a worker thread, also in a build without optimisation.

use super::compile;
use crate::measure::Shape;
use crate::{Meter, Schema, ValidationFailure};
use serde_json::{Value, json};

/// The stack of a worker thread of the runtime.
const STACK: usize = 2 * 1024 * 1024;

fn on_a_worker(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(work).expect("a thread");
    thread.join().expect("it fits");
}

type Wrap = fn(Value) -> Value;

/// Recursive schemas with many parts between one level of the value and the next.
fn recursive() -> Vec<(Value, Wrap)> {
    let member: Wrap = |v| json!({"a": v});
    let item: Wrap = |v| json!([v]);
    let mut chain = json!({"$ref": "#"});
    for _ in 0..10 {
        chain = json!({"allOf": [chain]});
    }
    vec![
        (json!({"properties": {"a": {"$ref": "#"}}}), member),
        (
            json!({"additionalProperties": chain, "type": "object"}),
            member,
        ),
        (
            json!({"patternProperties": {"^a": {"$ref": "#"}}, "propertyNames": {"maxLength": 3}}),
            member,
        ),
        (
            json!({"items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}),
            item,
        ),
        (
            json!({"items": {"oneOf": [{"not": {"type": "array"}}, {"$ref": "#"}]}, "type": "array"}),
            item,
        ),
        (
            json!({"items": chain, "contains": {"type": ["array", "integer"]}}),
            item,
        ),
        (
            json!({"if": {"type": "array"}, "then": {"items": {"$ref": "#"}}, "else": {"const": 1}}),
            item,
        ),
        (
            json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}], "unevaluatedProperties": false}),
            member,
        ),
    ]
}

/// Checks the deepest value that the schema is evaluated for, and returns how deep that is.
fn deepest(schema: &Schema, wrap: Wrap, leaf: &Value) -> usize {
    let mut value = leaf.clone();
    let mut depth = 0;
    loop {
        let next = wrap(value.clone());
        if Shape::of(&next).is_none() {
            break;
        }
        match schema.fits(&next, &Meter::unlimited()) {
            Ok(_) => value = next,
            Err(ValidationFailure::TooMuchWork) => break,
            Err(other) => panic!("{other:?}"),
        }
        depth += 1;
    }
    let _ = schema.check(&value, &Meter::unlimited(), 50, |error| error.to_string());
    depth
}

#[test]
fn accepted_evaluations_do_not_overflow_the_stack() {
    for (schema, wrap) in recursive() {
        on_a_worker(move || {
            let compiled = compile(&schema).expect("compiles");
            for leaf in [json!(1), json!("wrong")] {
                let depth = deepest(&compiled, wrap, &leaf);
                assert!(depth >= 6, "{schema}: {depth}");
            }
        });
    }
}

#[test]
fn the_deepest_schemas_that_are_accepted_compile_on_the_stack() {
    for wrap in [
        (|s| json!({"items": s})) as Wrap,
        |s| json!({"properties": {"a": s}}),
        |s| json!({"allOf": [s]}),
        |s| json!({"additionalProperties": s, "unevaluatedProperties": false}),
        |s| json!({"if": s}),
    ] {
        on_a_worker(move || {
            let mut schema = json!({"type": "integer"});
            let mut accepted = 0;
            while let Ok(compiled) = compile(&wrap(schema.clone())) {
                schema = wrap(schema);
                accepted += 1;
                drop(compiled);
            }
            assert!(accepted >= 5, "{accepted}");
        });
    }
}
