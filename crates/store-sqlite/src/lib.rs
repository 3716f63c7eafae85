//! The default store: one SQLite file, one writer, concurrent readers.
//!
//! All writes go through one thread (`writer`) that puts all waiting jobs into one transaction and
//! one fsync. Reads use their own read-only connections on WAL snapshots (`readers`) and never wait
//! for the writer. Each table has its own file with its SQL; `commit` combines them in one
//! transaction.
//!
//! Invariants:
//! - A caller gets a success only after the WAL is on disk (`synchronous = FULL`).
//! - Only one process has the file open for writing, under any of its names (`lock`).
//! - A file that lost confirmed commits is not opened (`marker`), and only its owner can read it
//!   (`private`).
//! - A refused or failed commit changes nothing, and cannot fail the others of its batch.
//! - The cost of a commit does not depend on how many runs are stored.

mod agent_log;
mod audit;
mod chat_users;
mod checkpoint;
mod commit;
mod compression;
mod connection;
mod copy;
mod cursor_position;
mod definitions;
mod dump;
mod escalations;
mod events;
mod fault;
mod idempotency;
mod inbox;
mod interrupts;
mod keys;
mod leftover_wal;
mod lock;
mod marker;
mod memory;
mod migrations;
mod options;
mod outbox;
mod outbox_order;
mod people;
mod private;
mod processes;
mod proxies;
#[cfg(test)]
mod query_plan;
mod queue;
mod readers;
mod runs;
mod schedules;
mod sessions;
mod settings;
mod statement_cache;
mod storage;
mod storage_usage;
mod test_records;
mod timers;
mod webhook_feed;
mod webhooks;
mod work_failures;
mod writer;

pub use copy::{PartialFile, ProgressCallback, backup, restore};
pub use dump::{ExportSelection, OriginSource, ReadOrigin, TransferCounts, export, import};
pub use options::Options;
pub use storage::{Storage, TableSize, storage};

use async_trait::async_trait;
use checkpoint::Checkpointer;
use lock::Lock;
use marker::Marker;
use readers::Readers;
use rusqlite::OptionalExtension;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use tandem_record::{RunId, SessionId, StreamId, TenantId, Timestamp};
use tandem_store::{
    AuditDraft, EndedSession, Fault, ListedRun, Maintenance, RunPosition, StorageUsage,
};
use writer::Writer;

/// An open database. Dropping it finishes the queued jobs, like [`Maintenance::close`], but the
/// caller cannot wait for it.
pub struct SqliteStore {
    // Before the writer, so that its connection is the last to close and cleans up the WAL.
    readers: Readers,
    writer: Writer,
    path: PathBuf,
    /// Position of the memory journal. No read needed, because no other process writes the file.
    memory_position: AtomicU64,
    /// Whether there ever were groups or delegations. Most decisions are made without any, and then
    /// need no read.
    has_people: AtomicBool,
}

impl SqliteStore {
    /// Opens the database at `path`, creates it if there is none, and migrates its schema. Blocks
    /// meanwhile. Faults: `locked`, `hard_linked`, `data_missing`, `corrupt`, `newer_schema`, `io`,
    /// `disk_full`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Fault> {
        let path = path.as_ref();
        let mut lock = Lock::take(path)?;
        let marker = Marker::of(path);
        marker.check_file(path)?;
        private::create(path).map_err(|error| copy::io_fault(path, &error))?;
        lock.take_database(path)?;
        let mut connection = connection::create(path)?;
        migrations::prepare(&mut connection, path, &options)?;
        // Only after the file was accepted.
        private::tighten(path);
        connection::set_up_writer(&connection, path, &options)?;
        let position =
            memory::last_position(&connection).map_err(|error| fault::describe(path, error))?;
        let has_people =
            people::has_any(&connection).map_err(|error| fault::describe(path, error))?;
        marker
            .advance(&connection)
            .map_err(|error| fault::describe(path, error))?;
        let checkpointer = Checkpointer::start(path)?;
        let readers = Readers::open(path, &options)?;
        let writer = Writer::start(connection, checkpointer, marker, lock)
            .map_err(|error| fault::describe(path, error))?;
        Ok(Self {
            readers,
            writer,
            path: path.to_owned(),
            memory_position: AtomicU64::new(position),
            has_people: AtomicBool::new(has_people),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes [`Options::max_bytes`] while the store is in use, so that an operator can make room
    /// after `disk_full`.
    pub async fn set_max_bytes(&self, max_bytes: Option<u64>) -> Result<(), Fault> {
        self.writer
            .write_internal(move |tx| Ok(connection::cap_size(tx.connection, max_bytes)?))
            .await
    }
}

#[async_trait]
impl Maintenance for SqliteStore {
    async fn ping(&self) -> Result<(), Fault> {
        let written: i64 = self
            .writer
            .write_internal(|tx| Ok(marker::bump_heartbeat(tx.connection)?))
            .await?;
        let read: Option<i64> = self
            .readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT beats FROM heartbeat WHERE id = 0")?
                    .query_row((), |row| row.get(0))
                    .optional()
            })
            .await?;
        if read.is_none_or(|read| read < written) {
            return Err(Fault::permanent(
                "corrupt",
                format!("{} forgot a write it confirmed", self.path.display()),
            ));
        }
        Ok(())
    }

    async fn expire_idempotency(&self, before: Timestamp, limit: usize) -> Result<u64, Fault> {
        self.writer
            .write_internal(move |tx| Ok(idempotency::expire(tx.connection, before, limit)?))
            .await
    }

    async fn ended_runs(
        &self,
        after: Option<(Timestamp, RunPosition)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ListedRun>, Fault> {
        self.readers
            .read(move |connection| runs::ended_runs(connection, after, before, limit))
            .await
    }

    async fn purge_run(
        &self,
        run: &RunId,
        tombstone: &str,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        let (run, tombstone) = (run.clone(), tombstone.to_owned());
        self.writer
            .write_internal(move |tx| {
                let connection = tx.connection;
                if runs::mark_purged(connection, &run, &tombstone)? {
                    events::remove(connection, &StreamId::of_run(&run))?;
                    tx.chain.append(&mut tx.statements, audit.as_slice())?;
                }
                Ok(())
            })
            .await
    }

    async fn ended_sessions(
        &self,
        after: Option<(Timestamp, SessionId)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<EndedSession>, Fault> {
        self.readers
            .read(move |connection| sessions::ended(connection, after.as_ref(), before, limit))
            .await
    }

    async fn purge_session(
        &self,
        session: &SessionId,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        let session = session.clone();
        self.writer
            .write_internal(move |tx| {
                let connection = tx.connection;
                if sessions::remove_ended(connection, &session)? {
                    let stream = StreamId::of_session(&session);
                    events::remove(connection, &stream)?;
                    events::remove_all(connection, &StreamId::media_prefix(&session))?;
                    escalations::remove_session(connection, &session)?;
                    proxies::remove_session(connection, &session)?;
                    interrupts::remove_stream(connection, &stream)?;
                    agent_log::remove_stream(connection, &stream)?;
                    idempotency::remove_session(connection, &session)?;
                    tx.chain.append(&mut tx.statements, audit.as_slice())?;
                }
                Ok(())
            })
            .await
    }

    async fn storage_usage(&self, tenant: &TenantId) -> Result<StorageUsage, Fault> {
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| {
                let view = connection.unchecked_transaction()?;
                storage_usage::storage_usage(&view, Some(&tenant))
            })
            .await
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}
