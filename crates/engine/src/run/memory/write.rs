//! Writes an entry to the run's log.

use super::lookup::{MemoryQueryKind, MemoryResult};
use super::read::is_valid_ref;
use crate::ids::memory_id;
use crate::run::draft::DecisionDraft;
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::{ErrorInfo, Event, MemoryEntry, Seq};

/// Maximum size in bytes of one entry's content.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024;
/// Maximum number of entries under one name of one scope.
const MAX_ENTRIES: u64 = 10_000;

/// An entry before it has an id and a time.
pub(crate) struct NewMemoryEntry {
    pub(crate) key: Option<String>,
    pub(crate) value: Value,
    pub(crate) tags: Vec<String>,
    pub(crate) expires_at: Option<tandem_record::Timestamp>,
    /// It comes from a variable or channel marked as sensitive.
    pub(crate) sensitive: bool,
}

impl DecisionDraft<'_> {
    /// The only function that writes an entry to the log. Returns its id and the event's sequence
    /// number.
    pub(crate) fn write_memory(
        &mut self,
        ix: usize,
        memory_ref: &str,
        new_entry: NewMemoryEntry,
        cause: Seq,
    ) -> Result<(String, Seq), ErrorInfo> {
        let refuse = |message: String| Err(ErrorInfo::new("validation_error", message));
        if !is_valid_ref(memory_ref) {
            return refuse("the agent's memoryRef cannot be used as a name".to_owned());
        }
        let size = MemoryEntry::text_of(&new_entry.value).len();
        if size > MAX_ENTRY_BYTES {
            return refuse(format!(
                "the entry has {size} bytes; at most {MAX_ENTRY_BYTES} are kept"
            ));
        }
        let read = self.memory_read(memory_ref, MemoryQueryKind::Count);
        let stored = match self.cx.memory.read_memory(&read).as_deref() {
            Some(MemoryResult::Count(n)) => *n,
            _ => 0,
        };
        // A key written many times in one decision counts as one entry.
        let drafted = self.drafted_entries(memory_ref);
        let keys: BTreeSet<&str> = drafted.map(|(_, e)| &*e.key).collect();
        if stored + keys.len() as u64 >= MAX_ENTRIES {
            return refuse(format!("the scope holds {MAX_ENTRIES} entries already"));
        }
        let def = self.definition();
        let node = &def.nodes[ix];
        let execution = self.run.node(ix).execution;
        let of_node = self
            .drafted()
            .iter()
            .filter(|r| matches!(&r.event, Event::MemoryWritten { node: n, .. } if *n == node.id));
        let id = memory_id(self.run.id(), &node.id, execution, of_node.count());
        let agent = def.doc_node(ix).agent.as_ref();
        let entry = MemoryEntry {
            memory_ref: memory_ref.to_owned(),
            key: new_entry.key.unwrap_or_else(|| id.clone()),
            value: new_entry.value,
            tags: new_entry.tags,
            written_at: self.now,
            expires_at: new_entry.expires_at,
            sensitive: new_entry.sensitive,
            agent: agent.and_then(|a| Some(a.get("agentId")?.as_str()?.to_owned())),
            id: id.clone(),
        };
        let event = Event::MemoryWritten {
            node: node.id.clone(),
            entry: Box::new(entry),
        };
        let seq = self.emit(event, Some(cause));
        // A fork that repeats work of its source keeps the source's entry.
        let stored_id = self
            .drafted()
            .last()
            .and_then(|recorded| match &recorded.event {
                Event::MemoryWritten { entry, .. } => Some(entry.id.clone()),
                _ => None,
            });
        self.compact(ix, memory_ref, seq);
        Ok((stored_id.unwrap_or(id), seq))
    }

    /// Entries this decision has written so far, oldest first, with the events that record them.
    pub(in crate::run) fn drafted_entries(
        &self,
        memory_ref: &str,
    ) -> impl Iterator<Item = (Seq, &MemoryEntry)> {
        let own = self.drafted().iter();
        let own = own.filter(|r| r.seq >= self.first_own_seq() && !self.is_replaying());
        own.filter_map(move |recorded| match &recorded.event {
            Event::MemoryWritten { entry, .. } | Event::MemoryCompacted { output: entry, .. } => {
                (entry.memory_ref == memory_ref).then_some((recorded.seq, &**entry))
            }
            _ => None,
        })
    }
}
