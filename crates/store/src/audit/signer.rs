//! CheckpointCursor the log and vouches for what is in it.

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

/// Checks of the whole log under way at once; the next waits.
const CHECKS: usize = 2;

/// Holds the key. Cheap to share.
pub struct AuditSigner {
    store: Arc<dyn Audit>,
    key: AuditKey,
    /// One checkpoint at a time; another process is kept out by the store.
    sealing: Mutex<()>,
    checks: Semaphore,
}

/// Why entries were not sealed: a seal must not bless what is already broken.
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

    /// Makes the checkpoints that are due: for every full stretch, and for a stretch whose first
    /// entry has waited long enough. Gives the last entry there is, sealed or not.
    pub async fn seal_due(&self, now: Timestamp) -> Result<u64, SealError> {
        self.seal(Some(now)).await
    }

    /// CheckpointCursor everything, due or not.
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
            // When another process was quicker, the next round goes on from its checkpoint.
            self.store.put_checkpoint(checkpoint, sealed).await?;
        }
    }

    async fn is_old(&self, sealed: u64, now: Timestamp) -> Result<bool, Fault> {
        let oldest = self.store.audit_entries(sealed, 1).await?;
        let at = oldest.first().and_then(|row| {
            let entry: Entry = serde_json::from_slice(&row.body).ok()?;
            draft::read_time(&entry.occurred_at)
        });
        // What cannot be read is looked at now, and found broken.
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

    /// Checks entries `from..=to` against one another and against their checkpoints.
    pub async fn verify(&self, from: u64, to: u64) -> Result<AuditVerification, Fault> {
        let _place = self.checks.acquire().await;
        verify::verify(&*self.store, self.public_key(), from, to).await
    }

    /// Proof of how a question was decided, once it was. The same bytes every time.
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

    /// The last entry under a signature. Entries may have come in behind it since.
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

    /// The log up to now as a tenant may see it, sealed up to its end unless it is broken: then it
    /// is shown as it is.
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

/// Ids count up; one that does not is none of ours, and counting begins again.
fn number(id: &str) -> u64 {
    let digits = id.strip_prefix("cp-");
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}
