//! Durable timers, by stream and name. A claimed timer is stored as due when
//! its claim ends.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, Result, params};
use tandem_record::{StreamId, TimerName, Timestamp};
use tandem_store::{ClaimTimers, DueTimer, Fault, ReadTimers, TimerChange};

/// When a parked timer is due: never.
pub(crate) const PARKED: i64 = i64::MAX;

pub(crate) fn change(connection: &Connection, change: &TimerChange) -> Result<()> {
    match change {
        TimerChange::Set {
            stream,
            name,
            due,
            tenant,
        } => connection
            .prepare_cached(
                "INSERT OR REPLACE INTO timers (stream, key, due, tenant) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                stream.as_str(),
                name.as_str(),
                due.0,
                tenant.as_str()
            ])?,
        TimerChange::Clear { stream, name } => connection
            .prepare_cached("DELETE FROM timers WHERE stream = ?1 AND key = ?2")?
            .execute(params![stream.as_str(), name.as_str()])?,
    };
    Ok(())
}

/// Timers of earlier versions did not name their tenant.
pub(crate) fn name_tenants(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE timers SET tenant = (SELECT r.tenant FROM runs r
                                     WHERE r.run_id = substr(timers.stream, 5))
         WHERE tenant IS NULL AND stream LIKE 'run:%'",
    )
}

fn due(connection: &Connection, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT stream, key, due, failures FROM timers WHERE due <= ?1 AND due < ?3
             ORDER BY due, stream, key LIMIT ?2",
        )?
        .query_map(params![now.0, limit, PARKED], |row| {
            Ok(DueTimer {
                stream: StreamId::new(row.get_ref(0)?.as_str()?),
                name: TimerName::new(row.get_ref(1)?.as_str()?),
                due: Timestamp(row.get(2)?),
                claimed_until: None,
                failures: row.get(3)?,
            })
        })?
        .collect()
}

fn claim(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<DueTimer>> {
    let mut claimed = due(connection, now, limit)?;
    let mut postpone =
        connection.prepare_cached("UPDATE timers SET due = ?3 WHERE stream = ?1 AND key = ?2")?;
    for timer in &mut claimed {
        postpone.execute(params![timer.stream.as_str(), timer.name.as_str(), until.0])?;
        timer.claimed_until = Some(until);
    }
    Ok(claimed)
}

#[async_trait]
impl ClaimTimers for SqliteStore {
    async fn claim_timers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>, Fault> {
        self.writer
            .write_internal(move |tx| Ok(claim(tx.connection, now, until, limit)?))
            .await
    }
}

#[async_trait]
impl ReadTimers for SqliteStore {
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Fault> {
        self.readers
            .read(move |connection| due(connection, now, limit))
            .await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, Fault> {
        self.readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT min(due) FROM timers WHERE due < ?1")?
                    .query_row([PARKED], |row| {
                        Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp))
                    })
            })
            .await
    }
}
