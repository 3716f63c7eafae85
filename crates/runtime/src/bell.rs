//! Wakes readers when a log has grown. The bell carries a number, never data: a woken reader reads
//! the log after its own cursor, so a lost notification costs latency and never an event.

use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::{Seq, StreamId};
use tokio::sync::watch;

/// Spreads lock contention; a power of two.
const SHARDS: usize = 16;

pub struct Bell {
    streams: Vec<Mutex<HashMap<StreamId, watch::Sender<u64>>>>,
    /// Notifies of any change of any stream, for listings.
    any: watch::Sender<u64>,
    /// Notifies when a question is opened, voted on or closed, for inboxes.
    questions: watch::Sender<u64>,
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            streams: (0..SHARDS).map(|_| Mutex::default()).collect(),
            any: watch::Sender::new(0),
            questions: watch::Sender::new(0),
        }
    }
}

impl Bell {
    fn shard(&self, stream: &StreamId) -> &Mutex<HashMap<StreamId, watch::Sender<u64>>> {
        // The end of the id is random; its beginning is a timestamp.
        let hash = stream.as_str().bytes().rev().take(8).fold(0_usize, |h, b| {
            h.wrapping_mul(31).wrapping_add(usize::from(b))
        });
        &self.streams[hash % SHARDS]
    }

    /// Wakes the readers of a stream. Costs one map lookup when there are none.
    pub(crate) fn ring(&self, stream: &StreamId, head: Seq) {
        let mut shard = self.shard(stream).lock();
        if let Some(sender) = shard.get(stream)
            && sender.send(head.0).is_err()
        {
            // The last reader is gone.
            shard.remove(stream);
        }
        drop(shard);
        self.any.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Wakes the readers of inboxes.
    pub(crate) fn ring_questions(&self) {
        self.questions.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Subscribe before reading the log. Otherwise an event between the two is missed.
    pub fn listen(&self, stream: &StreamId) -> watch::Receiver<u64> {
        let mut shard = self.shard(stream).lock();
        // Remove senders without receivers each time the map has doubled in size.
        if shard.len() > 64 && shard.len().is_power_of_two() {
            shard.retain(|_, sender| sender.receiver_count() > 0);
        }
        let sender = shard
            .entry(stream.clone())
            .or_insert_with(|| watch::Sender::new(0));
        sender.subscribe()
    }

    pub fn listen_questions(&self) -> watch::Receiver<u64> {
        self.questions.subscribe()
    }

    pub fn listen_any(&self) -> watch::Receiver<u64> {
        self.any.subscribe()
    }
}
