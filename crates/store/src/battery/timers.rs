//! Timers are set and cleared by commits and are listed by due time. Their names are opaque to the
//! store.

use super::sample::{NOW, append, commit, conflict, later, must};
use crate::{Commit, Store, TimerChange, WorkFailure};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{StreamId, TenantId, TimerName, Timestamp};

const DEADLINE: &str = r#"{"k":"run_deadline"}"#;
const WAKE: &str = r#"{"k":"node_wake","node":"n1","attempt":1}"#;
const SECOND_WAKE: &str = r#"{"k":"node_wake","node":"n1","attempt":2}"#;

fn set(stream: &str, name: &str, due: Timestamp) -> TimerChange {
    TimerChange::Set {
        stream: StreamId::new(stream),
        name: TimerName::new(name),
        due,
        tenant: TenantId::new("acme"),
    }
}

fn clear(stream: &str, name: &str) -> TimerChange {
    TimerChange::Clear {
        stream: StreamId::new(stream),
        name: TimerName::new(name),
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
        set("run:a", DEADLINE, later(30)),
        set("run:b", WAKE, later(10)),
        set("run:a", WAKE, later(20)),
    ];
    must(&store, timers(changes)).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(10)));
    assert!(store.due_timers(later(9), 10).await.unwrap().is_empty());
    let due = store.due_timers(later(20), 10).await.unwrap();
    assert_eq!(due.len(), 2, "due at the moment counts");
    assert_eq!(due[0].stream, StreamId::new("run:b"), "earliest first");
    assert_eq!(due[0].name.as_str(), WAKE);
    assert_eq!(due[1].due, later(20));
    let one = store.due_timers(later(99), 1).await.unwrap();
    assert_eq!(
        one,
        due[..1],
        "at most the limit, and reading claims nothing"
    );
}

pub async fn set_moves_and_clear_removes(store: Arc<dyn Store>) {
    must(&store, timers([set("run:a", WAKE, later(10))])).await;
    must(&store, timers([set("run:a", WAKE, later(50))])).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(50)), "moved");
    let due = store.due_timers(later(99), 10).await.unwrap();
    assert_eq!(due.len(), 1, "moving makes no second timer");
    must(
        &store,
        timers([clear("run:a", WAKE), clear("run:a", DEADLINE)]),
    )
    .await;
    assert_eq!(store.next_timer().await.unwrap(), None);
    // Changes are applied in order.
    let both = [set("run:a", SECOND_WAKE, NOW), clear("run:a", SECOND_WAKE)];
    must(&store, timers(both)).await;
    assert_eq!(store.next_timer().await.unwrap(), None);
}

pub async fn timers_are_distinguished_by_name(store: Arc<dyn Store>) {
    let names = [
        DEADLINE,
        WAKE,
        SECOND_WAKE,
        "reminder",
        "reminder ",
        "Reminder",
        "",
    ];
    let streams = ["run:a", "run:b", "conv:a"];
    let all = streams
        .into_iter()
        .flat_map(|stream| names.iter().map(move |name| set(stream, name, NOW)));
    must(&store, timers(all)).await;
    must(&store, timers([clear("run:a", WAKE)])).await;
    let due = store.due_timers(NOW, 100).await.unwrap();
    assert_eq!(due.len(), streams.len() * names.len() - 1);
    for name in names {
        let of_a = due
            .iter()
            .any(|timer| timer.stream.as_str() == "run:a" && timer.name.as_str() == name);
        assert_eq!(of_a, name != WAKE, "{name:?}");
    }
}

pub async fn rejected_commit_sets_no_timer(store: Arc<dyn Store>) {
    must(&store, timers([set("run:b", DEADLINE, later(5))])).await;
    let mut stale = commit([append(&StreamId::new("run:a"), Some(1), 1)]);
    stale.timers = vec![set("run:a", DEADLINE, NOW), clear("run:b", DEADLINE)];
    conflict(&store, stale).await;
    assert_eq!(store.next_timer().await.unwrap(), Some(later(5)));
}

pub async fn claimed_timer_is_due_again_when_its_claim_ends(store: Arc<dyn Store>) {
    let changes = [
        set("run:a", DEADLINE, NOW),
        set("run:b", DEADLINE, later(5)),
        set("run:c", DEADLINE, later(50)),
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
    must(&store, timers([clear("run:b", DEADLINE)])).await;
    let due = store.due_timers(later(70), 9).await.unwrap();
    let streams: Vec<&str> = due.iter().map(|timer| timer.stream.as_str()).collect();
    assert_eq!(streams, ["run:c", "run:a"], "the first claim ended");
}

pub async fn failure_of_a_claimed_timer_reschedules_it(store: Arc<dyn Store>) {
    must(&store, timers([set("run:a", DEADLINE, NOW)])).await;
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
    let changes = (0..100).map(|n| set(&format!("run:{n}"), DEADLINE, NOW));
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
