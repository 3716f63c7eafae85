//! Secrets: how they are generated, and a type that does not print them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use std::fmt;

pub const LIVE_PREFIX: &str = "tdm_live_";
pub const TEST_PREFIX: &str = "tdm_test_";

/// The shortest operator-supplied secret accepted. Only a fast hash protects a secret at rest, so
/// a short one could be guessed from a stolen database.
pub const MIN_SECRET_BYTES: usize = 16;

/// A plaintext secret, to be shown once to its owner.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The plaintext. The name makes every place that shows a secret easy to find.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// 43 base64url characters carrying 32 random bytes.
pub(crate) fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<32>())
}

pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    OsRng
        .try_fill_bytes(&mut bytes)
        .expect("the operating system provides randomness");
    bytes
}
