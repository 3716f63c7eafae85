//! Responses to earlier requests, one per key.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::Timestamp;
use tandem_store::{Fault, IdempotencyKey, IdempotencyRecord, ReadIdempotency, StoredResponse};

pub(crate) fn is_used(connection: &Connection, key: &IdempotencyKey) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM idempotency WHERE key = ?1")?
        .exists([&key.0])
}

pub(crate) fn record(connection: &Connection, record: &IdempotencyRecord) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO idempotency (key, digest, status, body, recorded_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            record.key.0,
            record.digest,
            record.response.status,
            record.response.body,
            record.recorded_at.0,
        ])
        .map(drop)
}

pub(crate) fn expire(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let gone = connection
        .prepare_cached(
            "DELETE FROM idempotency WHERE answer_no IN (
                 SELECT answer_no FROM idempotency WHERE recorded_at < ?1
                 ORDER BY recorded_at LIMIT ?2)",
        )?
        .execute(params![before.0, limit])?;
    Ok(gone as u64)
}

fn find(connection: &Connection, key: IdempotencyKey) -> Result<Option<IdempotencyRecord>> {
    connection
        .prepare_cached("SELECT digest, status, body, recorded_at FROM idempotency WHERE key = ?1")?
        .query_row([&key.0], |row| {
            Ok(IdempotencyRecord {
                key: key.clone(),
                digest: row.get(0)?,
                response: StoredResponse {
                    status: row.get(1)?,
                    body: row.get(2)?,
                },
                recorded_at: Timestamp(row.get(3)?),
            })
        })
        .optional()
}

#[async_trait]
impl ReadIdempotency for SqliteStore {
    async fn idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault> {
        let key = key.clone();
        self.readers
            .read(move |connection| find(connection, key))
            .await
    }
}
