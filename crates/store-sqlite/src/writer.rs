//! The only writer. Callers queue jobs. The thread takes waiting jobs, a fair share of every
//! tenant, runs them in one transaction, commits once and only then replies. There is no timer:
//! while one batch is synced, the next one collects.
//!
//! A refused job (a conflict) has written nothing and does not affect the others. A job that fails
//! in SQL rolls the batch back; then each job runs again in its own transaction, so that only the
//! failing job gets the error. So a job runs at most twice and replies once.

use crate::audit::Chain;
use crate::checkpoint::Checkpointer;
use crate::events;
use crate::fault;
use crate::lock::Lock;
use crate::marker::{self, Marker, MarkerUpdater};
use crate::queue::{BATCH, Queue, Source};
use crate::statement_cache::StatementCache;
use rusqlite::Connection;
use std::sync::Arc;
use std::thread::JoinHandle;
use tandem_store::{Conflict, Error, Fault};
use tokio::sync::{oneshot, watch};

/// State of the writer between transactions.
struct WriterState {
    connection: Connection,
    /// For the next new stream. A number lost by a rollback does no harm.
    next_stream_no: i64,
    /// End of the audit chain, including entries of the current transaction.
    chain: Chain,
}

/// What jobs work on: the current transaction.
pub(crate) struct WriteTransaction<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) statements: StatementCache<'a>,
    pub(crate) chain: &'a mut Chain,
    next_stream_no: &'a mut i64,
}

impl WriteTransaction<'_> {
    pub(crate) fn number_stream(&mut self) -> i64 {
        let number = *self.next_stream_no;
        *self.next_stream_no += 1;
        number
    }
}

/// Why a job failed.
pub(crate) enum JobError {
    /// Refused before anything was written.
    Refused(Error),
    /// An error of the database, perhaps after some writes.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for JobError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Conflict> for JobError {
    fn from(conflict: Conflict) -> Self {
        Self::Refused(conflict.into())
    }
}

impl From<Fault> for JobError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault.into())
    }
}

/// Work and where its reply goes, with types erased.
trait Job: Send {
    /// Does the work and stores the outcome. `Err` requests a rollback.
    fn attempt(&mut self, tx: &mut WriteTransaction<'_>) -> rusqlite::Result<()>;
    /// Replies to the caller: the stored outcome, or why it is not durable.
    fn answer(self: Box<Self>, durable: Result<(), Fault>);
}

struct Task<T, F> {
    work: F,
    outcome: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnMut(&mut WriteTransaction<'_>) -> Result<T, JobError> + Send,
{
    fn attempt(&mut self, tx: &mut WriteTransaction<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(match (self.work)(tx) {
            Ok(value) => Ok(value),
            Err(JobError::Refused(error)) => Err(error),
            Err(JobError::Failed(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, durable: Result<(), Fault>) {
        let answer = match durable {
            Ok(()) => self.outcome.expect("a durable job was attempted"),
            Err(fault) => Err(fault.into()),
        };
        // The caller may be gone.
        let _ = self.reply.send(answer);
    }
}

pub(crate) struct Writer {
    queue: Arc<Queue<Box<dyn Job>>>,
    /// The sender is dropped when the thread has closed the file.
    ended: watch::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        mut connection: Connection,
        mut checkpointer: Checkpointer,
        marker: Marker,
        lock: Lock,
    ) -> rusqlite::Result<Self> {
        checkpointer.watch(&mut connection)?;
        let mut state = WriterState {
            next_stream_no: events::last_stream_no(&connection)? + 1,
            chain: Chain::default(),
            connection,
        };
        let queue = Arc::new(Queue::new());
        let waiting = AbandonOnDrop(Arc::clone(&queue));
        let (alive, ended) = watch::channel(());
        let marker_updater = MarkerUpdater::start(marker, HeartbeatQueue(Arc::clone(&queue)));
        let work = move || {
            let mut batch = Vec::with_capacity(BATCH);
            while waiting.0.take(&mut batch) {
                marker_updater.before_batch(batch.len());
                match checkpointer.before_commit() {
                    Ok(()) => run_batch(&mut state, &mut batch),
                    Err(fault) => refuse(&mut batch, &fault),
                }
                checkpointer.after_commit(&state.connection);
                marker_updater.after_batch();
            }
            marker_updater.finish(&state.connection);
            checkpointer.finish(state.connection);
            drop(lock);
            drop(alive);
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(work)
            .expect("the system can start a thread");
        Ok(Self {
            queue,
            ended,
            thread: Some(thread),
        })
    }

    /// Runs the work in the next batch; replies when that is durable. `work` may run twice.
    pub(crate) async fn write<T, F>(&self, from: Source, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteTransaction<'_>) -> Result<T, JobError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            work,
            outcome: None,
            reply,
        };
        let queued = self.queue.push(from, Box::new(task)).await;
        queued.map_err(|_| fault::closed())?;
        answer.await.map_err(|_| fault::closed())?
    }

    /// The same for the host's own small work, which cannot conflict.
    pub(crate) async fn write_internal<T, F>(&self, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteTransaction<'_>) -> Result<T, JobError> + Send + 'static,
    {
        self.write(Source::default(), work)
            .await
            .map_err(|error| match error {
                Error::Fault(fault) => fault,
                Error::Conflict(conflict) => unreachable!("only commits conflict: {conflict}"),
            })
    }

    /// Waits until the queue is empty and the file is closed.
    pub(crate) async fn close(&self) {
        self.queue.close();
        // Nothing is ever sent; the channel is only closed.
        let _ = self.ended.clone().changed().await;
    }
}

impl Drop for Writer {
    /// Waits, so that the next process finds the file unlocked and complete.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests a heartbeat from the writer.
pub(crate) struct HeartbeatQueue(Arc<Queue<Box<dyn Job>>>);

impl HeartbeatQueue {
    /// Increments the counter in the next batch; returns its value once that is durable.
    pub(crate) fn bump_heartbeat(&self) -> Option<i64> {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            work: |tx: &mut WriteTransaction<'_>| Ok(marker::bump_heartbeat(tx.connection)?),
            outcome: None,
            reply,
        };
        self.0.try_push(Source::default(), Box::new(task)).ok()?;
        answer.blocking_recv().ok()?.ok()
    }
}

/// When the thread ends for any reason, no caller keeps waiting.
struct AbandonOnDrop(Arc<Queue<Box<dyn Job>>>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Makes the batch durable and replies to every job in it.
fn run_batch(state: &mut WriterState, batch: &mut Vec<Box<dyn Job>>) {
    match attempt(state, batch) {
        Ok(()) => {
            for job in batch.drain(..) {
                job.answer(Ok(()));
            }
        }
        // Another program has the file locked: running each job would wait each time.
        Err(BatchError::Begin(error)) => {
            refuse(batch, &fault::from_sql(error));
        }
        Err(BatchError::Work(_)) => {
            for mut job in batch.drain(..) {
                let result = attempt(state, std::slice::from_mut(&mut job));
                job.answer(result.map_err(|error| match error {
                    BatchError::Begin(error) | BatchError::Work(error) => fault::from_sql(error),
                }));
            }
        }
    }
}

fn refuse(batch: &mut Vec<Box<dyn Job>>, fault: &Fault) {
    for job in batch.drain(..) {
        job.answer(Err(fault.clone()));
    }
}

enum BatchError {
    Begin(rusqlite::Error),
    Work(rusqlite::Error),
}

/// All jobs in one transaction, or none of them.
fn attempt(state: &mut WriterState, jobs: &mut [Box<dyn Job>]) -> Result<(), BatchError> {
    let connection = &state.connection;
    run(connection, "BEGIN IMMEDIATE").map_err(BatchError::Begin)?;
    let mut tx = WriteTransaction {
        connection,
        statements: StatementCache::new(connection),
        chain: &mut state.chain,
        next_stream_no: &mut state.next_stream_no,
    };
    let done = jobs
        .iter_mut()
        .try_for_each(|job| job.attempt(&mut tx))
        .and_then(|()| tx.chain.save_head(connection))
        .and_then(|()| run(connection, "COMMIT"));
    if done.is_err() {
        *tx.chain = Chain::default();
        // Some errors, such as a full disk, have already ended the transaction.
        if !connection.is_autocommit() {
            let _ = run(connection, "ROLLBACK");
        }
    }
    done.map_err(BatchError::Work)
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(()).map(drop)
}
