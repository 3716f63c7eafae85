//! An effect is attempted only by the holder of its lease.

use super::sample::{self, NOW, conflict, entry, held, later, must, put};
use crate::{
    Commit, CommitGuard, Conflict, LeaseId, LeaseRenewal, LeaseRequest, OutboxChange, OutboxEntry,
    Store,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{EffectId, Timestamp};

async fn lease(
    store: &Arc<dyn Store>,
    owner: &str,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Vec<OutboxEntry> {
    let lane = sample::lane();
    let found = store.due_lanes(sample::lanes_due(lane.class, now)).await;
    if found.expect("reads work").is_empty() {
        return Vec::new();
    }
    let request = LeaseRequest {
        lease: LeaseId::new(owner, 1),
        now,
        until,
        lane_limits: vec![(lane, limit)],
    };
    store.lease(request).await.expect("leasing works")
}

fn names(entries: &[OutboxEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.effect.as_str()).collect()
}

fn finished(effect: &str, owner: &str) -> Commit {
    Commit {
        outbox: vec![OutboxChange::Remove(EffectId::new(effect))],
        guards: vec![CommitGuard::HoldsLease {
            effect: EffectId::new(effect),
            lease: LeaseId::new(owner, 1),
        }],
        ..Commit::default()
    }
}

pub async fn leases_what_is_due_earliest_first(store: Arc<dyn Store>) {
    let entries = [
        entry("late", later(20)),
        entry("soon", later(5)),
        entry("first", NOW),
        entry("second", later(1)),
    ];
    must(&store, put(entries)).await;
    let taken = lease(&store, "me", later(10), later(60), 2).await;
    assert_eq!(
        names(&taken),
        ["first", "second"],
        "earliest, up to the limit"
    );
    let mut expected = entry("first", NOW);
    expected.attempts = 1;
    expected.lease = Some(held("me", later(60)));
    assert_eq!(taken[0], expected, "the entry shows its lease and attempt");
    let rest = lease(&store, "me", later(10), later(60), 10).await;
    assert_eq!(names(&rest), ["soon"], "what is not due stays");
}

pub async fn a_leased_entry_is_not_given_twice(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    assert_eq!(lease(&store, "me", NOW, later(60), 10).await.len(), 1);
    for owner in ["me", "other"] {
        let again = lease(&store, owner, later(59), later(99), 10).await;
        assert!(again.is_empty(), "{owner} got an entry under lease");
    }
}

pub async fn an_expired_lease_is_taken_over(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "dead", NOW, later(60), 1).await;
    let taken = lease(&store, "alive", later(60), later(120), 1).await;
    assert_eq!(names(&taken), ["e1"], "a lease expires at its end");
    assert_eq!(taken[0].attempts, 2, "every lease counts");
    assert_eq!(taken[0].lease, Some(held("alive", later(120))));
}

pub async fn released_entries_become_due_later(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "me", NOW, later(60), 1).await;
    let effect = EffectId::new("e1");
    store
        .release(&effect, &LeaseId::new("me", 1), later(10))
        .await
        .unwrap();
    assert!(lease(&store, "me", later(9), later(60), 1).await.is_empty());
    let taken = lease(&store, "other", later(10), later(60), 1).await;
    assert_eq!(names(&taken), ["e1"]);
    assert_eq!(taken[0].attempts, 2);
    assert_eq!(taken[0].available_at, later(10));
}

pub async fn release_needs_the_lease(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "me", NOW, later(60), 1).await;
    let effect = EffectId::new("e1");
    store
        .release(&effect, &LeaseId::new("other", 1), NOW)
        .await
        .unwrap();
    let absent = EffectId::new("absent");
    store
        .release(&absent, &LeaseId::new("me", 1), NOW)
        .await
        .unwrap();
    let taken = lease(&store, "other", later(1), later(60), 1).await;
    assert!(
        taken.is_empty(),
        "a release by another owner changed nothing"
    );
}

pub async fn breaks_leases_of_others(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW), entry("e2", later(5))])).await;
    lease(&store, "dead", NOW, later(1_000), 1).await;
    lease(&store, "me", later(5), later(1_000), 1).await;
    assert_eq!(store.break_leases("me").await.unwrap(), 1);
    let taken = lease(&store, "me", later(5), later(60), 10).await;
    assert_eq!(names(&taken), ["e1"], "own leases stay, others are free");
    assert_eq!(store.break_leases("me").await.unwrap(), 0);
}

pub async fn put_with_lease_is_leased(store: Arc<dyn Store>) {
    let mut leased = entry("e1", NOW);
    leased.attempts = 1;
    leased.lease = Some(held("me", later(60)));
    must(&store, put([leased])).await;
    assert!(
        lease(&store, "other", later(59), later(99), 1)
            .await
            .is_empty()
    );
    assert_eq!(store.next_due().await.unwrap(), Some(later(60)));
    must(&store, finished("e1", "me")).await;
    assert_eq!(store.depth().await.unwrap(), 0);
}

pub async fn commits_remove_entries(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW), entry("e2", NOW)])).await;
    assert_eq!(store.depth().await.unwrap(), 2);
    // Removal ignores leases: a cancelled run removes its effects.
    lease(&store, "me", NOW, later(60), 1).await;
    let mut gone = Commit::default();
    for effect in ["e1", "e2", "absent"] {
        gone.outbox
            .push(OutboxChange::Remove(EffectId::new(effect)));
    }
    must(&store, gone).await;
    assert_eq!(store.depth().await.unwrap(), 0);
    assert_eq!(store.next_due().await.unwrap(), None);
}

pub async fn put_replaces_an_entry(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "me", NOW, later(60), 1).await;
    let mut fresh = entry("e1", later(5));
    fresh.body = r#"{"attempt":2}"#.into();
    fresh.kind = "secret_echo".into();
    must(&store, put([fresh.clone()])).await;
    assert_eq!(store.depth().await.unwrap(), 1);
    let taken = lease(&store, "other", later(5), later(60), 1).await;
    fresh.attempts = 1;
    fresh.lease = Some(held("other", later(60)));
    assert_eq!(taken, [fresh], "the new entry has no lease and no failures");
}

pub async fn next_due_follows_leases(store: Arc<dyn Store>) {
    assert_eq!(store.next_due().await.unwrap(), None);
    must(&store, put([entry("e1", later(5)), entry("e2", later(9))])).await;
    assert_eq!(store.next_due().await.unwrap(), Some(later(5)));
    lease(&store, "me", later(5), later(7), 1).await;
    assert_eq!(store.next_due().await.unwrap(), Some(later(7)));
    lease(&store, "me", later(7), later(60), 1).await;
    assert_eq!(store.next_due().await.unwrap(), Some(later(9)));
}

pub async fn expired_lease_fences_its_old_holder(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "slow", NOW, later(60), 1).await;
    lease(&store, "quick", later(60), later(120), 1).await;
    conflict(&store, finished("e1", "slow")).await;
    assert_eq!(
        store.depth().await.unwrap(),
        1,
        "the entry is the new holder's"
    );
    must(&store, finished("e1", "quick")).await;
    conflict(&store, finished("e1", "quick")).await;
}

pub async fn renewed_lease_is_not_taken_over(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW), entry("e2", NOW)])).await;
    lease(&store, "me", NOW, later(60), 2).await;
    assert!(renew(&store, "me", 1, later(120), &["e1"]).await.is_empty());
    let taken = lease(&store, "other", later(60), later(90), 2).await;
    assert_eq!(names(&taken), ["e2"], "only one was renewed");
    assert_eq!(store.next_due().await.unwrap(), Some(later(90)));
    must(&store, finished("e1", "me")).await;
}

pub async fn lost_leases_are_not_renewed(store: Arc<dyn Store>) {
    let first = entry("e1", NOW);
    let others = ["e2", "e3", "e4"].map(|name| entry(name, later(1)));
    must(&store, put([first].into_iter().chain(others))).await;
    lease(&store, "me", NOW, later(60), 1).await;
    lease(&store, "me", later(1), later(200), 3).await;
    lease(&store, "other", later(60), later(120), 1).await;
    must(&store, finished("e2", "me")).await;
    let effect = EffectId::new("e3");
    let mine = LeaseId::new("me", 1);
    store.release(&effect, &mine, later(500)).await.unwrap();
    let all = ["e1", "e2", "e3", "e4", "absent"];
    let lost = renew(&store, "me", 1, later(900), &all).await;
    let kept: Vec<&str> = all
        .into_iter()
        .filter(|e| !lost.contains(&EffectId::new(*e)))
        .collect();
    assert_eq!(
        kept,
        ["e4"],
        "taken over, removed, released and unknown ones are lost"
    );
}

pub async fn lease_number_fences_the_same_process(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    lease(&store, "me", NOW, later(60), 1).await;
    let lane = sample::lane();
    let due = store
        .due_lanes(sample::lanes_due(lane.class, later(60)))
        .await;
    assert_eq!(due.expect("reads work").len(), 1);
    let again = LeaseRequest {
        lease: LeaseId::new("me", 2),
        now: later(60),
        until: later(120),
        lane_limits: vec![(lane, 1)],
    };
    assert_eq!(store.lease(again).await.unwrap().len(), 1);
    let refused = conflict(&store, finished("e1", "me")).await;
    assert_eq!(refused, Conflict::LeaseLost(EffectId::new("e1")));
    let effect = EffectId::new("e1");
    let first = LeaseId::new("me", 1);
    store.release(&effect, &first, NOW).await.unwrap();
    assert_eq!(renew(&store, "me", 1, later(900), &["e1"]).await, [effect]);
    assert_eq!(
        store.next_due().await.unwrap(),
        Some(later(120)),
        "the second lease holds"
    );
}

async fn renew(
    store: &Arc<dyn Store>,
    owner: &str,
    number: u64,
    until: Timestamp,
    effects: &[&str],
) -> Vec<EffectId> {
    let leases = effects.iter().map(|name| (EffectId::new(*name), number));
    let renewal = LeaseRenewal {
        owner: owner.into(),
        until,
        leases: leases.collect(),
    };
    store.renew_leases(renewal).await.expect("renewing works")
}

pub async fn concurrent_leases_are_disjoint(store: Arc<dyn Store>) {
    let count = 200;
    must(
        &store,
        put((0..count).map(|n| entry(&format!("e{n:03}"), NOW))),
    )
    .await;
    let tasks: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let owner = format!("owner-{n}");
                let mut mine = Vec::new();
                loop {
                    let taken = lease(&store, &owner, NOW, later(60), 7).await;
                    if taken.is_empty() {
                        return mine;
                    }
                    mine.extend(taken.into_iter().map(|entry| entry.effect));
                }
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    for task in tasks {
        for effect in task.await.expect("the task ends") {
            assert!(seen.insert(effect.clone()), "{effect} was leased twice");
        }
    }
    assert_eq!(seen.len(), count, "every entry was leased");
}
