//! Which keys end with a key that is revoked.
//!
//! Whoever had the key may have made others with it, so these end with it: those it made, by creating or by
//! rotating, and those that they made, and so on. A key that another one takes the place of is the exception:
//! the successor goes on with what the key made, and ends all of it when it is revoked itself. A successor
//! that the key made for itself may be a thief's. It counts only where it, or the key, asks.

use crate::identity::Identity;
use crate::keyring::has_ended;
use std::collections::{HashMap, HashSet};
use tandem_record::Timestamp;
use tandem_store::KeyRecord;

/// What happens to the keys that a revoked key made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeKeys {
    /// They are revoked unless a successor goes on with them.
    #[default]
    FollowSuccessor,
    Keep,
    Revoke,
}

/// A key to revoke, and for whom.
#[derive(Clone, Debug)]
pub struct Revocation {
    pub key: KeyRecord,
    pub made: MadeKeys,
    /// The key that asks. It is not revoked by asking for another one.
    pub by: String,
    /// The key that keeps the tenant's keys in somebody's hands.
    pub protected: Option<String>,
}

/// What was revoked with a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedKeys {
    pub also: Vec<String>,
    /// Good keys that it made and that stay.
    pub kept: Vec<String>,
}

impl Revocation {
    pub fn new(
        key: KeyRecord,
        made: MadeKeys,
        caller: &Identity,
        protected: Option<&KeyRecord>,
    ) -> Self {
        Self {
            key,
            made,
            by: caller.key_id.to_string(),
            protected: protected.map(|key| key.key_id.clone()),
        }
    }

    /// The ids of the keys to revoke besides the key itself, of all keys of the tenant.
    pub(crate) fn also_revoked(&self, keys: &[KeyRecord], now: Timestamp) -> Vec<String> {
        let revokes = match self.made {
            MadeKeys::Keep => false,
            MadeKeys::Revoke => true,
            MadeKeys::FollowSuccessor => !self.has_successor(keys, now),
        };
        match revokes {
            true => self.good_made(keys, now),
            false => Vec::new(),
        }
    }

    /// The good keys that the key and those it took the place of made, themselves or through others.
    pub(crate) fn good_made(&self, keys: &[KeyRecord], now: Timestamp) -> Vec<String> {
        let good = |key: &&&KeyRecord| is_good(key, now);
        let made = self.made_keys(keys, now);
        let made = keys
            .iter()
            .filter(|key| made.contains(key.key_id.as_str()))
            .collect::<Vec<_>>();
        made.iter()
            .filter(good)
            .map(|key| key.key_id.clone())
            .collect()
    }

    fn made_keys<'a>(&'a self, keys: &'a [KeyRecord], now: Timestamp) -> HashSet<&'a str> {
        let mut by_maker: HashMap<&str, Vec<&str>> = HashMap::new();
        for key in keys {
            if let Some(maker) = &key.made_by {
                by_maker.entry(maker).or_default().push(&key.key_id);
            }
        }
        let stays = |id: &str| id == self.by || self.protected.as_deref() == Some(id);
        let mut makers = self.predecessors(keys, now);
        makers.push(&self.key.key_id);
        let first: HashSet<&str> = makers.iter().copied().collect();
        let mut made = HashSet::new();
        // Each key has one maker and enters once.
        while let Some(maker) = makers.pop() {
            for id in by_maker.get(maker).into_iter().flatten() {
                if !first.contains(id) && !stays(id) && made.insert(*id) {
                    makers.push(id);
                }
            }
        }
        made
    }

    /// The keys this one took the place of, as far back as they are no longer good.
    fn predecessors<'a>(&'a self, keys: &'a [KeyRecord], now: Timestamp) -> Vec<&'a str> {
        let by_id: HashMap<&str, &KeyRecord> =
            keys.iter().map(|key| (key.key_id.as_str(), key)).collect();
        let mut before: Vec<&str> = Vec::new();
        let mut rotated = self.key.rotates.as_deref();
        while let Some(key) = rotated.and_then(|id| by_id.get(id)) {
            if is_good(key, now) || before.contains(&key.key_id.as_str()) {
                break;
            }
            before.push(&key.key_id);
            rotated = key.rotates.as_deref();
        }
        before
    }

    /// Whether a good key takes the place of this one.
    fn has_successor(&self, keys: &[KeyRecord], now: Timestamp) -> bool {
        let made = self.made_keys(keys, now);
        let asks_itself = self.by == self.key.key_id;
        let mut places = vec![self.key.key_id.as_str()];
        let mut seen: HashSet<&str> = places.iter().copied().collect();
        while let Some(place) = places.pop() {
            for key in keys
                .iter()
                .filter(|key| key.rotates.as_deref() == Some(place))
            {
                let id = key.key_id.as_str();
                if is_good(key, now) && (asks_itself || !made.contains(id)) {
                    return true;
                }
                if seen.insert(id) {
                    places.push(id);
                }
            }
        }
        false
    }
}

fn is_good(key: &KeyRecord, now: Timestamp) -> bool {
    key.revoked_at.is_none() && !has_ended(key.expires_at, now)
}
