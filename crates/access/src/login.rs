//! One-time login codes: what a link printed in a terminal carries into the browser.
//!
//! Invariants: a code works once, for a short time, and is kept only as a digest. Codes live in
//! memory; a restart forgets them, and a new link costs one command.

use crate::digest::Digest;
use crate::secret::random_token;
use crate::{Identity, Secret};
use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::Timestamp;

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

    /// A code that signs its bearer in as `identity`. When too many are outstanding the one that
    /// would end first is dropped.
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

    /// Spends the code. `None` for unknown, used and expired codes alike: the holder of a stale
    /// link needs a new one whichever it was.
    pub fn redeem(&self, code: &str, now: Timestamp) -> Option<Identity> {
        let entry = self.pending.lock().remove(&Digest::of(code))?;
        (now < entry.expires_at).then_some(entry.identity)
    }

    /// Drops every code that stands for a key, when the key is revoked.
    pub fn remove_key(&self, key_id: &str) {
        self.pending
            .lock()
            .retain(|_, entry| &*entry.identity.key_id != key_id);
    }

    #[cfg(test)]
    pub(crate) fn outstanding(&self) -> usize {
        self.pending.lock().len()
    }
}
