//! What test seams record.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, Result, params};
use tandem_record::AgentId;
use tandem_store::{Fault, TestRecord, TestRecordQuery, TestRecords};

fn add(connection: &Connection, record: &TestRecord) -> Result<u64> {
    connection
        .prepare_cached(
            "INSERT INTO test_records (kind, agent, address, key, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            record.kind,
            record.agent.as_str(),
            record.address,
            record.key,
            record.body,
        ])?;
    Ok(connection.last_insert_rowid().unsigned_abs())
}

fn list(connection: &Connection, query: &TestRecordQuery) -> Result<Vec<(u64, TestRecord)>> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT position, kind, agent, address, key, body FROM test_records
             WHERE kind = ?1 AND position > ?2 AND (?3 IS NULL OR agent = ?3)
                 AND (?4 IS NULL OR address = ?4)
             ORDER BY position LIMIT ?5",
        )?
        .query_map(
            params![
                query.kind,
                after,
                query.agent.as_ref().map(AgentId::as_str),
                query.address,
                limit,
            ],
            |row| {
                let record = TestRecord {
                    kind: row.get(1)?,
                    agent: AgentId::new(row.get_ref(2)?.as_str()?),
                    address: row.get(3)?,
                    key: row.get(4)?,
                    body: row.get(5)?,
                };
                Ok((row.get::<_, i64>(0)?.unsigned_abs(), record))
            },
        )?
        .collect()
}

#[async_trait]
impl TestRecords for SqliteStore {
    async fn add_test_record(&self, record: TestRecord) -> Result<u64, Fault> {
        self.writer
            .write_internal(move |tx| Ok(add(tx.connection, &record)?))
            .await
    }

    async fn test_records(&self, query: &TestRecordQuery) -> Result<Vec<(u64, TestRecord)>, Fault> {
        let query = query.clone();
        self.readers
            .read(move |connection| list(connection, &query))
            .await
    }
}
