//! The memory journal, and the tombstones of purged runs.

use super::MemoryStore;
use super::state::State;
use crate::ReadMemory;
use crate::audit::AuditDraft;
use crate::commit::MemoryRow;
use crate::fault::Fault;
use crate::read::{MemoryQuery, MemoryView};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use tandem_record::{RunId, Seq, StreamId, TenantId, Timestamp};

impl State {
    pub(super) fn purge_run(&mut self, run: &RunId, tombstone: &str, audit: Option<&AuditDraft>) {
        if !self.run_places.contains_key(run) || self.tombstones.contains_key(run) {
            return;
        }
        if let Some(audit) = audit {
            self.append_audit_entry(audit);
        }
        if let Some(log) = self.streams.get_mut(&StreamId::of_run(run)) {
            log.purge();
        }
        self.tombstones.insert(run.clone(), tombstone.to_owned());
    }

    /// The keys of a name, each with the position of its newest write.
    pub(super) fn present<'a>(
        &'a self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
    ) -> impl Iterator<Item = (u64, &'a MemoryRow)> + use<'a> {
        let mut newest: HashMap<&str, (u64, &MemoryRow)> = HashMap::new();
        for (position, row) in (1..).zip(&self.journal) {
            if row.tenant == *tenant && row.scope == scope && row.memory_ref == memory_ref {
                newest.insert(&row.key, (position, row));
            }
        }
        newest.into_values().filter(|(_, row)| row.body.is_some())
    }
}

/// When an entry expires, if ever.
fn expiry(row: &MemoryRow) -> Option<Timestamp> {
    let body: serde_json::Value = serde_json::from_str(row.body.as_deref()?).ok()?;
    body.get("expires_at")?.as_i64().map(Timestamp)
}

fn matches_query(query: &MemoryQuery, row: &MemoryRow) -> bool {
    let named = query.memory_ref.as_ref();
    let keyed = query.key.as_ref();
    named.is_none_or(|r| row.memory_ref == *r) && keyed.is_none_or(|k| row.key == *k)
}

fn is_visible(view: &MemoryView, position: u64, row: &MemoryRow) -> bool {
    if row.tenant != view.tenant || row.scope != view.scope {
        return false;
    }
    let from_start = position <= view.start;
    from_start
        || view.segments.iter().any(|segment| {
            segment.run == row.run
                && segment.below.is_none_or(|below| row.seq < below)
                && (segment.applies_deletions || row.body.is_some())
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
            if matches_query(query, row) && is_visible(view, position, row) {
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
        now: Timestamp,
        limit: u64,
    ) -> Result<u64, Fault> {
        let state = self.state()?;
        let present = state.present(tenant, scope, memory_ref);
        let present = present.filter(|(_, row)| expiry(row).is_none_or(|at| at > now));
        Ok((present.count() as u64).min(limit))
    }

    async fn non_expiring_memory(
        &self,
        view: &MemoryView,
        memory_ref: &str,
        prefix: &str,
        above: u64,
        limit: usize,
    ) -> Result<(u64, Vec<MemoryRow>), Fault> {
        let state = self.state()?;
        let present = state.present(&view.tenant, &view.scope, memory_ref);
        let mut non_expiring: BTreeMap<u64, &MemoryRow> = present.collect();
        non_expiring.retain(|position, row| {
            row.key.starts_with(prefix)
                && expiry(row).is_none()
                && view.includes(*position, &row.run, row.seq)
        });
        let held = non_expiring.len() as u64;
        if held <= above {
            return Ok((0, Vec::new()));
        }
        Ok((
            held,
            non_expiring.into_values().take(limit).cloned().collect(),
        ))
    }

    async fn memory_joins(&self, run: &RunId, below: Option<Seq>) -> Result<Vec<RunId>, Fault> {
        let state = self.state()?;
        let joined = state.joins.iter().filter(|join| join.run == *run);
        let joined = joined.filter(|join| below.is_none_or(|below| join.seq < below));
        Ok(joined.map(|join| join.child.clone()).collect())
    }
}
