//! Answers kept under the caller's idempotency keys, for callers whose deed is not a command to
//! one run and so has no commit of its own to carry the answer.

use crate::runtime::Runtime;
use tandem_store::{Commit, Error, Fault, IdempotencyKey, IdempotencyRecord};

impl Runtime {
    /// What was answered under a key before.
    pub async fn find_idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault> {
        self.store().idempotency_record(key).await
    }

    /// Keeps an answer after the deed. Only for deeds that may be repeated: a crash in between
    /// loses the answer. When somebody else answered under the key meanwhile, theirs stays.
    pub async fn store_idempotency_record(&self, record: IdempotencyRecord) -> Result<(), Fault> {
        let commit = Commit {
            idempotency: Some(record),
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(()) | Err(Error::Conflict(_)) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }
}
