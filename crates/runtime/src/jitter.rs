//! Pauses between attempts, extended so that what failed together is not tried again together.
//!
//! Nothing is drawn at random: the extension follows from what is tried and how often, so that a process that takes over
//! computes the same pause.

use sha2::{Digest, Sha256};

/// A pause grows by up to a fifth.
const JITTER_DIVISOR: u64 = 5;

/// A pause, extended by up to a fifth. `salt` says what is tried and how often it failed.
pub(crate) fn with_jitter(base: u64, salt: &str) -> u64 {
    let roll = Sha256::digest(salt)[0];
    base + base * u64::from(roll) / 255 / JITTER_DIVISOR
}
