//! A cache of successful key lookups with a time to live of a few seconds, so that the hot path
//! does not read the store.
//!
//! Invariants:
//! - Only keys that were found are cached, so guesses cannot evict real callers.
//! - A revocation through this process takes effect at once. One made elsewhere takes effect when the
//!   keyring reads the epoch of keys, and at the latest after the time to live.
//! - Expiry is checked on every hit: the cache holds a record, not a verdict.

use crate::Identity;
use crate::digest::Digest;
use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::Timestamp;

const CAPACITY: usize = 1_024;
const TIME_TO_LIVE_MS: u64 = 5_000;

#[derive(Default)]
pub(crate) struct Cache {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<Digest, Entry>,
    /// Counts invalidations. A lookup that started before an invalidation must not be cached after
    /// it: it may have read the record as it was before the revocation.
    epoch: u64,
}

struct Entry {
    identity: Identity,
    cached_at: Timestamp,
}

/// The epoch at which a store read started; see [`Inner::epoch`].
pub(crate) struct CacheEpoch(u64);

impl Cache {
    pub(crate) fn get(&self, digest: &Digest, now: Timestamp) -> Result<Identity, CacheEpoch> {
        let inner = self.inner.lock();
        match inner.entries.get(digest) {
            Some(entry) if entry.is_fresh(now) => Ok(entry.identity.clone()),
            _ => Err(CacheEpoch(inner.epoch)),
        }
    }

    pub(crate) fn put(
        &self,
        digest: Digest,
        identity: Identity,
        epoch_at_read: &CacheEpoch,
        now: Timestamp,
    ) {
        let mut inner = self.inner.lock();
        if inner.epoch != epoch_at_read.0 {
            return;
        }
        if inner.entries.len() >= CAPACITY && !inner.entries.contains_key(&digest) {
            inner.evict(now);
        }
        inner.entries.insert(
            digest,
            Entry {
                identity,
                cached_at: now,
            },
        );
    }

    pub(crate) fn remove_key(&self, key_id: &str) {
        let mut inner = self.inner.lock();
        inner.epoch += 1;
        inner
            .entries
            .retain(|_, entry| &*entry.identity.key_id != key_id);
    }

    pub(crate) fn clear(&self) {
        let mut inner = self.inner.lock();
        inner.epoch += 1;
        inner.entries.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().entries.len()
    }
}

impl Inner {
    fn evict(&mut self, now: Timestamp) {
        self.entries.retain(|_, entry| entry.is_fresh(now));
        if self.entries.len() >= CAPACITY {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.cached_at)
                .map(|(digest, _)| *digest);
            if let Some(digest) = oldest {
                self.entries.remove(&digest);
            }
        }
    }
}

impl Entry {
    /// An entry is stale when the clock went back, so that it cannot live forever.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.cached_at <= now && now.ms_since(self.cached_at) < TIME_TO_LIVE_MS
    }
}
