//! Signed links: a token that shows one question and may answer it. The signature is the
//! credential. The algorithm is fixed, so there is nothing to negotiate.

use crate::Scope;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tandem_record::{InterruptId, InterruptView, NodeId, Principal, RunId, Timestamp};

/// A link is valid for one to two windows, and is the same within one window.
const WINDOW_MS: u64 = 15 * 60 * 1000;

/// What a link grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkClaims {
    pub run_id: RunId,
    pub node_id: NodeId,
    pub interrupt_id: InterruptId,
    pub expires_at: Timestamp,
    pub intent: LinkIntent,
    /// The principal it was issued to. The link works while that principal has a good key with the
    /// scope it takes; absent in links of notices, which only show, and of releases before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_to: Option<Principal>,
}

impl LinkClaims {
    /// A link issued at `now` for an open interrupt of `run`. It never expires later than the
    /// interrupt.
    pub fn for_interrupt(
        run: &RunId,
        open: &InterruptView,
        intent: LinkIntent,
        issued_to: Option<&Principal>,
        now: Timestamp,
    ) -> Self {
        let requested_at = open.interrupt.requested_at;
        let windows = now.ms_since(requested_at) / WINDOW_MS + 2;
        let end = requested_at.plus_ms(windows * WINDOW_MS);
        let (run_id, node_id) = open
            .mirrors
            .clone()
            .unwrap_or_else(|| (run.clone(), open.node.clone()));
        Self {
            run_id,
            node_id,
            interrupt_id: open.interrupt.id.clone(),
            expires_at: open.deadline.map_or(end, |deadline| deadline.min(end)),
            intent,
            issued_to: issued_to.cloned(),
        }
    }
}

impl LinkClaims {
    /// A link that is sent to an address of a host's own settings: it only shows the question, to whoever has it.
    /// The question of a session names the session as its run.
    pub fn that_shows(
        run_id: RunId,
        node_id: NodeId,
        interrupt_id: InterruptId,
        expires_at: Timestamp,
    ) -> Self {
        Self {
            run_id,
            node_id,
            interrupt_id,
            expires_at,
            intent: LinkIntent::Inspect,
            issued_to: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkIntent {
    Resolve,
    Inspect,
}

impl LinkIntent {
    /// The intent of a link for somebody who may or may not answer.
    pub fn of(may_answer: bool) -> Self {
        if may_answer {
            Self::Resolve
        } else {
            Self::Inspect
        }
    }

    /// The scope that the principal of a link needs for this use of it.
    pub fn required_scope(self) -> Scope {
        match self {
            Self::Resolve => Scope::ApprovalsRespond,
            Self::Inspect => Scope::RunsRead,
        }
    }
}

const SECRET_BYTES: usize = 32;
/// Longest token worth looking at.
const MAX_TOKEN_BYTES: usize = 4096;

/// Signs with the first secret and accepts all of them, so that secrets can be rotated while old
/// links stay valid.
pub struct LinkSigner {
    secrets: Vec<Vec<u8>>,
}

impl LinkSigner {
    /// `secrets` newest first; at least one.
    pub fn new(secrets: Vec<Vec<u8>>) -> Self {
        assert!(
            !secrets.is_empty(),
            "a signer without a secret signs nothing"
        );
        Self { secrets }
    }

    /// Reads what [`fresh_link_secret`] returned; `None` for anything else.
    pub fn from_stored(secret: &str) -> Option<Self> {
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?;
        (secret.len() >= SECRET_BYTES).then(|| Self::new(vec![secret]))
    }

    pub fn sign(&self, claims: &LinkClaims) -> String {
        let payload = serde_json::to_vec(claims).expect("claims are plain data");
        let signature = self.sign_bytes(&payload);
        format!("{}.{signature}", URL_SAFE_NO_PAD.encode(&payload))
    }

    /// The signature of the newest secret, as text.
    pub(crate) fn sign_bytes(&self, payload: &[u8]) -> String {
        let mac = mac(&self.secrets[0], payload).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode(mac)
    }

    /// Whether one of the secrets made the signature. The comparison takes the same time for every wrong
    /// signature.
    pub(crate) fn verify_bytes(&self, payload: &[u8], signature: &str) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let mut secrets = self.secrets.iter();
        secrets.any(|secret| mac(secret, payload).verify_slice(&signature).is_ok())
    }

    /// The claims of a token signed here; `None` for anything else.
    pub fn verify(&self, token: &str) -> Option<LinkClaims> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (payload, signature) = token.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        self.verify_bytes(&payload, signature)
            .then(|| serde_json::from_slice(&payload).ok())
            .flatten()
    }
}

/// A new signing secret, in its stored form.
pub fn fresh_link_secret() -> String {
    crate::secret::random_token()
}

fn mac(secret: &[u8], payload: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC accepts a key of any length");
    mac.update(payload);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> LinkClaims {
        LinkClaims {
            run_id: RunId::new("run-1"),
            node_id: NodeId::new("gate"),
            interrupt_id: InterruptId::new("int-1"),
            expires_at: Timestamp(1000),
            intent: LinkIntent::Resolve,
            issued_to: Some(Principal::new("ana")),
        }
    }

    #[test]
    fn only_own_signatures_are_accepted() {
        let old = LinkSigner::new(vec![b"old".to_vec()]);
        let rotated = LinkSigner::new(vec![b"new".to_vec(), b"old".to_vec()]);
        let token = old.sign(&claims());
        assert_eq!(
            rotated.verify(&token),
            Some(claims()),
            "old links outlive a rotation"
        );
        assert_eq!(
            old.verify(&rotated.sign(&claims())),
            None,
            "not the other way round"
        );
        let (body, mac) = token.split_once('.').unwrap();
        for forged in [
            format!("A{}", &token[1..]),
            format!("{body}."),
            format!(".{mac}"),
            body.to_owned(),
            String::new(),
            "x".repeat(5000),
            format!("{token}x"),
        ] {
            assert_eq!(old.verify(&forged), None, "{forged}");
        }
    }
}
