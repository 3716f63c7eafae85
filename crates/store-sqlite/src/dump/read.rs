//! Import into a database. The file is read twice: first to check that it is complete and that
//! nothing in it exists already, then to write. Each run is written completely or not at all. A new
//! database appears under its name when everything is in it.

use super::row::{Columns, decode, tables};
use super::{
    DEFINITIONS, DERIVED, END, End, FORMAT, MEMORY, OF_STREAMS, TITLE, Title, TransferCounts,
};
use crate::audit::Chain;
use crate::checkpoint;
use crate::copy::{PartialFile, ProgressCallback, io_fault};
use crate::lock::Lock;
use crate::migrations::{CURRENT, STREAM_ROWS_SINCE, WORKSPACE_MEMORY, WORKSPACE_MEMORY_SINCE};
use crate::statement_cache::StatementCache;
use crate::{
    Options, chat_users, connection, escalations, events, fault, inbox, interrupts, memory,
    migrations, outbox_order, proxies, sessions, timers,
};
use rusqlite::types::{ToSql, Value as Sql};
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::SystemTime;
use tandem_record::{Actor, InterruptId, Object, RunId, StreamId, TenantId, Timestamp};
use tandem_store::{AuditDraft, Fault};

/// Longer than any row.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Rows in one transaction, approximately: a run is never split.
const AT_ONCE: u64 = 2000;
/// Limit of ids named in an error.
const NAMED: usize = 10;

/// Imports an export into the database `to`, which no other process may use in the meantime.
/// `on_progress` gets the bytes read. A full export needs a database without content, or none.
/// Faults: `export_unreadable`, `target_exists` (with ids), `store_not_empty`, `newer_schema`,
/// `locked`, and those of opening a database.
pub fn import(
    from: &Path,
    to: &Path,
    on_progress: &mut ProgressCallback<'_>,
) -> Result<TransferCounts, Fault> {
    let lock = Lock::take(to)?;
    let fresh = std::fs::metadata(to).map_or(true, |file| file.len() == 0);
    let part = if fresh {
        Some(PartialFile::begin(to)?)
    } else {
        None
    };
    let path = part.as_ref().map_or(to, PartialFile::path);
    let described = |error| fault::describe(path, error);

    let options = Options::default();
    let mut target = connection::create(path)?;
    migrations::prepare(&mut target, path, &options)?;
    connection::set_up_writer(&target, path, &options)?;
    if fresh {
        // Synced once, before it gets its name.
        let lazily = target.pragma_update(None, "synchronous", "OFF");
        lazily.map_err(described)?;
    }
    let title = validate_export(from, &target).map_err(|error| error.named(path))?;
    let mut writer = Writer::new(&target, &title).map_err(described)?;
    writer
        .all(from, on_progress)
        .map_err(|error| error.named(path))?;
    let counts = writer.counts;
    // Of a new database only the file itself gets the name.
    if matches!(checkpoint::move_all(&target), Ok(true)) || fresh {
        connection::remove_wal_on_close(&target);
    }
    target.close().map_err(|(_, error)| described(error))?;
    if let Some(part) = part {
        part.finish(to)?;
    }
    drop(lock);
    Ok(counts)
}

enum ImportError {
    Sql(rusqlite::Error),
    Fault(Fault),
}

impl ImportError {
    fn named(self, path: &Path) -> Fault {
        match self {
            Self::Sql(error) => fault::describe(path, error),
            Self::Fault(fault) => fault,
        }
    }
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Fault> for ImportError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The lines of an export, each a table's name and a row.
struct Lines<'a> {
    path: &'a Path,
    file: BufReader<File>,
    number: u64,
    bytes: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, Fault> {
        let file = File::open(path).map_err(|error| io_fault(path, &error))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(256 * 1024, file),
            number: 0,
            bytes: 0,
        })
    }

    fn next(&mut self) -> Result<Option<(String, Value)>, Fault> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.file).take(MAX_LINE_BYTES);
        let read = bounded.read_until(b'\n', &mut line);
        let length = read.map_err(|error| io_fault(self.path, &error))?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += length as u64;
        let row: Option<Map<String, Value>> = serde_json::from_slice(&line).ok();
        let mut row = row.filter(|row| row.len() == 1).into_iter().flatten();
        match row.next() {
            Some(row) if line.ends_with(b"\n") => Ok(Some(row)),
            _ => Err(self.wrong("is not a row of an export")),
        }
    }

    fn wrong(&self, why: &str) -> Fault {
        let message = format!("{}: line {} {why}", self.path.display(), self.number);
        Fault::permanent("export_unreadable", message)
    }

    fn title(&mut self) -> Result<Title, Fault> {
        let title = match self.next()? {
            Some((name, title)) if name == TITLE => Title::deserialize(title).ok(),
            _ => None,
        };
        let title = title.filter(|title| title.format == FORMAT);
        let title =
            title.ok_or_else(|| self.wrong("does not open an export this release reads"))?;
        if title.schema > CURRENT {
            let message = format!(
                "{} was written by a newer release (schema version {}); this one knows {CURRENT}",
                self.path.display(),
                title.schema
            );
            return Err(Fault::permanent("newer_schema", message));
        }
        Ok(title)
    }
}

/// Checks that the export is complete and that the target can take it. Writes nothing.
fn validate_export(from: &Path, target: &Connection) -> Result<Title, ImportError> {
    let mut lines = Lines::open(from)?;
    let title = lines.title()?;
    let schema_tables = tables(target)?;
    if title.whole && !is_empty(target, &schema_tables)? {
        let message = "an export of everything needs a store without content; name a new file";
        return Err(Fault::permanent("store_not_empty", message).into());
    }
    let mut there = Vec::new();
    let mut has_memory = false;
    let mut ended = None;
    while let Some((table, row)) = lines.next()? {
        if ended.is_some() {
            return Err(lines.wrong("comes after the end").into());
        }
        match table.as_str() {
            END => ended = End::deserialize(row).ok().map(|end| end.lines),
            "streams" => {
                let stream = row["stream"].as_str().unwrap_or_default();
                if there.len() < NAMED && is_there(target, stream)? {
                    there.push(stream.trim_start_matches("run:").to_owned());
                }
            }
            MEMORY => has_memory = true,
            table if schema_tables.contains_key(table) && !DERIVED.contains(&table) => {}
            _ => {
                return Err(lines
                    .wrong("is of a table this release does not know")
                    .into());
            }
        }
    }
    if ended != Some(lines.number.saturating_sub(1)) {
        let message = format!("{} is cut off or incomplete", from.display());
        return Err(Fault::permanent("export_unreadable", message).into());
    }
    if !there.is_empty() {
        let message = format!("runs that are in the store already: {}", there.join(", "));
        return Err(Fault::permanent("target_exists", message).into());
    }
    if has_memory && memory::last_position(target)? > 0 {
        let message = "the export carries memory, which is kept in order of writing, and the \
                       store has memory of its own; import into a new store";
        return Err(Fault::permanent("store_not_empty", message).into());
    }
    Ok(title)
}

fn is_empty(target: &Connection, schema_tables: &Columns) -> rusqlite::Result<bool> {
    for table in schema_tables
        .keys()
        .filter(|table| !DERIVED.contains(&table.as_str()))
    {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{table}\")");
        if target.query_row(&sql, (), |row| row.get(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_there(target: &Connection, stream: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM streams WHERE stream = ?1)";
    target
        .prepare_cached(sql)?
        .query_row([stream], |row| row.get(0))
}

/// Questions of earlier versions name their run and node. `false` if this one does not.
fn name_stream_and_step(row: &mut Map<String, Value>) -> bool {
    let (Some(Value::String(run)), Some(node)) = (row.remove("run_id"), row.remove("node")) else {
        return false;
    };
    let stream = StreamId::of_run(&RunId::from(run));
    row.insert("stream".to_owned(), stream.as_str().into());
    row.insert("step".to_owned(), node);
    true
}

struct Writer<'a> {
    target: &'a Connection,
    schema_tables: Columns,
    /// Keep positions in listings; only in an empty store.
    preserve_positions: bool,
    /// A full import. Otherwise each imported run gets its own audit entry.
    whole: bool,
    memory_position: u64,
    /// Schema version of the source store.
    schema: i32,
    stream_no: i64,
    counts: TransferCounts,
}

impl<'a> Writer<'a> {
    fn new(target: &'a Connection, title: &Title) -> rusqlite::Result<Self> {
        let schema_tables = tables(target)?;
        let sql =
            "SELECT NOT EXISTS (SELECT 1 FROM runs) AND NOT EXISTS (SELECT 1 FROM interrupts)";
        Ok(Self {
            preserve_positions: target.query_row(sql, (), |row| row.get(0))?,
            whole: title.whole,
            memory_position: title.memory_position,
            schema: title.schema,
            stream_no: events::last_stream_no(target)?,
            schema_tables,
            target,
            counts: TransferCounts::default(),
        })
    }

    fn all(
        &mut self,
        from: &Path,
        on_progress: &mut ProgressCallback<'_>,
    ) -> Result<(), ImportError> {
        let size = std::fs::metadata(from).map_or(0, |file| file.len());
        let mut lines = Lines::open(from)?;
        lines.title()?;
        let mut transaction = self.target.unchecked_transaction()?;
        let mut pending = 0;
        while let Some((table, row)) = lines.next()? {
            if table == END {
                break;
            }
            // Between runs, never inside one.
            let between = table == "streams" || !OF_STREAMS.contains(&table.as_str());
            if pending >= AT_ONCE && between {
                transaction.commit()?;
                on_progress(lines.bytes, size);
                transaction = self.target.unchecked_transaction()?;
                pending = 0;
            }
            let Value::Object(row) = row else {
                return Err(lines.wrong("is not a row of an export").into());
            };
            let taken = self.row(&table, row)?;
            taken.ok_or_else(|| lines.wrong("does not fit its table"))?;
            self.counts.add(&table);
            pending += 1;
        }
        if self.schema < WORKSPACE_MEMORY_SINCE {
            self.target.execute_batch(WORKSPACE_MEMORY)?;
        }
        if self.schema < STREAM_ROWS_SINCE {
            timers::name_tenants(self.target)?;
        }
        outbox_order::rebuild(self.target)?;
        if self.whole {
            chat_users::rebuild_lists(self.target)?;
            sessions::rebuild_lists(self.target)?;
            escalations::rebuild_lists(self.target)?;
            proxies::rebuild_lists(self.target)?;
        }
        self.reserve_memory_positions()?;
        Ok(transaction.commit()?)
    }

    /// `None` when the row does not fit this table.
    fn row(&mut self, table: &str, mut row: Map<String, Value>) -> Result<Option<()>, ImportError> {
        match table {
            "streams" => {
                let purged = row.remove("buried") == Some(Value::Bool(true));
                if !purged {
                    self.stream_no += 1;
                }
                let number = if purged { 0 } else { self.stream_no };
                row.insert("stream_no".to_owned(), number.into());
            }
            "events" => {
                let seq = row.remove("seq").and_then(|seq| seq.as_u64());
                let (Some(seq), Some(body)) = (seq, row.remove("body")) else {
                    return Ok(None);
                };
                let place = events::place(self.stream_no, seq);
                row.insert("place".to_owned(), place.into());
                row.insert("bodies".to_owned(), body);
            }
            "outbox" => {
                row.insert("attempts".to_owned(), 0.into());
            }
            "interrupts" if self.schema < STREAM_ROWS_SINCE => {
                if !name_stream_and_step(&mut row) {
                    return Ok(None);
                }
                if !self.preserve_positions {
                    row.remove("position");
                }
            }
            "runs" | "interrupts" if !self.preserve_positions => {
                row.remove("position");
            }
            _ => {}
        }
        if self.insert(table, &row)?.is_none() {
            return Ok(None);
        }
        match table {
            "interrupts" => self.rebuild_inbox(&row)?,
            "runs" if !self.whole => self.append_audit_entry(&row)?,
            _ => {}
        }
        Ok(Some(()))
    }

    fn insert(&self, table: &str, row: &Map<String, Value>) -> Result<Option<()>, ImportError> {
        let Some(columns) = self.schema_tables.get(table) else {
            return Ok(None);
        };
        if !row.keys().all(|name| columns.contains(name)) {
            return Ok(None);
        }
        let Some(values) = row.values().map(decode).collect::<Option<Vec<Sql>>>() else {
            return Ok(None);
        };
        let names: Vec<String> = row.keys().map(|name| format!("\"{name}\"")).collect();
        // Documents are named by their content: an existing one is the same.
        let verb = if table == DEFINITIONS {
            "INSERT OR IGNORE"
        } else {
            "INSERT"
        };
        let sql = format!(
            "{verb} INTO \"{table}\" ({}) VALUES ({})",
            names.join(", "),
            vec!["?"; names.len()].join(", ")
        );
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        self.target
            .prepare_cached(&sql)?
            .execute(values.as_slice())?;
        Ok(Some(()))
    }

    /// Rebuilds the inbox from the questions.
    fn rebuild_inbox(&self, row: &Map<String, Value>) -> Result<(), ImportError> {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let identity = inbox::InterruptIdentity {
            position: self.target.last_insert_rowid(),
            tenant: text("tenant").to_owned(),
            workspace: row
                .get("workspace")
                .and_then(Value::as_str)
                .map(str::to_owned),
            kind: text("kind").to_owned(),
        };
        let stored = interrupts::find(self.target, &InterruptId::new(text("interrupt")))?;
        if let Some(stored) = stored {
            inbox::project(self.target, &identity, &stored)?;
        }
        Ok(())
    }

    fn append_audit_entry(&self, row: &Map<String, Value>) -> Result<(), ImportError> {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        });
        let draft = AuditDraft::new(
            Timestamp(now),
            Some(&TenantId::new(text("tenant"))),
            &Actor::host(),
            "run.import",
            text("run_id"),
            Object::new(),
        );
        let mut chain = Chain::default();
        chain.append(&mut StatementCache::new(self.target), &[draft])?;
        Ok(chain.save_head(self.target)?)
    }

    /// Imported runs see memory up to the journal position of their source. Later writes must come
    /// after it, so that position is reserved by an entry in an unused scope.
    fn reserve_memory_positions(&self) -> Result<(), ImportError> {
        if memory::last_position(self.target)? >= self.memory_position {
            return Ok(());
        }
        self.target
            .prepare(
                "INSERT INTO memory (position, tenant, scope, memory_ref, key, run_id, seq, body)
                 VALUES (?1, '', '', '', '', '', 0, NULL) RETURNING position",
            )?
            .query_row([self.memory_position as i64], |_| Ok(()))
            .optional()?;
        Ok(())
    }
}
