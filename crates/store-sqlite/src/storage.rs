//! What takes how much room, at a bounded cost: sizes are exact up to a size of the file, rows and runs are
//! counted up to a number, and what was left out is said.

use crate::copy::visit_current;
use crate::events::seq;
use crate::fault;
use rusqlite::{Connection, Result, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use tandem_record::{RunId, TenantId, Timestamp, WorkflowId};
use tandem_store::Fault;

/// Sizes of tables are read from every page; larger files would take minutes.
const SIZED_UP_TO: u64 = 2 << 30;
/// Rows of a table counted at most.
const ROWS: i64 = 1_000_000;
/// Runs looked at, newest first.
const RUNS: i64 = 200_000;
/// Ended runs looked at for the next one to be removed.
const OLDEST: usize = 1000;
/// The largest that are named.
const NAMED: i64 = 10;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    pub file_bytes: u64,
    /// Written and not yet folded into the file.
    pub wal_bytes: u64,
    /// Inside the file, for what comes next.
    pub free_bytes: u64,
    /// Largest first.
    pub tables: Vec<TableSize>,
    pub runs: RunCounts,
    /// Those with the most events, among the runs counted.
    pub workflows: Vec<WorkflowSize>,
    pub largest_runs: Vec<RunSize>,
    /// When the next log is removed, by the rules in force.
    pub next_purge_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableSize {
    pub name: String,
    pub rows: u64,
    /// Counting stopped there.
    pub more: bool,
    /// With its indexes; absent for very large files.
    pub bytes: Option<u64>,
}

/// Of the runs counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Begun and not ended: kept whatever the rules say.
    pub live: u64,
    /// Ended, with their log.
    pub kept: u64,
    /// Ended, with a tombstone instead.
    pub purged: u64,
    /// Older runs were not looked at.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSize {
    pub tenant: TenantId,
    pub workflow_id: WorkflowId,
    pub runs: u64,
    pub events: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSize {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub workflow_id: WorkflowId,
    pub status: String,
    pub events: u64,
    pub bytes: u64,
}

/// Looks at the database beside whoever uses it. `kept_ms` says how long runs of a tenant and a
/// workflow are kept once they ended.
pub fn storage(
    path: &Path,
    kept_ms: &dyn Fn(&TenantId, &WorkflowId) -> u64,
) -> Result<Storage, Fault> {
    let connection = visit_current(path)?;
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
            runs: runs(&view)?,
            workflows: workflows(&view)?,
            largest_runs: largest(&view)?,
            next_purge_at: next_purge(&view, kept_ms)?,
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

fn runs(view: &Connection) -> Result<RunCounts> {
    view.query_row(
        "SELECT count(*) FILTER (WHERE ended_at IS NULL AND tombstone IS NULL),
                count(*) FILTER (WHERE ended_at IS NOT NULL AND tombstone IS NULL),
                count(*) FILTER (WHERE tombstone IS NOT NULL), count(*)
         FROM (SELECT ended_at, tombstone FROM runs ORDER BY position DESC LIMIT ?1)",
        [RUNS],
        |row| {
            let count = |place| -> Result<u64> { Ok(row.get::<_, i64>(place)?.unsigned_abs()) };
            Ok(RunCounts {
                live: count(0)?,
                kept: count(1)?,
                purged: count(2)?,
                more: row.get::<_, i64>(3)? >= RUNS,
            })
        },
    )
}

fn workflows(view: &Connection) -> Result<Vec<WorkflowSize>> {
    view.prepare(
        "SELECT r.tenant, r.workflow_id, count(*) AS runs, sum(s.head + 1) AS events
         FROM (SELECT run_id, tenant, workflow_id FROM runs WHERE tombstone IS NULL
               ORDER BY position DESC LIMIT ?1) r
         JOIN streams s ON s.stream = 'run:' || r.run_id
         GROUP BY r.tenant, r.workflow_id ORDER BY events DESC, runs DESC LIMIT ?2",
    )?
    .query_map(params![RUNS, NAMED], |row| {
        Ok(WorkflowSize {
            tenant: TenantId::new(row.get_ref(0)?.as_str()?),
            workflow_id: WorkflowId::new(row.get_ref(1)?.as_str()?),
            runs: row.get::<_, i64>(2)?.unsigned_abs(),
            events: row.get::<_, i64>(3)?.unsigned_abs(),
        })
    })?
    .collect()
}

fn largest(view: &Connection) -> Result<Vec<RunSize>> {
    view.prepare(
        "SELECT r.run_id, r.tenant, r.workflow_id, r.status, s.head + 1,
                (SELECT coalesce(sum(length(CAST(e.body AS BLOB))), 0)
                 FROM events e WHERE e.stream_no = s.stream_no)
         FROM (SELECT run_id, tenant, workflow_id, status FROM runs WHERE tombstone IS NULL
               ORDER BY position DESC LIMIT ?1) r
         JOIN streams s ON s.stream = 'run:' || r.run_id
         ORDER BY s.head DESC LIMIT ?2",
    )?
    .query_map(params![RUNS, NAMED], |row| {
        Ok(RunSize {
            run_id: RunId::new(row.get_ref(0)?.as_str()?),
            tenant: TenantId::new(row.get_ref(1)?.as_str()?),
            workflow_id: WorkflowId::new(row.get_ref(2)?.as_str()?),
            status: row.get(3)?,
            events: seq(row.get(4)?).0,
            bytes: row.get::<_, i64>(5)?.unsigned_abs(),
        })
    })?
    .collect()
}

fn next_purge(
    view: &Connection,
    kept_ms: &dyn Fn(&TenantId, &WorkflowId) -> u64,
) -> Result<Option<Timestamp>> {
    let far = Timestamp(i64::MAX);
    let ended = crate::runs::ended(view, None, far, OLDEST)?;
    let purged = ended.iter().filter_map(|run| {
        let kept = kept_ms(&run.row.tenant, &run.row.workflow_id);
        Some(run.row.ended_at?.plus_ms(kept))
    });
    Ok(purged.min())
}
