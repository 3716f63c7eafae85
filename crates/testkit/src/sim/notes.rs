//! Notes are neither lost nor duplicated, whatever interrupts their compaction.

use super::check::{Ended, ensure, store_failed};
use crate::workflow_builder::WorkflowBuilder;
use serde_json::json;
use std::collections::BTreeMap;
use tandem_record::{Event, MemoryEntry, MemoryOrigin};
use tandem_store::Store;
use tandem_store::{MemoryQuery, MemoryView};

/// A node that writes a note.
pub(super) fn note(flow: WorkflowBuilder, name: &str) -> WorkflowBuilder {
    let config = json!({"action": "put", "value": format!("said by {name}")});
    flow.node(name, "vendor.tandem.memory", config)
}

/// The scopes contain exactly the notes written in the logs, each text once for each write.
pub(super) async fn check_notes_stored<'a>(
    store: &dyn Store,
    runs: impl Iterator<Item = &'a Ended>,
) -> Result<(), String> {
    let mut written: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut collapsed = 0;
    for run in runs {
        let scope = run
            .request()
            .memory
            .as_ref()
            .map(|memory| memory.scope.clone());
        let scope = scope.unwrap_or_else(|| MemoryOrigin::SHARED.to_owned());
        let texts = written.entry(scope).or_default();
        for recorded in run.own_events() {
            match &recorded.event {
                Event::MemoryWritten { entry, .. } => {
                    texts.push(MemoryEntry::text_of(&entry.value))
                }
                Event::MemoryCompacted { .. } => collapsed += 1,
                _ => {}
            }
        }
    }
    for (scope, mut texts) in written {
        let everything = MemoryView {
            tenant: super::client::tenant(),
            scope: scope.clone(),
            start: u64::MAX,
            segments: Vec::new(),
        };
        let rows = store
            .memory_entries(&everything, &MemoryQuery::default())
            .await;
        let mut stored = Vec::new();
        for row in rows.map_err(store_failed)? {
            let body = row.body.unwrap_or_default();
            let entry: MemoryEntry = serde_json::from_str(&body).map_err(|e| e.to_string())?;
            let text = MemoryEntry::text_of(&entry.value);
            stored.extend(text.lines().map(str::to_owned));
        }
        texts.sort_unstable();
        stored.sort_unstable();
        ensure(stored == texts, || {
            format!(
                "{scope} holds {stored:?} after {collapsed} compactions, but written were {texts:?}"
            )
        })?;
    }
    Ok(())
}
