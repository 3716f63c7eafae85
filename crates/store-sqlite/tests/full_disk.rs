//! A full disk: only the commit that does not fit fails, nothing is lost, and the store continues
//! as soon as there is space again.

use std::sync::Arc;
use tandem_record::{StreamId, Timestamp};
use tandem_store::battery::sample::{append, commit, head, must, row, started, whole};
use tandem_store::{Commit, Error, Log, NewEvent, Store};
use tandem_store_sqlite::{Options, SqliteStore};

const CAP: u64 = 1024 * 1024;

fn capped(path: &std::path::Path, max_bytes: u64) -> Arc<SqliteStore> {
    let options = Options {
        max_bytes: Some(max_bytes),
        ..Options::default()
    };
    Arc::new(SqliteStore::open(path, options).unwrap())
}

/// Events of one MiB each; the first few are ordinary, so that it fails half-way.
/// Text that compression cannot make smaller than the space there is.
fn incompressible(seed: i64, bytes: usize) -> String {
    let mut state = seed.unsigned_abs() + 1;
    let digit = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'!' + u8::try_from(state >> 33 & 63).expect("six bits"))
    };
    (0..2 * bytes).map(digit).collect()
}

fn too_big(stream: &StreamId) -> Commit {
    let mut big = append(stream, None, 3);
    let rest = (3..6).map(|seq| NewEvent {
        at: Timestamp(seq),
        body: incompressible(seq, CAP as usize),
    });
    big.events.extend(rest);
    commit([big])
}

#[track_caller]
fn is_full<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(Error::Fault(fault)) => {
            assert_eq!(fault.code, "disk_full", "{fault}");
            assert!(fault.retryable, "space may be freed");
        }
        other => panic!("expected a full disk, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_fails_commits_without_loss_and_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let sqlite = capped(&path, CAP);
    let store: Arc<dyn Store> = sqlite.clone();
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    let mut confirmed = 0;
    let full = loop {
        let next = commit([append(&stream, Some(confirmed), 50)]);
        match store.commit(next).await {
            Ok(_) => confirmed += 50,
            Err(error) => break Err::<(), _>(error),
        }
    };
    is_full(full);
    assert!(confirmed > 1_000, "there was space at first");
    for _ in 0..3 {
        is_full(
            store
                .commit(commit([append(&stream, Some(confirmed), 50)]))
                .await,
        );
    }
    assert_eq!(whole(&store, &stream).await.len() as u64, confirmed + 1);

    sqlite.set_max_bytes(Some(2 * CAP)).await.unwrap();
    must(&store, commit([append(&stream, Some(confirmed), 50)])).await;
    store.close().await;
    drop((store, sqlite));

    let store: Arc<dyn Store> = capped(&path, 4 * CAP);
    must(&store, commit([append(&stream, Some(confirmed + 50), 50)])).await;
    assert_eq!(whole(&store, &stream).await.len() as u64, confirmed + 101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_commit_fails_alone_in_its_batch() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = capped(&directory.path().join("tandem.db"), CAP);
    let store: Arc<dyn Store> = sqlite.clone();
    let big = StreamId::new("run:big");
    for round in 0..20 {
        let small: Vec<_> = (0..16)
            .map(|n| {
                let store = Arc::clone(&sqlite);
                tokio::spawn(async move {
                    if n == 7 {
                        is_full(store.commit(too_big(&StreamId::new("run:big"))).await);
                    } else {
                        let run = started(row("t1", &format!("r{round}-{n}")));
                        store
                            .commit(run)
                            .await
                            .expect("there is space for a small one");
                    }
                })
            })
            .collect();
        for task in small {
            task.await.unwrap();
        }
        assert_eq!(head(&store, &big).await, None, "no part of it is left");
    }
    let counts = store.count_by_status().await.unwrap();
    assert_eq!(counts, [("running".to_owned(), 20 * 15)]);

    sqlite.set_max_bytes(None).await.unwrap();
    must(&store, too_big(&big)).await;
    assert_eq!(head(&store, &big).await, Some(5));
}
