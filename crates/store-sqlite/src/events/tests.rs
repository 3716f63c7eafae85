//! Reads of a stream while another process changes the database.

use super::*;
use crate::{Options, connection};
use rusqlite::TransactionBehavior;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_store::Store;
use tandem_store::battery::sample::{append, commit, must};

const EVENTS: u64 = 3;

/// Purges the stream and gives its number to a longer one, as a process does that opened the store later.
fn replace_stream(writer: &mut Connection, stream: &StreamId) -> Result<()> {
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = find(&transaction, stream)?
        .expect("the stream exists")
        .stream_no;
    remove(&transaction, stream)?;
    transaction.execute(
        "INSERT INTO streams (stream, stream_no, head) VALUES ('run:other', ?1, 9)",
        [number],
    )?;
    for seq in 0..10 {
        transaction.execute(
            "INSERT INTO events (place, at, bodies) VALUES (?1, 1, '\"of the other stream\"')",
            [place(number, seq)],
        )?;
    }
    transaction.commit()
}

/// The other process acts at the given step of the read. Returns what was read, and whether the read had
/// that many steps.
fn read_interrupted_at(step: usize, path: &Path, stream: &StreamId) -> (StreamSlice, bool) {
    let mut reader = connection::read_only(path, &Options::default()).unwrap();
    let mut writer = connection::open_read_write(path).unwrap();
    let steps = Arc::new(AtomicUsize::new(0));
    let (counted, target) = (Arc::clone(&steps), stream.clone());
    let act = move || {
        if counted.fetch_add(1, Ordering::Relaxed) == step {
            replace_stream(&mut writer, &target).unwrap();
        }
        false
    };
    reader.progress_handler(1, Some(act)).unwrap();
    let read = slice(&reader, stream, None, PageLimit::of_events(100)).unwrap();
    (read, steps.load(Ordering::Relaxed) > step)
}

#[tokio::test]
async fn stream_replaced_during_a_read_shows_no_events_of_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let [original, path] = ["original.db", "tandem.db"].map(|name| directory.path().join(name));
    let stream = StreamId::of_run(&"one".into());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&original, Options::default()).unwrap());
    must(&store, commit([append(&stream, None, EVENTS)])).await;
    store.close().await;
    let mut interrupted = 0;
    for step in 0.. {
        std::fs::copy(&original, &path).unwrap();
        let (read, was_interrupted) = read_interrupted_at(step, &path, &stream);
        assert_eq!(read.head, Some(Seq(EVENTS - 1)), "step {step}");
        // All of them or, after the purge, none.
        let own = read.events.iter().filter(|e| e.body.contains("run:one"));
        let is_whole = [0, EVENTS as usize].contains(&read.events.len());
        assert!(
            is_whole && own.count() == read.events.len(),
            "step {step}: {read:?}"
        );
        if !was_interrupted {
            break;
        }
        interrupted += 1;
    }
    assert!(interrupted > 0, "no read was interrupted");
}

#[tokio::test]
async fn page_after_the_last_possible_event_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Options::default()).unwrap());
    let streams = [
        StreamId::of_run(&"one".into()),
        StreamId::of_run(&"two".into()),
    ];
    for stream in &streams {
        must(&store, commit([append(stream, None, EVENTS)])).await;
    }
    for after in [EVENTS - 1, (1 << SEQ_BITS) - 1, 1 << SEQ_BITS, u64::MAX] {
        let limit = PageLimit::of_events(100);
        let page = store.event_page(&streams[0], Some(Seq(after)), limit).await;
        let page = page.unwrap();
        assert_eq!(
            (page.events.len(), page.head),
            (0, Some(Seq(EVENTS - 1))),
            "{after}"
        );
    }
}
