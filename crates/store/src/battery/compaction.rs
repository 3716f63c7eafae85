//! What compaction needs: the non-expiring keys of a scope, and a guard that they still exist in
//! its commit.

use super::sample::{NOW, conflict, later, must};
use crate::{Commit, CommitGuard, Conflict, MemoryRow, MemorySegment, MemoryView, Store};
use std::sync::Arc;
use tandem_record::{RunId, Seq, TenantId, Timestamp};

fn note(run: &str, seq: u64, key: &str, expires_at: Option<Timestamp>) -> MemoryRow {
    let expiry = expires_at.map_or("null".to_owned(), |at| at.0.to_string());
    let body = format!("{{\"expires_at\":{expiry},\"written_at\":{}}}", NOW.0);
    MemoryRow {
        tenant: TenantId::new("t1"),
        scope: "s".into(),
        memory_ref: "notes".into(),
        key: key.into(),
        run: RunId::new(run),
        seq: Seq(seq),
        body: Some(body),
    }
}

fn deletion(run: &str, seq: u64, key: &str) -> MemoryRow {
    MemoryRow {
        body: None,
        ..note(run, seq, key, None)
    }
}

async fn journal(store: &Arc<dyn Store>, rows: impl IntoIterator<Item = MemoryRow>) {
    let commit = Commit {
        memory: rows.into_iter().collect(),
        ..Commit::default()
    };
    must(store, commit).await;
}

fn view(start: u64, segments: &[(&str, Option<u64>)]) -> MemoryView {
    MemoryView {
        tenant: TenantId::new("t1"),
        scope: "s".into(),
        start,
        segments: segments
            .iter()
            .map(|(run, below)| MemorySegment {
                run: RunId::new(run),
                below: below.map(Seq),
                applies_deletions: false,
            })
            .collect(),
    }
}

/// The number of keys, and the listed keys.
async fn non_expiring(
    store: &Arc<dyn Store>,
    view: &MemoryView,
    above: u64,
    limit: usize,
) -> (u64, Vec<String>) {
    let found = store.non_expiring_memory(view, "notes", "mem-", above, limit);
    let (held, rows) = found.await.expect("reads work");
    (held, rows.into_iter().map(|row| row.key).collect())
}

pub async fn non_expiring_keys_are_listed_above_the_threshold(store: Arc<dyn Store>) {
    let foreign = MemoryRow {
        tenant: TenantId::new("t2"),
        ..note("r9", 1, "mem-t", None)
    };
    let elsewhere = MemoryRow {
        memory_ref: "other".into(),
        ..note("r1", 7, "mem-o", None)
    };
    journal(
        &store,
        [
            foreign,
            elsewhere,
            note("r1", 1, "mem-z", None),
            note("r1", 2, "mem-a", None),
            note("r1", 3, "named", None),
            note("r1", 4, "mem-short", Some(later(5))),
            note("r1", 5, "mem-m", None),
            note("r1", 6, "mem-out", None),
            deletion("r1", 8, "mem-out"),
        ],
    )
    .await;
    let everything = view(u64::MAX, &[]);
    let listed = non_expiring(&store, &everything, 2, 9).await;
    let keys = ["mem-z", "mem-a", "mem-m"].map(str::to_owned);
    assert_eq!(listed, (3, keys.to_vec()), "oldest first");
    let listed = non_expiring(&store, &everything, 2, 2).await;
    assert_eq!(listed, (3, keys[..2].to_vec()), "up to the limit");
    assert_eq!(
        non_expiring(&store, &everything, 3, 9).await,
        (0, Vec::new())
    );
    // A key written again is the newest.
    journal(&store, [note("r1", 9, "mem-z", None)]).await;
    let keys = ["mem-a", "mem-m", "mem-z"].map(str::to_owned);
    assert_eq!(
        non_expiring(&store, &everything, 0, 9).await,
        (3, keys.to_vec())
    );
}

pub async fn non_expiring_keys_are_limited_to_the_view(store: Arc<dyn Store>) {
    journal(&store, [note("r1", 1, "mem-a", None)]).await;
    let start = store.memory_position().await.unwrap();
    journal(
        &store,
        [
            note("r2", 3, "mem-b", None),
            note("r3", 3, "mem-c", None),
            note("r2", 6, "mem-d", None),
        ],
    )
    .await;
    for (view, keys) in [
        (view(start, &[]), vec!["mem-a"]),
        (view(start, &[("r2", Some(6))]), vec!["mem-a", "mem-b"]),
        (
            view(start, &[("r2", None)]),
            vec!["mem-a", "mem-b", "mem-d"],
        ),
        (view(0, &[("r3", None)]), vec!["mem-c"]),
    ] {
        let (held, listed) = non_expiring(&store, &view, 0, 9).await;
        assert_eq!(
            (held, listed),
            (
                keys.len() as u64,
                keys.iter().map(|k| (*k).to_owned()).collect()
            )
        );
    }
    // A key deleted by others since then cannot be compacted, although the view includes it.
    journal(&store, [deletion("r4", 1, "mem-a")]).await;
    assert_eq!(non_expiring(&store, &view(start, &[]), 0, 9).await.0, 0);
}

pub async fn compacting_missing_keys_conflicts(store: Arc<dyn Store>) {
    journal(
        &store,
        [note("r1", 1, "mem-a", None), note("r1", 2, "mem-b", None)],
    )
    .await;
    let collapse = |run: &str, output: &str, keys: &[&str]| {
        let mut rows = vec![note(run, 1, output, None)];
        rows.extend(keys.iter().map(|key| deletion(run, 1, key)));
        Commit {
            guards: vec![CommitGuard::MemoryKeysPresent {
                tenant: TenantId::new("t1"),
                scope: "s".into(),
                memory_ref: "notes".into(),
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            }],
            memory: rows,
            ..Commit::default()
        }
    };
    must(&store, collapse("r2", "mem-1", &["mem-a", "mem-b"])).await;
    let position = store.memory_position().await.unwrap();
    for keys in [&["mem-1", "mem-a"][..], &["mem-nobody"]] {
        let refused = conflict(&store, collapse("r3", "mem-2", keys)).await;
        assert_eq!(refused, Conflict::MemoryKeysMissing);
    }
    assert_eq!(store.memory_position().await.unwrap(), position);
    let now = view(u64::MAX, &[]);
    let left = (1, vec!["mem-1".to_owned()]);
    assert_eq!(non_expiring(&store, &now, 0, 9).await, left);
}
