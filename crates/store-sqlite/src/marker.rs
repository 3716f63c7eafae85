//! Detects a database that lost confirmed commits: an emptied file, a truncated or removed
//! write-ahead log, an old copy in place of the store.
//!
//! The database has a counter (`heartbeat.beats`) that only grows. The marker is a small file
//! beside the database with a value of the counter from a commit that was already durable. At start
//! the counter may be above the marker, never below.
//!
//! The counter moves about once a second while commits are made, within a batch of other commits or
//! alone; the marker is written afterwards, on a thread of its own and without a sync. So a marker
//! never claims what is not durable, however the process ends, and no commit waits for it. What is
//! lost of the last second alone goes unnoticed.
//!
//! A missing marker is accepted: deleting it is how an operator accepts a database as it is. A marker
//! without content is what a power cut can leave, because the file is not synced: a server starts with a
//! warning and writes a new one, a copy is refused. A marker with other content is refused.

use crate::fault;
use crate::private;
use crate::writer::HeartbeatQueue;
use rusqlite::Connection;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_store::Fault;

/// Time between a commit and the marker that covers it.
const INTERVAL: Duration = Duration::from_secs(1);

const EXPLANATION: &str = "# Beside a tandem database: how far it had got, to notice if it loses something.\n\
                           # Delete this file only after putting another database here on purpose.\n";
const FIELD: &str = "beats=";
pub(crate) const ENDING: &str = ".marker";

pub(crate) struct Marker {
    path: PathBuf,
}

/// What a marker says about its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Absent,
    /// What the counter was at least.
    Beats(i64),
    /// No content, or zeros.
    Empty,
    /// Other content, or a file that cannot be read.
    Unreadable,
}

impl Marker {
    pub(crate) fn of(database: &Path) -> Self {
        Self {
            path: private::sibling_path(database, ENDING),
        }
    }

    pub(crate) fn claim(&self) -> Claim {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Claim::Absent,
            Err(_) => return Claim::Unreadable,
        };
        let text = String::from_utf8_lossy(&bytes);
        let value = text.lines().find_map(|line| line.strip_prefix(FIELD));
        match value.and_then(|value| value.trim().parse().ok()) {
            Some(beats) => Claim::Beats(beats),
            None if bytes.iter().all(|byte| *byte == 0) => Claim::Empty,
            None => Claim::Unreadable,
        }
    }

    /// Before the file is opened or made. Any marker tells that there was a database: the first one is
    /// written after the first commit is durable.
    pub(crate) fn check_file(&self, database: &Path) -> Result<(), Fault> {
        if self.claim() == Claim::Absent {
            return Ok(());
        }
        let what = match fs::metadata(database) {
            Ok(file) if file.len() > 0 => return Ok(()),
            Ok(_) => "is empty",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing",
            // Opening the file will report the reason.
            Err(_) => return Ok(()),
        };
        Err(self.refusal(database, &format!("{what} and was in use before")))
    }

    /// Before anything is written to the database, by the process that holds its lock.
    pub(crate) fn check(
        &self,
        connection: &Connection,
        blank: bool,
        database: &Path,
    ) -> Result<(), Fault> {
        let claim = self.claim();
        // The marker is not synced, so a power cut can leave it empty or damaged.
        if matches!(claim, Claim::Empty | Claim::Unreadable) && !blank {
            tracing::warn!(
                "{} is empty or damaged, so lost commits of {} cannot be detected; a power cut can leave it so, \
                 otherwise compare the store with its last backup",
                self.path.display(),
                database.display()
            );
            return Ok(());
        }
        self.compare(claim, connection, blank, database)
    }

    /// Beside a server that may be writing. `claim` was read before the connection read anything: the
    /// counter only grows, so a store in use is never behind it.
    pub(crate) fn compare(
        &self,
        claim: Claim,
        connection: &Connection,
        blank: bool,
        database: &Path,
    ) -> Result<(), Fault> {
        if claim == Claim::Absent {
            return Ok(());
        }
        if blank {
            return Err(self.refusal(database, "has no content and was in use before"));
        }
        let Claim::Beats(claimed) = claim else {
            let missing = "may have lost commits: its marker cannot be read. Start the server once to \
                           write a new one";
            return Err(self.refusal(database, missing));
        };
        let found = read(connection).map_err(|error| fault::describe(database, error))?;
        if found >= claimed {
            return Ok(());
        }
        let missing = format!(
            "lost commits it had confirmed: it is at heartbeat {found} and had reached {claimed} \
             (its write-ahead log was cut off or removed, or an older copy was put in its place)"
        );
        Err(self.refusal(database, &missing))
    }

    fn refusal(&self, database: &Path, what: &str) -> Fault {
        Fault::permanent(
            "data_missing",
            format!(
                "{} {what}. Put the file and its -wal back, or restore a backup with `tandem restore`. \
                 If this is what you want to go on with, delete {}",
                database.display(),
                self.path.display()
            ),
        )
    }

    /// Increments the counter in its own commit and writes the marker.
    ///
    /// The transaction is explicit: a statement that returns a row commits only when it is reset,
    /// and an error of that commit would go unnoticed.
    pub(crate) fn advance(&self, connection: &Connection) -> rusqlite::Result<()> {
        let transaction = connection.unchecked_transaction()?;
        let beats = bump_heartbeat(&transaction)?;
        transaction.commit()?;
        self.write(beats);
        Ok(())
    }

    /// Uses a rename, so that a crash leaves the old or the new marker. A failure only leaves an
    /// older marker.
    fn write(&self, beats: i64) {
        let write = || -> io::Result<()> {
            let mut part = self.path.clone().into_os_string();
            part.push(".part");
            let part = PathBuf::from(part);
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            private::set_mode(&mut options);
            writeln!(options.open(&part)?, "{EXPLANATION}{FIELD}{beats}")?;
            fs::rename(&part, &self.path)
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "cannot write the marker beside the database");
        }
    }
}

fn read(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT beats FROM heartbeat WHERE id = 0", (), |row| {
        row.get(0)
    })
}

/// Increments the counter. Call within a transaction.
pub(crate) fn bump_heartbeat(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE heartbeat SET beats = beats + 1 WHERE id = 0 RETURNING beats")?
        .query_row((), |row| row.get(0))
}

/// Updates the marker after commits.
pub(crate) struct MarkerUpdater {
    marker: Arc<Marker>,
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
    counts: Arc<Counts>,
}

/// Numbers of writer jobs.
#[derive(Default)]
struct Counts {
    run: AtomicU64,
    /// How many of them the marker covers.
    covered: AtomicU64,
    /// Whether the thread waits for a wake-up. For most batches it does not, and needs none.
    listening: AtomicBool,
}

impl Counts {
    fn all_covered(&self) -> bool {
        self.run.load(Ordering::SeqCst) <= self.covered.load(Ordering::SeqCst)
    }
}

impl MarkerUpdater {
    pub(crate) fn start(marker: Marker, queue: HeartbeatQueue) -> Self {
        let marker = Arc::new(marker);
        let counts = Arc::<Counts>::default();
        // Capacity 1: a second wake-up while one is pending has no effect.
        let (wake, wakeups) = sync_channel(1);
        let (marker_of_thread, counted) = (Arc::clone(&marker), Arc::clone(&counts));
        let thread = std::thread::Builder::new()
            .name("sqlite-marker".into())
            .spawn(move || update_until_closed(&marker_of_thread, &counted, &queue, &wakeups))
            .expect("the system can start a thread");
        Self {
            marker,
            wake,
            thread,
            counts,
        }
    }

    /// This many jobs are about to be made durable.
    pub(crate) fn before_batch(&self, jobs: usize) {
        self.counts.run.fetch_add(jobs as u64, Ordering::SeqCst);
    }

    pub(crate) fn after_batch(&self) {
        if self.counts.listening.swap(false, Ordering::SeqCst) {
            let _ = self.wake.try_send(());
        }
    }

    /// Ends the thread and writes a final marker.
    pub(crate) fn finish(self, connection: &Connection) {
        drop(self.wake);
        let _ = self.thread.join();
        if !self.counts.all_covered() {
            // A store that cannot be written keeps its older marker.
            let _ = self.marker.advance(connection);
        }
    }
}

fn update_until_closed(
    marker: &Marker,
    counts: &Counts,
    queue: &HeartbeatQueue,
    wakeups: &Receiver<()>,
) {
    loop {
        counts.listening.store(true, Ordering::SeqCst);
        // Checked after that, so that no batch is missed in between.
        if counts.all_covered() && wakeups.recv().is_err() {
            return;
        }
        let asleep = Instant::now();
        while let Some(left) = INTERVAL.checked_sub(asleep.elapsed()) {
            match wakeups.recv_timeout(left) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let run = counts.run.load(Ordering::SeqCst);
        if counts.all_covered() {
            continue;
        }
        if let Some(beats) = queue.bump_heartbeat() {
            marker.write(beats);
            // Plus one: the heartbeat itself is a job.
            counts.covered.store(run + 1, Ordering::SeqCst);
        }
    }
}
