//! Concurrent callers: exactly one winner where there can be only one, no lost writes, no partial
//! reads.

use super::idempotency::record;
use super::sample::{NOW, append, commit, head, must, partition, row, started, whole};
use crate::{Commit, CommitGuard, Conflict, DefinitionRecord, Error, RegistryChange, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tandem_record::StreamId;
use tokio::task::JoinSet;

const WRITERS: u64 = 64;
const RACERS: u64 = 16;

pub async fn distinct_streams_all_succeed(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for n in 0..WRITERS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let stream = StreamId::new(format!("run:{n}"));
            must(&store, commit([append(&stream, None, 2)])).await;
            for seq in 1..10 {
                must(&store, commit([append(&stream, Some(seq), 1)])).await;
                let seen = head(&store, &stream).await;
                assert_eq!(seen, Some(seq + 1), "a commit is seen once it returned");
            }
        });
    }
    finish(tasks).await;
    for n in 0..WRITERS {
        let stream = StreamId::new(format!("run:{n}"));
        assert_eq!(whole(&store, &stream).await.len(), 11);
    }
}

pub async fn one_winner_for_each_position(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    must(&store, commit([append(&stream, None, 1)])).await;
    let each = 10;
    let mut tasks = JoinSet::new();
    for _ in 0..RACERS {
        let (store, stream) = (Arc::clone(&store), stream.clone());
        tasks.spawn(async move {
            // Every task wins `each` times and reloads after each conflict.
            let mut won = 0;
            let mut at = 0;
            while won < each {
                match store.commit(commit([append(&stream, Some(at), 1)])).await {
                    Ok(_) => {
                        won += 1;
                        at += 1;
                    }
                    Err(Error::Conflict(Conflict::Position { actual, .. })) => {
                        let actual = actual.expect("the stream exists").0;
                        assert!(actual > at, "a conflict reports a later position");
                        at = actual;
                    }
                    Err(other) => panic!("unexpected {other:?}"),
                }
            }
        });
    }
    finish(tasks).await;
    let events = whole(&store, &stream).await;
    assert_eq!(events.len() as u64, 1 + RACERS * each, "no win was lost");
}

pub async fn readers_see_whole_commits(store: Arc<dyn Store>) {
    // Every commit advances both streams, so a reader of `a`, then `b`, finds `b` no shorter.
    let (a, b) = (StreamId::new("run:a"), StreamId::new("run:b"));
    must(&store, commit([append(&a, None, 3), append(&b, None, 3)])).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        let (a, b) = (a.clone(), b.clone());
        tasks.spawn(async move {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let of_a = whole(&store, &a).await.len();
                let of_b = whole(&store, &b).await.len();
                assert!(of_b >= of_a, "part of a commit was read: {of_a} and {of_b}");
                assert_eq!(of_a % 3, 0, "part of an append was seen");
                assert!(of_a >= last, "a reader went back in time");
                last = of_a;
                tokio::task::yield_now().await;
            }
        });
    }
    for round in 1..60 {
        let after = Some(round * 3 - 1);
        must(&store, commit([append(&b, after, 3), append(&a, after, 3)])).await;
    }
    done.store(true, Ordering::Relaxed);
    finish(tasks).await;
    assert_eq!(whole(&store, &a).await.len(), 180);
}

pub async fn one_winner_for_an_idempotency_key(store: Arc<dyn Store>) {
    let won = race(&store, |n| {
        let mut begin = commit([append(&StreamId::new(format!("run:{n}")), None, 1)]);
        begin.idempotency = vec![record("k1", NOW)];
        begin
    })
    .await;
    assert_eq!(won.len(), 1, "one request was carried out");
    for n in 0..RACERS {
        let exists = head(&store, &StreamId::new(format!("run:{n}")))
            .await
            .is_some();
        assert_eq!(exists, won.contains(&n), "only the winner left a stream");
    }
}

pub async fn one_live_run_for_a_scope(store: Arc<dyn Store>) {
    let won = race(&store, |n| {
        let mut run = row("t1", &format!("r{n}"));
        run.scope = Some("order-7".into());
        let mut claim = started(run);
        claim.guards.push(CommitGuard::ScopeFree {
            owner: partition("t1"),
            scope: "order-7".into(),
        });
        claim
    })
    .await;
    assert_eq!(won.len(), 1, "one run took the scope");
    let holder = store.live_run_in_scope(&partition("t1"), "order-7").await;
    assert_eq!(holder.unwrap(), Some(format!("r{}", won[0]).into()));
}

pub async fn one_first_registration(store: Arc<dyn Store>) {
    let won = race(&store, |n| Commit {
        registry: vec![RegistryChange::Register {
            owner: Some(partition("t1")),
            definition: DefinitionRecord {
                hash: format!("d{n}").into(),
                workflow: "flow".into(),
                document: "{}".into(),
            },
            at: NOW,
        }],
        guards: vec![CommitGuard::RegisteredAs {
            owner: Some(partition("t1")),
            workflow: "flow".into(),
            hash: None,
        }],
        ..Commit::default()
    })
    .await;
    assert_eq!(won.len(), 1, "one was the first");
    let found = store.registered(&partition("t1"), &"flow".into()).await;
    let hash = found.unwrap().expect("it is registered").hash;
    assert_eq!(hash, format!("d{}", won[0]).into());
}

/// Commits concurrently; returns which commits succeeded. Every other one must get a conflict.
async fn race(store: &Arc<dyn Store>, make: impl Fn(u64) -> Commit) -> Vec<u64> {
    let mut tasks = JoinSet::new();
    for n in 0..RACERS {
        let (store, commit) = (Arc::clone(store), make(n));
        tasks.spawn(async move { (n, store.commit(commit).await) });
    }
    let mut won = Vec::new();
    for (n, result) in tasks.join_all().await {
        match result {
            Ok(_) => won.push(n),
            Err(Error::Conflict(_)) => {}
            Err(Error::Fault(fault)) => panic!("unexpected {fault:?}"),
        }
    }
    won
}

async fn finish(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a task's assertions hold");
    }
}
