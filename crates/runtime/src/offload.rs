//! Runs long computations outside the threads that serve all requests.

use crate::runtime::Runtime;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use tandem_store::Fault;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Longest wait for offloaded work, including the queue. The work itself is bounded; this covers a
/// machine that is too busy to do it.
const DEADLINE: Duration = Duration::from_secs(30);

/// Limits offloaded work to half of the machine's threads. The other half serves requests.
pub(crate) struct Offload {
    permits: Arc<Semaphore>,
}

/// Permission to do offloaded work while it is held.
pub(crate) struct OffloadPermit(Option<OwnedSemaphorePermit>);

impl Default for Offload {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            permits: Arc::new(Semaphore::new((threads / 2).max(1))),
        }
    }
}

impl Offload {
    /// Waits for a permit. On a single-threaded runtime there are no other threads to protect: the
    /// work is done inline, and a simulation stays deterministic.
    pub(crate) async fn acquire(&self) -> OffloadPermit {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return OffloadPermit(None);
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        OffloadPermit(Some(permit.expect("the semaphore is never closed")))
    }
}

impl OffloadPermit {
    pub(crate) async fn run<T, W>(self, work: W) -> T
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let Some(permit) = self.0 else {
            return work();
        };
        // Dropping this future does not stop the work: the permit moves with the work.
        let done = spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

impl Runtime {
    /// Limits the wait for offloaded work: by a deadline, and by the shutdown of this process.
    pub(crate) async fn with_deadline<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.stopped() => {
                Err(Fault::retryable("stopping", "the host stops; ask again"))
            }
            () = tokio::time::sleep(DEADLINE) => {
                let seconds = DEADLINE.as_secs();
                let message = format!("checking schemas took longer than {seconds} s");
                Err(Fault::retryable("schema_deadline", message))
            }
        }
    }
}
