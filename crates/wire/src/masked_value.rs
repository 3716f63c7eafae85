//! What stands in place of a value that a reader may not see.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tandem_record::Masking;

/// The value to show; `None` to leave it out.
pub(crate) fn masked(value: &Value, mode: Masking) -> Option<Value> {
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
