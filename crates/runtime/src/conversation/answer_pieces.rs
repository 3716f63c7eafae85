//! Pieces of answers that models stream, for readers of a session who listen right now. Nothing is stored:
//! the whole answer is in the log when it is complete.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{EffectId, StreamId};
use tokio::sync::broadcast;

/// Pieces a slow reader may be behind before it loses some.
const BUFFERED: usize = 256;

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerPiece {
    /// The call of the model that writes the answer.
    pub work: EffectId,
    pub text: String,
}

#[derive(Default)]
pub struct AnswerPieces {
    listeners: Mutex<HashMap<StreamId, broadcast::Sender<Arc<AnswerPiece>>>>,
}

impl AnswerPieces {
    pub fn listen(&self, stream: &StreamId) -> broadcast::Receiver<Arc<AnswerPiece>> {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, sender| sender.receiver_count() > 0);
        let sender = listeners.entry(stream.clone());
        sender
            .or_insert_with(|| broadcast::Sender::new(BUFFERED))
            .subscribe()
    }

    pub(crate) fn publish(&self, stream: &StreamId, work: &EffectId, piece: &str) {
        if let Some(sender) = self.listeners.lock().get(stream) {
            let (work, text) = (work.clone(), piece.to_owned());
            // Fails only when nobody listens any more.
            let _ = sender.send(Arc::new(AnswerPiece { work, text }));
        }
    }
}
