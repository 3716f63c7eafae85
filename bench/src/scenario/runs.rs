//! Runs from creation to completion. Callers wait for the creation; the measurement ends only when
//! all runs are complete, and a sample is read back to check that.

use crate::ceiling::Commits;
use crate::ceiling::commits::Stored;
use crate::client::{Connection, Failure, create, get, text_field};
use crate::load::{Latency, LoadResult, SingleRequest, Until, drive, median};
use crate::options::Options;
use crate::server::Server;
use std::time::{Duration, Instant};

const SAMPLE: usize = 200;

pub(crate) struct Runs {
    pub(crate) per_second: f64,
    /// Relative to minimal commits measured right after, per window.
    pub(crate) of_commits: f64,
    pub(crate) latency: Latency,
    /// The p99 of a window, in units of a single caller's commit (p50) right after it.
    pub(crate) p99_in_commits: f64,
    /// The p99 of a window relative to that of as many callers of the bare commit loop right after it.
    pub(crate) p99_of_grouped: f64,
    pub(crate) exchange: Exchange,
}

/// A request and its response, for the server that only replies.
pub(crate) struct Exchange {
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Vec<u8>,
}

pub(crate) async fn measure(
    server: &Server,
    workflow: &str,
    in_flight: usize,
    mut beside: Option<(&mut Commits, &Stored)>,
    options: &Options,
) -> Result<Runs, Failure> {
    let warm = Until::Elapsed(options.window / 4);
    let operation = || SingleRequest::create(workflow);
    drive(server.address, in_flight, warm, operation()).await?;

    let mut rates = Vec::new();
    let mut latencies = Vec::new();
    let mut slowest = Vec::new();
    let mut last = LoadResult::default();
    for _ in 0..options.windows {
        let began = Instant::now();
        let window = Until::Elapsed(options.window);
        let loaded = drive(server.address, in_flight, window, operation()).await?;
        all_done(server, workflow).await?;
        rates.push(loaded.latencies.len() as f64 / began.elapsed().as_secs_f64());
        latencies.extend_from_slice(&loaded.latencies);
        slowest.push(Latency::of(loaded.latencies.clone()).p99_ms);
        last = loaded;
        if let Some((commits, stored)) = &mut beside {
            commits.measure(stored, options).await?;
        }
    }
    let ceilings = beside.map(|(commits, _)| &*commits);
    let of_ceilings = |values: fn(&Commits) -> &Vec<f64>| {
        ceilings
            .map(|commits| values(commits).clone())
            .unwrap_or_default()
    };
    let beside = |ours: &[f64], theirs: Vec<f64>| {
        let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
        median(ratios.collect())
    };
    let of_commits = beside(&rates, of_ceilings(|commits| &commits.grouped));
    let p99_in_commits = beside(&slowest, of_ceilings(|commits| &commits.alone));
    let p99_of_grouped = beside(&slowest, of_ceilings(|commits| &commits.grouped_p99_ms));
    read_back(server, &last.runs).await?;
    let request = create(workflow);
    let answer = Connection::open(server.address)
        .await?
        .exchange(&request)
        .await?
        .body
        .to_vec();
    Ok(Runs {
        per_second: median(rates),
        of_commits,
        latency: Latency::of(latencies),
        p99_in_commits,
        p99_of_grouped,
        exchange: Exchange { request, answer },
    })
}

/// What a run of the workflow stores.
pub(crate) async fn stored(workflow: &str, options: &Options) -> Result<Stored, Failure> {
    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let mut connection = Connection::open(server.address).await?;
    let made = connection.exchange(&create(workflow)).await?;
    let run = text_field(made.body, "runId").ok_or("no run was created")?;
    server.stop().await?;
    Stored::read(directory.path(), &run).await
}

/// Latency of a single caller.
pub(crate) async fn latency_alone(
    server: &Server,
    workflow: &str,
    options: &Options,
) -> Result<Latency, Failure> {
    let until = Until::Elapsed(options.window);
    let loaded = drive(server.address, 1, until, SingleRequest::create(workflow)).await?;
    Ok(Latency::of(loaded.latencies))
}

/// Waits until no run of the workflow is running.
pub(crate) async fn all_done(server: &Server, workflow: &str) -> Result<(), Failure> {
    let mut connection = Connection::open(server.address).await?;
    let began = Instant::now();
    for status in ["pending", "running"] {
        let request_bytes = get(&format!(
            "/v1/host/tandem/runs?workflowId={workflow}&status={status}&limit=1"
        ));
        while text_field(connection.exchange(&request_bytes).await?.body, "runId").is_some() {
            if began.elapsed() > Duration::from_secs(30) {
                return Err(format!("runs of {workflow} are {status} after 30 s").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(())
}

async fn read_back(server: &Server, runs: &[String]) -> Result<(), Failure> {
    let mut connection = Connection::open(server.address).await?;
    let step = (runs.len() / SAMPLE).max(1);
    for run in runs.iter().step_by(step) {
        let reply = connection
            .exchange(&get(&format!("/v1/runs/{run}")))
            .await?;
        let status = text_field(reply.body, "status");
        if status.as_deref() != Some("completed") {
            return Err(format!("run {run} is {status:?}, not completed").into());
        }
    }
    Ok(())
}
