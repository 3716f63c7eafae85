//! Effects on their way. Whether an entry may be taken is one column, `due_at`: the end of its
//! lease, or `available_at` while nobody holds it.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, Result, Row, params};
use tandem_record::{EffectId, StreamId, Timestamp};
use tandem_store::{Fault, LeaseRequest, Outbox, OutboxChange, OutboxEntry};

pub(crate) fn change(connection: &Connection, change: &OutboxChange) -> Result<()> {
    match change {
        OutboxChange::Put(entry) => put(connection, entry),
        OutboxChange::Wake(entry) => {
            let moved = connection
                .prepare_cached(
                    "UPDATE outbox SET available_at = min(available_at, ?2) WHERE effect = ?1",
                )?
                .execute(params![entry.effect.as_str(), entry.available_at.0])?;
            if moved == 0 {
                put(connection, entry)?;
            }
            Ok(())
        }
        OutboxChange::Remove(effect) => connection
            .prepare_cached("DELETE FROM outbox WHERE effect = ?1")?
            .execute([effect.as_str()])
            .map(drop),
    }
}

fn put(connection: &Connection, entry: &OutboxEntry) -> Result<()> {
    let (owner, until) = entry.lease.as_ref().map(|(o, until)| (o, until.0)).unzip();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO outbox
                 (effect, stream, kind, body, available_at, attempts, owner, leased_until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            entry.effect.as_str(),
            entry.stream.as_str(),
            entry.kind,
            entry.body,
            entry.available_at.0,
            entry.attempts,
            owner,
            until,
        ])
        .map(drop)
}

pub(crate) fn is_leased_to(
    connection: &Connection,
    effect: &EffectId,
    owner: &str,
) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM outbox WHERE effect = ?1 AND owner = ?2")?
        .exists([effect.as_str(), owner])
}

fn lease(connection: &Connection, request: &LeaseRequest) -> Result<Vec<OutboxEntry>> {
    let limit = i64::try_from(request.limit).unwrap_or(i64::MAX);
    // Read to the end before anything moves in the index that is read.
    let due: Vec<(i64, OutboxEntry)> = connection
        .prepare_cached(
            "SELECT entry_no, effect, stream, kind, body, available_at, attempts FROM outbox
             WHERE due_at <= ?1 ORDER BY due_at, entry_no LIMIT ?2",
        )?
        .query_map(params![request.now.0, limit], |row| {
            Ok((row.get(0)?, leased(row, request)?))
        })?
        .collect::<Result<_>>()?;
    let mut take = connection.prepare_cached(
        "UPDATE outbox SET owner = ?2, leased_until = ?3, attempts = ?4 WHERE entry_no = ?1",
    )?;
    for (entry_no, entry) in &due {
        take.execute(params![
            entry_no,
            request.owner,
            request.until.0,
            entry.attempts
        ])?;
    }
    Ok(due.into_iter().map(|(_, entry)| entry).collect())
}

/// The entry as it is once the request holds it.
fn leased(row: &Row<'_>, request: &LeaseRequest) -> Result<OutboxEntry> {
    Ok(OutboxEntry {
        effect: EffectId::new(row.get_ref(1)?.as_str()?),
        stream: StreamId::new(row.get_ref(2)?.as_str()?),
        kind: row.get(3)?,
        body: row.get(4)?,
        available_at: Timestamp(row.get(5)?),
        attempts: row.get::<_, u32>(6)?.saturating_add(1),
        lease: Some((request.owner.clone(), request.until)),
    })
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault> {
        self.writer
            .amend(move |ledger| Ok(lease(ledger.connection, &request)?))
            .await
    }

    async fn release(
        &self,
        effect: &EffectId,
        owner: &str,
        available_at: Timestamp,
    ) -> Result<(), Fault> {
        let (effect, owner) = (effect.clone(), owner.to_owned());
        self.writer
            .amend(move |ledger| {
                ledger
                    .connection
                    .prepare_cached(
                        "UPDATE outbox SET owner = NULL, leased_until = NULL, available_at = ?3
                         WHERE effect = ?1 AND owner = ?2",
                    )?
                    .execute(params![effect.as_str(), owner, available_at.0])?;
                Ok(())
            })
            .await
    }

    async fn break_leases(&self, owner: &str) -> Result<u64, Fault> {
        let owner = owner.to_owned();
        self.writer
            .amend(move |ledger| {
                let broken = ledger
                    .connection
                    .prepare_cached(
                        "UPDATE outbox SET owner = NULL, leased_until = NULL
                         WHERE owner IS NOT NULL AND owner <> ?1",
                    )?
                    .execute([&owner])?;
                Ok(broken as u64)
            })
            .await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        self.readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT min(due_at) FROM outbox")?
                    .query_row((), |row| Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp)))
            })
            .await
    }

    async fn depth(&self) -> Result<u64, Fault> {
        self.readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT count(*) FROM outbox")?
                    .query_row((), |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
            })
            .await
    }
}
