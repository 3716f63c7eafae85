//! The memory journal, and what is left of a run whose log was removed.

use super::MemoryStore;
use super::state::State;
use crate::ReadMemory;
use crate::audit::AuditDraft;
use crate::commit::MemoryRow;
use crate::fault::Fault;
use crate::read::{MemoryQuery, MemoryView};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use tandem_record::{RunId, Seq, StreamId, TenantId};

impl State {
    pub(super) fn bury(&mut self, run: &RunId, tombstone: &str, told: Option<&AuditDraft>) {
        if !self.run_places.contains_key(run) || self.tombstones.contains_key(run) {
            return;
        }
        if let Some(told) = told {
            self.tell(told);
        }
        if let Some(log) = self.streams.get_mut(&StreamId::of_run(run)) {
            log.buried_at = log.head();
            log.events.clear();
            log.snapshot = None;
        }
        self.tombstones.insert(run.clone(), tombstone.to_owned());
    }
}

fn asked_for(query: &MemoryQuery, row: &MemoryRow) -> bool {
    let named = query.memory_ref.as_ref();
    let keyed = query.key.as_ref();
    named.is_none_or(|r| row.memory_ref == *r) && keyed.is_none_or(|k| row.key == *k)
}

fn is_seen(view: &MemoryView, position: u64, row: &MemoryRow) -> bool {
    if row.tenant != view.tenant || row.scope != view.scope {
        return false;
    }
    let from_start = position <= view.start;
    from_start
        || view.segments.iter().any(|segment| {
            segment.run == row.run
                && segment.below.is_none_or(|below| row.seq < below)
                && (segment.forgets || row.body.is_some())
        })
}

#[async_trait]
impl ReadMemory for MemoryStore {
    async fn memory_position(&self) -> Result<u64, Fault> {
        Ok(self.state()?.journal.len() as u64)
    }

    async fn memory_entries(
        &self,
        view: &MemoryView,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryRow>, Fault> {
        let state = self.state()?;
        let mut newest: HashMap<(&str, &str), (u64, &MemoryRow)> = HashMap::new();
        for (position, row) in (1..).zip(&state.journal) {
            if asked_for(query, row) && is_seen(view, position, row) {
                newest.insert((&row.memory_ref, &row.key), (position, row));
            }
        }
        let in_order: BTreeMap<u64, &MemoryRow> = newest.into_values().collect();
        let present = in_order.into_values().filter(|row| row.body.is_some());
        Ok(present.cloned().collect())
    }

    async fn memory_count(
        &self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
        limit: u64,
    ) -> Result<u64, Fault> {
        let view = MemoryView {
            tenant: tenant.clone(),
            scope: scope.to_owned(),
            start: u64::MAX,
            segments: Vec::new(),
        };
        let query = MemoryQuery {
            memory_ref: Some(memory_ref.to_owned()),
            key: None,
        };
        let entries = self.memory_entries(&view, &query).await?;
        Ok((entries.len() as u64).min(limit))
    }

    async fn memory_joins(&self, run: &RunId, below: Option<Seq>) -> Result<Vec<RunId>, Fault> {
        let state = self.state()?;
        let seen = state.joins.iter().filter(|join| join.run == *run);
        let seen = seen.filter(|join| below.is_none_or(|below| join.seq < below));
        Ok(seen.map(|join| join.child.clone()).collect())
    }
}
