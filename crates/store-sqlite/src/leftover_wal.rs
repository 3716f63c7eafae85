//! The WAL that an earlier process left.
//!
//! That process may have ended because a sync failed. What it wrote can then still be read from the
//! memory of the operating system, but may never reach the disk: a failed sync marks the data as
//! written. Syncing again does not help, because nothing is left to write.
//!
//! So the WAL is written once more, byte for byte, before anything is built on it: a commit added
//! behind it, or its pages in the database file while the disk holds an older WAL, which a power
//! failure would put on top of them. A power failure during the rewrite leaves each sector as it was
//! on the disk or as it was read; the checksums of the WAL decide what is valid, as always.
//!
//! Pages of the database file need no rewrite: what was not synced there is still in the WAL
//! (`checkpoint`).

use crate::checkpoint;
use crate::fault;
use crate::private;
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use tandem_store::Fault;

const CHUNK_BYTES: usize = 1024 * 1024;

/// Makes the WAL of an accepted database durable and moves it into the database file. Only for the
/// process that holds the lock.
pub(crate) fn recover(connection: &Connection, database: &Path) -> Result<(), Fault> {
    let wal = private::sibling_path(database, "-wal");
    rewrite(&wal).map_err(|error| {
        Fault::retryable(
            "io",
            format!("{} cannot be written again: {error}", wal.display()),
        )
    })?;
    // Beside a reader some of it may stay in the WAL, which is durable now.
    checkpoint::move_all(connection).map_err(|error| fault::describe(database, error))?;
    Ok(())
}

/// Writes the content of a file again and syncs it.
fn rewrite(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        file.seek(SeekFrom::Start(offset))?;
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(&chunk[..read])?;
        offset += read as u64;
    }
    match offset {
        0 => Ok(()),
        _ => file.sync_all(),
    }
}
