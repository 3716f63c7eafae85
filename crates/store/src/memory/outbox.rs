//! Leases. An entry is due when its lease runs out, or at `available_at` while nobody holds it.

use super::MemoryStore;
use crate::Outbox;
use crate::commit::OutboxEntry;
use crate::fault::Fault;
use crate::read::LeaseRequest;
use async_trait::async_trait;
use tandem_record::{EffectId, Timestamp};

fn due_at(entry: &OutboxEntry) -> Timestamp {
    entry
        .lease
        .as_ref()
        .map_or(entry.available_at, |(_, until)| *until)
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault> {
        let mut state = self.state()?;
        let mut due: Vec<&mut OutboxEntry> = state
            .outbox
            .values_mut()
            .filter(|entry| due_at(entry) <= request.now)
            .collect();
        due.sort_by_key(|entry| due_at(entry));
        due.truncate(request.limit);
        Ok(due
            .into_iter()
            .map(|entry| {
                entry.lease = Some((request.owner.clone(), request.until));
                entry.attempts += 1;
                entry.clone()
            })
            .collect())
    }

    async fn release(
        &self,
        effect: &EffectId,
        owner: &str,
        available_at: Timestamp,
    ) -> Result<(), Fault> {
        let mut state = self.state()?;
        if let Some(entry) = state.outbox.get_mut(effect)
            && entry
                .lease
                .as_ref()
                .is_some_and(|(holder, _)| holder == owner)
        {
            entry.lease = None;
            entry.available_at = available_at;
        }
        Ok(())
    }

    async fn break_leases(&self, owner: &str) -> Result<u64, Fault> {
        let mut broken = 0;
        for entry in self.state()?.outbox.values_mut() {
            if entry
                .lease
                .as_ref()
                .is_some_and(|(holder, _)| holder != owner)
            {
                entry.lease = None;
                broken += 1;
            }
        }
        Ok(broken)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.state()?.outbox.values().map(due_at).min())
    }

    async fn depth(&self) -> Result<u64, Fault> {
        Ok(self.state()?.outbox.len() as u64)
    }
}
