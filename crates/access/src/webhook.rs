//! Secrets of webhooks and the signatures made with them.
//!
//! No secret is stored: each is derived from one key of the host, the webhook's id and the number
//! of its rotations. Whoever has the host's key can sign for every webhook.

use crate::secret::{Secret, random_token};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use subtle::ConstantTimeEq as _;
use tandem_record::{Timestamp, WebhookId};

const KEY_BYTES: usize = 32;
const FINGERPRINT_CHARS: usize = 8;

pub struct WebhookKeys {
    key: Vec<u8>,
}

impl WebhookKeys {
    /// A new key of the host, in its stored form.
    pub fn fresh() -> String {
        random_token()
    }

    /// Reads what [`Self::fresh`] returned; `None` for anything else.
    pub fn from_stored(key: &str) -> Option<Self> {
        let key = URL_SAFE_NO_PAD.decode(key).ok()?;
        (key.len() >= KEY_BYTES).then_some(Self { key })
    }

    /// 64 hexadecimal digits; always the same for the same arguments.
    pub fn secret(&self, webhook: &WebhookId, generation: u32) -> Secret {
        let name = format!("webhook:{webhook}:{generation}");
        Secret::new(hex(&mac(&self.key, &[name.as_bytes()])))
    }
}

/// Identifies a secret without revealing it.
pub fn fingerprint(secret: &str) -> String {
    let mut digest = hex(&Sha256::digest(secret));
    digest.truncate(FINGERPRINT_CHARS);
    digest
}

/// Whole seconds since the epoch, as signed and sent.
pub fn signed_time(at: Timestamp) -> String {
    at.0.div_euclid(1000).to_string()
}

/// Scheme `v1`: the time, a dot and the body's bytes, under the text of the secret.
pub fn signature(secret: &str, time: &str, body: &[u8]) -> String {
    let signed = [time.as_bytes(), b".", body];
    format!("sha256={}", hex(&mac(secret.as_bytes(), &signed)))
}

/// Whether a signature is that of [`signature`]. Takes the same time whatever is wrong with it.
pub fn is_signed(secret: &str, time: &str, body: &[u8], given: &str) -> bool {
    let expected = signature(secret, time, body);
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC accepts a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_the_published_ones() {
        let secret = Secret::new("0123456789abcdef".repeat(4));
        let body = concat!(
            r#"{"runId":"run-123","workspaceId":"ws-1","type":"run.completed","#,
            r#""event":{"eventId":"evt-run-123-3","runId":"run-123","sequence":3,"#,
            r#""type":"run.completed","timestamp":"2026-01-01T00:00:00.000Z","payload":{}}}"#
        );
        let time = signed_time(Timestamp(1_767_225_600_999));
        assert_eq!(time, "1767225600");
        assert_eq!(
            signature(secret.expose(), &time, body.as_bytes()),
            "sha256=a5dfda47806ccbe7ade3bdac347bc8dfd99706b27429c3fc4271148644b576a0"
        );
        assert_eq!(fingerprint(secret.expose()), "a8ae6e6e");
    }

    #[test]
    fn every_webhook_and_rotation_has_a_secret_of_its_own() {
        let stored = WebhookKeys::fresh();
        let keys = WebhookKeys::from_stored(&stored).unwrap();
        let again = WebhookKeys::from_stored(&stored).unwrap();
        let other = WebhookKeys::from_stored(&WebhookKeys::fresh()).unwrap();
        let (one, two) = (WebhookId::new("wh-1"), WebhookId::new("wh-2"));
        let secret = keys.secret(&one, 0);
        assert_eq!(secret.expose().len(), 64);
        assert_eq!(secret, again.secret(&one, 0), "a restart changes nothing");
        for different in [
            keys.secret(&one, 1),
            keys.secret(&two, 0),
            other.secret(&one, 0),
        ] {
            assert_ne!(secret, different);
        }
        assert!(WebhookKeys::from_stored("short").is_none());
    }
}
