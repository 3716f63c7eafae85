//! A killed process: everything that was confirmed to it is durable.
//!
//! The test starts its own executable again as the victim.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tandem_record::StreamId;
use tandem_store::Store;
use tandem_store::battery::sample::{append, commit, must, whole};
use tandem_store_sqlite::{Options, SqliteStore};

const DATABASE: &str = "TANDEM_TEST_DATABASE";

/// Not a test of its own: commits on several streams until it is killed, and prints what was
/// confirmed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the victim of the test below"]
async fn victim() {
    let Some(path) = std::env::var_os(DATABASE) else {
        return;
    };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, Options::default()).unwrap());
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let stream = StreamId::new(format!("run:{task}"));
                must(&store, commit([append(&stream, None, 1)])).await;
                for seq in 0.. {
                    must(&store, commit([append(&stream, Some(seq), 1)])).await;
                    writeln!(std::io::stdout(), "confirmed {task} {}", seq + 1).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process_loses_no_confirmed_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    // Enough for several checkpoints.
    let enough = 5_000;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "victim", "--nocapture"])
        .env(DATABASE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut confirmed: BTreeMap<u64, u64> = BTreeMap::new();
    let mut seen = 0;
    while let Some(Ok(line)) = lines.next() {
        // The last line may be cut off, and the test harness prints its own lines.
        let mut words = line.split(' ').skip_while(|word| *word != "confirmed");
        let numbers = (words.nth(1), words.next());
        if let (Some(Ok(task)), Some(Ok(seq))) = (
            numbers.0.map(str::parse::<u64>),
            numbers.1.map(str::parse::<u64>),
        ) {
            let last = confirmed.entry(task).or_default();
            *last = seq.max(*last);
            seen += 1;
        }
        if seen == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= enough, "the victim ended by itself after {seen}");

    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Options::default()).unwrap());
    for (task, seq) in confirmed {
        let events = whole(&store, &StreamId::new(format!("run:{task}"))).await;
        assert!(events.len() as u64 > seq, "run:{task} lost event {seq}");
    }
}
