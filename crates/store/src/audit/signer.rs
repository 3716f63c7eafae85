//! Seals the log, verifies and exports it, and issues receipts.

use super::draft::{self, Entry};
use super::export::Export;
use super::hash::Hash;
use super::key::{AuditKey, PublicKey};
use super::receipt::receipt;
use super::verify::{self, AuditVerification, EntryCursor};
use super::{AuditHead, CHECKPOINT_ENTRIES, CHECKPOINT_SECONDS, Checkpoint};
use crate::{Audit, Fault};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{InterruptId, TenantId, Timestamp};
use tokio::sync::{Mutex, Semaphore};

/// Limit of concurrent checks of the whole log; further ones wait.
const CHECKS: usize = 2;

/// Holds the key. Cheap to share.
pub struct AuditSigner {
    store: Arc<dyn Audit>,
    key: AuditKey,
    /// One checkpoint at a time in this process; the store prevents two processes from adding the
    /// same.
    sealing: Mutex<()>,
    checks: Semaphore,
}

/// Why entries were not sealed: a broken chain must not be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("the audit log is broken at entry {at_seq}: it was changed outside of this program")]
    Chain { at_seq: u64 },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl AuditSigner {
    pub fn new(store: Arc<dyn Audit>, key: AuditKey) -> Self {
        Self {
            store,
            key,
            sealing: Mutex::default(),
            checks: Semaphore::new(CHECKS),
        }
    }

    pub fn public_key(&self) -> PublicKey {
        self.key.public()
    }

    /// Makes the checkpoints that are due: for every full range, and for a range whose first entry
    /// has waited long enough. Returns the sequence of the last entry, sealed or not.
    pub async fn seal_due(&self, now: Timestamp) -> Result<u64, SealError> {
        self.seal(Some(now)).await
    }

    /// Seals all entries, due or not.
    pub async fn seal_all(&self) -> Result<(), SealError> {
        self.seal(None).await.map(drop)
    }

    async fn seal(&self, due_at: Option<Timestamp>) -> Result<u64, SealError> {
        let _turn = self.sealing.lock().await;
        loop {
            let Some(head) = self.store.audit_head().await? else {
                return Ok(0);
            };
            let last = self.store.checkpoint_until(u64::MAX).await?;
            let sealed = last.as_ref().map_or(0, |c| c.at_sequence);
            let full = sealed.saturating_add(CHECKPOINT_ENTRIES);
            let partly = full > head.seq;
            let waiting = match due_at {
                Some(now) if partly => !self.is_old(sealed, now).await?,
                _ => false,
            };
            if sealed >= head.seq || waiting {
                return Ok(head.seq);
            }
            let number = last.map_or(0, |c| number(&c.id)) + 1;
            let checkpoint = self
                .sign_range(number, sealed, full.min(head.seq), head)
                .await?;
            // If another process was first, the next round continues from its checkpoint.
            self.store.put_checkpoint(checkpoint, sealed).await?;
        }
    }

    async fn is_old(&self, sealed: u64, now: Timestamp) -> Result<bool, Fault> {
        let oldest = self.store.audit_entries(sealed, 1).await?;
        let at = oldest.first().and_then(|row| {
            let entry: Entry = serde_json::from_slice(&row.body).ok()?;
            draft::read_time(&entry.occurred_at)
        });
        // An unreadable entry is due now, so that the damage is reported.
        Ok(at.is_none_or(|at| now.ms_since(at) >= CHECKPOINT_SECONDS * 1000))
    }

    async fn sign_range(
        &self,
        number: u64,
        sealed: u64,
        to: u64,
        head: AuditHead,
    ) -> Result<Checkpoint, SealError> {
        let store = &*self.store;
        let mut verifier = verify::verifier_after(store, sealed).await?;
        let mut rows = EntryCursor::after(sealed);
        while let Some(row) = rows.next(store).await?.filter(|row| row.seq <= to) {
            verifier.entry(row.seq, &row.body);
        }
        if let Some(first) = verifier.breaks().first() {
            let at_seq = first.at_seq;
            return Err(SealError::Chain { at_seq });
        }
        let root = verifier.root().filter(|_| verifier.next_seq() == to + 1);
        let root = root.filter(|_| verify::ends_at(&verifier, head));
        let root = root.ok_or(SealError::Chain {
            at_seq: verifier.next_seq(),
        })?;
        Ok(Checkpoint {
            id: format!("cp-{number}"),
            at_sequence: to,
            merkle_root: root.to_string(),
            signature: self.key.sign_root(root),
        })
    }

    /// Checks entries `from..=to` against each other and against their checkpoints.
    pub async fn verify(&self, from: u64, to: u64) -> Result<AuditVerification, Fault> {
        let _place = self.checks.acquire().await;
        verify::verify(&*self.store, self.public_key(), from, to).await
    }

    /// Signed proof of how a question was decided, if it was. The same bytes every time.
    pub async fn receipt(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<Value>, Fault> {
        let row = self.store.audit_decision(interrupt).await?;
        let of_tenant = row.and_then(|row| {
            let entry: Entry = serde_json::from_slice(&row.body).ok()?;
            (entry.tenant.as_deref() == Some(tenant.as_str())).then_some((row, entry))
        });
        Ok(of_tenant.map(|(row, entry)| receipt(&row, &entry, &self.key)))
    }

    /// The last signed entry. Newer entries may exist.
    async fn sealed_head(&self) -> Result<Option<AuditHead>, Fault> {
        let Some(last) = self.store.checkpoint_until(u64::MAX).await? else {
            return Ok(None);
        };
        let before = last.at_sequence.saturating_sub(1);
        let row = self.store.audit_entries(before, 1).await?;
        Ok(row.first().map(|row| AuditHead {
            seq: row.seq,
            hash: Hash::of(&row.body),
        }))
    }

    /// The log up to now as a tenant may see it, sealed up to its end. A broken log is exported
    /// unsealed.
    pub async fn export(&self, tenant: &TenantId) -> Result<Export, Fault> {
        let head = match self.seal_all().await {
            Ok(()) => self.sealed_head().await?,
            Err(SealError::Chain { .. }) => self.store.audit_head().await?,
            Err(SealError::Fault(fault)) => return Err(fault),
        };
        let key = self.public_key();
        Ok(Export::new(Arc::clone(&self.store), key, tenant, head))
    }
}

/// The number of a checkpoint id. An id of another form counts as 0.
fn number(id: &str) -> u64 {
    let digits = id.strip_prefix("cp-");
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}
