//! Checks that a file is ours, which version it has, and that it is not damaged; then migrates it.
//! A file is not changed before it is accepted as ours and not newer than this release.

use crate::connection;
use crate::fault;
use crate::leftover_wal;
use crate::marker::Marker;
use crate::options::Options;
use rusqlite::{Connection, Result};
use std::path::Path;
use tandem_store::Fault;

/// "TNDM", in the header of every database of ours.
const APPLICATION: i32 = 0x544E_444D;

/// Migration scripts from one version to the next; a file at version `n` ran the first `n`.
pub(crate) const SCRIPTS: [&str; 19] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
    WORKSPACE_MEMORY,
    include_str!("schema/12.sql"),
    include_str!("schema/13.sql"),
    include_str!("schema/14.sql"),
    include_str!("schema/15.sql"),
    include_str!("schema/16.sql"),
    include_str!("schema/17.sql"),
    include_str!("schema/18.sql"),
    include_str!("schema/19.sql"),
];

/// What all scripts leave behind in a new file, at a third of their cost.
const NEW_FILE: &str = include_str!("schema/new_file.sql");

/// Rewrites rows of runs of a workspace that earlier versions wrote. It migrates to version 11, and
/// is applied to imports of older exports.
pub(crate) const WORKSPACE_MEMORY: &str = include_str!("schema/11.sql");
pub(crate) const WORKSPACE_MEMORY_SINCE: i32 = 11;

/// Since this version timers name their tenant, and questions name their stream and step.
pub(crate) const STREAM_ROWS_SINCE: i32 = 14;

pub(crate) const CURRENT: i32 = SCRIPTS.len() as i32;

/// Accepts the file, makes durable what an earlier process left, sets WAL mode and migrates the
/// schema. Closing the connection keeps the WAL.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    options: &Options,
) -> Result<(), Fault> {
    let described = |error| fault::describe(path, error);
    let header = Header::read(connection).map_err(described)?;
    header.accept(path)?;
    connection::keep_wal(connection, path)?;
    Marker::of(path).check(connection, header.is_blank(), path)?;
    if !header.is_blank() {
        check_whole(connection, path, options)?;
    }
    leftover_wal::recover(connection, path)?;
    set_wal(connection).map_err(described)?;
    migrate(connection, header.version).map_err(described)
}

pub(crate) struct Header {
    application: i32,
    pub(crate) version: i32,
    tables: i64,
}

impl Header {
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
        Ok(Self {
            application: connection.pragma_query_value(None, "application_id", |r| r.get(0))?,
            version: connection.pragma_query_value(None, "user_version", |r| r.get(0))?,
            tables: connection.query_row("SELECT count(*) FROM sqlite_schema", (), |r| r.get(0))?,
        })
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.application == 0 && self.version == 0 && self.tables == 0
    }

    pub(crate) fn accept(&self, path: &Path) -> Result<(), Fault> {
        let path = path.display();
        if !self.is_blank() && self.application != APPLICATION {
            return Err(Fault::permanent(
                "corrupt",
                format!(
                    "{path} is an SQLite database of another program; choose another file and \
                     leave this one alone"
                ),
            ));
        }
        if self.version > CURRENT {
            return Err(Fault::permanent(
                "newer_schema",
                format!(
                    "{path} has schema version {}, written by a newer release; this release knows \
                     version {CURRENT}. Start the newer release, or restore a backup from before \
                     the upgrade",
                    self.version
                ),
            ));
        }
        Ok(())
    }
}

/// The statement is run to its end: it commits after its row, and that can fail.
fn set_wal(connection: &Connection) -> Result<()> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query(())?;
    let mode: Option<String> = rows.next()?.map(|row| row.get(0)).transpose()?;
    rows.next()?;
    if mode.as_deref() == Some("wal") {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(format!(
            "the file system does not support WAL (journal mode is {mode:?})"
        )),
    ))
}

/// Runs all missing steps in one transaction, with the new version in it. A new file costs one
/// sync, not one per version.
fn migrate(connection: &mut Connection, from: i32) -> Result<()> {
    if from == CURRENT {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    match from {
        0 => transaction.execute_batch(NEW_FILE)?,
        _ => {
            for script in &SCRIPTS[from as usize..] {
                transaction.execute_batch(script)?;
            }
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", CURRENT)?;
    transaction.commit()
}

fn check_whole(connection: &Connection, path: &Path, options: &Options) -> Result<(), Fault> {
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    if size > options.check_up_to_bytes {
        return Ok(());
    }
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", (), |row| row.get(0))
        .map_err(|error| fault::describe(path, error))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(Fault::permanent(
        "corrupt",
        format!(
            "{} is damaged ({verdict}); restore it from a backup",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests;
