//! A closed loop: each of `in_flight` callers has one operation in flight at any time.

use crate::client::{Connection, Failure, create, text_field};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Count(usize),
}

/// What a caller does again and again.
pub(crate) trait Operation: Send + Sync + 'static {
    /// Returns the id of the run it made, if any. An unexpected response is an error.
    fn perform(
        &self,
        connection: &mut Connection,
    ) -> impl Future<Output = Result<Option<String>, Failure>> + Send;
}

/// One request, sent as it is.
pub(crate) struct SingleRequest {
    bytes: Vec<u8>,
    expected_status: u16,
}

impl SingleRequest {
    pub(crate) fn new(bytes: Vec<u8>, expected_status: u16) -> Self {
        Self {
            bytes,
            expected_status,
        }
    }

    pub(crate) fn create(workflow: &str) -> Self {
        Self::new(create(workflow), 201)
    }
}

impl Operation for SingleRequest {
    async fn perform(&self, connection: &mut Connection) -> Result<Option<String>, Failure> {
        let reply = connection.exchange(&self.bytes).await?;
        reply.expect(self.expected_status)?;
        Ok(text_field(reply.body, "runId"))
    }
}

#[derive(Default)]
pub(crate) struct LoadResult {
    pub(crate) took: Duration,
    pub(crate) latencies: Vec<Duration>,
    /// The runs that were made, unordered.
    pub(crate) runs: Vec<String>,
}

impl LoadResult {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }
}

pub(crate) async fn drive(
    address: SocketAddr,
    in_flight: usize,
    until: Until,
    operation: impl Operation,
) -> Result<LoadResult, Failure> {
    let operation = Arc::new(operation);
    let started = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..in_flight {
        connections.push(Connection::open(address).await?);
    }
    let began = Instant::now();
    let callers: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let (operation, started) = (Arc::clone(&operation), Arc::clone(&started));
            tokio::spawn(async move {
                let mut mine = LoadResult::default();
                while should_continue(until, began, &started) {
                    let sent_at = Instant::now();
                    let run = operation.perform(&mut connection).await?;
                    mine.latencies.push(sent_at.elapsed());
                    mine.runs.extend(run);
                }
                Ok::<_, Failure>(mine)
            })
        })
        .collect();
    let mut all = LoadResult::default();
    for caller in callers {
        let mine = caller.await??;
        all.latencies.extend(mine.latencies);
        all.runs.extend(mine.runs);
    }
    all.took = began.elapsed();
    Ok(all)
}

fn should_continue(until: Until, began: Instant, started: &AtomicUsize) -> bool {
    match until {
        Until::Elapsed(window) => began.elapsed() < window,
        Until::Count(count) => started.fetch_add(1, Ordering::Relaxed) < count,
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Latency {
    pub(crate) fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let at = |part: f64| {
            let index = (waits.len().saturating_sub(1) as f64 * part) as usize;
            waits
                .get(index)
                .map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
        };
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
        }
    }
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}, {:.2} ms", self.p50_ms, self.p99_ms)
    }
}

/// The median; a window disturbed by other load on the machine does not count.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
