//! Idempotency records of requests that are not a command to one run and so have no commit of their
//! own to carry the record.

use crate::runtime::Runtime;
use tandem_store::{Commit, Error, Fault, IdempotencyKey, IdempotencyRecord};

impl Runtime {
    /// The response stored under a key.
    pub async fn find_idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault> {
        self.store().idempotency_record(key).await
    }

    /// Stores a response after the request was carried out. Only for requests that may be repeated:
    /// a crash in between loses the response. A record that another request stored first stays.
    pub async fn store_idempotency_record(&self, record: IdempotencyRecord) -> Result<(), Fault> {
        let commit = Commit {
            idempotency: vec![record],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) | Err(Error::Conflict(_)) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }
}
