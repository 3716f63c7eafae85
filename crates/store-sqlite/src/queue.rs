//! Jobs that wait for the writer: one queue for each tenant, and one for the host's own work. A
//! batch takes from them in turn, by bytes, so that no job waits for more than one batch of other
//! tenants' writes.
//!
//! Each turn gives a queue [`QUANTUM`] bytes of credit; a job is taken once the credit covers it
//! (deficit round robin). A batch ends at [`BATCH`] jobs or [`BATCH_BYTES`]. A job that is larger than all
//! of a batch does not join the jobs of other tenants in it: their callers would wait for its bytes.
//! With one tenant this is a plain queue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tandem_record::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Limit of jobs in one transaction; bounds the wait of the first job and the size of the WAL.
pub(crate) const BATCH: usize = 512;

/// Limit of bytes in one transaction; a single job may be larger. Small enough that a
/// sync takes milliseconds, large enough that syncs cost little.
const BATCH_BYTES: usize = 1024 * 1024;

/// Bytes a queue may write in its turn.
const QUANTUM: usize = 64 * 1024;

/// Cost of a job besides its texts: rows, indexes, the response.
const JOB_BYTES: usize = 1024;

/// Limit of the bytes that wait in one tenant's queue; above it the tenant's callers wait before
/// they queue. Enough for 2048 jobs of ordinary size, or for eight of a megabyte.
const QUEUE_CAPACITY_BYTES: usize = 8 * 1024 * 1024;

/// Limit of empty queues that are kept, so that a busy tenant's queue is not created repeatedly.
const MAX_IDLE_QUEUES: usize = 64;

/// The tenant of a job, and how much it writes.
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
    /// Signals that a job is waiting, or that the queue was closed.
    filled: Condvar,
}

struct Inner<J> {
    queues: HashMap<Option<TenantId>, TenantQueue<J>>,
    /// Queues with waiting jobs, in turn order.
    ready: VecDeque<Option<TenantId>>,
    /// The writer is waiting.
    idle: bool,
    closed: bool,
}

struct TenantQueue<J> {
    jobs: VecDeque<QueuedJob<J>>,
    credit: usize,
    capacity: Arc<Semaphore>,
}

struct QueuedJob<J> {
    job: J,
    cost: usize,
    _permit: OwnedSemaphorePermit,
}

impl<J> Default for TenantQueue<J> {
    fn default() -> Self {
        Self {
            jobs: VecDeque::new(),
            credit: 0,
            capacity: Arc::new(Semaphore::new(QUEUE_CAPACITY_BYTES)),
        }
    }
}

/// Why a job was not queued at once.
enum PushError<J> {
    Closed,
    NoCapacity(Arc<Semaphore>, J),
}

fn cost(source: &Source) -> usize {
    source.bytes.saturating_add(JOB_BYTES)
}

/// A job larger than the whole capacity waits until its queue is empty.
fn permits_needed(source: &Source) -> u32 {
    u32::try_from(cost(source).min(QUEUE_CAPACITY_BYTES)).unwrap_or(u32::MAX)
}

impl<J> Queue<J> {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                queues: HashMap::new(),
                ready: VecDeque::new(),
                idle: false,
                closed: false,
            }),
            filled: Condvar::new(),
        }
    }

    /// Queues a job, once its tenant's queue has capacity.
    pub(crate) async fn push(&self, source: Source, job: J) -> Result<(), Closed> {
        let (cost, permits) = (cost(&source), permits_needed(&source));
        let (capacity, job) = match self.attempt(&source, job) {
            Ok(()) => return Ok(()),
            Err(PushError::Closed) => return Err(Closed),
            Err(PushError::NoCapacity(capacity, job)) => (capacity, job),
        };
        let held = capacity
            .acquire_many_owned(permits)
            .await
            .map_err(|_| Closed)?;
        let mut inner = self.lock();
        if inner.closed {
            return Err(Closed);
        }
        self.add(&mut inner, source.tenant, job, cost, held);
        Ok(())
    }

    /// Queues a job if there is capacity now.
    pub(crate) fn try_push(&self, source: Source, job: J) -> Result<(), Closed> {
        self.attempt(&source, job).map_err(|_| Closed)
    }

    fn attempt(&self, source: &Source, job: J) -> Result<(), PushError<J>> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(PushError::Closed);
        }
        let capacity = inner.capacity(&source.tenant);
        match Arc::clone(&capacity).try_acquire_many_owned(permits_needed(source)) {
            Ok(held) => {
                self.add(&mut inner, source.tenant.clone(), job, cost(source), held);
                Ok(())
            }
            Err(TryAcquireError::Closed) => Err(PushError::Closed),
            Err(TryAcquireError::NoPermits) => Err(PushError::NoCapacity(capacity, job)),
        }
    }

    fn add(
        &self,
        inner: &mut Inner<J>,
        tenant: Option<TenantId>,
        job: J,
        cost: usize,
        capacity: OwnedSemaphorePermit,
    ) {
        let queue = inner.queues.entry(tenant.clone()).or_default();
        queue.jobs.push_back(QueuedJob {
            job,
            cost,
            _permit: capacity,
        });
        if queue.jobs.len() == 1 {
            inner.ready.push_back(tenant);
        }
        if std::mem::take(&mut inner.idle) {
            self.filled.notify_one();
        }
    }

    /// Waits for jobs and takes a batch. `false` when the queue is closed and empty.
    pub(crate) fn take(&self, batch: &mut Vec<J>) -> bool {
        let mut inner = self.lock();
        while inner.ready.is_empty() {
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

    /// Rejects new jobs; waiting ones are still run.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for queue in inner.queues.values() {
            queue.capacity.close();
        }
        drop(inner);
        self.filled.notify_all();
    }

    /// The writer ended: waiting jobs are dropped, so that their callers get an error.
    pub(crate) fn abandon(&self) {
        self.close();
        let mut inner = self.lock();
        inner.queues.clear();
        inner.ready.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner
            .lock()
            .expect("no code panics while holding the queue")
    }
}

impl<J> Inner<J> {
    fn capacity(&mut self, tenant: &Option<TenantId>) -> Arc<Semaphore> {
        if let Some(queue) = self.queues.get(tenant) {
            return Arc::clone(&queue.capacity);
        }
        if self.queues.len() >= MAX_IDLE_QUEUES {
            // A caller that waits for capacity holds a clone of it.
            self.queues.retain(|_, queue| {
                !queue.jobs.is_empty() || Arc::strong_count(&queue.capacity) > 1
            });
        }
        let queue = self.queues.entry(tenant.clone()).or_default();
        Arc::clone(&queue.capacity)
    }

    fn fill(&mut self, batch: &mut Vec<J>) {
        let mut bytes = 0;
        // Of the first job; `None` while there is none.
        let mut first_tenant: Option<Option<TenantId>> = None;
        let mut is_shared = false;
        // Turns in a row in which a job was too large to join.
        let mut excluded = 0;
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(tenant) = self.ready.pop_front() else {
                return;
            };
            let alone = self.ready.is_empty();
            let queue = self
                .queues
                .get_mut(&tenant)
                .expect("every turn has a queue");
            queue.credit = queue.credit.saturating_add(QUANTUM);
            let of_others = is_shared || first_tenant.as_ref().is_some_and(|of| *of != tenant);
            excluded += 1;
            while let Some(first) = queue.jobs.front() {
                if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                    break;
                }
                // The callers of the others would wait for it.
                if of_others && first.cost > bytes.max(QUANTUM) {
                    break;
                }
                excluded = 0;
                if (!alone || of_others) && first.cost > queue.credit {
                    break;
                }
                if !batch.is_empty() && bytes + first.cost > BATCH_BYTES {
                    // It begins the next batch.
                    self.ready.push_front(tenant);
                    return;
                }
                bytes += first.cost;
                is_shared |= of_others;
                first_tenant.get_or_insert_with(|| tenant.clone());
                queue.credit = queue.credit.saturating_sub(first.cost);
                let taken = queue.jobs.pop_front().expect("the queue is not empty");
                batch.push(taken.job);
            }
            if queue.jobs.is_empty() {
                queue.credit = 0;
            } else {
                self.ready.push_back(tenant);
                if excluded >= self.ready.len() && excluded > 0 {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
