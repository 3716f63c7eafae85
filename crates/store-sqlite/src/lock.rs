//! One process per database. SQLite itself would let two hosts write in turns, each assuming that
//! all leases and timers are its own. The lock refuses the second before the database is opened.
//!
//! There are two locks. One is a file beside the database, found by the database's real path, so a
//! symbolic link leads to the same file. The other is on the database file itself, so that a hard
//! link leads to the same lock too. The second is `flock(2)`, which on Linux is independent of the
//! `fcntl(2)` locks SQLite takes on the same file. On other systems the two may exclude each other,
//! so there a database with a second name is refused only by its link count.
//!
//! Closing any descriptor of a file releases all `fcntl(2)` locks this process has on it, SQLite's
//! too. So the database is opened here only after the lock beside it was free, and is closed after
//! SQLite's last connection.
//!
//! The operating system releases the locks with the process, however it ends. The file beside the
//! database stays: if it were deleted, a third process could lock a new file that the second does
//! not see.

use crate::private;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use tandem_store::Fault;

/// Locked until it is dropped.
pub(crate) struct Lock {
    _beside: File,
    database: Option<File>,
}

impl Lock {
    /// Takes both locks, or only the one beside the database if that does not exist yet.
    pub(crate) fn take(database: &Path) -> Result<Self, Fault> {
        check_no_dangling_link(database)?;
        let path = Self::path(database);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        private::set_mode(&mut options);
        let file = options
            .open(&path)
            .map_err(|error| lock_fault(&path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(already_locked(database, &path)),
            Err(TryLockError::Error(error)) => return Err(lock_fault(&path, &error)),
        }
        let mut lock = Self {
            _beside: file,
            database: None,
        };
        if database.exists() {
            lock.take_database(database)?;
        }
        Ok(lock)
    }

    /// Takes the lock on the database file, which exists now.
    pub(crate) fn take_database(&mut self, database: &Path) -> Result<(), Fault> {
        if self.database.is_none() && cfg!(target_os = "linux") {
            let file = File::open(database).map_err(|error| lock_fault(database, &error))?;
            let taken = file.try_lock();
            if let Err(error) = taken {
                // This process may have it open under its other name: see above on closing.
                std::mem::forget(file);
                return Err(match error {
                    TryLockError::WouldBlock => already_locked(database, database),
                    TryLockError::Error(error) => lock_fault(database, &error),
                });
            }
            self.database = Some(file);
        }
        check_no_hard_links(database)
    }

    /// Beside the real file; links are followed.
    pub(crate) fn path(database: &Path) -> PathBuf {
        private::sibling_path(database, ".lock")
    }
}

/// SQLite finds the write-ahead log by the name it was given. Under another name of the same file
/// it would miss commits that are only there, and the two logs would corrupt each other.
pub(crate) fn check_no_hard_links(database: &Path) -> Result<(), Fault> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let names = std::fs::metadata(database).map_or(1, |file| file.nlink());
        if names > 1 {
            return Err(Fault::permanent(
                "hard_linked",
                format!(
                    "{} has {names} names (hard links); commits kept beside one of them would be \
                     missed under another. Remove the other names, or use a copy made by \
                     `tandem backup`",
                    database.display()
                ),
            ));
        }
    }
    Ok(())
}

/// A new store at the other end of a link would hide that the real one is not there, for example
/// because its disk is not mounted.
fn check_no_dangling_link(database: &Path) -> Result<(), Fault> {
    match std::fs::read_link(database) {
        Ok(target) if !database.exists() => Err(Fault::permanent(
            "io",
            format!(
                "{} is a symbolic link to {}, which does not exist or cannot be reached. Make the \
                 target available (is its disk mounted?), or remove the link to start a new store",
                database.display(),
                target.display()
            ),
        )),
        _ => Ok(()),
    }
}

fn already_locked(database: &Path, lock: &Path) -> Fault {
    Fault::permanent(
        "locked",
        format!(
            "another process has {} open (it holds {}); stop it, or choose another database file",
            database.display(),
            lock.display()
        ),
    )
}

fn lock_fault(path: &Path, error: &std::io::Error) -> Fault {
    Fault::permanent(
        "io",
        format!(
            "cannot lock {}: {error}; the directory must exist and be writable",
            path.display()
        ),
    )
}
