//! Commits of exactly the data of a no-op run, without a server: many callers grouped into one
//! fsync by a minimal loop, the same through our store, and a single caller.

use crate::client::Failure;
use crate::load::LoadResult;
use crate::options::Options;
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tandem_record::{Actor, RunId, StreamId};
use tandem_store::audit::Entry;
use tandem_store::{
    Append, Audit, AuditDraft, Commit, Log, Maintenance, NewEvent, ReadLog, ReadRuns, RunRow,
};
use tandem_store_sqlite::SqliteStore;
use tokio::sync::{mpsc, oneshot};

const CALLERS: usize = 64;
/// The same as in the store.
const BATCH: usize = 512;

/// A run as the server stored it.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) bodies: Vec<NewEvent>,
    row: RunRow,
    /// The bodies in the store's layout: those of one moment in one row.
    log: String,
    /// Its audit entry: part of the same commit.
    audit_entry: String,
}

impl Stored {
    pub(crate) async fn read(directory: &Path, run: &str) -> Result<Self, Failure> {
        let path = directory.join("tandem.db");
        let store = SqliteStore::open(path, Default::default())?;
        let run = RunId::new(run);
        let slice = store.events(&StreamId::of_run(&run), None, 1000).await?;
        let row = store.run_of_any_tenant(&run).await?;
        let audit_entry = store.audit_entries(0, 1000).await?;
        store.close().await;
        let mut audit_entry = audit_entry
            .into_iter()
            .filter_map(|entry| String::from_utf8(entry.body).ok());
        let audit_entry = audit_entry.find(|body| body.contains(run.as_str()));
        let bodies: Vec<NewEvent> = slice
            .events
            .into_iter()
            .map(|event| NewEvent {
                at: event.at,
                body: event.body,
            })
            .collect();
        let texts: Vec<&str> = bodies.iter().map(|event| &*event.body).collect();
        Ok(Self {
            log: texts.join("\n"),
            bodies,
            row: row.ok_or("the run is not stored")?.row,
            audit_entry: audit_entry.ok_or("the audit log does not tell of the run")?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let events: usize = self.bodies.iter().map(|event| event.body.len()).sum();
        events + self.audit_entry.len()
    }

    /// The same run under another id of the same length.
    fn renamed(&self, number: u64) -> RunRow {
        let length = self.row.run_id.as_str().len().saturating_sub(4);
        RunRow {
            run_id: RunId::new(format!("run-{number:0length$}")),
            ..self.row.clone()
        }
    }
}

/// A file with only tables for events, runs and the audit log, without further indexes.
fn bare(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -16 * 1024)?;
    connection.execute_batch(
        "CREATE TABLE events (place INTEGER PRIMARY KEY, at INTEGER, bodies TEXT);
         CREATE TABLE audit (seq INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE runs (no INTEGER PRIMARY KEY, run_id TEXT UNIQUE, tenant TEXT,
             workflow_id TEXT, definition TEXT, status TEXT, created_at INTEGER,
             ended_at INTEGER);",
    )?;
    Ok(connection)
}

fn insert(connection: &Connection, stored: &Stored, number: u64) -> rusqlite::Result<()> {
    let key = i64::try_from(number).expect("numbers count up from 1");
    let mut events = connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")?;
    events.execute(params![key << 24, stored.row.created_at.0, stored.log])?;
    let mut audit = connection.prepare_cached("INSERT INTO audit VALUES (?1, ?2)")?;
    audit.execute(params![key, stored.audit_entry])?;
    let row = stored.renamed(number);
    let mut run =
        connection.prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    run.execute(params![
        key,
        row.run_id.as_str(),
        row.tenant.as_str(),
        row.workflow_id.as_str(),
        row.definition.as_str(),
        row.status.as_str(),
        row.created_at.0,
        row.ended_at.map(|at| at.0),
    ])?;
    Ok(())
}

pub(crate) async fn grouped(
    stored: &Stored,
    directory: &Path,
    options: &Options,
) -> Result<LoadResult, Failure> {
    let connection = bare(&directory.join("grouped.db"))?;
    let (sender, receiver) = mpsc::channel::<(u64, oneshot::Sender<()>)>(CALLERS * 2);
    let what = stored.clone();
    let writer = std::thread::spawn(move || write_groups(connection, receiver, &what));
    let sender = Arc::new(sender);
    let loaded = closed_loop(options.window, move |number| {
        let sender = Arc::clone(&sender);
        async move {
            let (done, wait) = oneshot::channel();
            sender.send((number, done)).await?;
            Ok(wait.await?)
        }
    })
    .await?;
    writer.join().map_err(|_| "the writer broke")??;
    Ok(loaded)
}

fn write_groups(
    mut connection: Connection,
    mut receiver: mpsc::Receiver<(u64, oneshot::Sender<()>)>,
    stored: &Stored,
) -> rusqlite::Result<()> {
    let mut waiting = Vec::with_capacity(BATCH);
    while receiver.blocking_recv_many(&mut waiting, BATCH) > 0 {
        let transaction = connection.transaction()?;
        for (number, _) in &waiting {
            insert(&transaction, stored, *number)?;
        }
        transaction.commit()?;
        for (_, done) in waiting.drain(..) {
            // A caller that ended with the window does not receive it.
            let _ = done.send(());
        }
    }
    Ok(())
}

pub(crate) async fn through_store(
    stored: &Stored,
    directory: &Path,
    options: &Options,
) -> Result<f64, Failure> {
    let path = directory.join("store.db");
    let store = Arc::new(SqliteStore::open(path, Default::default())?);
    let (held, stored) = (Arc::clone(&store), stored.clone());
    let audit_entry: Entry = serde_json::from_str(&stored.audit_entry)?;
    let loaded = closed_loop(options.window, move |number| {
        let row = stored.renamed(number);
        let audit_entry = AuditDraft::new(
            row.created_at,
            Some(&row.tenant),
            &Actor::host(),
            &audit_entry.action,
            row.run_id.as_str(),
            audit_entry.details.clone(),
        );
        let commit = Commit {
            audit: vec![audit_entry],
            appends: vec![Append {
                stream: StreamId::of_run(&row.run_id),
                after: None,
                events: stored.bodies.clone(),
                run: Some(row),
                snapshot: None,
            }],
            ..Commit::default()
        };
        let store = Arc::clone(&held);
        async move {
            store.commit(commit).await?;
            Ok(())
        }
    })
    .await?;
    store.close().await;
    Ok(loaded.per_second())
}

async fn closed_loop<F>(
    window: Duration,
    commit: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<LoadResult, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send,
{
    let counter = Arc::new(AtomicU64::new(1));
    let began = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (counter, commit) = (Arc::clone(&counter), commit.clone());
            tokio::spawn(async move {
                let mut waits = Vec::new();
                while began.elapsed() < window {
                    let sent_at = Instant::now();
                    commit(counter.fetch_add(1, Ordering::Relaxed)).await?;
                    waits.push(sent_at.elapsed());
                }
                Ok::<_, Failure>(waits)
            })
        })
        .collect();
    let mut all = LoadResult::default();
    for caller in callers {
        all.latencies.extend(caller.await??);
    }
    all.took = began.elapsed();
    Ok(all)
}

/// One caller, one commit, one fsync, repeatedly.
pub(crate) fn single(
    stored: &Stored,
    directory: &Path,
    options: &Options,
) -> Result<Vec<Duration>, Failure> {
    let mut connection = bare(&directory.join("single.db"))?;
    let began = Instant::now();
    let mut waits = Vec::new();
    while began.elapsed() < options.window / 2 {
        let sent_at = Instant::now();
        let transaction = connection.transaction()?;
        insert(&transaction, stored, waits.len() as u64 + 1)?;
        transaction.commit()?;
        waits.push(sent_at.elapsed());
    }
    Ok(waits)
}
