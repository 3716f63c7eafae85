//! A closed loop: each of `in_flight` callers has one request in flight at any time.

use crate::client::{Connection, Failure, text_field};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Count(usize),
}

#[derive(Default)]
pub(crate) struct LoadResult {
    pub(crate) took: Duration,
    pub(crate) latencies: Vec<Duration>,
    /// `runId` of the responses, unordered.
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
    request: Vec<u8>,
) -> Result<LoadResult, Failure> {
    let request: Arc<[u8]> = request.into();
    let started = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..in_flight {
        connections.push(Connection::open(address).await?);
    }
    let began = Instant::now();
    let callers: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let (request, started) = (Arc::clone(&request), Arc::clone(&started));
            tokio::spawn(async move {
                let mut mine = LoadResult::default();
                while should_continue(until, began, &started) {
                    let sent_at = Instant::now();
                    let reply = connection.exchange(&request).await?;
                    mine.latencies.push(sent_at.elapsed());
                    if reply.status != 201 {
                        let body = String::from_utf8_lossy(reply.body);
                        return Err(format!("create answered {}: {body:.300}", reply.status).into());
                    }
                    mine.runs.extend(text_field(reply.body, "runId"));
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
