//! Decision receipts: the audit entry of one decision, signed so that the public key alone is
//! enough to check it.

use super::AuditRow;
use super::canonical::canonical;
use super::draft::Entry;
use super::hash::Hash;
use super::key::{AuditKey, PublicKey};
use serde_json::{Value, json};

const FORMAT: &str = "tandem-receipt-1";
/// Prefix of the signed bytes, so that no other signature can be used as one of a receipt.
const DOMAIN: &[u8] = b"tandem:receipt:v1\0";

/// The receipt for the audit entry of a decision.
pub fn receipt(row: &AuditRow, entry: &Entry, key: &AuditKey) -> Value {
    let mut receipt = json!({
        "format": FORMAT,
        "interruptId": entry.target,
        "tenant": entry.tenant,
        "decidedAt": entry.occurred_at,
        "decision": entry.details,
        "auditSequence": row.seq,
        "auditEntryHash": Hash::of(&row.body).to_string(),
        "publicKey": key.public().to_spki(),
    });
    let signature = key.sign(&preimage(&receipt));
    receipt["signature"] = json!(signature);
    receipt
}

/// Checks a receipt against a public key obtained elsewhere; `Err` is the reason of a failure.
pub fn check_receipt(receipt: &Value, key: PublicKey) -> Result<(), &'static str> {
    let mut signed = receipt.clone();
    let fields = signed.as_object_mut().ok_or("it is not a JSON object")?;
    let Some(Value::String(signature)) = fields.remove("signature") else {
        return Err("it carries no signature");
    };
    if fields.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err("it is not a receipt of a known format");
    }
    if fields.get("publicKey").and_then(Value::as_str) != Some(key.to_spki().as_str()) {
        return Err("it was signed with another key");
    }
    if !key.verifies(&preimage(&signed), &signature) {
        return Err("its signature does not match what it says");
    }
    Ok(())
}

fn preimage(unsigned: &Value) -> Vec<u8> {
    [DOMAIN, canonical(unsigned).as_bytes()].concat()
}
