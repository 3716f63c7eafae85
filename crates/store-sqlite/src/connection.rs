//! Opens and configures connections.

use crate::fault;
use crate::options::Options;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};
use std::path::Path;
use std::time::Duration;
use tandem_store::Fault;

/// More than the distinct statements of any one connection.
const STATEMENTS: usize = 96;

/// Wait for locks of other programs: only those can block us.
const BUSY: Duration = Duration::from_secs(5);

/// A WAL larger than this is truncated when it starts over.
const WAL_LIMIT_BYTES: i64 = 96 * 1024 * 1024;

/// For the writer, before the file is checked.
pub(crate) fn create(path: &Path) -> Result<Connection, Fault> {
    open(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )
}

/// For the checkpointer.
pub(crate) fn open_read_write(path: &Path) -> Result<Connection, Fault> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(|error| fault::describe(path, error))?;
    Ok(connection)
}

pub(crate) fn read_only(path: &Path, options: &Options) -> Result<Connection, Fault> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    set_cache(&connection, options.reader_cache_kib)
        .map_err(|error| fault::describe(path, error))?;
    Ok(connection)
}

/// Closing the connection leaves the WAL as it is: it may be needed for recovery, and may not be on
/// the disk (`leftover_wal`).
pub(crate) fn keep_wal(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    kept.map(drop).map_err(|error| fault::describe(path, error))
}

/// Closing the last connection removes the WAL, all of which has been moved.
pub(crate) fn remove_wal_on_close(connection: &Connection) {
    // Otherwise it stays, which does no harm.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, Fault> {
    let tune = |connection: Connection| {
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise a statement with a bound limit is compiled again whenever a value changes.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(tune)
        .map_err(|error| fault::describe(path, error))
}

/// Call after the file was accepted.
pub(crate) fn set_up_writer(
    connection: &Connection,
    path: &Path,
    options: &Options,
) -> Result<(), Fault> {
    let set_up = || {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
        set_cache(connection, options.writer_cache_kib)?;
        cap_size(connection, options.max_bytes)
    };
    set_up().map_err(|error| fault::describe(path, error))
}

/// SQLite takes a negative number as KiB.
fn set_cache(connection: &Connection, kib: u32) -> Result<()> {
    connection.pragma_update(None, "cache_size", -i64::from(kib))
}

pub(crate) fn cap_size(connection: &Connection, max_bytes: Option<u64>) -> Result<()> {
    /// SQLite's own limit.
    const MOST: u64 = 4_294_967_294;
    let page: u64 = connection.pragma_query_value(None, "page_size", |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })?;
    let pages = max_bytes.map_or(MOST, |bytes| (bytes / page).clamp(1, MOST));
    connection.pragma_update_and_check(None, "max_page_count", pages as i64, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn statements_are_not_compiled_again_for_other_values() {
        let directory = tempfile::tempdir().unwrap();
        let connection = create(&directory.path().join("tandem.db")).unwrap();
        connection
            .execute_batch("CREATE TABLE timers (due INTEGER PRIMARY KEY)")
            .unwrap();
        let sql = "SELECT due FROM timers WHERE due <= ?1 AND due < ?3 ORDER BY due LIMIT ?2";
        for limit in [1, 128, 7] {
            let mut due = connection.prepare_cached(sql).unwrap();
            let found: Result<Vec<i64>> = due
                .query_map([9, limit, 100], |row| row.get(0))
                .unwrap()
                .collect();
            assert!(found.unwrap().is_empty());
            assert_eq!(due.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
