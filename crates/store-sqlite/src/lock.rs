//! One process per database. SQLite itself would let two hosts write in turns, each believing it
//! is alone with its leases and timers; the lock beside the file says no at the door.
//!
//! The operating system drops the lock with the process, however it ends. The file stays: deleting
//! it would let a third process lock a file the second can no longer see.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use tandem_store::Fault;

/// Held as long as it lives.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(database: &Path) -> Result<Self, Fault> {
        let path = Self::path(database);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| trouble(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Fault::permanent(
                "locked",
                format!(
                    "another process has {} open (it holds {}); stop it, or choose another \
                     database file",
                    database.display(),
                    path.display()
                ),
            )),
            Err(TryLockError::Error(error)) => Err(trouble(&path, &error)),
        }
    }

    pub(crate) fn path(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }
}

fn trouble(path: &Path, error: &std::io::Error) -> Fault {
    Fault::permanent(
        "io",
        format!(
            "cannot lock {}: {error}; the directory must exist and be writable",
            path.display()
        ),
    )
}
