//! The memory journal. A scope as of a position, and the writes of a run, are each read through an
//! index that ends in the position; what a reader sees is combined from them.

use crate::SqliteStore;
use crate::events::seq;
use async_trait::async_trait;
use rusqlite::types::ToSql;
use rusqlite::{Connection, Result, Row, params};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use tandem_record::{RunId, Seq, TenantId, Timestamp};
use tandem_store::{Fault, MemoryJoin, MemoryQuery, MemoryRow, MemoryView, ReadMemory};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "position, tenant, scope, memory_ref, key, run_id, seq, body"
    };
}

/// The newest write of every key of a scope at or before a position.
const AS_OF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM memory WHERE position IN (
        SELECT max(position) FROM memory INDEXED BY memory_by_scope
        WHERE tenant = ?1 AND scope = ?2 AND position <= ?3
        GROUP BY memory_ref, key)"
);
const AS_OF_IN_REF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM memory WHERE position IN (
        SELECT max(position) FROM memory INDEXED BY memory_by_scope
        WHERE tenant = ?1 AND scope = ?2 AND position <= ?3 AND memory_ref = ?4
        GROUP BY key)"
);
const ONE_AS_OF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM memory INDEXED BY memory_by_scope
      WHERE tenant = ?1 AND scope = ?2 AND position <= ?3
          AND memory_ref = ?4 AND key = ?5
      ORDER BY position DESC LIMIT 1"
);

pub(crate) fn last_position(connection: &Connection) -> Result<u64> {
    let last: Option<i64> =
        connection.query_row("SELECT max(position) FROM memory", (), |row| row.get(0))?;
    Ok(last.map_or(0, i64::unsigned_abs))
}

pub(crate) fn append(connection: &Connection, row: &MemoryRow) -> Result<u64> {
    connection
        .prepare_cached(
            "INSERT INTO memory (tenant, scope, memory_ref, key, run_id, seq, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .insert(params![
            row.tenant.as_str(),
            row.scope,
            row.memory_ref,
            row.key,
            row.run.as_str(),
            row.seq.0 as i64,
            row.body,
        ])
        .map(i64::unsigned_abs)
}

pub(crate) fn join(connection: &Connection, join: &MemoryJoin) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO memory_joins (run_id, seq, child) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![
            join.run.as_str(),
            join.seq.0 as i64,
            join.child.as_str()
        ])
        .map(drop)
}

fn from_row(row: &Row<'_>) -> Result<(i64, MemoryRow)> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let read = MemoryRow {
        tenant: TenantId::new(text(1)?),
        scope: text(2)?.to_owned(),
        memory_ref: text(3)?.to_owned(),
        key: text(4)?.to_owned(),
        run: RunId::new(text(5)?),
        seq: seq(row.get(6)?),
        body: row.get(7)?,
    };
    Ok((row.get(0)?, read))
}

fn entries(
    connection: &Connection,
    view: &MemoryView,
    query: &MemoryQuery,
) -> Result<Vec<MemoryRow>> {
    let mut newest: HashMap<(String, String), (i64, MemoryRow)> = HashMap::new();
    for (position, row) in scope_as_of(connection, view, query)? {
        newest.insert((row.memory_ref.clone(), row.key.clone()), (position, row));
    }
    for segment in &view.segments {
        let below = segment.below.map_or(i64::MAX, |seq| seq.0 as i64);
        for (position, row) in of_run(connection, &segment.run, below, query)? {
            let foreign = row.tenant != view.tenant || row.scope != view.scope;
            let hidden = row.body.is_none() && !segment.applies_deletions;
            if foreign || hidden {
                continue;
            }
            let place = newest.entry((row.memory_ref.clone(), row.key.clone()));
            let newest_write = place.or_insert_with(|| (position, row.clone()));
            if newest_write.0 < position {
                *newest_write = (position, row);
            }
        }
    }
    let in_order: BTreeMap<i64, MemoryRow> = newest.into_values().collect();
    Ok(in_order
        .into_values()
        .filter(|r| r.body.is_some())
        .collect())
}

fn scope_as_of(
    connection: &Connection,
    view: &MemoryView,
    query: &MemoryQuery,
) -> Result<Vec<(i64, MemoryRow)>> {
    let tenant = view.tenant.as_str();
    let start = i64::try_from(view.start).unwrap_or(i64::MAX);
    let mut values: Vec<&dyn ToSql> = vec![&tenant, &view.scope, &start];
    let sql = match (&query.memory_ref, &query.key) {
        (Some(memory_ref), Some(key)) => {
            values.extend([memory_ref as &dyn ToSql, key]);
            ONE_AS_OF
        }
        (Some(memory_ref), None) => {
            values.push(memory_ref);
            AS_OF_IN_REF
        }
        (None, _) => AS_OF,
    };
    let rows = connection
        .prepare_cached(sql)?
        .query_map(values.as_slice(), from_row)?
        .collect::<Result<Vec<_>>>()?;
    Ok(rows
        .into_iter()
        .filter(|(_, r)| matches_key(query, r))
        .collect())
}

fn matches_key(query: &MemoryQuery, row: &MemoryRow) -> bool {
    query.key.as_ref().is_none_or(|key| row.key == *key)
}

/// Everything a run wrote before one of its events; only one key if one is given.
fn of_run(
    connection: &Connection,
    run: &RunId,
    below: i64,
    query: &MemoryQuery,
) -> Result<Vec<(i64, MemoryRow)>> {
    let run = run.as_str();
    let mut values: Vec<&dyn ToSql> = vec![&run, &below];
    let mut terms = String::new();
    for (column, value) in [("memory_ref", &query.memory_ref), ("key", &query.key)] {
        if let Some(value) = value {
            terms.push_str(&format!(" AND {column} = ?"));
            values.push(value);
        }
    }
    let sql = format!(
        "SELECT {} FROM memory INDEXED BY memory_by_run WHERE run_id = ? AND seq < ?{terms}",
        columns!()
    );
    connection
        .prepare_cached(&sql)?
        .query_map(values.as_slice(), from_row)?
        .collect()
}

/// Positions of the keys that begin with a prefix, never expire and were written within a view.
/// Nothing is read when there are too few of them.
fn non_expiring(
    connection: &Connection,
    view: &MemoryView,
    memory_ref: &str,
    prefix: &str,
    above: u64,
) -> Result<Vec<i64>> {
    let (tenant, end) = (view.tenant.as_str(), format!("{prefix}{}", char::MAX));
    let of_prefix = params![tenant, view.scope, memory_ref, prefix, end];
    let there: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM memory_present
             WHERE tenant = ?1 AND scope = ?2 AND memory_ref = ?3 AND key >= ?4 AND key < ?5
                 AND expires_at IS NULL",
        )?
        .query_row(of_prefix, |row| row.get(0))?;
    if there.unsigned_abs() <= above {
        return Ok(Vec::new());
    }
    let mut select = connection.prepare_cached(
        "SELECT m.position, m.run_id, m.seq
         FROM memory_present p JOIN memory m ON m.position = p.position
         WHERE p.tenant = ?1 AND p.scope = ?2 AND p.memory_ref = ?3 AND p.key >= ?4 AND p.key < ?5
             AND p.expires_at IS NULL
         ORDER BY m.position",
    )?;
    let mut rows = select.query(of_prefix)?;
    let mut places = Vec::new();
    while let Some(row) = rows.next()? {
        let position: i64 = row.get(0)?;
        let run = RunId::new(row.get_ref(1)?.as_str()?);
        if view.includes(position.unsigned_abs(), &run, seq(row.get(2)?)) {
            places.push(position);
        }
    }
    Ok(places)
}

fn row_at(connection: &Connection, position: i64) -> Result<MemoryRow> {
    let sql = concat!("SELECT ", columns!(), " FROM memory WHERE position = ?1");
    let row = connection
        .prepare_cached(sql)?
        .query_row([position], from_row)?;
    Ok(row.1)
}

/// Whether all these keys are in a scope.
pub(crate) fn are_present(
    connection: &Connection,
    tenant: &TenantId,
    scope: &str,
    memory_ref: &str,
    keys: &[String],
) -> Result<bool> {
    let mut one = connection.prepare_cached(
        "SELECT 1 FROM memory_present
         WHERE tenant = ?1 AND scope = ?2 AND memory_ref = ?3 AND key = ?4",
    )?;
    for key in keys {
        if !one.exists(params![tenant.as_str(), scope, memory_ref, key])? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[async_trait]
impl ReadMemory for SqliteStore {
    async fn memory_position(&self) -> Result<u64, Fault> {
        Ok(self.memory_position.load(Ordering::Acquire))
    }

    async fn memory_entries(
        &self,
        view: &MemoryView,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryRow>, Fault> {
        let (view, query) = (view.clone(), query.clone());
        self.readers
            .read(move |connection| entries(connection, &view, &query))
            .await
    }

    async fn memory_count(
        &self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
        now: Timestamp,
        limit: u64,
    ) -> Result<u64, Fault> {
        let (tenant, scope) = (tenant.clone(), scope.to_owned());
        let memory_ref = memory_ref.to_owned();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.readers
            .read(move |connection| {
                let count: i64 = connection
                    .prepare_cached(
                        "SELECT count(*) FROM (
                             SELECT 1 FROM memory_present
                             WHERE tenant = ?1 AND scope = ?2 AND memory_ref = ?3
                                 AND (expires_at IS NULL OR expires_at > ?4)
                             LIMIT ?5)",
                    )?
                    .query_row(
                        params![tenant.as_str(), scope, memory_ref, now.0, limit],
                        |row| row.get(0),
                    )?;
                Ok(count.unsigned_abs())
            })
            .await
    }

    async fn non_expiring_memory(
        &self,
        view: &MemoryView,
        memory_ref: &str,
        prefix: &str,
        above: u64,
        limit: usize,
    ) -> Result<(u64, Vec<MemoryRow>), Fault> {
        let (view, memory_ref) = (view.clone(), memory_ref.to_owned());
        let prefix = prefix.to_owned();
        self.readers
            .read(move |connection| {
                let places = non_expiring(connection, &view, &memory_ref, &prefix, above)?;
                let held = places.len() as u64;
                if held <= above {
                    return Ok((0, Vec::new()));
                }
                let rows = places
                    .iter()
                    .take(limit)
                    .map(|place| row_at(connection, *place));
                Ok((held, rows.collect::<Result<_>>()?))
            })
            .await
    }

    async fn memory_joins(&self, run: &RunId, below: Option<Seq>) -> Result<Vec<RunId>, Fault> {
        let run = run.clone();
        let below = below.map_or(i64::MAX, |seq| seq.0 as i64);
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT child FROM memory_joins WHERE run_id = ?1 AND seq < ?2
                         ORDER BY seq, child",
                    )?
                    .query_map(params![run.as_str(), below], |row| {
                        Ok(RunId::new(row.get_ref(0)?.as_str()?))
                    })?
                    .collect()
            })
            .await
    }
}
