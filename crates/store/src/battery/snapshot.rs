//! A snapshot is stored with the append it was taken after.

use super::sample::{append, commit, conflict, must, whole};
use crate::{Error, SnapshotRecord, Store};
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
