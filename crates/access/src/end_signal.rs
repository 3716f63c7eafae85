//! Signals the end of a key or session to long-running users of it, such as streams.

use crate::Identity;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::TenantId;
use tokio::sync::watch;

/// Unused listener entries are pruned only above this number.
const PRUNED_ABOVE: usize = 64;

/// Resolves when the key it was created for is revoked, or the session is closed.
#[derive(Clone, Debug)]
pub struct EndSignal(watch::Receiver<()>);

impl EndSignal {
    /// Nothing is ever sent: dropping the sender is the signal.
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

/// Listeners for the end of a key, by key.
#[derive(Default)]
pub(crate) struct Listeners {
    by_key: Mutex<HashMap<Arc<str>, Listened>>,
}

/// A key that somebody listens for.
struct Listened {
    /// The tenant that owns the key.
    tenant: TenantId,
    sender: watch::Sender<()>,
}

impl Listeners {
    pub(crate) fn listen(&self, identity: &Identity) -> EndSignal {
        let mut by_key = self.by_key.lock();
        if let Some(listened) = by_key.get(&identity.key_id) {
            return EndSignal(listened.sender.subscribe());
        }
        // Pruning only when the map would grow keeps its amortized cost small.
        if by_key.len() >= PRUNED_ABOVE && by_key.len() == by_key.capacity() {
            by_key.retain(|_, listened| listened.sender.receiver_count() > 0);
        }
        let (sender, ended) = EndSignal::channel();
        let tenant = identity.key_tenant();
        by_key.insert(Arc::clone(&identity.key_id), Listened { tenant, sender });
        ended
    }

    /// The keys that somebody listens for, with the tenants that own them.
    pub(crate) fn keys(&self) -> Vec<(TenantId, Arc<str>)> {
        let by_key = self.by_key.lock();
        let used = by_key
            .iter()
            .filter(|(_, listened)| listened.sender.receiver_count() > 0);
        used.map(|(key_id, listened)| (listened.tenant.clone(), Arc::clone(key_id)))
            .collect()
    }

    pub(crate) fn end(&self, key_id: &str) {
        self.by_key.lock().remove(key_id);
    }
}
