//! Checks with which networks prove where a request comes from: a signature over its bytes, or a secret that it
//! carries. Each takes the same time whatever is wrong.

use crate::webhook::{hex, mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The HMAC-SHA256 of the parts under the secret, in hexadecimal.
pub fn hmac_hex(secret: &str, parts: &[&[u8]]) -> String {
    hex(&mac(secret.as_bytes(), parts))
}

/// Whether `given` is [`hmac_hex`] of the parts.
pub fn is_hmac_of(secret: &str, parts: &[&[u8]], given: &str) -> bool {
    let expected = hmac_hex(secret, parts);
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

/// Whether a request carries the secret. Compares digests: the time does not tell how long the secret is.
pub fn is_secret(secret: &str, given: &str) -> bool {
    let (expected, given) = (Sha256::digest(secret), Sha256::digest(given));
    expected.as_slice().ct_eq(given.as_slice()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_signs() {
        // From the test cases of RFC 4231.
        let signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        assert_eq!(hmac_hex("Jefe", &parts), signature);
        assert!(is_hmac_of("Jefe", &parts, signature));
        assert!(!is_hmac_of("jefe", &parts, signature));
        assert!(!is_hmac_of("Jefe", &parts[..1], signature));
        assert!(!is_hmac_of("Jefe", &parts, &signature[1..]));
        assert!(!is_hmac_of("Jefe", &parts, ""));
        assert!(is_secret("a", "a"));
        assert!(!is_secret("a", "b"));
        assert!(!is_secret("a", ""));
    }
}
