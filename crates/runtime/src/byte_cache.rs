//! A cache that is bounded by bytes and evicts the least recently used entry.

use std::collections::HashMap;
use std::hash::Hash;

pub(crate) struct ByteCache<K, V> {
    entries: HashMap<K, Entry<V>>,
    bytes: usize,
    max_bytes: usize,
    /// Counter of uses; the entry with the smallest number is the least recently used.
    uses: u64,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> ByteCache<K, V> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            entries: HashMap::new(),
            bytes: 0,
            max_bytes,
            uses: 0,
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.uses;
        Some(entry.value.clone())
    }

    /// A value larger than the whole cache is not cached.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if bytes > self.max_bytes {
            return;
        }
        if self.bytes + bytes > self.max_bytes {
            self.make_room(bytes);
        }
        self.uses += 1;
        self.bytes += bytes;
        let used = self.uses;
        self.entries.insert(key, Entry { value, bytes, used });
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, entry| {
            let retained = keep(key);
            if !retained {
                *bytes -= entry.bytes;
            }
            retained
        });
    }

    /// Frees an eighth of the cache in addition, so that the search for the oldest entries is rare.
    fn make_room(&mut self, bytes: usize) {
        let goal = (self.max_bytes - bytes).min(self.max_bytes / 8 * 7);
        let by_use = self.entries.iter().map(|(key, e)| (e.used, key.clone()));
        let mut oldest_first: Vec<(u64, K)> = by_use.collect();
        oldest_first.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in oldest_first {
            if self.bytes <= goal {
                return;
            }
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
