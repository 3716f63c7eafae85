//! The audit log.

use super::{Runs, ensure, store_failed};
use crate::sim::Simulation;
use std::collections::BTreeSet;
use tandem_record::RunId;
use tandem_store::audit::{ChainVerifier, Entry};

/// The audit chain is valid through every fault, and has exactly one entry for each requested run and fork.
pub(super) async fn check_creations_audited(
    sim: &Simulation,
    runs: &Runs,
    purged: &BTreeSet<RunId>,
) -> Result<(), String> {
    let store = sim.store();
    let rows = store.audit_entries(0, usize::MAX).await;
    let mut walk = ChainVerifier::new();
    let mut audited = Vec::new();
    for row in rows.map_err(store_failed)? {
        walk.entry(row.seq, &row.body);
        let entry: Entry = serde_json::from_slice(&row.body).map_err(|e| e.to_string())?;
        let creates = ["run.create", "run.fork"].contains(&entry.action.as_str());
        if creates && !purged.contains(entry.target.as_str()) {
            audited.push(entry.target);
        }
    }
    let head = store.audit_head().await.map_err(store_failed)?;
    ensure(walk.breaks().is_empty() && walk.last() == head, || {
        format!("the audit chain is broken: {:?}", walk.breaks())
    })?;
    audited.sort();
    let asked = runs.values().filter(|run| run.row.parent.is_none());
    let asked: Vec<String> = asked.map(|run| run.row.run_id.to_string()).collect();
    ensure(audited == asked, || {
        format!("runs {asked:?} were created, but the audit log has {audited:?}")
    })
}
