//! The audit log in memory.

use super::MemoryStore;
use super::state::State;
use crate::audit::{AuditDraft, DECISION, Entry, Hash};
use crate::fault::Fault;
use crate::{Audit, AuditHead, AuditRow, Checkpoint};
use async_trait::async_trait;
use tandem_record::InterruptId;

/// The chain and its checkpoints. The index of an entry is its sequence minus one.
#[derive(Default)]
pub(super) struct AuditLog {
    entries: Vec<String>,
    head: Option<Hash>,
    checkpoints: Vec<Checkpoint>,
}

impl AuditLog {
    fn head(&self) -> Option<AuditHead> {
        let seq = self.entries.len() as u64;
        self.head.map(|hash| AuditHead { seq, hash })
    }

    fn row(&self, seq: u64) -> Option<AuditRow> {
        let place = usize::try_from(seq.checked_sub(1)?).ok()?;
        let body = self.entries.get(place)?.clone().into_bytes();
        Some(AuditRow { seq, body })
    }
}

impl State {
    pub(super) fn append_audit_entry(&mut self, draft: &AuditDraft) {
        let log = &mut self.audit;
        let (body, hash) = draft.encode_at(log.entries.len() as u64 + 1, log.head);
        log.entries.push(body);
        log.head = Some(hash);
    }
}

#[async_trait]
impl Audit for MemoryStore {
    async fn audit_head(&self) -> Result<Option<AuditHead>, Fault> {
        Ok(self.state()?.audit.head())
    }

    async fn audit_entries(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, Fault> {
        let state = self.state()?;
        let rows = (after.saturating_add(1)..).map_while(|seq| state.audit.row(seq));
        Ok(rows.take(limit).collect())
    }

    async fn audit_decision(&self, interrupt: &InterruptId) -> Result<Option<AuditRow>, Fault> {
        let state = self.state()?;
        let decides = |row: &AuditRow| {
            let entry: Option<Entry> = serde_json::from_slice(&row.body).ok();
            entry.is_some_and(|e| e.action == DECISION && e.target == interrupt.as_str())
        };
        let mut rows = (1..).map_while(|seq| state.audit.row(seq));
        Ok(rows.find(decides))
    }

    async fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Fault> {
        let state = self.state()?;
        let later = state.audit.checkpoints.iter();
        let later = later.filter(|checkpoint| checkpoint.at_sequence > after);
        Ok(later.take(limit).cloned().collect())
    }

    async fn checkpoint_until(&self, seq: u64) -> Result<Option<Checkpoint>, Fault> {
        let state = self.state()?;
        let mut earlier = state.audit.checkpoints.iter().rev();
        Ok(earlier.find(|c| c.at_sequence <= seq).cloned())
    }

    async fn put_checkpoint(&self, checkpoint: Checkpoint, after: u64) -> Result<bool, Fault> {
        let mut state = self.state()?;
        let last = state.audit.checkpoints.last();
        let fits = last.map_or(0, |c| c.at_sequence) == after;
        if fits {
            state.audit.checkpoints.push(checkpoint);
        }
        Ok(fits)
    }
}
