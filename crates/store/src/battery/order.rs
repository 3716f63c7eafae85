//! Entries with an order key are leased one at a time, in the order they were put, whatever happens to
//! those before them.

use super::sample::{NOW, entry, held, lanes_due, later, must, put};
use crate::{
    Commit, Committed, Lane, LeaseId, LeaseRequest, Log, OutboxChange, OutboxEntry, Store,
    WorkClass, WorkFailure,
};
use std::sync::Arc;
use tandem_record::{EffectId, OrderKey, StreamId, TenantId, Timestamp};

fn ordered(effect: &str, key: &str) -> OutboxEntry {
    OutboxEntry {
        order_key: Some(OrderKey::new(key)),
        ..entry(effect, NOW)
    }
}

fn remove(effects: &[&str]) -> Commit {
    let removed = effects.iter().map(|effect| EffectId::new(*effect));
    Commit {
        outbox: removed.map(OutboxChange::Remove).collect(),
        ..Commit::default()
    }
}

/// Leases everything that is due, as one process.
async fn lease(store: &Arc<dyn Store>, owner: &str, now: Timestamp) -> Vec<String> {
    let lanes = store.due_lanes(lanes_due(WorkClass::Call, now)).await;
    let lanes = lanes.expect("reads work").into_iter();
    let request = LeaseRequest {
        lease: LeaseId::new(owner, 1),
        now,
        until: now.plus_ms(60),
        lane_limits: lanes.map(|due| (due.lane, 100)).collect(),
    };
    let taken = store.lease(request).await.expect("leasing works");
    taken.iter().map(|entry| entry.effect.to_string()).collect()
}

async fn fail(store: &Arc<dyn Store>, effect: &str, retry_at: Option<Timestamp>) {
    let failure = WorkFailure {
        failures: 1,
        error: "no answer".into(),
        failed_at: NOW,
        retry_at,
    };
    let (effect, lease) = (EffectId::new(effect), LeaseId::new("me", 1));
    store
        .record_effect_failure(&effect, &lease, failure)
        .await
        .expect("recording works");
}

pub async fn entries_are_leased_one_at_a_time_in_order(store: Arc<dyn Store>) {
    // Neither their names nor their times decide the order.
    let mut first = ordered("z", "k");
    first.available_at = later(3);
    let all = [first, ordered("m", "k"), ordered("a", "k")];
    must(&store, put(all)).await;
    assert!(lease(&store, "me", NOW).await.is_empty(), "not due yet");
    for expected in ["z", "m", "a"] {
        assert_eq!(lease(&store, "me", later(3)).await, [expected]);
        assert!(lease(&store, "me", later(3)).await.is_empty());
        must(&store, remove(&[expected])).await;
    }
    assert_eq!(store.depth().await.unwrap(), 0);
}

pub async fn order_is_kept_across_commits_and_streams(store: Arc<dyn Store>) {
    for (effect, stream) in [("e1", "conv:b"), ("e2", "conv:a"), ("e3", "conv:b")] {
        let entry = OutboxEntry {
            stream: StreamId::new(stream),
            ..ordered(effect, "k")
        };
        must(&store, put([entry])).await;
    }
    for expected in ["e1", "e2", "e3"] {
        assert_eq!(lease(&store, "me", NOW).await, [expected]);
        must(&store, remove(&[expected])).await;
    }
}

pub async fn failed_entry_holds_back_those_after_it(store: Arc<dyn Store>) {
    must(&store, put([ordered("e1", "k"), ordered("e2", "k")])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e1"]);
    fail(&store, "e1", Some(later(30))).await;
    assert!(lease(&store, "me", later(29)).await.is_empty());
    assert_eq!(store.next_due().await.unwrap(), Some(later(30)));
    assert_eq!(lease(&store, "me", later(30)).await, ["e1"], "the retry");
    must(&store, remove(&["e1"])).await;
    assert_eq!(lease(&store, "me", later(30)).await, ["e2"]);
}

pub async fn parked_entry_holds_back_those_after_it(store: Arc<dyn Store>) {
    must(&store, put([ordered("e1", "k"), ordered("e2", "k")])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e1"]);
    fail(&store, "e1", None).await;
    assert!(lease(&store, "me", later(90)).await.is_empty());
    assert_eq!(store.next_due().await.unwrap(), None);
    let stream = entry("e1", NOW).stream;
    assert_eq!(store.retry_parked(&stream, later(90)).await.unwrap(), 1);
    assert_eq!(lease(&store, "me", later(90)).await, ["e1"]);
    must(&store, remove(&["e1"])).await;
    assert_eq!(lease(&store, "me", later(90)).await, ["e2"]);
}

pub async fn removed_entries_release_those_after_them(store: Arc<dyn Store>) {
    let all = ["e1", "e2", "e3", "e4"].map(|effect| ordered(effect, "k"));
    must(&store, put(all)).await;
    // Cancelled while it waits, in the middle and then at the front.
    must(&store, remove(&["e2"])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e1"]);
    // The end of one and the next of the same order in one commit.
    let mut done = remove(&["e1"]);
    done.outbox.push(OutboxChange::Put(ordered("e5", "k")));
    must(&store, done).await;
    must(&store, remove(&["e3", "e4"])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e5"]);
    must(&store, remove(&["e5"])).await;
    must(&store, put([ordered("e6", "k")])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e6"], "nothing is left");
}

pub async fn expired_lease_keeps_the_order(store: Arc<dyn Store>) {
    must(&store, put([ordered("e1", "k"), ordered("e2", "k")])).await;
    assert_eq!(lease(&store, "crashed", NOW).await, ["e1"]);
    assert!(lease(&store, "other", later(59)).await.is_empty());
    assert_eq!(lease(&store, "other", later(60)).await, ["e1"]);
    assert_eq!(store.break_leases("third").await.unwrap(), 1);
    assert_eq!(lease(&store, "third", later(60)).await, ["e1"]);
    must(&store, remove(&["e1"])).await;
    assert_eq!(lease(&store, "third", later(60)).await, ["e2"]);
}

pub async fn replaced_entry_keeps_its_place(store: Arc<dyn Store>) {
    must(&store, put([ordered("e1", "k"), ordered("e2", "k")])).await;
    assert_eq!(lease(&store, "me", NOW).await, ["e1"]);
    let again = OutboxEntry {
        available_at: later(20),
        body: "again".into(),
        ..ordered("e1", "k")
    };
    must(&store, put([again])).await;
    assert!(lease(&store, "me", later(19)).await.is_empty());
    assert_eq!(lease(&store, "me", later(20)).await, ["e1"]);
    must(&store, put([ordered("e2", "k")])).await;
    assert!(lease(&store, "me", later(20)).await.is_empty());
    must(&store, remove(&["e1"])).await;
    assert_eq!(lease(&store, "me", later(20)).await, ["e2"]);
}

pub async fn ordered_entries_of_others_do_not_wait(store: Arc<dyn Store>) {
    let other_tenant = OutboxEntry {
        lane: Lane {
            tenant: TenantId::new("beta"),
            ..entry("e", NOW).lane
        },
        ..ordered("e5", "k")
    };
    let all = [
        ordered("e1", "k"),
        ordered("e2", "k"),
        ordered("e3", "another"),
        entry("e4", NOW),
        other_tenant,
    ];
    must(&store, put(all)).await;
    let mut taken = lease(&store, "me", NOW).await;
    taken.sort();
    assert_eq!(taken, ["e1", "e3", "e4", "e5"]);
}

pub async fn held_back_entries_are_not_due(store: Arc<dyn Store>) {
    let all = (0..50).map(|n| ordered(&format!("e{n:02}"), "k"));
    must(&store, put(all)).await;
    let query = || lanes_due(WorkClass::Call, NOW);
    let lanes = store.due_lanes(query()).await.unwrap();
    assert_eq!(lanes[0].due, 1, "a lane counts what can be leased");
    assert_eq!(lease(&store, "me", NOW).await, ["e00"]);
    assert!(store.due_lanes(query()).await.unwrap().is_empty());
    assert_eq!(
        store.next_due().await.unwrap(),
        Some(later(60)),
        "nothing is due before the lease ends"
    );
}

pub async fn only_the_first_of_an_order_is_put_with_a_lease(store: Arc<dyn Store>) {
    let leased = |effect: &str| OutboxEntry {
        lease: Some(held("me", later(60))),
        attempts: 1,
        ..ordered(effect, "k")
    };
    let commit = |commit| Log::commit(store.as_ref(), commit);
    let first = commit(put([leased("e1"), leased("e2")])).await.unwrap();
    assert_eq!(first.held, [EffectId::new("e2")], "the second waits");
    let third = commit(put([leased("e3")])).await.unwrap();
    assert_eq!(third.held, [EffectId::new("e3")]);
    assert!(lease(&store, "me", later(59)).await.is_empty());

    let done = commit(remove(&["e1"])).await.unwrap();
    assert!(done.has_released);
    assert_eq!(lease(&store, "me", later(59)).await, ["e2"]);
    assert!(commit(remove(&["e2"])).await.unwrap().has_released);
    assert_eq!(lease(&store, "me", later(59)).await, ["e3"]);
    let last = commit(remove(&["e3"])).await.unwrap();
    assert_eq!(last, Committed::default(), "nothing is left");
    let alone = commit(put([leased("e4")])).await.unwrap();
    assert!(alone.held.is_empty());
    assert!(lease(&store, "other", later(59)).await.is_empty());
    assert_eq!(lease(&store, "other", later(60)).await, ["e4"]);
}

pub async fn concurrent_processes_keep_the_order(store: Arc<dyn Store>) {
    const COUNT: usize = 40;
    let all = (0..COUNT).map(|n| ordered(&format!("e{n:02}"), "k"));
    must(&store, put(all)).await;
    let performed = Arc::new(std::sync::Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (store, performed) = (Arc::clone(&store), Arc::clone(&performed));
            tokio::spawn(async move {
                while store.depth().await.unwrap() > 0 {
                    for effect in lease(&store, &format!("worker-{worker}"), NOW).await {
                        performed.lock().expect("no panic").push(effect.clone());
                        must(&store, remove(&[effect.as_str()])).await;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("the worker ends");
    }
    let expected: Vec<String> = (0..COUNT).map(|n| format!("e{n:02}")).collect();
    assert_eq!(*performed.lock().expect("no panic"), expected);
}
