//! Responses to earlier requests and ids of received messages, one per key.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{SessionId, Timestamp};
use tandem_store::{Fault, IdempotencyKey, IdempotencyRecord, ReadIdempotency, StoredResponse};

pub(crate) fn is_used(connection: &Connection, key: &IdempotencyKey) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM idempotency WHERE key = ?1")?
        .exists([&key.0])
}

pub(crate) fn record(connection: &Connection, record: &IdempotencyRecord) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO idempotency (key, digest, status, body, recorded_at, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            record.key.0,
            record.digest,
            record.response.status,
            record.response.body,
            record.recorded_at.0,
            record.session.as_ref().map(SessionId::as_str),
        ])
        .map(drop)
}

pub(crate) fn expire(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let gone = connection
        .prepare_cached(
            "DELETE FROM idempotency WHERE answer_no IN (
                 SELECT answer_no FROM idempotency INDEXED BY idempotency_by_age
                 WHERE session IS NULL AND recorded_at < ?1 ORDER BY recorded_at LIMIT ?2)",
        )?
        .execute(params![before.0, limit])?;
    Ok(gone as u64)
}

/// The ids of a session's messages.
pub(crate) fn remove_session(connection: &Connection, session: &SessionId) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM idempotency WHERE session = ?1")?
        .execute([session.as_str()])
        .map(drop)
}

fn find(connection: &Connection, key: IdempotencyKey) -> Result<Option<IdempotencyRecord>> {
    connection
        .prepare_cached(
            "SELECT digest, status, body, recorded_at, session FROM idempotency WHERE key = ?1",
        )?
        .query_row([&key.0], |row| {
            Ok(IdempotencyRecord {
                key: key.clone(),
                digest: row.get(0)?,
                response: StoredResponse {
                    status: row.get(1)?,
                    body: row.get(2)?,
                },
                recorded_at: Timestamp(row.get(3)?),
                session: row.get_ref(4)?.as_str_or_null()?.map(Into::into),
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
