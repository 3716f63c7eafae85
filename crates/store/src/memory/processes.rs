//! What several processes on one store agree on: epochs of cached data, and holders of tasks.

use super::MemoryStore;
use super::state::State;
use crate::epochs::{CachedData, ReadEpochs};
use crate::fault::Fault;
use crate::lease::TaskLeases;
use async_trait::async_trait;
use tandem_record::Timestamp;

impl State {
    pub(super) fn raise_epoch(&mut self, data: CachedData) {
        *self.epochs.entry(data.number()).or_default() += 1;
    }
}

#[async_trait]
impl ReadEpochs for MemoryStore {
    async fn epoch(&self, of: CachedData) -> Result<u64, Fault> {
        let state = self.state()?;
        Ok(state.epochs.get(&of.number()).copied().unwrap_or(0))
    }
}

#[async_trait]
impl TaskLeases for MemoryStore {
    async fn hold_task(
        &self,
        task: &str,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Fault> {
        let mut state = self.state()?;
        let held = state.task_leases.get(task);
        if held.is_some_and(|(holder, end)| holder != owner && *end > now) {
            return Ok(false);
        }
        state
            .task_leases
            .insert(task.to_owned(), (owner.to_owned(), until));
        Ok(true)
    }
}
