//! A store that fails on request. Wraps any store; a seed decides what happens to each call. It
//! also records what was really applied, so that a test can distinguish what is durable from what
//! the caller was told.

mod calls;
mod conversations;
mod listings;
mod plan;
mod processes;

pub use plan::{Faults, InjectedFault, StoreConnection};

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_record::EffectId;
use tandem_store::{Commit, CommitGuard, Committed, OutboxChange, Store};

/// What commits made durable, as far as tests need it.
#[derive(Default)]
pub struct CommittedEffects {
    effects: Mutex<BTreeMap<EffectId, EffectCounts>>,
    last_append_size: AtomicUsize,
}

#[derive(Default)]
struct EffectCounts {
    /// How often it was put into the outbox.
    put: u64,
    /// How often a result was recorded: it was removed by the holder of its lease.
    results: u64,
}

impl CommittedEffects {
    /// Whether an effect's identity was ever put into the store's outbox.
    pub fn recorded(&self, effect: &EffectId) -> bool {
        self.effects
            .lock()
            .get(effect)
            .is_some_and(|counts| counts.put > 0)
    }

    /// Whether a result of the effect is recorded for every time it was put into the outbox.
    pub(crate) fn has_result(&self, effect: &EffectId) -> bool {
        let effects = self.effects.lock();
        effects
            .get(effect)
            .is_some_and(|of| of.results >= of.put && of.put > 0)
    }

    /// Effects with more recorded results than entries in the outbox.
    pub fn with_second_result(&self) -> Vec<EffectId> {
        let effects = self.effects.lock();
        let twice = effects.iter().filter(|(_, of)| of.results > of.put);
        twice.map(|(effect, _)| effect.clone()).collect()
    }

    fn count(&self, commit: &Commit) {
        let mut effects = self.effects.lock();
        for change in &commit.outbox {
            match change {
                OutboxChange::Put(entry) | OutboxChange::Wake(entry) => {
                    effects.entry(entry.effect.clone()).or_default().put += 1;
                }
                OutboxChange::Remove(_) => {}
            }
        }
        for guard in &commit.guards {
            if let CommitGuard::HoldsLease { effect, .. } = guard
                && commit
                    .outbox
                    .contains(&OutboxChange::Remove(effect.clone()))
            {
                effects.entry(effect.clone()).or_default().results += 1;
            }
        }
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

    async fn apply(&self, commit: Commit) -> Result<Committed, tandem_store::Error> {
        let counted = commit.clone();
        let committed = self.inner.commit(commit).await?;
        self.committed.count(&counted);
        if !counted.appends.is_empty() {
            let size = counted.size();
            self.committed
                .last_append_size
                .store(size, Ordering::Relaxed);
        }
        Ok(committed)
    }
}
