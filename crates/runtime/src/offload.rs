//! Work that may take long and waits for nothing: run outside the threads that serve everybody.

use crate::runtime::Runtime;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use tandem_store::Fault;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// How long somebody waits for such work, its turn included. The work itself is bounded; this is for
/// a machine that is too busy to do it.
const DEADLINE: Duration = Duration::from_secs(30);

/// A share of the machine. Half of its threads at most, so that the other half serves.
pub(crate) struct Offload {
    permits: Arc<Semaphore>,
}

/// The right to work, while it is held.
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
    /// Waits for a turn. On a runtime of one thread there is nobody to protect: the work is done
    /// where it is asked for, and a simulation stays deterministic.
    pub(crate) async fn acquire(&self) -> OffloadPermit {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return OffloadPermit(None);
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        OffloadPermit(Some(permit.expect("it is never closed")))
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
        // Whoever stops waiting does not stop the work: the permit stays with it.
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
    /// Bounds the wait for offloaded work: by a deadline, and by the end of this process.
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
