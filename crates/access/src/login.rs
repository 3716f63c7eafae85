//! One-time login codes: part of the login link that is printed in a terminal.
//!
//! Invariants: a code works once, for a short time, and is held only as a digest. Codes are in
//! memory only; after a restart a new link must be printed.

use crate::digest::Digest;
use crate::secret::random_token;
use crate::{Identity, Secret};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{TenantId, Timestamp};

const CAPACITY: usize = 64;

pub struct LoginCodes {
    valid_ms: u64,
    pending: Mutex<HashMap<Digest, Pending>>,
}

struct Pending {
    identity: Identity,
    expires_at: Timestamp,
}

impl LoginCodes {
    pub fn new(valid_ms: u64) -> Self {
        Self {
            valid_ms,
            pending: Mutex::default(),
        }
    }

    /// A code that signs its bearer in as `identity`. When too many are outstanding, the one that
    /// expires first is dropped.
    pub fn mint(&self, identity: Identity, now: Timestamp) -> Secret {
        let code = Secret::new(random_token());
        let mut pending = self.pending.lock();
        pending.retain(|_, entry| now < entry.expires_at);
        if pending.len() >= CAPACITY {
            let first = pending
                .iter()
                .min_by_key(|(_, entry)| entry.expires_at)
                .map(|(digest, _)| *digest);
            if let Some(digest) = first {
                pending.remove(&digest);
            }
        }
        pending.insert(
            Digest::of(code.expose()),
            Pending {
                identity,
                expires_at: now.plus_ms(self.valid_ms),
            },
        );
        code
    }

    /// Redeems the code once. `None` for unknown, used and expired codes alike: in each case the
    /// user needs a new link.
    pub fn redeem(&self, code: &str, now: Timestamp) -> Option<Identity> {
        let entry = self.pending.lock().remove(&Digest::of(code))?;
        (now < entry.expires_at).then_some(entry.identity)
    }

    /// Drops every code of a key, when the key is revoked.
    pub fn remove_key(&self, key_id: &str) {
        self.pending
            .lock()
            .retain(|_, entry| &*entry.identity.key_id != key_id);
    }

    /// The keys that codes sign in with, and the tenants that own them.
    pub(crate) fn keys(&self) -> Vec<(TenantId, Arc<str>)> {
        let pending = self.pending.lock();
        let identities = pending.values().map(|entry| &entry.identity);
        identities.map(Identity::owned_key).collect()
    }

    #[cfg(test)]
    pub(crate) fn outstanding(&self) -> usize {
        self.pending.lock().len()
    }
}
