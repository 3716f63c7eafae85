//! What a request costs: approvals beside no-op runs, small reads, a page of events beside the same bytes
//! sent from memory, and the memory that ended runs leave behind.

use super::runs::all_done;
use crate::ceiling::echo::EchoServer;
use crate::client::{Connection, Failure, create, find, get, request, text_field};
use crate::load::{Latency, Operation, SingleRequest, Until, drive, median};
use crate::options::Options;
use crate::server::Server;
use crate::workflows::LONG_LOG;
use serde_json::Value;
use std::time::{Duration, Instant};

const IN_FLIGHT: usize = 64;
/// Approvals and no-op runs at once.
const RUNS_IN_FLIGHT: usize = 16;
/// No-op runs before memory is read.
const ENDED_RUNS: usize = 10_000;
/// The allocator returns unused memory after a delay.
const SETTLE: Duration = Duration::from_secs(1);
/// In the snapshot of an ended run. Nodes have no such field.
const COMPLETED: &[u8] = b"\"completedAt\":";
/// Pages read in one turn.
const PAGES: usize = 20;

pub(crate) struct Cost {
    pub(crate) approvals: Approvals,
    pub(crate) page: EventPage,
    pub(crate) ended_runs: usize,
    pub(crate) resident_mb: f64,
}

pub(crate) struct Approvals {
    /// Four requests and two commits each.
    pub(crate) approvals: OperationCost,
    /// Two requests and one commit each.
    pub(crate) noops: OperationCost,
    /// The medians of the ratios of neighbouring windows.
    pub(crate) of_noop: f64,
    pub(crate) cpu_of_noop: f64,
    /// Reads of a waiting run.
    pub(crate) reads: OperationCost,
    /// First pages of the inbox, with a few open questions.
    pub(crate) inbox: OperationCost,
}

pub(crate) struct OperationCost {
    pub(crate) per_second: f64,
    /// Processor time of the server.
    pub(crate) cpu_us: f64,
    pub(crate) latency: Latency,
}

impl std::fmt::Display for OperationCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s, {:.0} µs", self.per_second, self.cpu_us)
    }
}

pub(crate) struct EventPage {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    pub(crate) read: Latency,
    /// Processor time of the server.
    pub(crate) cpu_us: f64,
    pub(crate) from_memory: Latency,
    /// The median of the ratios of neighbouring turns.
    pub(crate) of_memory: f64,
}

pub(crate) async fn measure(options: &Options) -> Result<Cost, Failure> {
    let directory = options.directory()?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let resident_mb = resident_after_runs(&server).await?;
    let page = event_page(&server, options).await?;
    let approvals = approvals(&server, options).await?;
    server.stop().await?;
    Ok(Cost {
        approvals,
        page,
        ended_runs: ENDED_RUNS,
        resident_mb,
    })
}

async fn resident_after_runs(server: &Server) -> Result<f64, Failure> {
    let operation = SingleRequest::create("bench-noop");
    drive(
        server.address,
        IN_FLIGHT,
        Until::Count(ENDED_RUNS),
        operation,
    )
    .await?;
    all_done(server, "bench-noop").await?;
    tokio::time::sleep(SETTLE).await;
    server.resident_mb()
}

async fn approvals(server: &Server, options: &Options) -> Result<Approvals, Failure> {
    let (mut approvals, mut noops) = (Repeated::default(), Repeated::default());
    let (mut reads, mut inbox) = (Repeated::default(), Repeated::default());
    let warm = Until::Elapsed(options.window / 4);
    drive(server.address, RUNS_IN_FLIGHT, warm, Approval).await?;
    let waiting = drive(server.address, 1, Until::Count(4), open()).await?;
    let run = waiting.runs.first().ok_or("no run was created")?;
    let read = get(&format!("/v1/runs/{run}"));
    let list = get("/v1/host/tandem/interrupts?status=open&limit=50");
    for _ in 0..options.windows {
        let (window, few) = (options.window, RUNS_IN_FLIGHT);
        noops.measure(server, window, few, NoopRun).await?;
        approvals.measure(server, window, few, Approval).await?;
        let read = SingleRequest::new(read.clone(), 200);
        reads.measure(server, window, IN_FLIGHT, read).await?;
        let list = SingleRequest::new(list.clone(), 200);
        inbox.measure(server, window, IN_FLIGHT, list).await?;
    }
    Ok(Approvals {
        of_noop: median_ratio(&approvals.rates, &noops.rates),
        cpu_of_noop: median_ratio(&approvals.cpu_us, &noops.cpu_us),
        approvals: approvals.summary(),
        noops: noops.summary(),
        reads: reads.summary(),
        inbox: inbox.summary(),
    })
}

/// Windows of one operation, between windows of others.
#[derive(Default)]
struct Repeated {
    rates: Vec<f64>,
    /// Processor time of the server for one operation, per window.
    cpu_us: Vec<f64>,
    waits: Vec<Duration>,
}

impl Repeated {
    async fn measure(
        &mut self,
        server: &Server,
        window: Duration,
        in_flight: usize,
        operation: impl Operation,
    ) -> Result<(), Failure> {
        let before = server.cpu_seconds()?;
        let window = Until::Elapsed(window);
        let loaded = drive(server.address, in_flight, window, operation).await?;
        let used = server.cpu_seconds()? - before;
        self.rates.push(loaded.per_second());
        self.cpu_us.push(used * 1e6 / loaded.latencies.len() as f64);
        self.waits.extend(loaded.latencies);
        Ok(())
    }

    fn summary(self) -> OperationCost {
        OperationCost {
            per_second: median(self.rates),
            cpu_us: median(self.cpu_us),
            latency: Latency::of(self.waits),
        }
    }
}

fn open() -> SingleRequest {
    SingleRequest::create("bench-approval")
}

/// Created, seen completed.
struct NoopRun;

impl Operation for NoopRun {
    async fn perform(&self, connection: &mut Connection) -> Result<Option<String>, Failure> {
        let made = connection.exchange(&create("bench-noop")).await?;
        made.expect(201)?;
        let run = text_field(made.body, "runId").ok_or("no run was created")?;
        expect_text(connection, &run, COMPLETED).await?;
        Ok(Some(run))
    }
}

/// Created, seen waiting, accepted, seen completed.
struct Approval;

impl Operation for Approval {
    async fn perform(&self, connection: &mut Connection) -> Result<Option<String>, Failure> {
        let made = connection.exchange(&create("bench-approval")).await?;
        made.expect(201)?;
        let run = text_field(made.body, "runId").ok_or("no run was created")?;
        expect_text(connection, &run, b"\"status\":\"waiting-approval\"").await?;
        let path = format!("/v1/runs/{run}/interrupts/gate");
        let body = r#"{"resumeValue":{"action":"accept"}}"#;
        let answer = request("POST", &path, "application/json", body);
        connection.exchange(&answer).await?.expect(200)?;
        expect_text(connection, &run, COMPLETED).await?;
        Ok(Some(run))
    }
}

/// Reads the run and looks for the text, without parsing the rest.
async fn expect_text(
    connection: &mut Connection,
    run: &str,
    expected: &[u8],
) -> Result<(), Failure> {
    let reply = connection
        .exchange(&get(&format!("/v1/runs/{run}")))
        .await?;
    if find(reply.body, expected).is_none() {
        let body = String::from_utf8_lossy(reply.body);
        return Err(format!("unexpected state of a run: {body:.1000}").into());
    }
    Ok(())
}

async fn event_page(server: &Server, options: &Options) -> Result<EventPage, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let made = connection.exchange(&create(LONG_LOG)).await?;
    let run = text_field(made.body, "runId").ok_or("no run was created")?;
    all_done(server, LONG_LOG).await?;
    let request_bytes = get(&format!("/v1/runs/{run}/events"));
    let body = connection.exchange(&request_bytes).await?.body.to_vec();
    let log: Value = serde_json::from_slice(&body)?;
    let events = log["events"].as_array().map_or(0, Vec::len);
    let echo = EchoServer::start(&body).await?;
    let mut from_memory = Connection::open(echo.address).await?;
    let (mut pages, mut copies) = (Vec::new(), Vec::new());
    let (mut page_p50, mut copy_p50) = (Vec::new(), Vec::new());
    let cpu_before = server.cpu_seconds()?;
    for _ in 0..options.repeats {
        let waits = timed(&mut connection, &request_bytes, 200).await?;
        page_p50.push(Latency::of(waits.clone()).p50_ms);
        pages.extend(waits);
        let waits = timed(&mut from_memory, &create("bench-noop"), 201).await?;
        copy_p50.push(Latency::of(waits.clone()).p50_ms);
        copies.extend(waits);
    }
    let used = server.cpu_seconds()? - cpu_before;
    Ok(EventPage {
        events,
        bytes: body.len(),
        cpu_us: used * 1e6 / pages.len() as f64,
        read: Latency::of(pages),
        from_memory: Latency::of(copies),
        of_memory: median_ratio(&page_p50, &copy_p50),
    })
}

async fn timed(
    connection: &mut Connection,
    request_bytes: &[u8],
    expected_status: u16,
) -> Result<Vec<Duration>, Failure> {
    let mut waits = Vec::with_capacity(PAGES);
    for _ in 0..PAGES {
        let sent_at = Instant::now();
        let reply = connection.exchange(request_bytes).await?;
        waits.push(sent_at.elapsed());
        reply.expect(expected_status)?;
    }
    Ok(waits)
}

fn median_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    median(ratios.collect())
}
