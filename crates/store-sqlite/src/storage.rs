//! Storage usage at a bounded cost: sizes are exact up to a file size, rows and runs are counted up
//! to a limit, and the report says what was left out.

use crate::copy::open_current_for_reading;
use crate::fault;
use crate::storage_usage::storage_usage;
use rusqlite::{Connection, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use tandem_record::{TenantId, Timestamp, WorkflowId};
use tandem_store::{Fault, StorageUsage};

/// Table sizes need a read of every page; larger files would take minutes.
const SIZED_UP_TO: u64 = 2 << 30;
/// Limit of counted rows per table.
const ROWS: i64 = 1_000_000;
/// Ended runs read to find the next one to be purged.
const OLDEST: usize = 1000;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    pub file_bytes: u64,
    /// Written and not yet moved into the file.
    pub wal_bytes: u64,
    /// Free space inside the file.
    pub free_bytes: u64,
    /// Largest first.
    pub tables: Vec<TableSize>,
    /// Over all tenants.
    #[serde(flatten)]
    pub usage: StorageUsage,
    /// When the next log is purged, by the current rules.
    pub next_purge_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableSize {
    pub name: String,
    pub rows: u64,
    /// Counting stopped at the limit.
    pub more: bool,
    /// With its indexes; `None` for very large files.
    pub bytes: Option<u64>,
}

/// Reads the database also while others use it. `retention_ms` returns the retention of ended runs
/// of a tenant and a workflow.
pub fn storage(
    path: &Path,
    retention_ms: &dyn Fn(&TenantId, &WorkflowId) -> u64,
) -> Result<Storage, Fault> {
    let connection = open_current_for_reading(path)?;
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let (file_bytes, wal_bytes) = (size(path), size(Path::new(&wal)));
    let look = || -> Result<Storage> {
        let view = connection.unchecked_transaction()?;
        Ok(Storage {
            file_bytes,
            wal_bytes,
            free_bytes: free(&view)?,
            tables: tables(&view, file_bytes <= SIZED_UP_TO)?,
            usage: storage_usage(&view, None)?,
            next_purge_at: next_purge(&view, retention_ms)?,
        })
    };
    look().map_err(|error| fault::describe(path, error))
}

fn free(view: &Connection) -> Result<u64> {
    let number =
        |name: &str| -> Result<i64> { view.pragma_query_value(None, name, |row| row.get(0)) };
    Ok((number("freelist_count")? * number("page_size")?).unsigned_abs())
}

fn tables(view: &Connection, sized: bool) -> Result<Vec<TableSize>> {
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    if sized {
        let mut sizes = view.prepare(
            "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
             WHERE d.aggregate = TRUE GROUP BY s.tbl_name",
        )?;
        let mut rows = sizes.query(())?;
        while let Some(row) = rows.next()? {
            bytes.insert(row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs());
        }
    }
    let mut names = view.prepare(
        "SELECT name FROM sqlite_schema
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let names: Vec<String> = names
        .query_map((), |row| row.get(0))?
        .collect::<Result<_>>()?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM \"{name}\" LIMIT ?1)");
        let rows: i64 = view.query_row(&sql, [ROWS], |row| row.get(0))?;
        tables.push(TableSize {
            bytes: bytes.get(&name).copied(),
            rows: rows.unsigned_abs(),
            more: rows >= ROWS,
            name,
        });
    }
    tables.sort_by_key(|table| std::cmp::Reverse((table.bytes, table.rows)));
    Ok(tables)
}

fn next_purge(
    view: &Connection,
    retention_ms: &dyn Fn(&TenantId, &WorkflowId) -> u64,
) -> Result<Option<Timestamp>> {
    let far = Timestamp(i64::MAX);
    let ended = crate::runs::ended_runs(view, None, far, OLDEST)?;
    let purged = ended.iter().filter_map(|run| {
        let retention = retention_ms(&run.row.tenant, &run.row.workflow_id);
        Some(run.row.ended_at?.plus_ms(retention))
    });
    Ok(purged.min())
}
