//! A snapshot is stored with the append it was taken after.

use super::sample::{append, commit, conflict, must, whole};
use crate::{Error, PageLimit, SnapshotQuery, SnapshotRecord, Store};
use std::sync::Arc;
use tandem_record::{Seq, StreamId};

fn snapshot(seq: u64) -> Option<SnapshotRecord> {
    Some(SnapshotRecord {
        seq: Seq(seq),
        format: 7,
        body: format!(r#"{{"folded":{seq}}}"#),
    })
}

pub async fn replaced_with_its_append(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    assert_eq!(store.snapshot(&stream).await.unwrap(), None);
    must(&store, commit([append(&stream, None, 2)])).await;
    assert_eq!(store.snapshot(&stream).await.unwrap(), None);
    let mut with = append(&stream, Some(1), 2);
    with.snapshot = snapshot(3);
    must(&store, commit([with])).await;
    assert_eq!(store.snapshot(&stream).await.unwrap(), snapshot(3));
    must(&store, commit([append(&stream, Some(3), 1)])).await;
    let kept = store.snapshot(&stream).await.unwrap();
    assert_eq!(kept, snapshot(3), "an append without one keeps the last");
    // Alone, without an event.
    let mut alone = append(&stream, Some(4), 0);
    alone.snapshot = snapshot(4);
    must(&store, commit([alone])).await;
    assert_eq!(store.snapshot(&stream).await.unwrap(), snapshot(4));
    assert_eq!(whole(&store, &stream).await.len(), 5);
}

pub async fn rejected_append_retains_the_old_snapshot(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let mut first = append(&stream, None, 1);
    first.snapshot = snapshot(0);
    must(&store, commit([first])).await;
    let mut stale = append(&stream, None, 10);
    stale.snapshot = snapshot(9);
    conflict(&store, commit([stale])).await;
    assert_eq!(store.snapshot(&stream).await.unwrap(), snapshot(0));
}

/// Whoever folds from such a snapshot would skip events that come later.
pub async fn snapshot_ahead_of_its_log_is_refused(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let mut first = append(&stream, None, 2);
    first.snapshot = snapshot(2);
    match store.commit(commit([first])).await {
        Err(Error::Fault(fault)) => assert_eq!(fault.code, "invalid"),
        other => panic!("expected a fault, got {other:?}"),
    }
    assert!(whole(&store, &stream).await.is_empty());
}

pub async fn fold_starts_after_a_wanted_snapshot(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let mut first = append(&stream, None, 3);
    first.snapshot = snapshot(2);
    must(&store, commit([first])).await;
    must(&store, commit([append(&stream, Some(2), 2)])).await;
    let wanted = |format, up_to: Option<u64>| SnapshotQuery {
        format,
        up_to: up_to.map(Seq),
    };
    for (query, expected, first_seqs) in [
        (wanted(7, None), snapshot(2), [3, 4]),
        (wanted(7, Some(2)), snapshot(2), [3, 4]),
        (wanted(7, Some(1)), None, [0, 1]),
        (wanted(8, None), None, [0, 1]),
    ] {
        let limit = PageLimit::of_events(2);
        let start = store.fold_start(&stream, query, limit).await.unwrap();
        assert_eq!(start.snapshot, expected, "{query:?}");
        let seqs: Vec<u64> = start.slice.events.iter().map(|e| e.seq.0).collect();
        assert_eq!(seqs, first_seqs, "{query:?}");
        assert_eq!(start.slice.head, Some(Seq(4)));
    }
    let nothing = StreamId::new("run:b");
    let start = store.fold_start(&nothing, wanted(7, None), PageLimit::of_events(2));
    let start = start.await.unwrap();
    assert_eq!((start.snapshot, start.slice.head), (None, None));
}
