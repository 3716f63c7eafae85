//! What several processes on one store agree on: epochs of cached data, and holders of tasks.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::Timestamp;
use tandem_store::{CachedData, Fault, ReadEpochs, TaskLeases};

pub(crate) fn raise_epoch(connection: &Connection, data: CachedData) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO epochs (data, changes) VALUES (?1, 1)
             ON CONFLICT (data) DO UPDATE SET changes = changes + 1",
        )?
        .execute([data.number()])
        .map(drop)
}

fn epoch(connection: &Connection, data: CachedData) -> Result<u64> {
    let changes: Option<i64> = connection
        .prepare_cached("SELECT changes FROM epochs WHERE data = ?1")?
        .query_row([data.number()], |row| row.get(0))
        .optional()?;
    Ok(changes.map_or(0, i64::unsigned_abs))
}

fn hold_task(
    connection: &Connection,
    task: &str,
    owner: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    let taken = connection
        .prepare_cached(
            "INSERT INTO task_leases (task, owner, leased_until) VALUES (?1, ?2, ?4)
             ON CONFLICT (task) DO UPDATE SET owner = ?2, leased_until = ?4
             WHERE owner = ?2 OR leased_until <= ?3",
        )?
        .execute(params![task, owner, now.0, until.0])?;
    Ok(taken > 0)
}

#[async_trait]
impl ReadEpochs for SqliteStore {
    async fn epoch(&self, of: CachedData) -> Result<u64, Fault> {
        self.readers
            .read(move |connection| epoch(connection, of))
            .await
    }
}

#[async_trait]
impl TaskLeases for SqliteStore {
    async fn hold_task(
        &self,
        task: &str,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Fault> {
        let (task, owner) = (task.to_owned(), owner.to_owned());
        self.writer
            .write_internal(move |tx| Ok(hold_task(tx.connection, &task, &owner, now, until)?))
            .await
    }
}
