//! Which scopes principals hold through a good key, cached for a few seconds: every delivery,
//! announcement and use of a link checks one.
//!
//! The whole cache is cleared when a key changes through this process. Expiry is checked on every
//! hit.

use crate::Scope;
use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::{Partition, Principal, Timestamp};

const CAPACITY: usize = 1_024;
const TIME_TO_LIVE_MS: u64 = 5_000;

type CacheKey = (Principal, Scope, Partition);
/// `None`: no good key. Otherwise when the longest-lived one ends, if it does.
type KeyExpiry = Option<Option<Timestamp>>;

#[derive(Default)]
pub(crate) struct PrincipalScopeCache(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    entries: HashMap<CacheKey, (KeyExpiry, Timestamp)>,
    /// Counts key changes: a result read before a change is not cached after it.
    changes: u64,
}

/// The number of changes when a store read started.
pub(crate) struct CacheEpoch(u64);

impl PrincipalScopeCache {
    pub(crate) fn get(&self, key: &CacheKey, now: Timestamp) -> Result<KeyExpiry, CacheEpoch> {
        let inner = self.0.lock();
        match inner.entries.get(key) {
            Some((end, at)) if *at <= now && now.ms_since(*at) < TIME_TO_LIVE_MS => Ok(*end),
            _ => Err(CacheEpoch(inner.changes)),
        }
    }

    pub(crate) fn put(
        &self,
        key: CacheKey,
        end: KeyExpiry,
        epoch_at_read: CacheEpoch,
        now: Timestamp,
    ) {
        let mut inner = self.0.lock();
        if inner.changes != epoch_at_read.0 {
            return;
        }
        if inner.entries.len() >= CAPACITY {
            inner.entries.clear();
        }
        inner.entries.insert(key, (end, now));
    }

    pub(crate) fn clear(&self) {
        let mut inner = self.0.lock();
        inner.changes += 1;
        inner.entries.clear();
    }
}

/// The later of two expiries.
pub(crate) fn later_expiry(one: KeyExpiry, other: KeyExpiry) -> KeyExpiry {
    match (one, other) {
        (Some(Some(one)), Some(Some(other))) => Some(Some(one.max(other))),
        (Some(_), Some(_)) => Some(None),
        (one, other) => one.or(other),
    }
}
