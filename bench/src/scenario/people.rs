//! Runs with a question to a person: how long an approval takes when it is answered at once, and
//! whether a full inbox costs more than an empty one.

use crate::ceiling::Pairs;
use crate::ceiling::commits::Stored;
use crate::client::{Connection, Failure, create, get, request, text_field};
use crate::load::{Latency, SingleRequest, Until, drive};
use crate::options::Options;
use crate::server::Server;
use std::time::{Duration, Instant};

/// Open questions before the inbox is filled.
const FEW: usize = 100;
/// Reads and answers measured with each inbox size.
const SAMPLE: usize = 300;

pub(crate) struct People {
    /// Created, waiting at the gate, accepted, completed.
    pub(crate) round_trip: Latency,
    /// Two minimal commits, just before and just after.
    pub(crate) pair: Latency,
    pub(crate) open: usize,
    pub(crate) few: Inbox,
    pub(crate) many: Inbox,
}

pub(crate) struct Inbox {
    pub(crate) first_page: Latency,
    pub(crate) resolve: Latency,
}

pub(crate) async fn measure(
    server: &Server,
    stored: &Stored,
    options: &Options,
) -> Result<People, Failure> {
    let mut commits = Pairs::default();
    commits.measure(stored, options)?;
    let mut connection = Connection::open(server.address).await?;
    let mut waits = Vec::new();
    let began = Instant::now();
    while began.elapsed() < 2 * options.window {
        let sent_at = Instant::now();
        let run = open(&mut connection).await?;
        accept(&mut connection, &run).await?;
        waits.push(sent_at.elapsed());
    }
    commits.measure(stored, options)?;
    let few = beside(server, &mut connection, FEW).await?;
    let many = beside(server, &mut connection, options.waiting).await?;
    Ok(People {
        round_trip: Latency::of(waits),
        pair: commits.latency(),
        open: options.waiting,
        few,
        many,
    })
}

/// Fills the inbox up to `open` questions, then reads and answers some of them.
async fn beside(
    server: &Server,
    connection: &mut Connection,
    open: usize,
) -> Result<Inbox, Failure> {
    let until = Until::Count(open + SAMPLE);
    let made = drive(
        server.address,
        16,
        until,
        SingleRequest::create("bench-approval"),
    )
    .await?;
    let page = get("/v1/host/tandem/interrupts?status=open&limit=50");
    let mut reads = Vec::new();
    let mut answers = Vec::new();
    for run in made.runs.iter().take(SAMPLE) {
        let sent_at = Instant::now();
        let reply = connection.exchange(&page).await?;
        if reply.status != 200 {
            return Err(format!("the inbox answered {}", reply.status).into());
        }
        reads.push(sent_at.elapsed());
        let sent_at = Instant::now();
        accept(connection, run).await?;
        answers.push(sent_at.elapsed());
    }
    Ok(Inbox {
        first_page: Latency::of(reads),
        resolve: Latency::of(answers),
    })
}

async fn open(connection: &mut Connection) -> Result<String, Failure> {
    let reply = connection.exchange(&create("bench-approval")).await?;
    Ok(text_field(reply.body, "runId").ok_or("no run was created")?)
}

/// Accepts at the gate and checks that the run ended.
async fn accept(connection: &mut Connection, run: &str) -> Result<(), Failure> {
    let path = format!("/v1/runs/{run}/interrupts/gate");
    let body = r#"{"resumeValue":{"action":"accept"}}"#;
    let answer = request("POST", &path, "application/json", body);
    let reply = connection.exchange(&answer).await?;
    if reply.status != 200 {
        let body = String::from_utf8_lossy(reply.body);
        return Err(format!("accept answered {}: {body:.300}", reply.status).into());
    }
    // The response to a decision contains the run's status afterwards.
    if text_field(reply.body, "status").as_deref() == Some("completed") {
        return Ok(());
    }
    let request_bytes = get(&format!("/v1/runs/{run}"));
    let sent_at = Instant::now();
    loop {
        let reply = connection.exchange(&request_bytes).await?;
        if text_field(reply.body, "status").as_deref() == Some("completed") {
            return Ok(());
        }
        if sent_at.elapsed() > Duration::from_secs(10) {
            return Err(format!("run {run} did not complete").into());
        }
    }
}
