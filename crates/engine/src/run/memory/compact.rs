//! Compaction: when a run's write leaves too many notes under one name, the oldest are merged into
//! one.
//!
//! A compaction is decided like everything else and is one event on the run's log. The output is
//! written and its sources are removed like any other entries: runs that began earlier still see
//! what they saw, as do forks and the run itself. Only notes are merged, which are entries without
//! an author's key: a read by key must still find its entry. Entries that expire are not merged, so
//! no expiry changes.

use crate::cost::charge_copies;
use crate::ids::compaction_id;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Limits;
use crate::run::memory::{MAX_ENTRY_BYTES, MemoryQueryKind, MemoryRead, MemoryResult};
use serde_json::Value;
use std::collections::HashSet;
use tandem_record::{Event, MemoryEntry, Seq};

/// Maximum number of entries merged at once, which limits the size of the event that names them.
const MAX_SOURCES: usize = 100;
/// Maximum number of notes read by one decision, which may write many.
const CANDIDATES: usize = 3 * MAX_SOURCES;
/// Maximum number of tags copied from the sources.
const MAX_TAGS: usize = 32;
const PROVENANCE: &str = "compacted-from:";

/// How many notes are merged into one under these limits; `None` when compaction is off.
pub fn compaction_batch_size(limits: &Limits) -> Option<usize> {
    // The newer half stays as it was written.
    let half = usize::try_from(limits.compact_above? / 2).unwrap_or(usize::MAX);
    Some(half.clamp(2, MAX_SOURCES))
}

impl DecisionDraft<'_> {
    /// The notes that a write has to read first. It reads their current state: a supervisor's
    /// iteration that sees an older state of memory must not restore entries removed meanwhile.
    pub(in crate::run) fn notes_read(&self, memory_ref: &str) -> Option<MemoryRead> {
        let above = self
            .cx
            .limits
            .compact_above
            .filter(|_| !self.is_replaying())?;
        let what = MemoryQueryKind::Notes {
            above,
            limit: CANDIDATES,
        };
        Some(MemoryRead {
            below: None,
            ..self.memory_read(memory_ref, what)
        })
    }

    /// Runs one compaction after a write under a name, if there are too many notes.
    pub(in crate::run) fn compact(&mut self, ix: usize, memory_ref: &str, cause: Seq) {
        // A fork that repeats work repeats exactly what was recorded.
        if self.repeats_recorded_work() {
            if self.peek_recorded().is_some_and(|r| compacts(&r.event))
                && let Some(recorded) = self.take_recorded()
            {
                self.append_recorded(recorded);
            }
            return;
        }
        let Some(sources) = self.notes_to_compact(memory_ref) else {
            return;
        };
        let at = self.run.next_seq();
        let id = compaction_id(self.run.id(), at);
        let output = MemoryEntry {
            memory_ref: memory_ref.to_owned(),
            key: id.clone(),
            value: Value::String(joined(&sources)),
            tags: tags(&sources),
            written_at: self.now,
            expires_at: None,
            agent: None,
            sensitive: sources.iter().any(|note| note.sensitive),
            id,
        };
        let event = Event::MemoryCompacted {
            node: self.run.def.nodes[ix].id.clone(),
            output: Box::new(output),
            sources: sources.into_iter().map(|note| note.id).collect(),
        };
        self.emit(event, Some(cause));
    }

    /// The notes to merge, oldest first.
    fn notes_to_compact(&self, memory_ref: &str) -> Option<Vec<MemoryEntry>> {
        let at_once = compaction_batch_size(self.cx.limits)?;
        let above = self.cx.limits.compact_above?;
        let read = self.notes_read(memory_ref)?;
        let found = self.cx.memory.read_memory(&read)?;
        let MemoryResult::Notes { held, oldest } = &*found else {
            return None;
        };
        if *held <= above {
            return None;
        }
        let gone = self.removed_keys(memory_ref);
        let written = self.drafted_entries(memory_ref).map(|(_, entry)| entry);
        let stays = |e: &&MemoryEntry| e.expires_at.is_none() && !gone.contains(&*e.key);
        let written = written.filter(|e| e.is_note()).filter(stays).count();
        let gone_of_old = oldest.iter().filter(|e| !stays(e)).count();
        let left = (*held + written as u64).saturating_sub(gone_of_old as u64);
        if left <= above {
            return None;
        }
        let mut size = 0;
        let mut sources = Vec::new();
        for note in oldest {
            charge_copies(&note.value, 2, self.cx.work)?;
            let grown = size + note.text().len() + usize::from(size > 0);
            if sources.len() < at_once && grown <= MAX_ENTRY_BYTES && note.is_note() && stays(&note)
            {
                size = grown;
                sources.push(note.clone());
            }
        }
        (sources.len() > 1).then_some(sources)
    }

    /// Keys under a name that this decision has removed, merged or overwritten.
    fn removed_keys(&self, name: &str) -> HashSet<&str> {
        let own = self
            .drafted()
            .iter()
            .filter(|r| r.seq >= self.first_own_seq());
        let mut gone = HashSet::new();
        for recorded in own {
            match &recorded.event {
                Event::MemoryWritten { entry, .. }
                    if entry.memory_ref == name && !entry.is_note() =>
                {
                    gone.insert(entry.key.as_str());
                }
                Event::MemoryDeleted {
                    memory_ref,
                    forgotten,
                    ..
                } if memory_ref == name => {
                    gone.insert(forgotten);
                }
                Event::MemoryCompacted {
                    output, sources, ..
                } if output.memory_ref == name => {
                    gone.extend(sources.iter().map(String::as_str));
                }
                _ => {}
            }
        }
        gone
    }
}

fn compacts(event: &Event) -> bool {
    matches!(event, Event::MemoryCompacted { .. })
}

/// The texts as they were written, one after the other.
fn joined(sources: &[MemoryEntry]) -> String {
    let texts: Vec<String> = sources
        .iter()
        .map(|note| MemoryEntry::text_of(&note.value))
        .collect();
    texts.join("\n")
}

/// Tags that name the sources, and the sources' own tags.
fn tags(sources: &[MemoryEntry]) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in sources.iter().flat_map(|note| &note.tags) {
        if tags.len() < MAX_TAGS && !tag.starts_with(PROVENANCE) && !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    let from = sources.iter();
    tags.extend(from.map(|note| format!("{PROVENANCE}{}", note.id)));
    tags
}
