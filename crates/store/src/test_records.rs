//! What test seams record: texts that were sent, calls of models and of recording tools. It
//! survives restarts and is shared by the processes on a store. Written only with `--test-seams`;
//! no other code reads it. Switches of the seams are settings ([`crate::SettingsStore`]).

use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::AgentId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecord {
    /// Which seam recorded it.
    pub kind: String,
    pub agent: AgentId,
    /// To whom, or of which tool; empty where that means nothing.
    pub address: String,
    /// The idempotency key of what was done. Records may share it: each one is another attempt.
    pub key: Option<String>,
    /// As JSON, opaque to the store.
    pub body: String,
}

/// Records of one kind. `None` means any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecordQuery {
    pub kind: String,
    pub agent: Option<AgentId>,
    pub address: Option<String>,
    /// Only those after this position; 0 for all.
    pub after: u64,
    pub limit: usize,
}

#[async_trait]
pub trait TestRecords: Send + Sync {
    /// Appends a record and returns its position, from 1 up.
    async fn add_test_record(&self, record: TestRecord) -> Result<u64, Fault>;

    /// In the order they were added, with their positions. The cost follows the records of the
    /// kind: tests make few.
    async fn test_records(&self, query: &TestRecordQuery) -> Result<Vec<(u64, TestRecord)>, Fault>;
}
