//! JSON in canonical form (RFC 8785).

use super::hash::Hash;
use serde::Serialize;
use serde_json::Value;

/// The largest integer that a double represents exactly, as all smaller ones.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

pub(super) fn canonical(value: &impl Serialize) -> String {
    serde_jcs::to_string(value).expect("plain data with text keys has a canonical form")
}

pub(super) fn write_canonical(out: &mut Vec<u8>, value: &Value) {
    if is_plain(value) {
        serde_json::to_writer(out, value).expect("a parsed value is JSON");
    } else {
        out.extend_from_slice(canonical(value).as_bytes());
    }
}

/// SHA-256 of a value in canonical form, in lowercase hexadecimal digits.
pub fn digest(value: &Value) -> String {
    let mut canonical = Vec::with_capacity(256);
    write_canonical(&mut canonical, value);
    Hash::of(&canonical).to_string()
}

/// Whether ordinary JSON is already canonical, which costs a fraction: keys sort alike in UTF-8 and UTF-16,
/// and numbers are written alike. Most values are plain.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => {
            let integer = number.as_i64();
            integer.is_some_and(|integer| integer.unsigned_abs() <= MAX_EXACT_INTEGER)
        }
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(entries) => entries
            .iter()
            .all(|(key, value)| key.is_ascii() && is_plain(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_and_other_values_have_the_same_form_as_by_the_library() {
        for value in [
            json!({"b": 1, "a": {"\u{1f}\"\\/\u{7f}\n\t": "é\u{2028}\u{1f600}\u{8}\u{c}"}, "A": [null, true, []]}),
            json!([0, -1, 9_007_199_254_740_992_u64, -9_007_199_254_740_992_i64]),
            json!([
                9_007_199_254_740_993_u64,
                u64::MAX,
                i64::MIN,
                1.0,
                1e30,
                1e-7,
                -0.0
            ]),
            json!({"\u{e000}": 1, "\u{1f600}": 2, "é": 3}),
            json!({}),
        ] {
            let mut written = Vec::new();
            write_canonical(&mut written, &value);
            assert_eq!(String::from_utf8(written).unwrap(), canonical(&value));
            assert_eq!(
                digest(&value),
                Hash::of(canonical(&value).as_bytes()).to_string()
            );
        }
    }
}
