//! What a reader gets in place of a value its author marked as sensitive.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tandem_record::{Masking, Object};

/// The value to show; `None` to leave it out.
pub(super) fn masked(value: &Value, mode: Masking) -> Option<Value> {
    match mode {
        Masking::Mask => Some(Value::from("[REDACTED]")),
        Masking::Omit => None,
        Masking::Hash => Some(Value::from(hashed(value))),
        Masking::Passthrough => Some(value.clone()),
    }
}

fn hashed(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

/// Masks the entries of an object whose keys are sensitive.
pub(super) fn masked_entries(
    entries: &Object,
    mode: Masking,
    sensitive: impl Fn(&str) -> bool,
) -> Object {
    entries
        .iter()
        .filter_map(|(key, value)| {
            let shown = if sensitive(key) {
                masked(value, mode)?
            } else {
                value.clone()
            };
            Some((key.clone(), shown))
        })
        .collect()
}
