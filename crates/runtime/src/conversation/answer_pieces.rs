//! Pieces of answers that models stream, for readers of a session who listen right now. Nothing is stored:
//! the whole answer is in the log when it is complete.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::StreamId;
use tokio::sync::broadcast;

/// Pieces a slow reader may be behind before it loses some.
const BUFFERED: usize = 256;

#[derive(Default)]
pub struct AnswerPieces {
    listeners: Mutex<HashMap<StreamId, broadcast::Sender<Arc<str>>>>,
}

impl AnswerPieces {
    pub fn listen(&self, stream: &StreamId) -> broadcast::Receiver<Arc<str>> {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, sender| sender.receiver_count() > 0);
        let sender = listeners.entry(stream.clone());
        sender
            .or_insert_with(|| broadcast::Sender::new(BUFFERED))
            .subscribe()
    }

    pub(crate) fn publish(&self, stream: &StreamId, piece: &str) {
        if let Some(sender) = self.listeners.lock().get(stream) {
            // Fails only when nobody listens any more.
            let _ = sender.send(Arc::from(piece));
        }
    }
}
