//! Storage usage of the in-memory store.

use super::state::{State, StreamLog};
use crate::commit::RunRow;
use crate::storage_usage::{
    RunCounts, RunSize, ScopeSize, StorageUsage, USAGE_MAX_RUNS, USAGE_TOP_COUNT, WorkflowSize,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tandem_record::{StreamId, TenantId, Timestamp, WorkflowId};

impl State {
    pub(super) fn storage_usage(&self, tenant: &TenantId) -> StorageUsage {
        let mut runs = RunCounts::default();
        let mut workflows = BTreeMap::new();
        let mut largest = Vec::new();
        let newest = self.runs.iter().rev().filter(|row| row.tenant == *tenant);
        for row in newest.take(USAGE_MAX_RUNS) {
            if self.tombstones.contains_key(&row.run_id) {
                runs.purged += 1;
                continue;
            }
            match row.ended_at {
                Some(_) => runs.retained += 1,
                None => runs.live += 1,
            }
            let size = self.size_of(row);
            let of_workflow = workflows.entry(&row.workflow_id).or_insert((0, 0));
            *of_workflow = (of_workflow.0 + 1, of_workflow.1 + size.events);
            largest.push(size);
        }
        runs.more = runs.live + runs.retained + runs.purged >= USAGE_MAX_RUNS as u64;
        let mut workflows: Vec<WorkflowSize> = workflows
            .into_iter()
            .map(|(workflow_id, (runs, events))| WorkflowSize {
                tenant: tenant.clone(),
                workflow_id: workflow_id.clone(),
                runs,
                events,
            })
            .collect();
        workflows.sort_by_key(|one| Reverse((one.events, one.runs)));
        workflows.truncate(USAGE_TOP_COUNT);
        largest.sort_by_key(|one| Reverse(one.events));
        largest.truncate(USAGE_TOP_COUNT);
        StorageUsage {
            runs,
            workflows,
            largest_runs: largest,
            memory: self.scopes_of(tenant),
            oldest_ends: self.oldest_ends(tenant),
        }
    }

    fn size_of(&self, row: &RunRow) -> RunSize {
        let log = self.streams.get(&StreamId::of_run(&row.run_id));
        let bodies = log.into_iter().flat_map(|log| &log.events);
        let head = log.and_then(StreamLog::head);
        RunSize {
            run_id: row.run_id.clone(),
            tenant: row.tenant.clone(),
            workflow_id: row.workflow_id.clone(),
            status: row.status.as_str().to_owned(),
            events: head.map_or(0, |head| head.0 + 1),
            bytes: bodies.map(|event| event.body.len() as u64).sum(),
        }
    }

    fn scopes_of(&self, tenant: &TenantId) -> Vec<ScopeSize> {
        let mut scopes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for row in self.journal.iter().filter(|row| row.tenant == *tenant) {
            let scope = scopes.entry(&row.scope).or_default();
            let bytes = row.body.as_ref().map_or(0, String::len) as u64;
            *scope = (scope.0 + 1, scope.1 + bytes);
        }
        let sizes = scopes
            .into_iter()
            .map(|(scope, (writes, bytes))| ScopeSize {
                tenant: tenant.clone(),
                scope: scope.to_owned(),
                writes,
                bytes,
            });
        let mut sizes: Vec<ScopeSize> = sizes.collect();
        sizes.sort_by_key(|one| Reverse(one.bytes));
        sizes.truncate(USAGE_TOP_COUNT);
        sizes
    }

    fn oldest_ends(&self, tenant: &TenantId) -> Vec<(WorkflowId, Timestamp)> {
        let mut oldest = BTreeMap::new();
        let retained =
            |row: &&RunRow| row.tenant == *tenant && !self.tombstones.contains_key(&row.run_id);
        for row in self.runs.iter().filter(retained) {
            if let Some(at) = row.ended_at {
                let first = oldest.entry(row.workflow_id.clone()).or_insert(at);
                *first = at.min(*first);
            }
        }
        oldest.into_iter().collect()
    }
}
