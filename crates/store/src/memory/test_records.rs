//! What test seams record.

use super::MemoryStore;
use crate::fault::Fault;
use crate::test_records::{TestRecord, TestRecordQuery, TestRecords};
use async_trait::async_trait;

#[async_trait]
impl TestRecords for MemoryStore {
    async fn add_test_record(&self, record: TestRecord) -> Result<u64, Fault> {
        let mut state = self.state()?;
        state.test_records.push(record);
        Ok(state.test_records.len() as u64)
    }

    async fn test_records(&self, query: &TestRecordQuery) -> Result<Vec<(u64, TestRecord)>, Fault> {
        let state = self.state()?;
        let records = (1..).zip(&state.test_records).filter(|(position, record)| {
            let (agent, address) = (query.agent.as_ref(), query.address.as_ref());
            *position > query.after
                && record.kind == query.kind
                && agent.is_none_or(|agent| record.agent == *agent)
                && address.is_none_or(|address| record.address == *address)
        });
        let records = records.map(|(position, record)| (position, record.clone()));
        Ok(records.take(query.limit).collect())
    }
}
