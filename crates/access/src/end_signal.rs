//! Tells whoever acts on a key or a session for long that it is no more.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Below this many, keys nobody listens for any more are not looked for.
const PRUNED_ABOVE: usize = 64;

/// Becomes true when the key is revoked, or the session closed, that it was given for.
#[derive(Clone, Debug)]
pub struct EndSignal(watch::Receiver<()>);

impl EndSignal {
    /// Nothing is ever sent: the end is told by the sender's going away.
    pub(crate) fn channel() -> (watch::Sender<()>, Self) {
        let (sender, receiver) = watch::channel(());
        (sender, Self(receiver))
    }

    pub fn has_ended(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Resolves when it has ended.
    pub async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// Who listens for the end of which key.
#[derive(Default)]
pub(crate) struct Listeners {
    by_key: Mutex<HashMap<Arc<str>, watch::Sender<()>>>,
}

impl Listeners {
    pub(crate) fn listen(&self, key_id: &Arc<str>) -> EndSignal {
        let mut by_key = self.by_key.lock();
        if let Some(sender) = by_key.get(key_id) {
            return EndSignal(sender.subscribe());
        }
        // Doubling keeps the cost of looking small beside that of listening.
        if by_key.len() >= PRUNED_ABOVE && by_key.len() == by_key.capacity() {
            by_key.retain(|_, sender| sender.receiver_count() > 0);
        }
        let (sender, ended) = EndSignal::channel();
        by_key.insert(Arc::clone(key_id), sender);
        ended
    }

    pub(crate) fn end(&self, key_id: &str) {
        self.by_key.lock().remove(key_id);
    }
}
