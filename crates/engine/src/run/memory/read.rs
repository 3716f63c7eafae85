//! What a node reads from memory: stored entries, and those this decision has written.

use super::lookup::{MemoryQueryKind, MemoryResult};
use crate::cost;
use crate::run::draft::DecisionDraft;
use std::collections::HashMap;
use tandem_record::MemoryEntry;

const MAX_REF_CHARS: usize = 256;

/// Work of looking at one entry, and at one byte of a text that is searched.
const ENTRY_WORK: u64 = 200;
const SEARCHED_BYTE: u64 = 4;
/// What is found is listed, put out, and kept in a variable.
const RESULT_COPIES: u64 = 4;

impl DecisionDraft<'_> {
    /// Everything under a name that fits, newest first, `limit` of it at most. What is looked at is
    /// charged, and so is what is copied; nothing is found when that does not fit.
    pub(crate) fn memory_entries(
        &self,
        memory_ref: &str,
        limit: usize,
        fits: impl Fn(&MemoryEntry) -> bool,
    ) -> Vec<MemoryEntry> {
        if !is_valid_ref(memory_ref) {
            return Vec::new();
        }
        let read = self.memory_read(memory_ref, MemoryQueryKind::All);
        let result = self.cx.memory.read_memory(&read);
        let stored: &[MemoryEntry] = match result.as_deref() {
            Some(MemoryResult::Entries(entries)) => entries,
            _ => &[],
        };
        let drafted: Vec<&MemoryEntry> = self.visible_drafted_entries(memory_ref).collect();
        let work = ENTRY_WORK.saturating_mul(cost::count(stored.len() + drafted.len()));
        if !self.cx.work.try_spend(work) {
            return Vec::new();
        }
        let newest: HashMap<&str, usize> = drafted
            .iter()
            .enumerate()
            .map(|(n, entry)| (&*entry.key, n))
            .collect();
        let kept = stored.iter().filter(|e| !newest.contains_key(&*e.key));
        let drafted = drafted.iter().enumerate();
        let drafted = drafted.filter(|(n, entry)| newest.get(&*entry.key) == Some(n));
        let mut entries: Vec<&MemoryEntry> = kept.chain(drafted.map(|(_, entry)| *entry)).collect();
        entries.retain(|e| !e.is_expired(self.now));
        entries.reverse();
        entries.sort_by_key(|e| std::cmp::Reverse(e.written_at));
        let found = entries.into_iter().filter(|entry| fits(entry));
        let copies = found.map_while(|entry| {
            cost::charge_copies(&entry.value, RESULT_COPIES, self.cx.work)?;
            Some(entry.clone())
        });
        copies.take(limit).collect()
    }

    /// Whether an entry's text has these words, in any case.
    pub(super) fn has_text(&self, entry: &MemoryEntry, words: &str) -> bool {
        let measured = cost::charge_copies(&entry.value, 1, self.cx.work);
        let text = measured.map_or(0, |size| size.text);
        let work = SEARCHED_BYTE.saturating_mul(cost::count(text));
        measured.is_some()
            && self.cx.work.try_spend(work)
            && entry.text().to_lowercase().contains(words)
    }

    pub(super) fn memory_entry(&self, memory_ref: &str, key: &str) -> Option<MemoryEntry> {
        let own = self
            .visible_drafted_entries(memory_ref)
            .filter(|e| e.key == key)
            .last();
        let entry = own.cloned().or_else(|| {
            let read = self.memory_read(memory_ref, MemoryQueryKind::Key(key.to_owned()));
            match self.cx.memory.read_memory(&read).as_deref() {
                Some(MemoryResult::Entries(entries)) => entries.last().cloned(),
                _ => None,
            }
        });
        entry.filter(|e| is_valid_ref(memory_ref) && !e.is_expired(self.now))
    }

    /// Entries this decision has written so far and may see, oldest first.
    fn visible_drafted_entries(&self, memory_ref: &str) -> impl Iterator<Item = &MemoryEntry> {
        let written = self.drafted_entries(memory_ref);
        let visible = written.filter(|(seq, _)| self.is_visible(*seq));
        visible.map(|(_, entry)| entry)
    }
}

/// Rejects names that another system could read as a path.
pub(super) fn is_valid_ref(memory_ref: &str) -> bool {
    let length = memory_ref.chars().count();
    (1..=MAX_REF_CHARS).contains(&length)
        && !memory_ref.contains(['\0', '\\'])
        && !memory_ref.starts_with('/')
        && memory_ref
            .split('/')
            .all(|part| part != ".." && part != ".")
}
