//! What waits for the writer: a queue for each tenant, and one for the host's own work. A batch takes
//! from them in turn, by bytes, so that nobody waits for more than one batch of what others write.
//!
//! Each turn gives a queue [`QUANTUM`] bytes of credit; a job is taken once the credit covers it
//! (deficit round robin). A batch ends at [`BATCH`] jobs or [`BATCH_BYTES`]. With one tenant that is a
//! plain queue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tandem_record::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Jobs in one transaction at most; bounds the wait of the first and the size of the WAL.
pub(crate) const BATCH: usize = 512;

/// Bytes in one transaction, about; a single job may be larger. Small enough that syncing it is a
/// matter of milliseconds, large enough that a sync for each costs little.
const BATCH_BYTES: usize = 1024 * 1024;

/// Bytes a queue may write in its turn before the next one has its turn.
const QUANTUM: usize = 64 * 1024;

/// What a job costs besides its texts: rows, indexes, the answer.
const JOB_BYTES: usize = 1024;

/// Bytes of one tenant's jobs that may wait; beyond it the tenant's callers wait before they queue.
/// Room for 2048 jobs of ordinary size, or for eight of a megabyte.
const ROOM_BYTES: usize = 8 * 1024 * 1024;

/// Queues kept though nothing waits in them, so that a busy tenant's is not made again and again.
const KEPT: usize = 64;

/// Whose job it is, and how much it writes.
#[derive(Default)]
pub(crate) struct Source {
    /// `None` for the host's own work.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) bytes: usize,
}

/// The queue was closed.
#[derive(Debug)]
pub(crate) struct Closed;

pub(crate) struct Queue<J> {
    inner: Mutex<Inner<J>>,
    /// Something waits, or the queue was closed.
    filled: Condvar,
}

struct Inner<J> {
    lines: HashMap<Option<TenantId>, Line<J>>,
    /// Lines in which something waits; the first has its turn.
    turns: VecDeque<Option<TenantId>>,
    /// The writer waits.
    idle: bool,
    closed: bool,
}

struct Line<J> {
    jobs: VecDeque<Waiting<J>>,
    credit: usize,
    room: Arc<Semaphore>,
}

struct Waiting<J> {
    job: J,
    cost: usize,
    _room: OwnedSemaphorePermit,
}

impl<J> Default for Line<J> {
    fn default() -> Self {
        Self {
            jobs: VecDeque::new(),
            credit: 0,
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
        }
    }
}

/// Why a job was not queued at once.
enum Full<J> {
    Closed,
    NoRoom(Arc<Semaphore>, J),
}

fn cost(source: &Source) -> usize {
    source.bytes.saturating_add(JOB_BYTES)
}

/// One that is larger than all the room waits until there is nothing else.
fn room_wanted(source: &Source) -> u32 {
    u32::try_from(cost(source).min(ROOM_BYTES)).unwrap_or(u32::MAX)
}

impl<J> Queue<J> {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                lines: HashMap::new(),
                turns: VecDeque::new(),
                idle: false,
                closed: false,
            }),
            filled: Condvar::new(),
        }
    }

    /// Queues a job, once there is room in its tenant's queue.
    pub(crate) async fn push(&self, source: Source, job: J) -> Result<(), Closed> {
        let (cost, wanted) = (cost(&source), room_wanted(&source));
        let (room, job) = match self.attempt(&source, job) {
            Ok(()) => return Ok(()),
            Err(Full::Closed) => return Err(Closed),
            Err(Full::NoRoom(room, job)) => (room, job),
        };
        let held = room.acquire_many_owned(wanted).await.map_err(|_| Closed)?;
        let mut inner = self.lock();
        if inner.closed {
            return Err(Closed);
        }
        self.add(&mut inner, source.tenant, job, cost, held);
        Ok(())
    }

    /// Queues a job if there is room for it now.
    pub(crate) fn try_push(&self, source: Source, job: J) -> Result<(), Closed> {
        self.attempt(&source, job).map_err(|_| Closed)
    }

    fn attempt(&self, source: &Source, job: J) -> Result<(), Full<J>> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(Full::Closed);
        }
        let room = inner.room(&source.tenant);
        match Arc::clone(&room).try_acquire_many_owned(room_wanted(source)) {
            Ok(held) => {
                self.add(&mut inner, source.tenant.clone(), job, cost(source), held);
                Ok(())
            }
            Err(TryAcquireError::Closed) => Err(Full::Closed),
            Err(TryAcquireError::NoPermits) => Err(Full::NoRoom(room, job)),
        }
    }

    fn add(
        &self,
        inner: &mut Inner<J>,
        tenant: Option<TenantId>,
        job: J,
        cost: usize,
        room: OwnedSemaphorePermit,
    ) {
        let line = inner.lines.entry(tenant.clone()).or_default();
        line.jobs.push_back(Waiting {
            job,
            cost,
            _room: room,
        });
        if line.jobs.len() == 1 {
            inner.turns.push_back(tenant);
        }
        if std::mem::take(&mut inner.idle) {
            self.filled.notify_one();
        }
    }

    /// Waits until something is there and takes a batch of it. `false` when the queue is closed and
    /// nothing is left.
    pub(crate) fn take(&self, batch: &mut Vec<J>) -> bool {
        let mut inner = self.lock();
        while inner.turns.is_empty() {
            if inner.closed {
                return false;
            }
            inner.idle = true;
            inner = self
                .filled
                .wait(inner)
                .expect("no code panics while holding the queue");
        }
        inner.fill(batch);
        true
    }

    /// Nothing more is taken in; what waits is still done.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for line in inner.lines.values() {
            line.room.close();
        }
        drop(inner);
        self.filled.notify_all();
    }

    /// The writer is gone: what waits is dropped, so that its callers hear of it.
    pub(crate) fn abandon(&self) {
        self.close();
        let mut inner = self.lock();
        inner.lines.clear();
        inner.turns.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner
            .lock()
            .expect("no code panics while holding the queue")
    }
}

impl<J> Inner<J> {
    fn room(&mut self, tenant: &Option<TenantId>) -> Arc<Semaphore> {
        if let Some(line) = self.lines.get(tenant) {
            return Arc::clone(&line.room);
        }
        if self.lines.len() >= KEPT {
            // Whoever waits for room holds a clone of it.
            self.lines
                .retain(|_, line| !line.jobs.is_empty() || Arc::strong_count(&line.room) > 1);
        }
        let line = self.lines.entry(tenant.clone()).or_default();
        Arc::clone(&line.room)
    }

    fn fill(&mut self, batch: &mut Vec<J>) {
        let mut bytes = 0;
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(tenant) = self.turns.pop_front() else {
                return;
            };
            let alone = self.turns.is_empty();
            let line = self.lines.get_mut(&tenant).expect("a turn has its line");
            line.credit = line.credit.saturating_add(QUANTUM);
            while let Some(first) = line.jobs.front() {
                let full = batch.len() >= BATCH || bytes >= BATCH_BYTES;
                if full || (!alone && first.cost > line.credit) {
                    break;
                }
                bytes += first.cost;
                line.credit = line.credit.saturating_sub(first.cost);
                let taken = line.jobs.pop_front().expect("it was just seen");
                batch.push(taken.job);
            }
            if line.jobs.is_empty() {
                line.credit = 0;
            } else {
                self.turns.push_back(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests;
