//! Checks a range of the stored chain against the rows as they are now.

use super::chain_verifier::{ChainBreak, ChainVerifier};
use super::hash::Hash;
use super::key::PublicKey;
use super::{AuditHead, AuditRow, Checkpoint};
use crate::{Audit, Fault};
use std::collections::VecDeque;

/// Entries read at once.
const PAGE: usize = 512;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditVerification {
    /// Checkpoints within the range, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// Whether each of them seals the stored entries.
    pub checkpoints_valid: bool,
    pub breaks: Vec<ChainBreak>,
}

impl AuditVerification {
    pub fn is_valid(&self) -> bool {
        self.checkpoints_valid && self.breaks.is_empty()
    }
}

/// Checks entries `from..=to` (from 1), the link into the range, the link out of it, and every
/// checkpoint in it. Starts at the checkpoint before the range, because the first one inside seals
/// entries from there on.
pub(super) async fn verify(
    store: &dyn Audit,
    key: PublicKey,
    from: u64,
    to: u64,
) -> Result<AuditVerification, Fault> {
    let from = from.max(1);
    let head = store.audit_head().await?;
    let sealed = store.checkpoint_until(from - 1).await?;
    let mut seals = CheckpointCursor::after(sealed.map_or(0, |c| c.at_sequence), to);
    let mut verifier = verifier_after(store, seals.read_until).await?;
    let mut rows = EntryCursor::after(verifier.next_seq() - 1);
    let end = head.map_or(0, |head| head.seq.min(to));
    // One row further: its link shows whether the last entry of the range is unchanged.
    let beyond = head.map_or(0, |head| head.seq.min(to.saturating_add(1)));
    let mut valid = true;
    while let Some(row) = rows.next(store).await?.filter(|row| row.seq <= beyond) {
        valid &= seals.skip_before(store, row.seq).await?;
        verifier.entry(row.seq, &row.body);
        if let Some(seal) = seals.at(store, row.seq).await? {
            valid &= verifier.checkpoint(&seal, key);
        }
    }
    match head {
        Some(head) if end == head.seq && from <= end => verifier.end(head),
        _ => verifier.missing_until(beyond),
    }
    valid &= seals.skip_before(store, u64::MAX).await?;
    let within = |at: u64| at >= from && at <= to.saturating_add(1);
    let breaks = verifier.breaks().iter().filter(|b| within(b.at_seq));
    Ok(AuditVerification {
        checkpoints_valid: valid,
        breaks: breaks.cloned().collect(),
        checkpoints: seals.passed,
    })
}

/// A verifier that starts after a checkpoint.
pub(super) async fn verifier_after(store: &dyn Audit, sealed: u64) -> Result<ChainVerifier, Fault> {
    let Some(before) = sealed.checked_sub(1) else {
        return Ok(ChainVerifier::new());
    };
    let rows = store.audit_entries(before, 1).await?;
    let row = rows.first().filter(|row| row.seq == sealed);
    Ok(ChainVerifier::after(
        sealed,
        row.map(|row| Hash::of(&row.body)),
    ))
}

/// The stored entries in order, page by page.
pub(super) struct EntryCursor {
    after: u64,
    page: VecDeque<AuditRow>,
    ended: bool,
}

impl EntryCursor {
    pub(super) fn after(after: u64) -> Self {
        Self {
            after,
            page: VecDeque::new(),
            ended: false,
        }
    }

    pub(super) async fn next(&mut self, store: &dyn Audit) -> Result<Option<AuditRow>, Fault> {
        if self.page.is_empty() && !self.ended {
            self.page = store.audit_entries(self.after, PAGE).await?.into();
            self.ended = self.page.len() < PAGE;
            self.after = self.page.back().map_or(self.after, |row| row.seq);
        }
        Ok(self.page.pop_front())
    }
}

/// The stored checkpoints in order, page by page, beside the entries.
pub(super) struct CheckpointCursor {
    read_until: u64,
    to: u64,
    page: VecDeque<Checkpoint>,
    ended: bool,
    pub(super) passed: Vec<Checkpoint>,
}

impl CheckpointCursor {
    pub(super) fn after(after: u64, to: u64) -> Self {
        Self {
            read_until: after,
            to,
            page: VecDeque::new(),
            ended: false,
            passed: Vec::new(),
        }
    }

    async fn peek(&mut self, store: &dyn Audit) -> Result<Option<&Checkpoint>, Fault> {
        if self.page.is_empty() && !self.ended {
            self.page = store.checkpoints(self.read_until, PAGE).await?.into();
            self.ended = self.page.len() < PAGE;
            let last = self.page.back().map(|c| c.at_sequence);
            self.read_until = last.unwrap_or(self.read_until);
        }
        Ok(self.page.front().filter(|c| c.at_sequence <= self.to))
    }

    /// The checkpoint at exactly this entry.
    pub(super) async fn at(
        &mut self,
        store: &dyn Audit,
        seq: u64,
    ) -> Result<Option<Checkpoint>, Fault> {
        if self.peek(store).await?.is_none_or(|c| c.at_sequence != seq) {
            return Ok(None);
        }
        let seal = self.page.pop_front();
        self.passed.extend(seal.clone());
        Ok(seal)
    }

    /// Skips checkpoints before `seq`, which seal missing entries. `false` if there are any.
    async fn skip_before(&mut self, store: &dyn Audit, seq: u64) -> Result<bool, Fault> {
        let mut none = true;
        while self.peek(store).await?.is_some_and(|c| c.at_sequence < seq) {
            self.passed.extend(self.page.pop_front());
            none = false;
        }
        Ok(none)
    }
}

/// Whether the chain ends where the store says it does.
pub(super) fn ends_at(verifier: &ChainVerifier, head: AuditHead) -> bool {
    verifier
        .last()
        .is_none_or(|last| last.seq != head.seq || last.hash == head.hash)
}
