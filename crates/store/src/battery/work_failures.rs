//! Failed work is rescheduled, then parked, and never delays other work.

use super::sample::{NOW, entry, lane, lanes_due, later, must, put};
use crate::{
    Commit, DueTimer, LeaseId, LeaseRequest, OutboxEntry, Store, TimerChange, WorkFailure,
};
use std::sync::Arc;
use tandem_record::{EffectId, StreamId, TenantId, TimerName, Timestamp};

fn set(stream: &str, due: Timestamp) -> Commit {
    set_for("acme", stream, due)
}

fn set_for(tenant: &str, stream: &str, due: Timestamp) -> Commit {
    Commit {
        timers: vec![TimerChange::Set {
            stream: StreamId::new(stream),
            name: TimerName::new("deadline"),
            due,
            tenant: TenantId::new(tenant),
        }],
        ..Commit::default()
    }
}

fn failure(failures: u32, retry_at: Option<Timestamp>) -> WorkFailure {
    WorkFailure {
        failures,
        error: "it is too large".into(),
        failed_at: NOW,
        retry_at,
    }
}

async fn due(store: &Arc<dyn Store>, now: Timestamp) -> Vec<DueTimer> {
    store.due_timers(now, 10).await.expect("reads work")
}

async fn lease(store: &Arc<dyn Store>, now: Timestamp) -> Vec<OutboxEntry> {
    let lanes = store.due_lanes(lanes_due(lane().class, now)).await;
    let request = LeaseRequest {
        lease: LeaseId::new("me", 1),
        now,
        until: now.plus_ms(60),
        lane_limits: lanes
            .expect("reads work")
            .into_iter()
            .map(|due| (due.lane, 10))
            .collect(),
    };
    store.lease(request).await.expect("leasing works")
}

pub async fn failed_timer_does_not_block_other_timers(store: Arc<dyn Store>) {
    must(&store, set("run:bad", NOW)).await;
    must(&store, set("run:good", later(1))).await;
    let first = store.due_timers(later(1), 1).await.unwrap();
    assert_eq!(first[0].stream.as_str(), "run:bad");
    let later_on = failure(1, Some(later(100)));
    store
        .record_timer_failure(&first[0], later_on)
        .await
        .unwrap();
    let next = store.due_timers(later(1), 1).await.unwrap();
    assert_eq!(next[0].stream.as_str(), "run:good");
    assert_eq!(store.next_timer().await.unwrap(), Some(later(1)));
    let again = due(&store, later(100)).await;
    assert_eq!(again[1].stream.as_str(), "run:bad");
    assert_eq!((again[1].failures, again[1].due), (1, later(100)));
}

pub async fn a_parked_timer_waits_for_a_retry(store: Arc<dyn Store>) {
    must(&store, set("run:bad", NOW)).await;
    let timer = due(&store, NOW).await.remove(0);
    store
        .record_timer_failure(&timer, failure(9, None))
        .await
        .unwrap();
    assert!(due(&store, Timestamp(i64::MAX - 1)).await.is_empty());
    assert_eq!(store.next_timer().await.unwrap(), None);
    assert_eq!(store.count_parked().await.unwrap(), 1);
    let parked = store.list_parked(None, 10).await.unwrap();
    assert_eq!(parked[0].stream.as_str(), "run:bad");
    assert_eq!(parked[0].tenant, Some(TenantId::new("acme")));
    assert_eq!(parked[0].kind, "timer");
    assert_eq!(parked[0].name, "deadline");
    assert_eq!((parked[0].failures, parked[0].failed_at), (9, NOW));
    assert_eq!(parked[0].error, "it is too large");
    let stream = StreamId::new("run:bad");
    assert_eq!(store.retry_parked(&stream, later(5)).await.unwrap(), 1);
    assert_eq!(store.retry_parked(&stream, later(5)).await.unwrap(), 0);
    let again = due(&store, later(5)).await;
    assert_eq!((again[0].failures, again[0].due), (0, later(5)));
    assert_eq!(store.count_parked().await.unwrap(), 0);
}

pub async fn setting_a_timer_again_clears_its_failures(store: Arc<dyn Store>) {
    must(&store, set("run:a", NOW)).await;
    let read = due(&store, NOW).await.remove(0);
    store
        .record_timer_failure(&read, failure(3, None))
        .await
        .unwrap();
    must(&store, set("run:a", later(7))).await;
    let moved = due(&store, later(7)).await.remove(0);
    assert_eq!((moved.failures, moved.due), (0, later(7)));
    assert_eq!(store.count_parked().await.unwrap(), 0);
    // A failure is ignored if the timer was moved after it was read.
    store
        .record_timer_failure(&read, failure(4, None))
        .await
        .unwrap();
    assert_eq!(due(&store, later(7)).await, [moved]);
}

pub async fn failed_entry_counts_its_failures(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    assert_eq!(lease(&store, NOW).await[0].failures, 0);
    let effect = EffectId::new("e1");
    let off = failure(1, Some(later(50)));
    store
        .record_effect_failure(&effect, &LeaseId::new("me", 1), off)
        .await
        .unwrap();
    assert!(lease(&store, later(49)).await.is_empty());
    assert_eq!(store.next_due().await.unwrap(), Some(later(50)));
    assert_eq!(lease(&store, later(50)).await[0].failures, 1);
    must(&store, put([entry("e1", later(60))])).await;
    let fresh = lease(&store, later(200)).await;
    assert_eq!(fresh[0].failures, 0, "a new entry has no failures");
}

pub async fn a_parked_entry_waits_for_a_retry(store: Arc<dyn Store>) {
    must(&store, put([entry("bad", NOW), entry("good", later(5))])).await;
    assert_eq!(lease(&store, NOW).await.len(), 1);
    let effect = EffectId::new("bad");
    let parked = failure(9, None);
    store
        .record_effect_failure(&effect, &LeaseId::new("me", 1), parked)
        .await
        .unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some(later(5)));
    let taken = lease(&store, later(900)).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].effect.as_str(), "good");
    assert_eq!(store.depth().await.unwrap(), 2, "it is kept");
    let listed = store.list_parked(None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].kind.as_str(), listed[0].name.as_str()),
        ("http", "bad")
    );
    assert_eq!(listed[0].tenant, Some(lane().tenant));
    let stream = StreamId::new("run:r1");
    let at = later(901);
    assert_eq!(store.retry_parked(&stream, at).await.unwrap(), 1);
    let again = lease(&store, at).await;
    assert_eq!((again[0].effect.as_str(), again[0].failures), ("bad", 0));
}

pub async fn only_the_lease_holder_records_a_failure(store: Arc<dyn Store>) {
    must(&store, put([entry("e1", NOW)])).await;
    let effect = EffectId::new("e1");
    let off = failure(1, None);
    store
        .record_effect_failure(&effect, &LeaseId::new("me", 1), off.clone())
        .await
        .unwrap();
    assert_eq!(lease(&store, NOW).await.len(), 1, "nobody held it");
    store
        .record_effect_failure(&effect, &LeaseId::new("other", 1), off.clone())
        .await
        .unwrap();
    assert_eq!(store.count_parked().await.unwrap(), 0);
    let absent = EffectId::new("absent");
    store
        .record_effect_failure(&absent, &LeaseId::new("me", 1), off)
        .await
        .unwrap();
    assert_eq!(store.count_parked().await.unwrap(), 0);
}

pub async fn parked_work_is_listed_by_tenant(store: Arc<dyn Store>) {
    for (tenant, stream) in [("acme", "run:a"), ("beta", "conv:b")] {
        must(&store, set_for(tenant, stream, NOW)).await;
    }
    for timer in due(&store, NOW).await {
        store
            .record_timer_failure(&timer, failure(9, None))
            .await
            .unwrap();
    }
    let beta = TenantId::new("beta");
    let of_beta = store.list_parked(Some(&beta), 10).await.unwrap();
    assert_eq!(of_beta.len(), 1);
    assert_eq!(of_beta[0].stream.as_str(), "conv:b");
    assert_eq!(store.list_parked(None, 1).await.unwrap().len(), 1);
    assert_eq!(store.count_parked().await.unwrap(), 2);
}
