//! The only conversion of a secret to something that may be stored or used as a map key.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// SHA-256 of a secret. A fast hash is enough because secrets here are random and long;
/// [`crate::Keyring::import`] requires that of secrets it did not generate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest(…)")
    }
}

impl Digest {
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    pub(crate) fn to_hex(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
            .collect()
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Takes the same time wherever the first difference is.
    pub(crate) fn matches_hex(self, stored: &str) -> bool {
        constant_time_eq(self.to_hex().as_bytes(), stored.as_bytes())
    }
}

/// Constant-time equality; timing reveals only the lengths.
pub(crate) fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}
