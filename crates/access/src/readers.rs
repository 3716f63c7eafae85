//! Which principals may read runs, remembered for a few seconds: deliveries ask for each of theirs.
//!
//! Forgotten whole when a key changes through this process. Expiry is judged on every hit.

use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::{Partition, Principal, Timestamp};

const CAPACITY: usize = 1_024;
const TIME_TO_LIVE_MS: u64 = 5_000;

type Asked = (Principal, Partition);
/// `None`: no good key. Otherwise when the longest-lived one ends, if it does.
type End = Option<Option<Timestamp>>;

#[derive(Default)]
pub(crate) struct Readers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    known: HashMap<Asked, (End, Timestamp)>,
    /// Counts changes: what was read before one is not kept after it.
    changes: u64,
}

/// How many changes there were when a store read began.
pub(crate) struct Began(u64);

impl Readers {
    pub(crate) fn get(&self, asked: &Asked, now: Timestamp) -> Result<End, Began> {
        let inner = self.0.lock();
        match inner.known.get(asked) {
            Some((end, at)) if *at <= now && now.ms_since(*at) < TIME_TO_LIVE_MS => Ok(*end),
            _ => Err(Began(inner.changes)),
        }
    }

    pub(crate) fn put(&self, asked: Asked, end: End, began: Began, now: Timestamp) {
        let mut inner = self.0.lock();
        if inner.changes != began.0 {
            return;
        }
        if inner.known.len() >= CAPACITY {
            inner.known.clear();
        }
        inner.known.insert(asked, (end, now));
    }

    pub(crate) fn forget(&self) {
        let mut inner = self.0.lock();
        inner.changes += 1;
        inner.known.clear();
    }
}

/// The one that lasts longer.
pub(crate) fn later(one: End, other: End) -> End {
    match (one, other) {
        (Some(Some(one)), Some(Some(other))) => Some(Some(one.max(other))),
        (Some(_), Some(_)) => Some(None),
        (one, other) => one.or(other),
    }
}
