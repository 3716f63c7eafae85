//! Streams, their events and their snapshots. A stream's head is stored beside its name, so that
//! checking an expected position is one lookup.
//!
//! Events that are appended together, at the same time, share a row: their bodies are joined with a
//! separator that no JSON text contains. A row's key (`place`) is its stream's number and the
//! sequence of its *last* event in one integer, so that the rows after any sequence are one range.
//! A large event has its own row and is stored compressed.

use crate::SqliteStore;
use crate::compression::{self, CompressedTexts, StoredText};
use crate::statement_cache::StatementCache;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use std::borrow::Cow;
use tandem_record::{Seq, StreamId, Timestamp};
use tandem_store::{
    Append, Fault, FoldStart, NewEvent, PageLimit, ReadLog, SnapshotQuery, SnapshotRecord,
    StoredEvent, StreamSlice,
};

/// Separator between the bodies of a row. JSON escapes control characters, so no body contains it.
const SEPARATOR: char = '\u{1e}';

/// Bits of a place that hold the sequence: 16 million events per stream.
pub(crate) const SEQ_BITS: u32 = 24;

/// Limit of body bytes in one row, unless one body alone is larger: a row fits into a page, and a
/// reader of one event reads little more.
const ROW_BYTES: usize = 3_000;

/// Where an append starts.
#[derive(Clone, Copy)]
pub(crate) struct StreamHead {
    pub(crate) stream_no: i64,
    /// `None` for a new stream.
    pub(crate) head: Option<Seq>,
}

impl StreamHead {
    /// Where the next append of the same stream starts.
    pub(crate) fn after(self, append: &Append) -> Self {
        let length = self.first() + append.events.len() as u64;
        Self {
            head: length.checked_sub(1).map(Seq),
            ..self
        }
    }

    /// Its number belongs to a later stream.
    fn is_purged(self) -> bool {
        self.stream_no == 0
    }

    fn first(self) -> u64 {
        self.head.map_or(0, |head| head.next().0)
    }
}

const FIND: &str = "SELECT stream_no, head FROM streams WHERE stream = ?1";

pub(crate) fn find(connection: &Connection, stream: &StreamId) -> Result<Option<StreamHead>> {
    let mut find = connection.prepare_cached(FIND)?;
    query_head(&mut find, stream)
}

pub(crate) fn find_cached(
    statements: &mut StatementCache<'_>,
    stream: &StreamId,
) -> Result<Option<StreamHead>> {
    query_head(statements.get(FIND)?, stream)
}

fn query_head(find: &mut Statement<'_>, stream: &StreamId) -> Result<Option<StreamHead>> {
    find.query_row([stream.as_str()], |row| {
        Ok(StreamHead {
            stream_no: row.get(0)?,
            head: Some(seq(row.get(1)?)),
        })
    })
    .optional()
}

/// Every stream with its own number has an event, so the last event belongs to the newest stream.
pub(crate) fn last_stream_no(connection: &Connection) -> Result<i64> {
    let last: Option<i64> =
        connection.query_row("SELECT max(place) FROM events", (), |row| row.get(0))?;
    Ok(last.map_or(0, |place| place >> SEQ_BITS))
}

/// The place of a row with this last event.
pub(crate) fn place(stream_no: i64, last: u64) -> i64 {
    (stream_no << SEQ_BITS) | last as i64
}

/// The sequence of the last event in the row with this place.
fn sequence(stream_no: i64, row_place: i64) -> u64 {
    (row_place - place(stream_no, 0)).unsigned_abs()
}

/// The first and the last place a stream can have.
fn places(stream_no: i64) -> (i64, i64) {
    (place(stream_no, 0), place(stream_no + 1, 0) - 1)
}

/// Refuses events that could not be read back.
pub(crate) fn check(place: StreamHead, append: &Append) -> Result<(), Fault> {
    let stream = &append.stream;
    if place.is_purged() && !append.events.is_empty() {
        return Err(Fault::purged(stream));
    }
    if place.first() + append.events.len() as u64 > 1 << SEQ_BITS {
        let message = format!(
            "stream {stream} is full; a stream holds {} events",
            1 << SEQ_BITS
        );
        return Err(Fault::permanent("stream_full", message));
    }
    if append
        .events
        .iter()
        .any(|event| event.body.contains(SEPARATOR))
    {
        let message = format!("an event for stream {stream} is not JSON");
        return Err(Fault::permanent("invalid", message));
    }
    Ok(())
}

const INSERT: &str = "INSERT INTO events (place, at, bodies) VALUES (?1, ?2, ?3)";
const INSERT_COMPRESSED: &str =
    "INSERT INTO events (place, at, bodies, compressed) VALUES (?1, ?2, '', ?3)";

pub(crate) fn append(
    statements: &mut StatementCache<'_>,
    place: StreamHead,
    append: &Append,
    index: usize,
    compressed: &CompressedTexts,
) -> Result<()> {
    if !append.events.is_empty() {
        let head = place.after(append).head.map(|head| head.0 as i64);
        match place.head {
            None => statements
                .get("INSERT INTO streams (stream, stream_no, head) VALUES (?1, ?2, ?3)")?
                .execute(params![append.stream.as_str(), place.stream_no, head])?,
            Some(_) => statements
                .get("UPDATE streams SET head = ?2 WHERE stream = ?1")?
                .execute(params![append.stream.as_str(), head])?,
        };
        let mut stored = 0;
        for row in group_into_rows(&append.events) {
            let first = stored;
            stored += row.len();
            let at = row[0].at.0;
            let place = self::place(place.stream_no, place.first() + stored as u64 - 1);
            match (row, compressed.event(index, first)) {
                ([_], Some(blob)) => {
                    let insert = statements.get(INSERT_COMPRESSED)?;
                    insert.execute(params![place, at, blob])?
                }
                ([alone], None) => {
                    let insert = statements.get(INSERT)?;
                    insert.execute(params![place, at, alone.body])?
                }
                (several, _) => {
                    let insert = statements.get(INSERT)?;
                    insert.execute(params![place, at, join_bodies(several)])?
                }
            };
        }
    }
    if let Some(snapshot) = &append.snapshot {
        let blob = compressed.snapshot(index);
        let body = match blob {
            Some(_) => "",
            None => &snapshot.body,
        };
        statements
            .connection()
            .prepare_cached(
                "INSERT OR REPLACE INTO snapshots (stream_no, seq, format, body, compressed)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                place.stream_no,
                snapshot.seq.0 as i64,
                snapshot.format,
                body,
                blob
            ])?;
    }
    Ok(())
}

/// Groups events into the rows they are stored in.
fn group_into_rows(events: &[NewEvent]) -> impl Iterator<Item = &[NewEvent]> {
    let mut bytes = 0;
    events.chunk_by(move |one, next| {
        bytes += one.body.len();
        let fits = one.at == next.at && bytes + next.body.len() <= ROW_BYTES;
        if !fits {
            bytes = 0;
        }
        fits
    })
}

fn join_bodies(events: &[NewEvent]) -> String {
    let length = events.iter().map(|event| event.body.len() + 1).sum();
    let mut bodies = String::with_capacity(length);
    for (place, event) in events.iter().enumerate() {
        if place > 0 {
            bodies.push(SEPARATOR);
        }
        bodies.push_str(&event.body);
    }
    bodies
}

/// Deletes the events and the snapshot of a stream. Its head stays; its number is released for a
/// later stream.
pub(crate) fn remove(connection: &Connection, stream: &StreamId) -> Result<()> {
    let Some(StreamHead { stream_no, .. }) = find(connection, stream)? else {
        return Ok(());
    };
    connection
        .prepare_cached("DELETE FROM events WHERE place BETWEEN ?1 AND ?2")?
        .execute(places(stream_no))?;
    connection
        .prepare_cached("DELETE FROM snapshots WHERE stream_no = ?1")?
        .execute([stream_no])?;
    connection
        .prepare_cached("UPDATE streams SET stream_no = 0 WHERE stream = ?1")?
        .execute([stream.as_str()])?;
    Ok(())
}

const WITH_PREFIX: &str =
    "SELECT stream FROM streams WHERE stream >= ?1 AND stream < ?2 AND stream_no <> 0";

/// Removes the events of all streams whose names begin so. The prefix ends with `:`, which is followed by `;`.
pub(crate) fn remove_all(connection: &Connection, prefix: &str) -> Result<()> {
    let end = format!("{};", prefix.trim_end_matches(':'));
    let mut select = connection.prepare_cached(WITH_PREFIX)?;
    let streams = select.query_map([prefix, &end], |row| row.get(0))?;
    let streams: Vec<String> = streams.collect::<Result<_>>()?;
    let mut streams = streams.into_iter();
    streams.try_for_each(|stream| remove(connection, &StreamId::from(stream)))
}

#[async_trait]
impl ReadLog for SqliteStore {
    async fn event_page(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: PageLimit,
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

    async fn fold_start(
        &self,
        stream: &StreamId,
        wanted: SnapshotQuery,
        limit: PageLimit,
    ) -> Result<FoldStart, Fault> {
        let stream = stream.clone();
        self.readers
            .read(move |connection| {
                let snapshot = snapshot(connection, &stream)?;
                let snapshot = snapshot.filter(|snapshot| wanted.admits(snapshot));
                let after = snapshot.as_ref().map(|snapshot| snapshot.seq);
                let slice = slice(connection, &stream, after, limit)?;
                Ok(FoldStart { snapshot, slice })
            })
            .await
    }
}

/// A place is built by addition: a first sequence beyond the last one of any stream gives an empty
/// range and not one of another stream.
const SLICE: &str = "SELECT s.stream_no, s.head, e.place, e.at, coalesce(e.compressed, e.bodies)
    FROM streams s LEFT JOIN events e
    ON e.place BETWEEN (s.stream_no << ?3) + ?2 AND (s.stream_no << ?3) + s.head
    WHERE s.stream = ?1 ORDER BY e.place";

/// One statement, so that head and events are of the same moment: in between, another process could purge
/// the stream and give its number to a new one.
pub(crate) fn slice(
    connection: &Connection,
    stream: &StreamId,
    after: Option<Seq>,
    limit: PageLimit,
) -> Result<StreamSlice> {
    if limit.events == 0 {
        return Ok(StreamSlice {
            events: Vec::new(),
            head: find(connection, stream)?.and_then(|found| found.head),
        });
    }
    let first = after.map_or(0, |after| after.0.saturating_add(1));
    let first = first.min(1 << SEQ_BITS);
    let mut select = connection.prepare_cached(SLICE)?;
    let mut rows = select.query(params![stream.as_str(), first as i64, SEQ_BITS])?;
    let mut slice = StreamSlice::default();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        slice.head = Some(seq(row.get(1)?));
        let Some(place) = row.get(2)? else {
            // There is no event after `first`.
            break;
        };
        let stored = StoredRow {
            last: sequence(row.get(0)?, place),
            at: Timestamp(row.get(3)?),
            bodies: compression::text(row.get_ref(4)?)?,
        };
        let more = stored.events_from(first, |event| {
            if !limit.admits(slice.events.len(), bytes, event.body.len()) {
                return false;
            }
            bytes += event.body.len();
            slice.events.push(event);
            // The next row may be long: do not read it when nothing more fits.
            limit.admits(slice.events.len(), bytes, 0)
        });
        if !more {
            break;
        }
    }
    Ok(slice)
}

/// Calls the visitor with the events in order, until it stops.
pub(crate) fn read(
    connection: &Connection,
    stream_no: i64,
    first: u64,
    last: Seq,
    mut on_event: impl FnMut(StoredEvent) -> bool,
) -> Result<()> {
    let mut select = connection.prepare_cached(
        "SELECT place, at, coalesce(compressed, bodies) FROM events
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
    )?;
    let range = [place(stream_no, first), place(stream_no, last.0)];
    let mut rows = select.query(range)?;
    while let Some(row) = rows.next()? {
        let stored = StoredRow {
            last: sequence(stream_no, row.get(0)?),
            at: Timestamp(row.get(1)?),
            bodies: compression::text(row.get_ref(2)?)?,
        };
        if !stored.events_from(first, &mut on_event) {
            return Ok(());
        }
    }
    Ok(())
}

/// Events that share a row.
struct StoredRow<'a> {
    /// Sequence of the last of them.
    last: u64,
    at: Timestamp,
    bodies: Cow<'a, str>,
}

impl StoredRow<'_> {
    /// Calls the visitor with the events from `first` on, until it stops. A row is found by its last event,
    /// so the first row of a range may start before it. Returns whether the visitor wants more.
    fn events_from(&self, first: u64, mut on_event: impl FnMut(StoredEvent) -> bool) -> bool {
        let count = self.bodies.matches(SEPARATOR).count() as u64 + 1;
        let sequences = (self.last + 1).saturating_sub(count)..;
        let events = sequences.zip(self.bodies.split(SEPARATOR));
        events.filter(|(seq, _)| *seq >= first).all(|(seq, body)| {
            on_event(StoredEvent {
                seq: Seq(seq),
                at: self.at,
                body: body.to_owned(),
            })
        })
    }
}

fn snapshot(connection: &Connection, stream: &StreamId) -> Result<Option<SnapshotRecord>> {
    connection
        .prepare_cached(
            "SELECT seq, format, coalesce(compressed, body) FROM snapshots
             WHERE stream_no = (SELECT stream_no FROM streams WHERE stream = ?1)",
        )?
        .query_row([stream.as_str()], |row| {
            Ok(SnapshotRecord {
                seq: seq(row.get(0)?),
                format: row.get(1)?,
                body: row.get::<_, StoredText>(2)?.0,
            })
        })
        .optional()
}

/// Sequences are stored unchanged, from 0 up.
pub(crate) fn seq(stored: i64) -> Seq {
    Seq(stored.unsigned_abs())
}

#[cfg(test)]
mod tests;
