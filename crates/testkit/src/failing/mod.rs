//! A store that fails on request. Wraps any store; a seed decides what happens to each call. It
//! also records what was really applied, so that a test can distinguish what is durable from what
//! the caller was told.

mod calls;
mod listings;
mod plan;

pub use plan::{Faults, InjectedFault, StoreConnection};

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_record::EffectId;
use tandem_store::{Commit, OutboxChange, Store};

/// What commits made durable, as far as tests need it.
#[derive(Default)]
pub struct CommittedEffects {
    effects: Mutex<HashSet<EffectId>>,
    last_append_size: AtomicUsize,
}

impl CommittedEffects {
    /// Whether an effect's identity was ever put into the store's outbox.
    pub fn recorded(&self, effect: &EffectId) -> bool {
        self.effects.lock().contains(effect)
    }

    /// [`Commit::size`] of the last commit that appended events.
    pub fn last_append_size(&self) -> usize {
        self.last_append_size.load(Ordering::Relaxed)
    }
}

pub struct FailingStore {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
    committed: Arc<CommittedEffects>,
}

impl FailingStore {
    pub fn new(
        inner: Arc<dyn Store>,
        faults: Arc<Faults>,
        committed: Arc<CommittedEffects>,
    ) -> Self {
        Self {
            inner,
            faults,
            committed,
        }
    }

    async fn apply(&self, commit: Commit) -> Result<(), tandem_store::Error> {
        let put: Vec<EffectId> = commit
            .outbox
            .iter()
            .filter_map(|change| match change {
                OutboxChange::Put(entry) | OutboxChange::Wake(entry) => Some(entry.effect.clone()),
                OutboxChange::Remove(_) => None,
            })
            .collect();
        let append_size = (!commit.appends.is_empty()).then(|| commit.size());
        self.inner.commit(commit).await?;
        self.committed.effects.lock().extend(put);
        if let Some(size) = append_size {
            self.committed
                .last_append_size
                .store(size, Ordering::Relaxed);
        }
        Ok(())
    }
}
