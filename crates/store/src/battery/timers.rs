//! Timers are set and cleared by commits and are listed by due time.

use super::sample::{NOW, append, commit, conflict, later, must};
use crate::{Commit, Store, TimerChange, WorkFailure};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{NodeId, StreamId, TimerKey, Timestamp};

fn set(stream: &str, key: TimerKey, due: Timestamp) -> TimerChange {
    TimerChange::Set {
        stream: StreamId::new(stream),
        key,
        due,
    }
}

fn clear(stream: &str, key: TimerKey) -> TimerChange {
    TimerChange::Clear {
        stream: StreamId::new(stream),
        key,
    }
}

fn wake(node: &str, attempt: u32) -> TimerKey {
    TimerKey::NodeWake {
        node: NodeId::new(node),
        attempt,
    }
}

fn timers(changes: impl IntoIterator<Item = TimerChange>) -> Commit {
    Commit {
        timers: changes.into_iter().collect(),
        ..Commit::default()
    }
}

pub async fn due_in_order(store: Arc<dyn Store>) {
    assert_eq!(store.next_timer().await.unwrap(), None);
    let changes = [
        set("run:a", TimerKey::RunDeadline, later(30)),
        set("run:b", wake("n1", 1), later(10)),
        set("run:a", wake("n1", 1), later(20)),
    ];
    must(&store, timers(changes)).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(10)));
    assert!(store.due_timers(later(9), 10).await.unwrap().is_empty());
    let due = store.due_timers(later(20), 10).await.unwrap();
    assert_eq!(due.len(), 2, "due at the moment counts");
    assert_eq!(due[0].stream, StreamId::new("run:b"), "earliest first");
    assert_eq!(due[0].key, wake("n1", 1));
    assert_eq!(due[1].due, later(20));
    let one = store.due_timers(later(99), 1).await.unwrap();
    assert_eq!(
        one,
        due[..1],
        "at most the limit, and reading claims nothing"
    );
}

pub async fn set_moves_and_clear_removes(store: Arc<dyn Store>) {
    must(&store, timers([set("run:a", wake("n1", 1), later(10))])).await;
    must(&store, timers([set("run:a", wake("n1", 1), later(50))])).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(50)), "moved");
    let due = store.due_timers(later(99), 10).await.unwrap();
    assert_eq!(due.len(), 1, "moving makes no second timer");
    must(
        &store,
        timers([
            clear("run:a", wake("n1", 1)),
            clear("run:a", TimerKey::RunDeadline),
        ]),
    )
    .await;
    assert_eq!(store.next_timer().await.unwrap(), None);
    // Changes are applied in order.
    let both = [
        set("run:a", wake("n1", 2), NOW),
        clear("run:a", wake("n1", 2)),
    ];
    must(&store, timers(both)).await;
    assert_eq!(store.next_timer().await.unwrap(), None);
}

pub async fn timers_are_distinguished_by_key(store: Arc<dyn Store>) {
    let node = || NodeId::new("n1");
    let keys = [
        TimerKey::RunDeadline,
        wake("n1", 1),
        wake("n1", 2),
        wake("n2", 1),
        TimerKey::NodeDeadline {
            node: node(),
            attempt: 1,
        },
        TimerKey::InterruptDeadline { node: node() },
        TimerKey::Trigger { id: "n1".into() },
    ];
    let all = ["run:a", "run:b"]
        .into_iter()
        .flat_map(|stream| keys.iter().map(move |key| set(stream, key.clone(), NOW)));
    must(&store, timers(all)).await;
    must(&store, timers([clear("run:a", wake("n1", 1))])).await;
    let due = store.due_timers(NOW, 100).await.unwrap();
    assert_eq!(due.len(), 2 * keys.len() - 1);
    for key in keys {
        let of_a = due
            .iter()
            .any(|timer| timer.stream.as_str() == "run:a" && timer.key == key);
        assert_eq!(of_a, key != wake("n1", 1), "{key:?}");
    }
}

pub async fn rejected_commit_sets_no_timer(store: Arc<dyn Store>) {
    must(
        &store,
        timers([set("run:b", TimerKey::RunDeadline, later(5))]),
    )
    .await;
    let mut stale = commit([append(&StreamId::new("run:a"), Some(1), 1)]);
    stale.timers = vec![
        set("run:a", TimerKey::RunDeadline, NOW),
        clear("run:b", TimerKey::RunDeadline),
    ];
    conflict(&store, stale).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(5)));
}

pub async fn claimed_timer_is_due_again_when_its_claim_ends(store: Arc<dyn Store>) {
    let changes = [
        set("run:a", TimerKey::RunDeadline, NOW),
        set("run:b", TimerKey::RunDeadline, later(5)),
        set("run:c", TimerKey::RunDeadline, later(50)),
    ];
    must(&store, timers(changes)).await;
    let claimed = store.claim_timers(later(10), later(60), 1).await.unwrap();
    assert_eq!(claimed[0].stream, StreamId::new("run:a"));
    assert_eq!(
        (claimed[0].due, claimed[0].claimed_until),
        (NOW, Some(later(60)))
    );
    let others = store.claim_timers(later(10), later(70), 9).await.unwrap();
    assert_eq!(others.len(), 1, "what is claimed or not due is not claimed");
    assert_eq!(others[0].stream, StreamId::new("run:b"));
    assert_eq!(store.next_timer().await.unwrap(), Some(later(50)));
    must(&store, timers([clear("run:b", TimerKey::RunDeadline)])).await;
    let due = store.due_timers(later(70), 9).await.unwrap();
    let streams: Vec<&str> = due.iter().map(|timer| timer.stream.as_str()).collect();
    assert_eq!(streams, ["run:c", "run:a"], "the first claim ended");
}

pub async fn failure_of_a_claimed_timer_reschedules_it(store: Arc<dyn Store>) {
    must(&store, timers([set("run:a", TimerKey::RunDeadline, NOW)])).await;
    let claimed = store.claim_timers(NOW, later(60), 1).await.unwrap();
    let failure = |retry_at| WorkFailure {
        failures: 1,
        error: "not now".into(),
        failed_at: NOW,
        retry_at: Some(retry_at),
    };
    let timer = &claimed[0];
    store
        .record_timer_failure(timer, failure(later(20)))
        .await
        .unwrap();
    assert_eq!(store.next_timer().await.unwrap(), Some(later(20)));
    // The claim is over: a second report changes nothing.
    store
        .record_timer_failure(timer, failure(later(90)))
        .await
        .unwrap();
    assert_eq!(store.next_timer().await.unwrap(), Some(later(20)));
}

pub async fn concurrent_claims_are_disjoint(store: Arc<dyn Store>) {
    let changes = (0..100).map(|n| set(&format!("run:{n}"), TimerKey::RunDeadline, NOW));
    must(&store, timers(changes)).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let claimed = store.claim_timers(NOW, later(60), 7).await.unwrap();
                    if claimed.is_empty() {
                        return mine;
                    }
                    mine.extend(claimed.into_iter().map(|timer| timer.stream));
                }
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    for task in tasks {
        for stream in task.await.expect("the task ends") {
            assert!(seen.insert(stream.clone()), "{stream} was claimed twice");
        }
    }
    assert_eq!(seen.len(), 100, "every timer was claimed");
}
