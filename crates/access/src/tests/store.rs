//! A key store in a vector that counts reads and fails on request.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tandem_record::{TenantId, Timestamp};
use tandem_store::{
    CachedData, ChooseKeys, Commit, Committed, Error, Fault, KeyRecord, Keys, Log, ReadEpochs,
};

#[derive(Default)]
pub(super) struct FakeKeys {
    pub(super) records: Mutex<Vec<KeyRecord>>,
    pub(super) reads: AtomicUsize,
    pub(super) broken: AtomicBool,
    pub(super) epoch: AtomicU64,
    /// When set, a lookup waits here after it has read, so that a test can act in between.
    pub(super) pause: Mutex<Option<tokio::sync::oneshot::Receiver<()>>>,
}

impl FakeKeys {
    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn working(&self) -> Result<(), Fault> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(Fault::retryable("io", "the disk is away"));
        }
        Ok(())
    }
}

#[async_trait]
impl ReadEpochs for FakeKeys {
    async fn epoch(&self, _: CachedData) -> Result<u64, Fault> {
        self.working()?;
        Ok(self.epoch.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Log for FakeKeys {
    async fn commit(&self, commit: Commit) -> Result<Committed, Error> {
        self.working()?;
        self.records.lock().extend(commit.key);
        Ok(Committed::default())
    }
}

#[async_trait]
impl Keys for FakeKeys {
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.working()?;
        // Case-insensitive on purpose: the keyring must not rely on the store to compare exactly.
        let found = self
            .records
            .lock()
            .iter()
            .find(|record| record.hash.eq_ignore_ascii_case(hash))
            .cloned();
        let pause = self.pause.lock().take();
        if let Some(pause) = pause {
            pause.await.expect("the test resumes the lookup");
        }
        Ok(found)
    }

    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        self.working()?;
        let records = self.records.lock();
        Ok(records
            .iter()
            .filter(|record| tenant.is_none_or(|tenant| *tenant == record.tenant))
            .cloned()
            .collect())
    }

    async fn revoke_keys(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        choose: ChooseKeys,
    ) -> Result<Vec<String>, Fault> {
        let keys = self.list_keys(Some(tenant)).await?;
        let ids: Vec<String> = choose(&keys).into_iter().map(|(id, _)| id).collect();
        let mut records = self.records.lock();
        for record in records
            .iter_mut()
            .filter(|record| ids.contains(&record.key_id))
        {
            record.revoked_at.get_or_insert(at);
        }
        Ok(ids)
    }
}
