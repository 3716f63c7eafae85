//! How deeply a value from outside may be nested.
//!
//! A value is stored inside events, snapshots and answers, each a few levels deeper than the value
//! itself, and JSON is read back to [`MAX_READABLE_NESTING`] levels. Every value from a caller, a
//! service or a model is therefore limited to [`MAX_NESTING`] where it enters. The distance between
//! the two limits keeps everything stored readable.

use crate::Object;
use serde_json::Value;

/// Maximum levels of arrays and objects in a value from outside.
pub const MAX_NESTING: usize = 64;

/// Levels that can be read back from the store.
pub const MAX_READABLE_NESTING: usize = 127;

/// Whether JSON text is nested deeper than `limit`. For text that is not JSON the result has no
/// meaning; the parser rejects it later.
pub fn nests_deeper(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Whether a value is nested deeper than `limit`.
pub fn value_nests_deeper(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => match limit.checked_sub(1) {
            Some(limit) => items.iter().any(|item| value_nests_deeper(item, limit)),
            None => true,
        },
        Value::Object(members) => map_nests_deeper(members, limit),
        _ => false,
    }
}

/// The same for an object.
pub fn map_nests_deeper(members: &Object, limit: usize) -> bool {
    match limit.checked_sub(1) {
        Some(limit) => members.values().any(|item| value_nests_deeper(item, limit)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_ignores_brackets_inside_strings() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!nests_deeper(nested(3).as_bytes(), 3));
        assert!(nests_deeper(nested(4).as_bytes(), 3));
        let value: Value = serde_json::from_str(&nested(4)).unwrap();
        assert!(value_nests_deeper(&value, 3) && !value_nests_deeper(&value, 4));
        assert!(!nests_deeper(br#"[1,[2],[3],{"a":[4]}]"#, 3));
        assert!(!nests_deeper(br#"{"a":"[[[[ \" [[[["}"#, 1));
        assert!(!nests_deeper(b"", 0));
    }

    #[test]
    fn max_readable_nesting_matches_the_json_parser() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_READABLE_NESTING)).is_ok());
        assert!(
            serde_json::from_str::<serde_json::Value>(&nested(MAX_READABLE_NESTING + 1)).is_err()
        );
    }
}
