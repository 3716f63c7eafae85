//! The audit log: who changed what, as an append-only chain of hashes, sealed by signatures.
//!
//! An entry is a JSON object in canonical form (RFC 8785) that contains the hash of the previous
//! entry. The store assigns sequence and hash inside the commit of the recorded action, so an
//! action and its entry always exist together. A checkpoint signs the root of a hash tree over the
//! entries since the previous checkpoint.
//!
//! This module owns the form of entries, the hashes, the signatures, and the only way of checking
//! them, for rows of a store and for lines of an export. It does not decide which actions get an
//! entry.
//!
//! Invariants:
//! - Sequences start at 1 and have no gaps.
//! - What is hashed is what is stored, byte for byte; a verifier never trusts a stored hash.
//! - Checkpoints are at most [`CHECKPOINT_ENTRIES`] entries apart, however late they are made.
//! - The signing key signs nothing but roots and receipts.

mod canonical;
mod chain_verifier;
mod draft;
mod export;
mod export_verifier;
mod hash;
mod key;
mod merkle;
mod receipt;
mod signer;
mod verify;

#[cfg(test)]
mod tests;

pub use canonical::digest;
pub use chain_verifier::{ChainBreak, ChainVerifier};
pub use draft::{AuditDraft, DECISION, Entry};
pub use export::Export;
pub use export_verifier::{ExportVerification, ExportVerifier};
pub use hash::Hash;
pub use key::{AuditKey, PublicKey};
pub use merkle::Tree;
pub use receipt::{check_receipt, receipt};
pub use signer::{AuditSigner, SealError};
pub use verify::AuditVerification;

use serde::{Deserialize, Serialize};

/// Maximum of entries under one checkpoint.
pub const CHECKPOINT_ENTRIES: u64 = 1000;
/// Longest time before an entry is sealed, in seconds.
pub const CHECKPOINT_SECONDS: u64 = 300;

/// One entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: u64,
    /// Canonical JSON, unless it was tampered with.
    pub body: Vec<u8>,
}

/// The last entry of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub seq: u64,
    pub hash: Hash,
}

/// The signature over the entries after the previous checkpoint, up to `at_sequence`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checkpoint {
    /// `cp-1`, `cp-2`, …
    #[serde(rename = "checkpoint")]
    pub id: String,
    pub at_sequence: u64,
    /// Lowercase hex.
    pub merkle_root: String,
    /// Base64 of an Ed25519 signature over the 32 bytes of the root.
    pub signature: String,
}
