//! The one writer. Callers queue jobs; the thread takes what is waiting, of every tenant its share, runs
//! it in one transaction, commits once and only then answers. There is no timer: while one batch is being
//! synced the next one gathers by itself.
//!
//! A job that refuses (a conflict) has written nothing and does not disturb the others. A job that
//! fails in SQL takes the batch back; then each job runs again in a transaction of its own, so that
//! the failure is answered to the one that has it. Jobs are therefore run at most twice and answer
//! once.

use crate::audit::Chain;
use crate::checkpoint::Checkpointer;
use crate::events;
use crate::fault;
use crate::lock::Lock;
use crate::marker::{self, Marker, MarkerKeeper};
use crate::often::Often;
use crate::queue::{BATCH, Queue, Source};
use rusqlite::Connection;
use std::sync::Arc;
use std::thread::JoinHandle;
use tandem_store::{Conflict, Error, Fault};
use tokio::sync::{oneshot, watch};

/// What the writer knows from one transaction to the next.
struct Book {
    connection: Connection,
    /// For the next new stream. A number lost to a rollback is not missed.
    next_stream_no: i64,
    /// Where the audit chain ends, entries of the transaction under way included.
    chain: Chain,
}

/// What jobs work on: the transaction under way.
pub(crate) struct Ledger<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) often: Often<'a>,
    pub(crate) chain: &'a mut Chain,
    next_stream_no: &'a mut i64,
}

impl Ledger<'_> {
    pub(crate) fn number_stream(&mut self) -> i64 {
        let number = *self.next_stream_no;
        *self.next_stream_no += 1;
        number
    }
}

/// Why a job did not do what it was asked.
pub(crate) enum Stop {
    /// It saw that it must not, before writing anything.
    Refused(Error),
    /// The database did not let it, perhaps half-way.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Refused(conflict.into())
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault.into())
    }
}

/// Work with its answer's address, the types erased.
trait Job: Send {
    /// Does the work and keeps the outcome. `Err` asks for a rollback.
    fn attempt(&mut self, ledger: &mut Ledger<'_>) -> rusqlite::Result<()>;
    /// Tells the caller: the kept outcome, or why it could not be made durable.
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
    F: FnMut(&mut Ledger<'_>) -> Result<T, Stop> + Send,
{
    fn attempt(&mut self, ledger: &mut Ledger<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(match (self.work)(ledger) {
            Ok(value) => Ok(value),
            Err(Stop::Refused(error)) => Err(error),
            Err(Stop::Failed(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, durable: Result<(), Fault>) {
        let answer = match durable {
            Ok(()) => self.outcome.expect("a durable job was attempted"),
            Err(fault) => Err(fault.into()),
        };
        // A caller that went away does not need the answer.
        let _ = self.reply.send(answer);
    }
}

pub(crate) struct Writer {
    queue: Arc<Queue<Box<dyn Job>>>,
    /// Its other end is dropped when the thread has let go of the file.
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
        let mut book = Book {
            next_stream_no: events::last_stream_no(&connection)? + 1,
            chain: Chain::default(),
            connection,
        };
        let queue = Arc::new(Queue::new());
        let waiting = Abandoning(Arc::clone(&queue));
        let (alive, ended) = watch::channel(());
        let keeper = MarkerKeeper::start(marker, TickQueue(Arc::clone(&queue)));
        let work = move || {
            let mut batch = Vec::with_capacity(BATCH);
            while waiting.0.take(&mut batch) {
                keeper.before_batch(batch.len());
                settle(&mut book, &mut batch);
                checkpointer.after_commit(&book.connection);
                keeper.after_batch();
            }
            keeper.finish(&book.connection);
            checkpointer.finish(book.connection);
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

    /// Runs the work in the next batch; answers when that is durable. `work` may run twice.
    pub(crate) async fn write<T, F>(&self, from: Source, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut Ledger<'_>) -> Result<T, Stop> + Send + 'static,
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
    pub(crate) async fn amend<T, F>(&self, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnMut(&mut Ledger<'_>) -> Result<T, Stop> + Send + 'static,
    {
        self.write(Source::default(), work)
            .await
            .map_err(|error| match error {
                Error::Fault(fault) => fault,
                Error::Conflict(conflict) => unreachable!("only commits conflict: {conflict}"),
            })
    }

    /// Lets the queue run dry and waits until the file is let go.
    pub(crate) async fn close(&self) {
        self.queue.close();
        // Nothing is ever sent: the channel only ends.
        let _ = self.ended.clone().changed().await;
    }
}

impl Drop for Writer {
    /// Waits, so that whoever opens the file next finds it free and everything in it.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks the writer for a beat.
pub(crate) struct TickQueue(Arc<Queue<Box<dyn Job>>>);

impl TickQueue {
    /// Moves the counter in the next batch; its value once that is durable.
    pub(crate) fn beat(&self) -> Option<i64> {
        let (reply, answer) = oneshot::channel();
        let task = Task {
            work: |ledger: &mut Ledger<'_>| Ok(marker::beat(ledger.connection)?),
            outcome: None,
            reply,
        };
        self.0.try_push(Source::default(), Box::new(task)).ok()?;
        answer.blocking_recv().ok()?.ok()
    }
}

/// However the thread ends, nobody waits for it.
struct Abandoning(Arc<Queue<Box<dyn Job>>>);

impl Drop for Abandoning {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Makes the batch durable and answers every job in it.
fn settle(book: &mut Book, batch: &mut Vec<Box<dyn Job>>) {
    match attempt(book, batch) {
        Ok(()) => {
            for job in batch.drain(..) {
                job.answer(Ok(()));
            }
        }
        // Somebody else has the file: running each job would wait for each.
        Err(Trouble::Begin(error)) => {
            let fault = fault::from_sql(error);
            for job in batch.drain(..) {
                job.answer(Err(fault.clone()));
            }
        }
        Err(Trouble::Work(_)) => {
            for mut job in batch.drain(..) {
                let result = attempt(book, std::slice::from_mut(&mut job));
                job.answer(result.map_err(|trouble| match trouble {
                    Trouble::Begin(error) | Trouble::Work(error) => fault::from_sql(error),
                }));
            }
        }
    }
}

enum Trouble {
    Begin(rusqlite::Error),
    Work(rusqlite::Error),
}

/// All jobs in one transaction, or none of them.
fn attempt(book: &mut Book, jobs: &mut [Box<dyn Job>]) -> Result<(), Trouble> {
    let connection = &book.connection;
    run(connection, "BEGIN IMMEDIATE").map_err(Trouble::Begin)?;
    let mut ledger = Ledger {
        connection,
        often: Often::new(connection),
        chain: &mut book.chain,
        next_stream_no: &mut book.next_stream_no,
    };
    let done = jobs
        .iter_mut()
        .try_for_each(|job| job.attempt(&mut ledger))
        .and_then(|()| ledger.chain.keep_end(connection))
        .and_then(|()| run(connection, "COMMIT"));
    if done.is_err() {
        *ledger.chain = Chain::default();
        // Some errors, a full disk among them, have ended the transaction already.
        if !connection.is_autocommit() {
            let _ = run(connection, "ROLLBACK");
        }
    }
    done.map_err(Trouble::Work)
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(()).map(drop)
}
