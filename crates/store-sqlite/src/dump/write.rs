//! Export from a database: one read transaction, so that everything is from one moment, whatever a
//! server writes in the meantime.

use super::lineage::{self, ReadOrigin};
use super::row::{encode, names, tables};
use super::{
    DEFINITIONS, DERIVED, END, End, ExportSelection, FORMAT, MEMORY, OF_STREAMS, TITLE, Title,
    TransferCounts,
};
use crate::copy::{ProgressCallback, io_fault, open_current_for_reading};
use crate::events::{self, seq};
use crate::fault;
use crate::migrations::Header;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use tandem_record::{RunId, Seq, StreamId};
use tandem_store::{Fault, StoredEvent};

/// Exports the selected part of the database `from`, also while others use it. `origin` reads the
/// memory origin of runs; `on_progress` gets the number of runs written. Faults: `not_found` with
/// the missing run, `io`, and those of opening a database.
pub fn export(
    from: &Path,
    selection: &ExportSelection,
    origin: &ReadOrigin<'_>,
    out: &mut dyn Write,
    on_progress: &mut ProgressCallback<'_>,
) -> Result<TransferCounts, Fault> {
    let connection = open_current_for_reading(from)?;
    let described = |error| fault::describe(from, error);
    let view = connection.unchecked_transaction().map_err(described)?;
    let mut writer = Writer {
        view: &view,
        origin,
        out,
        counts: TransferCounts::default(),
        lines: 0,
    };
    let written = writer.all(selection, on_progress);
    written.map_err(|error| match error {
        ExportError::Sql(error) => fault::describe(from, error),
        ExportError::Io(error) => io_fault(Path::new("the export"), &error),
        ExportError::Missing(run) => {
            Fault::permanent("not_found", format!("there is no run {run}"))
        }
    })?;
    Ok(writer.counts)
}

enum ExportError {
    Sql(rusqlite::Error),
    Io(std::io::Error),
    Missing(RunId),
}

impl From<rusqlite::Error> for ExportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<std::io::Error> for ExportError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

struct Writer<'a> {
    view: &'a Connection,
    origin: &'a ReadOrigin<'a>,
    out: &'a mut dyn Write,
    counts: TransferCounts,
    lines: u64,
}

impl Writer<'_> {
    fn all(
        &mut self,
        selection: &ExportSelection,
        on_progress: &mut ProgressCallback<'_>,
    ) -> Result<(), ExportError> {
        let whole = selection.is_whole();
        let selected_runs = self.selected_runs(selection)?;
        let title = Title {
            format: FORMAT.to_owned(),
            schema: Header::read(self.view)?.version,
            whole,
            memory_position: crate::memory::last_position(self.view)?,
        };
        self.line(TITLE, &title)?;
        if whole {
            self.rows(DEFINITIONS, "", &[])?;
            self.write_host_tables()?;
        } else {
            self.write_dependencies(&selected_runs, !selection.runs.is_empty())?;
        }
        let total = selected_runs.len() as u64;
        for (done, run) in selected_runs.values().enumerate() {
            on_progress(done as u64, total);
            self.stream(StreamId::of_run(&run.id).as_str())?;
        }
        if whole {
            for stream in self.texts(
                "SELECT stream FROM streams WHERE stream NOT LIKE 'run:%'",
                &[],
            )? {
                self.stream(&stream)?;
            }
        }
        let end = End { lines: self.lines };
        self.line(END, &end)?;
        Ok(self.out.flush()?)
    }

    /// The selected runs by position, which is the order of their creation.
    fn selected_runs(
        &self,
        selection: &ExportSelection,
    ) -> Result<BTreeMap<i64, SelectedRun>, ExportError> {
        let mut selected_runs = BTreeMap::new();
        if selection.runs.is_empty() {
            let tenant = selection.tenant.as_ref().map(AsRef::<str>::as_ref);
            let mut select = self.view.prepare(
                "SELECT position, run_id, tenant, definition FROM runs
                 WHERE ?1 IS NULL OR tenant = ?1",
            )?;
            let mut rows = select.query([tenant])?;
            while let Some(row) = rows.next()? {
                selected_runs.insert(row.get(0)?, SelectedRun::read(row)?);
            }
            return Ok(selected_runs);
        }
        let mut one = self.view.prepare(
            "SELECT position, run_id, tenant, definition FROM runs
             WHERE run_id = ?1 AND (?2 IS NULL OR tenant = ?2)",
        )?;
        let mut below = self.view.prepare(
            "SELECT run_id FROM runs INDEXED BY runs_by_parent WHERE tenant = ?1 AND parent = ?2",
        )?;
        let mut pending = selection.runs.clone();
        let tenant = selection.tenant.as_ref().map(AsRef::<str>::as_ref);
        while let Some(id) = pending.pop() {
            let found = one
                .query_row(params![id.as_str(), tenant], |row| {
                    Ok((row.get::<_, i64>(0)?, SelectedRun::read(row)?))
                })
                .optional()?;
            let Some((position, run)) = found else {
                if selection.runs.contains(&id) {
                    return Err(ExportError::Missing(id));
                }
                continue;
            };
            if selected_runs.insert(position, run.clone()).is_some() {
                continue;
            }
            let origin = lineage::origin(self.view, &id, self.origin)?;
            pending.extend(origin.and_then(|origin| origin.base).map(|base| base.run));
            let mut children = below.query([run.tenant.as_str(), id.as_str()])?;
            while let Some(child) = children.next()? {
                pending.push(RunId::new(
                    child.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?,
                ));
            }
        }
        Ok(selected_runs)
    }

    /// What runs refer to: their pinned documents, and memory: for single runs what they can see,
    /// otherwise all memory of their tenants.
    fn write_dependencies(
        &mut self,
        selected_runs: &BTreeMap<i64, SelectedRun>,
        single: bool,
    ) -> Result<(), ExportError> {
        let hashes: BTreeSet<&str> = selected_runs
            .values()
            .map(|run| run.definition.as_str())
            .collect();
        for hash in hashes {
            self.rows(DEFINITIONS, "WHERE hash = ?1", &[&hash])?;
        }
        if single {
            let runs = selected_runs
                .values()
                .map(|run| (run.tenant.as_str(), &run.id));
            for place in lineage::visible_positions(self.view, runs, self.origin)? {
                self.rows(MEMORY, "WHERE position = ?1", &[&place])?;
            }
            return Ok(());
        }
        let tenants: BTreeSet<&str> = selected_runs
            .values()
            .map(|run| run.tenant.as_str())
            .collect();
        for tenant in tenants {
            self.rows(MEMORY, "WHERE tenant = ?1 ORDER BY position", &[&tenant])?;
        }
        Ok(())
    }

    /// Every table that does not belong to runs, known by name or not.
    fn write_host_tables(&mut self) -> Result<(), ExportError> {
        for table in tables(self.view)?.keys().map(String::as_str) {
            if table != DEFINITIONS && !DERIVED.contains(&table) && !OF_STREAMS.contains(&table) {
                self.rows(table, "", &[])?;
            }
        }
        // Work that belongs to no stream, such as webhook deliveries.
        for table in ["timers", "outbox"] {
            self.rows(
                table,
                "WHERE stream NOT IN (SELECT stream FROM streams)",
                &[],
            )?;
        }
        Ok(())
    }

    fn stream(&mut self, stream: &str) -> Result<(), ExportError> {
        let found: Option<(i64, i64)> = self
            .view
            .prepare_cached("SELECT stream_no, head FROM streams WHERE stream = ?1")?
            .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((number, head)) = found else {
            return Ok(());
        };
        // Streams with a purged log have no number.
        let purged = number == 0;
        let row = json!({"stream": stream, "head": head, "buried": purged});
        self.line("streams", &row)?;
        self.counts.add("streams");
        let run = stream.strip_prefix("run:").unwrap_or_default();
        self.rows("runs", "WHERE run_id = ?1", &[&run])?;
        if !purged {
            self.events(number, seq(head))?;
        }
        if !run.is_empty() {
            self.rows("memory_joins", "WHERE run_id = ?1", &[&run])?;
        }
        let of_stream = "WHERE stream = ?1 ORDER BY position";
        self.rows("interrupts", of_stream, &[&stream])?;
        self.rows("timers", "WHERE stream = ?1", &[&stream])?;
        self.rows("outbox", "WHERE stream = ?1 ORDER BY entry_no", &[&stream])
    }

    /// One line for each event, even if they share a row.
    fn events(&mut self, stream_no: i64, last: Seq) -> Result<(), ExportError> {
        let mut written = Ok(());
        events::read(
            self.view,
            stream_no,
            0,
            last,
            |StoredEvent { seq, at, body }| {
                written = self.line("events", &json!({"seq": seq, "at": at, "body": body}));
                self.counts.add("events");
                written.is_ok()
            },
        )?;
        written
    }

    /// The rows of a table that match a condition.
    fn rows(&mut self, table: &str, which: &str, values: &[&dyn ToSql]) -> Result<(), ExportError> {
        let view = self.view;
        let mut select = view.prepare_cached(&format!("SELECT * FROM \"{table}\" {which}"))?;
        let names = names(&select);
        let mut rows = select.query(values)?;
        while let Some(row) = rows.next()? {
            let mut encoded = encode(row, &names)?;
            remove_local_columns(table, &mut encoded);
            self.line(table, &encoded)?;
            self.counts.add(table);
        }
        Ok(())
    }

    fn texts(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<String>, ExportError> {
        let mut select = self.view.prepare(sql)?;
        let texts = select.query_map(values, |row| row.get(0))?;
        Ok(texts.collect::<rusqlite::Result<_>>()?)
    }

    fn line(&mut self, table: &str, row: &impl Serialize) -> Result<(), ExportError> {
        let row = serde_json::to_string(row).map_err(std::io::Error::from)?;
        writeln!(self.out, "{{\"{table}\":{row}}}")?;
        self.lines += 1;
        Ok(())
    }
}

/// Columns that are meaningful only in their own file.
fn remove_local_columns(table: &str, row: &mut Map<String, Value>) {
    let left: &[&str] = match table {
        "outbox" => &["entry_no", "owner", "lease_no", "leased_until", "held"],
        _ => &[],
    };
    for column in left {
        row.remove(*column);
    }
}

#[derive(Clone)]
struct SelectedRun {
    id: RunId,
    tenant: String,
    definition: String,
}

impl SelectedRun {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: RunId::new(row.get_ref(1)?.as_str()?),
            tenant: row.get(2)?,
            definition: row.get(3)?,
        })
    }
}
