//! Moves the pages of the WAL into the database file, on its own thread and connection, so that
//! committers do not wait for it.
//!
//! A WAL can start over only at a moment when all of it has been moved. Under steady load the
//! thread alone never finds that moment, so above [`HARD`] pages the writer moves the rest itself
//! between two batches, right after the thread moved nearly all of it. That limits the size of the
//! file, and committers wait rarely and briefly.
//!
//! A checkpoint beside a reader moves a part of the WAL and does not sync it; the checkpoint that
//! moves the rest syncs both. If that sync fails, the first part may be lost, and SQLite would not
//! move it again: its next checkpoint could remove it from the WAL too. So after a failed sync this
//! process makes no checkpoint any more, not even when it closes. Commits go on, durable in the WAL,
//! up to [`WITHOUT_CHECKPOINT`] pages. The next process moves all of it (`leftover_wal`).

use crate::connection;
use rusqlite::Connection;
use rusqlite::ffi;
use rusqlite::hooks::Wal;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tandem_store::Fault;

/// Pages in the WAL between two wake-ups of the thread: 4 MiB.
const SOFT: usize = 1_000;

/// Pages in the WAL above which the writer moves the rest: 64 MiB.
const HARD: usize = 16_000;

/// Pages the thread may have left at that time, unless the WAL is twice as large as it should be.
const REST: usize = 500;

/// Pages in the WAL above which commits are refused after a failed sync: 250 MiB.
const WITHOUT_CHECKPOINT: usize = 64_000;

pub(crate) struct Checkpointer {
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
    progress: Arc<Progress>,
    /// Value of `pages` at the last wake-up.
    pages_at_wake: usize,
}

#[derive(Default)]
struct Progress {
    /// Pages in the WAL after the last commit.
    pages: AtomicUsize,
    /// How many of them the thread had moved in its last checkpoint.
    moved: AtomicUsize,
    /// Whether a sync failed. Locked during a checkpoint, so that none begins before the result of
    /// the previous one is known.
    sync_failed: Mutex<bool>,
}

impl Checkpointer {
    pub(crate) fn start(path: &Path) -> Result<Self, Fault> {
        let connection = connection::open_read_write(path)?;
        connection::keep_wal(&connection, path)?;
        // Capacity 1: a second wake-up while one is pending has no effect.
        let (wake, wakeups) = sync_channel(1);
        let progress = Arc::<Progress>::default();
        let progress_of_thread = Arc::clone(&progress);
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || {
                for () in wakeups {
                    let moved = progress_of_thread.passive(&connection);
                    progress_of_thread.moved.store(moved, Ordering::Relaxed);
                }
            })
            .expect("the system can start a thread");
        Ok(Self {
            wake,
            thread,
            progress,
            pages_at_wake: 0,
        })
    }

    /// Counts the pages `connection` commits. Replaces SQLite's own automatic checkpoints.
    pub(crate) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let progress = Arc::clone(&self.progress);
        connection.wal_hook(Some(move |_: &mut Wal, count: std::ffi::c_int| {
            let pages = usize::try_from(count).unwrap_or(0);
            progress.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))
    }

    /// A fault when the WAL cannot be moved any more and is too large to go on.
    pub(crate) fn before_commit(&self) -> Result<(), Fault> {
        let pages = self.progress.pages.load(Ordering::Relaxed);
        if pages < WITHOUT_CHECKPOINT || !self.progress.has_failed() {
            return Ok(());
        }
        // A fault of the whole store: what waits for it continues after the restart.
        Err(Fault::retryable(
            "io",
            "the disk failed to sync the database, so its write-ahead log only grows; check the disk \
             and restart the server",
        ))
    }

    pub(crate) fn after_commit(&mut self, writer: &Connection) {
        let pages = self.progress.pages.load(Ordering::Relaxed);
        if pages < self.pages_at_wake {
            // The WAL started over.
            self.pages_at_wake = 0;
            self.progress.moved.store(0, Ordering::Relaxed);
        }
        let rest = pages.saturating_sub(self.progress.moved.load(Ordering::Relaxed));
        if pages >= HARD && (rest <= REST || pages >= 2 * HARD) {
            self.progress.passive(writer);
        }
        if pages >= self.pages_at_wake + SOFT {
            self.pages_at_wake = pages;
            let _ = self.wake.try_send(());
        }
    }

    /// Moves everything and closes the writer's connection. Pages that cannot be moved now stay in
    /// the WAL; the next process finds them there.
    pub(crate) fn finish(self, writer: Connection) {
        drop(self.wake);
        let _ = self.thread.join();
        if !self.progress.has_failed() && matches!(move_all(&writer), Ok(true)) {
            connection::remove_wal_on_close(&writer);
        }
        let _ = writer.close();
    }
}

impl Progress {
    /// Moves all pages that no reader or writer blocks, and returns how many pages of the WAL are
    /// moved. A failure only makes the WAL longer: a full disk or a damaged file also fails the
    /// commits themselves.
    fn passive(&self, connection: &Connection) -> usize {
        // Another thread is at it.
        let Ok(mut failed) = self.sync_failed.try_lock() else {
            return 0;
        };
        if *failed {
            return 0;
        }
        let moved: rusqlite::Result<i64> =
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| row.get(2));
        match moved {
            Ok(moved) => usize::try_from(moved).unwrap_or(0),
            Err(error) => {
                if is_failed_sync(&error) {
                    *failed = true;
                    tracing::error!(
                        %error,
                        "the disk failed to sync the database; its write-ahead log is kept as it is and grows \
                         until the server is restarted: check the disk"
                    );
                }
                0
            }
        }
    }

    fn has_failed(&self) -> bool {
        let failed: MutexGuard<'_, bool> = self
            .sync_failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *failed
    }
}

/// Moves the whole WAL and empties it. `false` when a reader prevents that.
pub(crate) fn move_all(connection: &Connection) -> rusqlite::Result<bool> {
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    Ok(!is_busy)
}

fn is_failed_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
    )
}

#[cfg(test)]
mod tests;
