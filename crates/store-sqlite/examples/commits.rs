//! Measures how many small runs the store takes per second: 64 callers, each commit a new stream
//! with five events of about 300 bytes and its run row.
//!
//! `cargo run --release -p tandem-store-sqlite --example commits [-- <seconds> [<directory>]]`

#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_record::{DefinitionHash, RunId, RunStatus, StreamId, TenantId, Timestamp, WorkflowId};
use tandem_store::{Append, Commit, Log, Maintenance, NewEvent, ReadLog, ReadRuns, RunRow};
use tandem_store_sqlite::{Options, SqliteStore};

const CALLERS: usize = 64;
const EVENTS: usize = 5;
const EVENT_BYTES: usize = 300;

fn small_run() -> (RunId, Commit) {
    let run_id = RunId::new(format!("run-{}", uuid::Uuid::now_v7()));
    let row = RunRow {
        run_id: run_id.clone(),
        tenant: TenantId::new("tenant"),
        workspace: None,
        workflow_id: WorkflowId::new("flow"),
        definition: DefinitionHash::new("0".repeat(64)),
        status: RunStatus::Completed,
        parent: None,
        scope: None,
        created_at: Timestamp(0),
        ended_at: Some(Timestamp(1)),
        error_code: None,
    };
    let event = NewEvent {
        at: Timestamp(0),
        body: format!(r#"{{"t":"{}"}}"#, "x".repeat(EVENT_BYTES - 8)),
    };
    let append = Append {
        stream: StreamId::of_run(&run_id),
        after: None,
        events: vec![event; EVENTS],
        run: Some(row),
        snapshot: None,
    };
    let commit = Commit {
        appends: vec![append],
        ..Commit::default()
    };
    (run_id, commit)
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments
        .next()
        .map_or(5, |text| text.parse().expect("seconds"));
    let directory = match arguments.next() {
        Some(path) => tempfile::tempdir_in(PathBuf::from(path)),
        None => tempfile::tempdir(),
    }
    .expect("a directory to write in");
    let path = directory.path().join("tandem.db");
    let store = SqliteStore::open(&path, Options::default()).expect("the database opens");
    let store = Arc::new(store);

    let began = Instant::now();
    let end = began + Duration::from_secs(seconds);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut waits = Vec::new();
                let mut last = None;
                while Instant::now() < end {
                    let (run, commit) = small_run();
                    let asked = Instant::now();
                    store.commit(commit).await.expect("the commit is valid");
                    waits.push(asked.elapsed());
                    last = Some(run);
                }
                (waits, last)
            })
        })
        .collect();
    let mut waits = Vec::new();
    let mut last = None;
    for caller in callers {
        let (its_waits, its_last) = caller.await.expect("the caller ends");
        waits.extend(its_waits);
        last = its_last.or(last);
    }
    let took = began.elapsed();
    waits.sort();
    let wait = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{:.0} commits/s ({} in {:.1} s, {} events each); p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms",
        waits.len() as f64 / took.as_secs_f64(),
        waits.len(),
        took.as_secs_f64(),
        EVENTS,
        wait(0.5),
        wait(0.99),
        wait(1.0),
    );
    for suffix in ["", "-wal"] {
        let file = directory.path().join(format!("tandem.db{suffix}"));
        let bytes = file.metadata().map_or(0, |file| file.len());
        println!("tandem.db{suffix}: {} MiB", bytes / (1024 * 1024));
    }

    let last = last.expect("there was a commit");
    let began = Instant::now();
    let reads: u32 = 10_000;
    for _ in 0..reads / 2 {
        let slice = store.events(&StreamId::of_run(&last), None, 100).await;
        assert_eq!(slice.expect("reads work").events.len(), EVENTS);
        let run = store.run_of_any_tenant(&last).await;
        assert!(run.expect("reads work").is_some());
    }
    println!("one read takes {:?}", began.elapsed() / reads);
    store.close().await;
}
