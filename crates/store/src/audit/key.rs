//! Ed25519: the key that seals the log, and its public key in published form.

use super::hash::Hash;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use std::fmt;

/// DER prefix of the 32 bytes of an Ed25519 public key (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Signs checkpoints and receipts, and nothing else.
pub struct AuditKey(SigningKey);

impl AuditKey {
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// From 32 random bytes as unpadded base64url; `None` for anything else.
    pub fn from_stored(text: &str) -> Option<Self> {
        let seed = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self::from_seed(seed.as_slice().try_into().ok()?))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Base64 of the signature.
    pub(super) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message).to_bytes())
    }

    pub fn sign_root(&self, root: Hash) -> String {
        self.sign(root.as_bytes())
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Base64 of the DER form (SPKI).
    pub fn to_spki(self) -> String {
        STANDARD.encode([&SPKI_PREFIX[..], self.0.as_bytes()].concat())
    }

    pub fn from_spki(text: &str) -> Option<Self> {
        let der = STANDARD.decode(text).ok()?;
        let raw: &[u8; 32] = der.strip_prefix(&SPKI_PREFIX)?.try_into().ok()?;
        VerifyingKey::from_bytes(raw).ok().map(Self)
    }

    /// Whether `signature`, as base64, is this key's signature of `message`. Malleable signatures
    /// and weak keys are refused.
    pub(super) fn verifies(self, message: &[u8], signature: &str) -> bool {
        let raw = STANDARD.decode(signature).ok();
        let signature = raw.and_then(|raw| Signature::from_slice(&raw).ok());
        signature.is_some_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }

    pub fn verifies_root(self, root: Hash, signature: &str) -> bool {
        self.verifies(root.as_bytes(), signature)
    }
}
