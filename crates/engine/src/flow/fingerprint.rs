//! The fingerprint of a yielded effect. A replay compares it with the recorded one.

use crate::ids::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Marks a function in data that came from a realm.
pub(crate) const FUNCTION_MARKER: &str = "$fn";

/// SHA-256 of the canonical JSON. Functions count as functions, whatever else their marker says.
pub fn fingerprint(effect: &Value) -> String {
    let canonical = serde_jcs::to_vec(&without_functions(effect))
        .expect("a parsed JSON value always has a canonical form");
    hex(&Sha256::digest(&canonical))
}

pub(crate) fn is_function(value: &Value) -> bool {
    value.get(FUNCTION_MARKER).is_some_and(|mark| mark == true)
}

fn without_functions(value: &Value) -> Value {
    match value {
        marker if is_function(marker) => json!({ FUNCTION_MARKER: true }),
        Value::Object(fields) => {
            let fields = fields.iter();
            let plain = fields.map(|(key, value)| (key.clone(), without_functions(value)));
            Value::Object(plain.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_functions).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
