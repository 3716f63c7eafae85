//! The past of a long run: memory at an earlier event compared with memory now, and forks compared
//! with one read of its log, with few and with many other runs in the store.
//!
//! The scope is written directly into the store before the server starts: only its size matters
//! here.

use crate::client::{Connection, Failure, create, get, request, text_field};
use crate::load::{Latency, SingleRequest, Until, drive};
use crate::options::Options;
use crate::server::Server;
use crate::workflows::HISTORY;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tandem_record::{MemoryEntry, MemoryOrigin, RunId, Seq, TenantId, Timestamp};
use tandem_store::{Commit, Log, Maintenance, MemoryRow};
use tandem_store_sqlite::SqliteStore;

/// Number of entries of the scope.
const ENTRIES: u64 = 10_000;
/// The tenant of the key the server is started with.
const TENANT: &str = "default";
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Past {
    pub(crate) events: u64,
    pub(crate) entries: usize,
    pub(crate) now: Latency,
    /// The slowest of the measured positions.
    pub(crate) then: Latency,
    pub(crate) log: Latency,
    pub(crate) replay: Latency,
    pub(crate) branch: Latency,
    pub(crate) others: usize,
    /// The same with the other runs in the store.
    pub(crate) replay_beside: Latency,
    pub(crate) branch_beside: Latency,
}

pub(crate) async fn measure(options: &Options) -> Result<Past, Failure> {
    let directory = options.directory()?;
    fill(directory.path()).await?;
    let server = Server::start(&options.binary, directory.path()).await?;
    let mut connection = Connection::open(server.address).await?;
    let reply = connection.exchange(&create(HISTORY)).await?;
    let run = text_field(reply.body, "runId").ok_or("no run was created")?;
    let last = completed(&mut connection, &run).await?;
    let path = format!("/v1/runs/{run}");
    let memory = format!("/v1/host/tandem/runs/{run}/memory");

    let repeats = options.repeats;
    let now = reads(&mut connection, &memory, repeats).await?;
    let mut then = Vec::new();
    for at in [1, last / 2, last] {
        let path_at = format!("{memory}?atSeq={at}");
        then.push(reads(&mut connection, &path_at, repeats).await?);
    }
    let slower = |a: &Latency, b: &Latency| a.p50_ms.total_cmp(&b.p50_ms);
    let then = then.into_iter().max_by(slower).ok_or("nothing was read")?;
    let memory_body: Value =
        serde_json::from_slice(connection.exchange(&get(&memory)).await?.body)?;
    let entries = memory_body["entries"].as_array().map_or(0, Vec::len);

    let events = format!("{path}/events");
    let log = reads(&mut connection, &events, repeats).await?;
    let replay = forks(&mut connection, &path, "replay", 0, repeats).await?;
    let branch = forks(&mut connection, &path, "branch", last / 2, repeats).await?;
    let others = options.waiting / 10;
    drive(
        server.address,
        64,
        Until::Count(others),
        SingleRequest::create("bench-wait"),
    )
    .await?;
    let replay_beside = forks(&mut connection, &path, "replay", 0, repeats).await?;
    let branch_beside = forks(&mut connection, &path, "branch", last / 2, repeats).await?;
    server.stop().await?;
    Ok(Past {
        events: last + 1,
        entries,
        now,
        then,
        log,
        replay,
        branch,
        others,
        replay_beside,
        branch_beside,
    })
}

async fn fill(directory: &Path) -> Result<(), Failure> {
    let store = SqliteStore::open(directory.join("tandem.db"), Default::default())?;
    let row = |n: u64| {
        let entry = MemoryEntry {
            id: format!("mem-{n:032x}"),
            memory_ref: "default".to_owned(),
            key: format!("customer-{n}"),
            value: json!({"name": format!("Customer {n}"), "city": "Łódź"}),
            tags: vec!["crm".to_owned()],
            written_at: Timestamp(1_700_000_000_000),
            expires_at: None,
            agent: None,
            sensitive: false,
        };
        Ok(MemoryRow {
            tenant: TenantId::new(TENANT),
            scope: MemoryOrigin::SHARED.to_owned(),
            memory_ref: entry.memory_ref.clone(),
            key: entry.key.clone(),
            run: RunId::new("run-that-filled-it"),
            seq: Seq(n),
            body: Some(serde_json::to_string(&entry)?),
        })
    };
    // Below the limit by the number of entries the run adds.
    let rows: Result<_, Failure> = (0..ENTRIES - 10).map(row).collect();
    let commit = Commit {
        memory: rows?,
        ..Commit::default()
    };
    store.commit(commit).await?;
    store.close().await;
    Ok(())
}

/// Waits for the run's end; returns its last sequence.
async fn completed(connection: &mut Connection, run: &str) -> Result<u64, Failure> {
    let request_bytes = get(&format!("/v1/runs/{run}"));
    let began = Instant::now();
    loop {
        let reply = connection.exchange(&request_bytes).await?;
        let snapshot: Value = serde_json::from_slice(reply.body)?;
        match snapshot["status"].as_str() {
            Some("completed") => {
                let last = snapshot["lastSequence"].as_u64();
                return last.ok_or_else(|| "no lastSequence".into());
            }
            Some("failed" | "cancelled") => return Err(format!("{snapshot}").into()),
            _ if began.elapsed() > TIMEOUT => return Err(format!("run {run} hangs").into()),
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn reads(
    connection: &mut Connection,
    path: &str,
    repeats: usize,
) -> Result<Latency, Failure> {
    let request_bytes = get(path);
    let mut waits = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let sent_at = Instant::now();
        let reply = connection.exchange(&request_bytes).await?;
        if reply.status != 200 {
            return Err(format!("{path} answered {}", reply.status).into());
        }
        waits.push(sent_at.elapsed());
    }
    Ok(Latency::of(waits))
}

async fn forks(
    connection: &mut Connection,
    path: &str,
    mode: &str,
    from: u64,
    repeats: usize,
) -> Result<Latency, Failure> {
    let body = format!(r#"{{"mode":"{mode}","fromSeq":{from}}}"#);
    let request_bytes = request("POST", &format!("{path}:fork"), "application/json", &body);
    let mut waits = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let sent_at = Instant::now();
        let reply = connection.exchange(&request_bytes).await?;
        waits.push(sent_at.elapsed());
        if reply.status != 201 {
            let body = String::from_utf8_lossy(reply.body);
            return Err(format!("fork answered {}: {body:.300}", reply.status).into());
        }
        // A branch continues running; the next one starts when it has ended.
        let fork = text_field(reply.body, "runId").ok_or("no fork was made")?;
        completed(connection, &fork).await?;
    }
    Ok(Latency::of(waits))
}
