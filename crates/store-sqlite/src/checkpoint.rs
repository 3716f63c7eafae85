//! Moves the pages of the WAL into the database file, on its own thread and connection, so that
//! committers do not wait for it.
//!
//! A WAL can start over only at a moment when all of it has been moved. Under steady load the
//! thread alone never finds that moment, so above [`HARD`] pages the writer moves the rest itself
//! between two batches, right after the thread moved nearly all of it. That limits the size of the
//! file, and committers wait rarely and briefly.

use crate::connection;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use tandem_store::Fault;

/// Pages in the WAL between two wake-ups of the thread: 4 MiB.
const SOFT: usize = 1_000;

/// Pages in the WAL above which the writer moves the rest: 64 MiB.
const HARD: usize = 16_000;

/// Pages the thread may have left at that time, unless the WAL is twice as large as it should be.
const REST: usize = 500;

pub(crate) struct Checkpointer {
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
    /// Pages in the WAL after the last commit.
    pages: Arc<AtomicUsize>,
    /// How many of them the thread had moved in its last checkpoint.
    moved: Arc<AtomicUsize>,
    /// Value of `pages` at the last wake-up.
    pages_at_wake: usize,
}

impl Checkpointer {
    pub(crate) fn start(path: &Path) -> Result<Self, Fault> {
        let connection = connection::open_read_write(path)?;
        // Capacity 1: a second wake-up while one is pending has no effect.
        let (wake, wakeups) = sync_channel(1);
        let moved = Arc::<AtomicUsize>::default();
        let moved_by_thread = Arc::clone(&moved);
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || {
                for () in wakeups {
                    moved_by_thread.store(passive(&connection), Ordering::Relaxed);
                }
            })
            .expect("the system can start a thread");
        Ok(Self {
            wake,
            thread,
            pages: Arc::default(),
            moved,
            pages_at_wake: 0,
        })
    }

    /// Counts the pages `connection` commits. Replaces SQLite's own automatic checkpoints.
    pub(crate) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let pages = Arc::clone(&self.pages);
        connection.wal_hook(Some(move |_: &mut Wal, count: std::ffi::c_int| {
            pages.store(usize::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))
    }

    pub(crate) fn after_commit(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.pages_at_wake {
            // The WAL started over.
            self.pages_at_wake = 0;
            self.moved.store(0, Ordering::Relaxed);
        }
        let rest = pages.saturating_sub(self.moved.load(Ordering::Relaxed));
        if pages >= HARD && (rest <= REST || pages >= 2 * HARD) {
            passive(writer);
        }
        if pages >= self.pages_at_wake + SOFT {
            self.pages_at_wake = pages;
            let _ = self.wake.try_send(());
        }
    }

    /// Moves everything and closes the writer's connection.
    pub(crate) fn finish(self, writer: Connection) {
        drop(self.wake);
        let _ = self.thread.join();
        // Pages that cannot be moved now stay in the WAL; the next process finds them there.
        let _ = checkpoint(&writer, "PRAGMA wal_checkpoint(TRUNCATE)");
        let _ = writer.close();
    }
}

/// Moves what an earlier process left in the WAL, before anything is added to it.
///
/// That process may have ended because an fsync failed. Its writes can then still be read from the
/// system's memory, but may never reach the disk. A commit added behind them would be lost with
/// them at a power failure. Moving writes all of it again, to another file, and syncs that file.
pub(crate) fn checkpoint_leftover_wal(connection: &Connection) -> rusqlite::Result<()> {
    checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(drop)
}

/// Moves all pages that no reader or writer blocks, and returns how many pages of the WAL are
/// moved. A failure only makes the WAL longer: a full disk or a damaged file also fails the commits
/// themselves.
fn passive(connection: &Connection) -> usize {
    checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)").unwrap_or(0)
}

fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<usize> {
    let moved: i64 = connection.query_row(pragma, (), |row| row.get(2))?;
    Ok(usize::try_from(moved).unwrap_or(0))
}
