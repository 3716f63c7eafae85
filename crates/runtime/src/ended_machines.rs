//! The machines of streams that ended last. A client usually reads a run once more when it has ended;
//! that read needs no fold. Bounded in count and bytes; the oldest is dropped first.
//!
//! Only for readers that have read the row of the stream: the row says whether the stream was purged or
//! has more events than the machine here.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use tandem_record::StreamId;

const MAX_MACHINES: usize = 256;
const MAX_BYTES: usize = 1024 * 1024;

pub(crate) struct EndedMachines<M>(Mutex<Kept<M>>);

struct Kept<M> {
    by_stream: HashMap<StreamId, (M, usize)>,
    /// From the oldest to the newest.
    order: VecDeque<StreamId>,
    bytes: usize,
}

impl<M> Default for EndedMachines<M> {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            by_stream: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
        }))
    }
}

impl<M: Clone> EndedMachines<M> {
    pub(crate) fn get(&self, stream: &StreamId) -> Option<M> {
        let kept = self.0.lock();
        kept.by_stream
            .get(stream)
            .map(|(machine, _)| machine.clone())
    }

    /// A machine larger than all of this may hold is not kept.
    pub(crate) fn insert(&self, stream: StreamId, machine: M, bytes: usize) {
        if bytes > MAX_BYTES {
            return;
        }
        let mut dropped = Vec::new();
        let mut kept = self.0.lock();
        if let Some(earlier) = kept.remove(&stream) {
            kept.order.retain(|other| *other != stream);
            dropped.push(earlier);
        }
        kept.order.push_back(stream.clone());
        kept.by_stream.insert(stream, (machine, bytes));
        kept.bytes += bytes;
        while (kept.bytes > MAX_BYTES || kept.order.len() > MAX_MACHINES)
            && let Some(oldest) = kept.order.pop_front()
        {
            dropped.extend(kept.remove(&oldest));
        }
        drop(kept);
        // Freeing a large state takes time, so it happens outside the lock.
        drop(dropped);
    }

    /// Its stream was purged.
    pub(crate) fn remove(&self, stream: &StreamId) {
        let mut kept = self.0.lock();
        if kept.remove(stream).is_some() {
            kept.order.retain(|other| other != stream);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().by_stream.len()
    }
}

impl<M> Kept<M> {
    fn remove(&mut self, stream: &StreamId) -> Option<M> {
        let (machine, bytes) = self.by_stream.remove(stream)?;
        self.bytes -= bytes;
        Some(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(n: usize) -> StreamId {
        StreamId::new(format!("run:{n}"))
    }

    #[test]
    fn oldest_machines_are_dropped_over_the_count() {
        let ended = EndedMachines::default();
        for n in 0..MAX_MACHINES + 10 {
            ended.insert(stream(n), n, 1);
        }
        assert_eq!(ended.len(), MAX_MACHINES);
        assert_eq!(ended.get(&stream(9)), None);
        assert_eq!(ended.get(&stream(10)), Some(10));
    }

    #[test]
    fn oldest_machines_are_dropped_over_the_bytes() {
        let ended = EndedMachines::default();
        for n in 0..3 {
            ended.insert(stream(n), n, MAX_BYTES / 2);
        }
        assert_eq!(ended.get(&stream(0)), None);
        assert_eq!(ended.get(&stream(2)), Some(2));
        ended.insert(stream(3), 3, MAX_BYTES + 1);
        assert_eq!(ended.get(&stream(3)), None, "too large to be kept");
        assert_eq!(ended.len(), 2);
    }

    #[test]
    fn removed_and_replaced_machines_free_their_bytes() {
        let ended = EndedMachines::default();
        for n in 0..3 {
            ended.insert(stream(0), n, MAX_BYTES);
        }
        assert_eq!(ended.get(&stream(0)), Some(2));
        ended.remove(&stream(0));
        assert_eq!(ended.get(&stream(0)), None);
        let kept = ended.0.lock();
        assert!(kept.order.is_empty());
        assert_eq!(kept.bytes, 0);
    }
}
