//! Supervisors and workers: what a handoff costs in commits, whether a long loop stays linear, and
//! the memory used by many waiting run trees.

use crate::client::{Connection, Failure, create, get, text_field};
use crate::load::{SingleRequest, Until, drive};
use crate::options::Options;
use crate::server::Server;
use crate::workflows::{LONG_ITERATIONS, SHORT_ITERATIONS};
use std::time::{Duration, Instant};

/// Number of runs over which commits are counted.
const COUNTED: usize = 200;
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Agents {
    /// Commits of a supervised worker in addition to those of the worker alone.
    pub(crate) handoff_commits: f64,
    pub(crate) short: Loop,
    pub(crate) long: Loop,
    pub(crate) pairs: usize,
    pub(crate) pairs_mb: f64,
}

/// A supervisor's loop.
pub(crate) struct Loop {
    pub(crate) iterations: u64,
    pub(crate) took: Duration,
    pub(crate) events: u64,
}

impl Loop {
    pub(crate) fn ms_per_iteration(&self) -> f64 {
        self.took.as_secs_f64() * 1e3 / self.iterations as f64
    }

    pub(crate) fn events_per_iteration(&self) -> f64 {
        self.events as f64 / self.iterations as f64
    }
}

pub(crate) async fn measure(server: &Server, options: &Options) -> Result<Agents, Failure> {
    let alone = commits_per_run(server, "bench-noop").await?;
    let supervised = commits_per_run(server, "conformance-bench-pair").await?;
    let short = supervise(server, "conformance-bench-short", SHORT_ITERATIONS).await?;
    let long = supervise(server, "conformance-bench-long", LONG_ITERATIONS).await?;
    let pairs = options.waiting / 10;
    let until = Until::Count(pairs);
    drive(
        server.address,
        16,
        until,
        SingleRequest::create("conformance-bench-wait"),
    )
    .await?;
    settled(server, 2 * pairs).await?;
    Ok(Agents {
        handoff_commits: supervised - alone,
        short,
        long,
        pairs,
        pairs_mb: server.resident_mb()?,
    })
}

async fn commits_per_run(server: &Server, workflow: &str) -> Result<f64, Failure> {
    let before = counter(server, "tandem_commit_seconds_count").await?;
    let made = drive(
        server.address,
        1,
        Until::Count(COUNTED),
        SingleRequest::create(workflow),
    )
    .await?;
    for run in &made.runs {
        completed(server, run).await?;
    }
    let after = counter(server, "tandem_commit_seconds_count").await?;
    Ok((after - before) / COUNTED as f64)
}

async fn supervise(server: &Server, workflow: &str, iterations: u64) -> Result<Loop, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let began = Instant::now();
    let reply = connection.exchange(&create(workflow)).await?;
    let run = text_field(reply.body, "runId").ok_or("no run was created")?;
    completed(server, &run).await?;
    let took = began.elapsed();
    let reply = connection
        .exchange(&get(&format!("/v1/runs/{run}")))
        .await?;
    let snapshot: serde_json::Value = serde_json::from_slice(reply.body)?;
    let last = snapshot["lastSequence"].as_u64().ok_or("no lastSequence")?;
    Ok(Loop {
        iterations,
        took,
        events: last + 1,
    })
}

async fn completed(server: &Server, run: &str) -> Result<(), Failure> {
    let mut connection = Connection::open(server.address).await?;
    let request_bytes = get(&format!("/v1/runs/{run}"));
    let began = Instant::now();
    loop {
        let reply = connection.exchange(&request_bytes).await?;
        // Its children have a status too: only the parsed document distinguishes them.
        let snapshot: serde_json::Value = serde_json::from_slice(reply.body)?;
        match snapshot["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed" | "cancelled") => return Err(format!("run {run} failed").into()),
            _ if began.elapsed() > TIMEOUT => return Err(format!("run {run} hangs").into()),
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Waits until this many runs were created since the server started and are still running.
async fn settled(server: &Server, live: usize) -> Result<(), Failure> {
    let began = Instant::now();
    while counter(server, "openwop_run_active").await? < live as f64 {
        if began.elapsed() > TIMEOUT {
            return Err("not all child runs exist".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

pub(crate) async fn counter(server: &Server, name: &str) -> Result<f64, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let reply = connection.exchange(&get("/metrics")).await?;
    let text = std::str::from_utf8(reply.body)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.split_whitespace().next_back());
    Ok(value.ok_or_else(|| format!("no metric {name}"))?.parse()?)
}
