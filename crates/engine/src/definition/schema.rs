//! The shape of a workflow document as JSON Schema, ours, compiled once. It lists every fault with
//! a JSON pointer, which a derive-based reader cannot.

use super::Problem;
use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("workflow.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the embedded schema is JSON");
    jsonschema::validator_for(&schema).expect("the embedded schema compiles")
});

/// Problems one document may report; a hostile one must not produce an unbounded answer.
const MAX_PROBLEMS: usize = 50;

pub(super) fn check(document: &Value) -> Vec<Problem> {
    problems(&SCHEMA, document, "")
}

/// Complaints of any schema about a value that sits at `at` in a larger document.
pub(crate) fn problems(schema: &Validator, value: &Value, at: &str) -> Vec<Problem> {
    schema
        .iter_errors(value)
        .take(MAX_PROBLEMS)
        .map(|error| Problem::new(format!("{at}{}", error.instance_path()), shorten(error)))
        .collect()
}

/// Messages quote the offending value; keep them readable when it is large.
fn shorten(error: jsonschema::ValidationError<'_>) -> String {
    let text = error.to_string();
    match text.char_indices().nth(300) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
