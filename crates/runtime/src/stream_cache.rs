//! Cache of folded machines between commands, one entry per stream. Bounded: every entry can be
//! dropped at any time and is then folded again from the log.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{Seq, StreamId};
use tokio::sync::OwnedMutexGuard;

/// One stream's entry. Its lock orders the commands of this process to the stream, so that they
/// wait here instead of conflicting in the store.
pub(crate) struct StreamSlot<M> {
    /// As of the stream's head; `None` when it must be folded from the store.
    pub(crate) machine: Option<M>,
    /// Sequence of the stored snapshot, to decide when to write another.
    pub(crate) snapshot_at: Option<Seq>,
}

impl<M> Default for StreamSlot<M> {
    fn default() -> Self {
        Self {
            machine: None,
            snapshot_at: None,
        }
    }
}

pub(crate) type SharedSlot<M> = Arc<tokio::sync::Mutex<StreamSlot<M>>>;
/// The exclusive right to change a stream in this process.
pub(crate) type HeldSlot<M> = OwnedMutexGuard<StreamSlot<M>>;

/// The streams of one kind of machine.
pub(crate) struct StreamCache<M> {
    slots: Mutex<CachedSlots<M>>,
    capacity: usize,
    /// Limit of cached state in bytes. State in use by commands may exceed it.
    max_bytes: usize,
}

struct CachedSlots<M> {
    by_stream: HashMap<StreamId, CacheEntry<M>>,
    /// Incremented with every use; the smallest stamp is the least recently used.
    clock: u64,
    bytes: usize,
}

struct CacheEntry<M> {
    slot: SharedSlot<M>,
    used: u64,
    bytes: usize,
}

impl<M> StreamCache<M> {
    pub(crate) fn new(capacity: usize, max_bytes: usize) -> Self {
        Self {
            slots: Mutex::new(CachedSlots {
                by_stream: HashMap::new(),
                clock: 0,
                bytes: 0,
            }),
            capacity: capacity.max(16),
            max_bytes,
        }
    }

    pub(crate) fn slot(&self, stream: &StreamId) -> SharedSlot<M> {
        let mut slots = self.slots.lock();
        slots.clock += 1;
        let used = slots.clock;
        if let Some(entry) = slots.by_stream.get_mut(stream) {
            entry.used = used;
            return Arc::clone(&entry.slot);
        }
        if slots.by_stream.len() >= self.capacity {
            slots.evict(self.capacity - self.capacity / 4, usize::MAX);
        }
        let slot = SharedSlot::default();
        let entry = CacheEntry {
            slot: Arc::clone(&slot),
            used,
            bytes: 0,
        };
        slots.by_stream.insert(stream.clone(), entry);
        slot
    }

    /// Waits until no other command of this process uses the stream.
    pub(crate) async fn lock(&self, stream: &StreamId) -> HeldSlot<M> {
        self.slot(stream).lock_owned().await
    }

    /// Locks several streams. Always in the order of their ids, so that two callers never wait for
    /// each other.
    pub(crate) async fn lock_all(
        &self,
        mut streams: Vec<StreamId>,
    ) -> HashMap<StreamId, HeldSlot<M>> {
        streams.sort_unstable();
        streams.dedup();
        let mut held = HashMap::with_capacity(streams.len());
        for stream in streams {
            let slot = self.lock(&stream).await;
            held.insert(stream, slot);
        }
        held
    }

    /// Records the size of a machine that is about to be cached.
    pub(crate) fn set_size(&self, stream: &StreamId, bytes: usize) {
        let mut slots = self.slots.lock();
        let Some(entry) = slots.by_stream.get_mut(stream) else {
            return;
        };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        slots.bytes = (slots.bytes + bytes).saturating_sub(before);
        if slots.bytes > self.max_bytes {
            slots.evict(usize::MAX, self.max_bytes - self.max_bytes / 4);
        }
    }

    /// An ended stream is read from the store from now on.
    pub(crate) fn remove(&self, stream: &StreamId) {
        let mut slots = self.slots.lock();
        if let Some(entry) = slots.by_stream.remove(stream) {
            slots.bytes = slots.bytes.saturating_sub(entry.bytes);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.lock().by_stream.len()
    }
}

impl<M> CachedSlots<M> {
    /// Drops the least recently used entries down to this limit and somewhat below, so that
    /// eviction stays rare. A slot in use is kept: with two slots for one stream, commands would
    /// race.
    fn evict(&mut self, keep_streams: usize, keep_bytes: usize) {
        let idle = self.by_stream.iter();
        let idle = idle.filter(|(_, entry)| Arc::strong_count(&entry.slot) == 1);
        let mut oldest: Vec<(u64, StreamId)> = idle
            .map(|(stream, entry)| (entry.used, stream.clone()))
            .collect();
        oldest.sort_unstable();
        for (_, stream) in oldest {
            if self.by_stream.len() <= keep_streams && self.bytes <= keep_bytes {
                return;
            }
            if let Some(entry) = self.by_stream.remove(&stream) {
                self.bytes = self.bytes.saturating_sub(entry.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max_bytes: usize) -> StreamCache<()> {
        let live = StreamCache::new(64, max_bytes);
        for n in 0..10 {
            let stream = StreamId::new(format!("run:{n}"));
            live.slot(&stream);
            live.set_size(&stream, 100);
        }
        live
    }

    #[test]
    fn least_recently_used_streams_are_evicted_over_the_byte_limit() {
        let live = filled(1_000);
        assert_eq!(live.len(), 10, "all streams fit");
        let newest = StreamId::new("run:new");
        let held = live.slot(&newest);
        live.set_size(&newest, 400);
        // Down to three quarters: 1,400 minus seven streams of 100.
        assert_eq!(live.len(), 4);
        assert!(
            Arc::ptr_eq(&held, &live.slot(&newest)),
            "a slot in use stays"
        );
        assert!(
            live.slots
                .lock()
                .by_stream
                .contains_key(&StreamId::new("run:9"))
        );
    }

    #[test]
    fn shrinking_or_ended_stream_frees_bytes() {
        let live = filled(1_000);
        let first = StreamId::new("run:0");
        live.set_size(&first, 0);
        live.remove(&StreamId::new("run:1"));
        assert_eq!(live.slots.lock().bytes, 800);
    }

    #[tokio::test]
    async fn opposite_orders_of_two_streams_do_not_deadlock() {
        let cache = Arc::new(StreamCache::<()>::new(64, 1_000));
        let (a, b) = (StreamId::new("run:a"), StreamId::new("run:b"));
        let orders = [[a.clone(), b.clone()], [b, a]];
        let callers = (0..32).map(|n| {
            let (cache, order) = (Arc::clone(&cache), orders[n % 2].clone());
            tokio::spawn(async move {
                let held = cache.lock_all(order.to_vec()).await;
                tokio::task::yield_now().await;
                held.len()
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert_eq!(caller.await.expect("it ends"), 2);
        }
    }
}
