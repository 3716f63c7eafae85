//! Streams, their events and their snapshots. A stream's head is kept beside its name, so that
//! checking an expected position is one lookup.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{Seq, StreamId, Timestamp};
use tandem_store::{Append, Fault, ReadLog, SnapshotRecord, StoredEvent, StreamSlice};

/// Where an append begins.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) stream_no: i64,
    /// `None` for a stream about to begin.
    pub(crate) head: Option<Seq>,
}

impl Place {
    /// Where the next append of the same stream begins.
    pub(crate) fn after(self, append: &Append) -> Self {
        let length = self.first() + append.events.len() as u64;
        Self {
            head: length.checked_sub(1).map(Seq),
            ..self
        }
    }

    fn first(self) -> u64 {
        self.head.map_or(0, |head| head.next().0)
    }
}

pub(crate) fn find(connection: &Connection, stream: &StreamId) -> Result<Option<Place>> {
    connection
        .prepare_cached("SELECT stream_no, head FROM streams WHERE stream = ?1")?
        .query_row([stream.as_str()], |row| {
            Ok(Place {
                stream_no: row.get(0)?,
                head: Some(seq(row.get(1)?)),
            })
        })
        .optional()
}

/// Every stream with a number of its own has an event, so the last event belongs to the newest.
pub(crate) fn last_stream_no(connection: &Connection) -> Result<i64> {
    let last: Option<i64> =
        connection.query_row("SELECT max(stream_no) FROM events", (), |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

pub(crate) fn append(connection: &Connection, place: Place, append: &Append) -> Result<()> {
    if !append.events.is_empty() {
        let head = place.after(append).head.map(|head| head.0 as i64);
        match place.head {
            None => connection
                .prepare_cached(
                    "INSERT INTO streams (stream, stream_no, head) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![append.stream.as_str(), place.stream_no, head])?,
            Some(_) => connection
                .prepare_cached("UPDATE streams SET head = ?2 WHERE stream = ?1")?
                .execute(params![append.stream.as_str(), head])?,
        };
        let mut insert = connection.prepare_cached(
            "INSERT INTO events (stream_no, seq, at, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (seq, event) in (place.first()..).zip(&append.events) {
            insert.execute(params![place.stream_no, seq as i64, event.at.0, event.body])?;
        }
    }
    if let Some(snapshot) = &append.snapshot {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO snapshots (stream_no, seq, format, body)
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                place.stream_no,
                snapshot.seq.0 as i64,
                snapshot.format,
                snapshot.body
            ])?;
    }
    Ok(())
}

/// Takes away what a stream holds. Its head stays; its number does not, so that a later stream may
/// have it.
pub(crate) fn remove(connection: &Connection, stream: &StreamId) -> Result<()> {
    let Some(Place { stream_no, .. }) = find(connection, stream)? else {
        return Ok(());
    };
    for sql in [
        "DELETE FROM events WHERE stream_no = ?1",
        "DELETE FROM snapshots WHERE stream_no = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([stream_no])?;
    }
    connection
        .prepare_cached("UPDATE streams SET stream_no = 0 WHERE stream = ?1")?
        .execute([stream.as_str()])?;
    Ok(())
}

#[async_trait]
impl ReadLog for SqliteStore {
    async fn events(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: usize,
    ) -> Result<StreamSlice, Fault> {
        let stream = stream.clone();
        self.readers
            .read(move |connection| slice(connection, &stream, after, limit))
            .await
    }

    async fn snapshot(&self, stream: &StreamId) -> Result<Option<SnapshotRecord>, Fault> {
        let stream = stream.clone();
        self.readers
            .read(move |connection| snapshot(connection, &stream))
            .await
    }
}

/// Two statements without a transaction: what the second may see beyond the head of the first is
/// cut off, and below the head nothing ever changes.
fn slice(
    connection: &Connection,
    stream: &StreamId,
    after: Option<Seq>,
    limit: usize,
) -> Result<StreamSlice> {
    let Some(Place { stream_no, head }) = find(connection, stream)? else {
        return Ok(StreamSlice::default());
    };
    let mut select = connection.prepare_cached(
        "SELECT seq, at, body FROM events
         WHERE stream_no = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
    )?;
    let after = after.map_or(-1, |after| after.0 as i64);
    let last = head.map_or(-1, |head| head.0 as i64);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let events = select
        .query_map(params![stream_no, after, last, limit], |row| {
            Ok(StoredEvent {
                seq: seq(row.get(0)?),
                at: Timestamp(row.get(1)?),
                body: row.get(2)?,
            })
        })?
        .collect::<Result<_>>()?;
    Ok(StreamSlice { events, head })
}

fn snapshot(connection: &Connection, stream: &StreamId) -> Result<Option<SnapshotRecord>> {
    connection
        .prepare_cached(
            "SELECT seq, format, body FROM snapshots
             WHERE stream_no = (SELECT stream_no FROM streams WHERE stream = ?1)",
        )?
        .query_row([stream.as_str()], |row| {
            Ok(SnapshotRecord {
                seq: seq(row.get(0)?),
                format: row.get(1)?,
                body: row.get(2)?,
            })
        })
        .optional()
}

/// Sequences are stored as they are counted, from 0 up.
pub(crate) fn seq(stored: i64) -> Seq {
    Seq(stored.unsigned_abs())
}
