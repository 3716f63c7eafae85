//! What single exported runs depend on: the runs whose memory they continue, and the memory writes
//! they can see.
//!
//! A run sees its scope up to the journal position at its start, the writes of the runs it comes
//! from, its own, and those of its descendants. With all these runs selected, what any of them saw
//! at any of its events is determined by the rows found here.

use crate::events;
use rusqlite::{Connection, OptionalExtension, Result};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{MemoryOrigin, RunId, StreamId};
use tandem_store::PageLimit;

/// The stored form of the beginning of a run.
#[derive(Clone, Copy, Debug)]
pub enum OriginSource<'a> {
    FirstEvent(&'a str),
    /// Its log was purged.
    Tombstone(&'a str),
}

/// The memory origin of a run, from its stored form. The database does not interpret the text; the
/// caller does.
pub type ReadOrigin<'a> = dyn Fn(OriginSource<'_>) -> Option<MemoryOrigin> + 'a;

pub(super) fn origin(
    view: &Connection,
    run: &RunId,
    read: &ReadOrigin<'_>,
) -> Result<Option<MemoryOrigin>> {
    let text = |sql: &str| -> Result<Option<String>> {
        let mut select = view.prepare_cached(sql)?;
        let found = select.query_row([run.as_str()], |row| row.get(0));
        Ok(found.optional()?.flatten())
    };
    if let Some(left) = text("SELECT tombstone FROM runs WHERE run_id = ?1")? {
        return Ok(read(OriginSource::Tombstone(&left)));
    }
    let slice = events::slice(view, &StreamId::of_run(run), None, PageLimit::of_events(1))?;
    let first = slice.events.first();
    Ok(first.and_then(|event| read(OriginSource::FirstEvent(&event.body))))
}

/// Journal positions of everything these runs can see, in order.
pub(super) fn visible_positions<'a>(
    view: &Connection,
    runs: impl Iterator<Item = (&'a str, &'a RunId)>,
    read: &ReadOrigin<'_>,
) -> Result<BTreeSet<i64>> {
    let mut places = BTreeSet::new();
    // Visible position of each scope, by tenant.
    let mut scopes: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for (tenant, run) in runs {
        let mut own = view.prepare_cached("SELECT position FROM memory WHERE run_id = ?1")?;
        let found = own.query_map([run.as_str()], |row| row.get(0))?;
        places.extend(found.collect::<Result<Vec<i64>>>()?);
        if let Some(origin) = origin(view, run, read)? {
            let until = scopes.entry((tenant, origin.scope)).or_default();
            *until = origin.start.max(*until);
        }
    }
    for ((tenant, scope), until) in &scopes {
        let until = i64::try_from(*until).unwrap_or(i64::MAX);
        let mut of_scope = view.prepare_cached(
            "SELECT position FROM memory INDEXED BY memory_by_scope
             WHERE tenant = ?1 AND scope = ?2 AND position <= ?3",
        )?;
        let found = of_scope.query_map((tenant, scope, until), |row| row.get(0))?;
        places.extend(found.collect::<Result<Vec<i64>>>()?);
    }
    Ok(places)
}
