//! Read-only connections. A read takes one, runs on a thread that may block, and returns it. Every
//! statement outside a transaction sees the newest committed state, so every read that starts after
//! a commit returned sees that commit.

use crate::connection;
use crate::fault;
use crate::options::Options;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tandem_store::Fault;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    /// One permit for each connection; waiting callers are served in order.
    permits: Arc<Semaphore>,
    count: u32,
}

impl Readers {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, Fault> {
        let count = options.readers.clamp(1, 64);
        let connections = (0..count)
            .map(|_| connection::read_only(path, options))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            idle: Arc::new(Mutex::new(connections)),
            permits: Arc::new(Semaphore::new(count)),
            count: count as u32,
        })
    }

    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| fault::closed())?;
        let pooled = PooledConnection::take(&self.idle, permit);
        match tokio::task::spawn_blocking(move || work(pooled.connection())).await {
            Ok(result) => result.map_err(fault::from_sql),
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            // The runtime is shutting down and starts no new work.
            Err(_) => Err(fault::closed()),
        }
    }

    /// Waits for running reads, then closes every connection.
    pub(crate) async fn close(&self) {
        // An error means that it is already closed.
        if let Ok(permits) = self.permits.acquire_many(self.count).await {
            self.permits.close();
            permits.forget();
            lock(&self.idle).clear();
        }
    }
}

/// A borrowed connection, returned even if the work panics or its caller is gone.
struct PooledConnection {
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Dropped after the connection is returned.
    _permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    fn take(idle: &Arc<Mutex<Vec<Connection>>>, permit: OwnedSemaphorePermit) -> Self {
        Self {
            connection: Some(lock(idle).pop().expect("a permit means an idle connection")),
            idle: Arc::clone(idle),
            _permit: permit,
        }
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("returned only on drop")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        lock(&self.idle).extend(self.connection.take());
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().expect("no code panics while holding the pool")
}
