//! Short runs whose logs are purged while the simulation goes on.

use super::check::{ensure, store_failed};
use super::client::tenant;
use crate::workflow_builder::wf;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{RunId, WorkflowId};
use tandem_runtime::{RunRow, Runtime};
use tandem_store::Store;
use tandem_store::audit::Entry;

pub(super) const SHORT: &str = "short";
const RETENTION_MS: u64 = 10_000;

pub(super) fn workflow() -> Value {
    wf(SHORT).delay("nap", 50).document()
}

pub(super) fn retention() -> BTreeMap<WorkflowId, u64> {
    BTreeMap::from([(WorkflowId::new(SHORT), RETENTION_MS)])
}

/// Every short run is purged, with one audit entry each. Returns these runs.
pub(super) async fn check_purged_once(
    runtime: &Runtime,
    store: &dyn Store,
    rows: &[RunRow],
) -> Result<BTreeSet<RunId>, String> {
    let mut purged = BTreeSet::new();
    for row in rows.iter().filter(|row| row.workflow_id.as_str() == SHORT) {
        let stored = store.run(&tenant(), &row.run_id).await;
        let stored = stored.map_err(store_failed)?;
        ensure(stored.is_some_and(|s| s.tombstone.is_some()), || {
            format!("{} is past its retention and was not purged", row.run_id)
        })?;
        let shown = runtime.observe(&tenant(), &row.run_id).await;
        ensure(shown.map_err(store_failed)?.is_none(), || {
            format!("{} is shown although it was purged", row.run_id)
        })?;
        purged.insert(row.run_id.clone());
    }
    let entries = store.audit_entries(0, usize::MAX).await;
    let mut audited = Vec::new();
    for entry in entries.map_err(store_failed)? {
        let entry: Entry = serde_json::from_slice(&entry.body).map_err(|e| e.to_string())?;
        if entry.action == "run.purge" {
            audited.push(RunId::from(entry.target));
        }
    }
    audited.sort();
    ensure(audited.iter().eq(purged.iter()), || {
        format!("{purged:?} were purged, but the audit log has {audited:?}")
    })?;
    Ok(purged)
}
