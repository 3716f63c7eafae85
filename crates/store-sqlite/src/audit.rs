//! The audit chain and its checkpoints. Entries are appended inside the writer's transaction; the
//! schema rejects every other change.

use crate::SqliteStore;
use crate::statement_cache::StatementCache;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::InterruptId;
use tandem_store::audit::Hash;
use tandem_store::{Audit, AuditDraft, AuditHead, AuditRow, Checkpoint, Fault};

/// The writer's copy of the end of the chain. Kept in memory between commits and written once per
/// transaction, however many entries the transaction has; dropped when a transaction fails.
#[derive(Default)]
pub(crate) struct Chain {
    /// `None` until it is read.
    end: Option<Option<AuditHead>>,
    grown: bool,
}

impl Chain {
    /// Appends each draft at the end of the chain.
    pub(crate) fn append(
        &mut self,
        statements: &mut StatementCache<'_>,
        drafts: &[AuditDraft],
    ) -> Result<()> {
        if drafts.is_empty() {
            return Ok(());
        }
        let mut end = match self.end {
            Some(end) => end,
            None => head(statements.connection())?,
        };
        let insert = statements.get("INSERT INTO audit (seq, body) VALUES (?1, ?2)")?;
        for draft in drafts {
            let seq = end.map_or(0, |head| head.seq) + 1;
            let (body, hash) = draft.encode_at(seq, end.map(|head| head.hash));
            insert.execute(params![place(seq), body])?;
            end = Some(AuditHead { seq, hash });
        }
        self.end = Some(end);
        self.grown = true;
        Ok(())
    }

    /// Call before the transaction commits.
    pub(crate) fn save_head(&mut self, connection: &Connection) -> Result<()> {
        let end = self.end.flatten();
        let Some(end) = end.filter(|_| std::mem::take(&mut self.grown)) else {
            return Ok(());
        };
        connection
            .prepare_cached(
                "INSERT INTO audit_head (id, seq, hash) VALUES (0, ?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
            )?
            .execute(params![place(end.seq), end.hash.as_bytes()])
            .map(drop)
    }
}

fn head(connection: &Connection) -> Result<Option<AuditHead>> {
    connection
        .prepare_cached("SELECT seq, hash FROM audit_head WHERE id = 0")?
        .query_row((), |row| {
            Ok(AuditHead {
                seq: numbered(row)?,
                hash: Hash::from_bytes(row.get(1)?),
            })
        })
        .optional()
}

/// As bytes: a text that was made unreadable must reach the verifier instead of failing here.
fn entry(row: &Row<'_>) -> Result<AuditRow> {
    Ok(AuditRow {
        seq: numbered(row)?,
        body: row.get_ref(1)?.as_bytes()?.to_vec(),
    })
}

fn checkpoint(row: &Row<'_>) -> Result<Checkpoint> {
    Ok(Checkpoint {
        at_sequence: numbered(row)?,
        id: row.get(1)?,
        merkle_root: row.get(2)?,
        signature: row.get(3)?,
    })
}

/// A sequence beyond the integer range is beyond the last row.
fn place(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// The sequence in the first column. It is never negative.
fn numbered(row: &Row<'_>) -> Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0))
}

fn last_checkpoint(connection: &Connection, until: u64) -> Result<Option<Checkpoint>> {
    connection
        .prepare_cached(
            "SELECT at_sequence, id, merkle_root, signature FROM audit_checkpoints
             WHERE at_sequence <= ?1 ORDER BY at_sequence DESC LIMIT 1",
        )?
        .query_row([place(until)], checkpoint)
        .optional()
}

#[async_trait]
impl Audit for SqliteStore {
    async fn audit_head(&self) -> Result<Option<AuditHead>, Fault> {
        self.readers.read(head).await
    }

    async fn audit_entries(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT seq, body FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2",
                    )?
                    .query_map([place(after), limit], entry)?
                    .collect()
            })
            .await
    }

    async fn audit_decision(&self, interrupt: &InterruptId) -> Result<Option<AuditRow>, Fault> {
        let interrupt = interrupt.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT seq, body FROM audit
                         WHERE json_extract(body, '$.target') = ?1
                           AND substr(body, 1, 29) = '{\"action\":\"interrupt.resolve\"'
                         ORDER BY seq LIMIT 1",
                    )?
                    .query_row([interrupt.as_str()], entry)
                    .optional()
            })
            .await
    }

    async fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT at_sequence, id, merkle_root, signature FROM audit_checkpoints
                         WHERE at_sequence > ?1 ORDER BY at_sequence LIMIT ?2",
                    )?
                    .query_map([place(after), limit], checkpoint)?
                    .collect()
            })
            .await
    }

    async fn checkpoint_until(&self, seq: u64) -> Result<Option<Checkpoint>, Fault> {
        self.readers
            .read(move |connection| last_checkpoint(connection, seq))
            .await
    }

    async fn put_checkpoint(&self, new: Checkpoint, after: u64) -> Result<bool, Fault> {
        self.writer
            .write_internal(move |tx| {
                let last = last_checkpoint(tx.connection, u64::MAX)?;
                if last.map_or(0, |c| c.at_sequence) != after {
                    return Ok(false);
                }
                tx.connection
                    .prepare_cached(
                        "INSERT INTO audit_checkpoints (at_sequence, id, merkle_root, signature)
                         VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![
                        place(new.at_sequence),
                        new.id,
                        new.merkle_root,
                        new.signature
                    ])?;
                Ok(true)
            })
            .await
    }
}
