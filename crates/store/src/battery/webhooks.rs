//! Subscriptions and their bounded logs: deliveries are numbered, settled once, and removed with the
//! subscription.

use super::sample::{NOW, conflict, entry, later, must, put};
use crate::{
    Commit, CommitGuard, DELIVERY_LOG_LIMIT, DeliveryProgress, DeliveryRow, DeliveryState, LeaseId,
    LeaseRequest, OutboxChange, Store, WebhookChange,
};
use std::sync::Arc;
use tandem_record::{RunId, Seq, TenantId, Timestamp, WebhookId};

pub(super) fn changes(changes: impl IntoIterator<Item = WebhookChange>) -> Commit {
    Commit {
        webhooks: changes.into_iter().collect(),
        ..Commit::default()
    }
}

pub(super) fn registered(id: &str, tenant: &str) -> WebhookChange {
    WebhookChange::Put {
        webhook: WebhookId::new(id),
        tenant: TenantId::new(tenant),
        body: format!(r#"{{"id":"{id}"}}"#),
    }
}

pub(super) fn decided(id: &str, seq: u64, at: Timestamp) -> WebhookChange {
    WebhookChange::Deliver {
        webhook: WebhookId::new(id),
        run_id: RunId::new("r1"),
        seq: Seq(seq),
        event_type: "run.completed".into(),
        at,
    }
}

fn settled(id: &str, number: u64, state: DeliveryState) -> WebhookChange {
    WebhookChange::Settle {
        webhook: WebhookId::new(id),
        number,
        progress: DeliveryProgress {
            state,
            attempts: 2,
            last_at: Some(later(7)),
            outcome: Some("answered 500".into()),
        },
    }
}

fn numbers(rows: &[DeliveryRow]) -> Vec<u64> {
    rows.iter().map(|row| row.number).collect()
}

pub(super) async fn due(store: &Arc<dyn Store>, id: &str, now: Timestamp) -> Vec<u64> {
    let rows = store.due_deliveries(&id.into(), now, 100).await.unwrap();
    numbers(&rows)
}

pub async fn listed_by_tenant(store: Arc<dyn Store>) {
    let (one, two) = (registered("w2", "t1"), registered("w1", "t1"));
    must(&store, changes([one, two, registered("w3", "t2")])).await;
    let own = store.list_webhooks(&"t1".into()).await.unwrap();
    let ids: Vec<_> = own.iter().map(|sub| sub.webhook.as_str()).collect();
    assert_eq!(ids, ["w1", "w2"]);
    assert!(store.list_webhooks(&"t3".into()).await.unwrap().is_empty());
    let found = store.webhook(&"w3".into()).await.unwrap().unwrap();
    assert_eq!(
        (found.tenant.as_str(), found.body.as_str()),
        ("t2", r#"{"id":"w3"}"#)
    );
    assert_eq!((found.health, found.dropped), (None, 0));
}

pub async fn changing_a_webhook_retains_health_tenant_and_log(store: Arc<dyn Store>) {
    let health = WebhookChange::Health {
        webhook: "w1".into(),
        health: "{}".into(),
    };
    must(
        &store,
        changes([
            registered("w1", "t1"),
            health.clone(),
            decided("w1", 0, NOW),
        ]),
    )
    .await;
    let changed = WebhookChange::Put {
        webhook: "w1".into(),
        tenant: "t2".into(),
        body: "new".into(),
    };
    must(&store, changes([changed])).await;
    let found = store.webhook(&"w1".into()).await.unwrap().unwrap();
    assert_eq!((found.tenant.as_str(), found.body.as_str()), ("t1", "new"));
    assert_eq!(found.health.as_deref(), Some("{}"));
    assert_eq!(due(&store, "w1", NOW).await, [1]);
}

pub async fn deliveries_are_numbered_and_settled(store: Arc<dyn Store>) {
    must(
        &store,
        changes([
            registered("w1", "t1"),
            decided("w1", 3, NOW),
            decided("w1", 4, later(10)),
            decided("w1", 5, NOW),
        ]),
    )
    .await;
    assert_eq!(due(&store, "w1", NOW).await, [1, 3]);
    assert_eq!(due(&store, "w1", later(10)).await, [1, 2, 3]);
    let first = store.delivery(&"w1".into(), 1).await.unwrap().unwrap();
    assert_eq!((first.run_id.as_str(), first.seq), ("r1", Seq(3)));
    assert_eq!(
        (first.event_type.as_str(), first.created_at),
        ("run.completed", NOW)
    );
    let retry = DeliveryState::Pending { due: later(50) };
    must(
        &store,
        changes([
            settled("w1", 1, retry),
            settled("w1", 2, DeliveryState::Dead),
            settled("w1", 3, DeliveryState::Delivered),
        ]),
    )
    .await;
    assert!(due(&store, "w1", later(49)).await.is_empty());
    assert_eq!(
        store.next_delivery(&"w1".into()).await.unwrap(),
        Some(later(50))
    );
    let first = store.delivery(&"w1".into(), 1).await.unwrap().unwrap();
    let WebhookChange::Settle { progress, .. } = settled("w1", 1, retry) else {
        unreachable!("a settled delivery is one");
    };
    assert_eq!(first.progress, progress, "every field comes back");
}

pub async fn the_log_is_paged_newest_first(store: Arc<dyn Store>) {
    let mut all = vec![registered("w1", "t1")];
    all.extend((0..5).map(|seq| decided("w1", seq, NOW)));
    must(&store, changes(all)).await;
    let page = store.list_deliveries(&"w1".into(), None, 3).await.unwrap();
    assert_eq!((numbers(&page.rows), page.more), (vec![5, 4, 3], true));
    let page = store
        .list_deliveries(&"w1".into(), Some(3), 3)
        .await
        .unwrap();
    assert_eq!((numbers(&page.rows), page.more), (vec![2, 1], false));
}

pub async fn the_log_is_bounded(store: Arc<dyn Store>) {
    must(&store, changes([registered("w1", "t1")])).await;
    let many = (0..DELIVERY_LOG_LIMIT).map(|seq| decided("w1", seq, NOW));
    must(&store, changes(many)).await;
    must(
        &store,
        changes([settled("w1", 1, DeliveryState::Delivered)]),
    )
    .await;
    must(
        &store,
        changes([decided("w1", 1, NOW), decided("w1", 2, NOW)]),
    )
    .await;
    let found = store.webhook(&"w1".into()).await.unwrap().unwrap();
    assert_eq!(found.dropped, 1, "the first had been delivered");
    assert_eq!(store.delivery(&"w1".into(), 2).await.unwrap(), None);
    let page = store.list_deliveries(&"w1".into(), None, 1).await.unwrap();
    assert_eq!(numbers(&page.rows), [DELIVERY_LOG_LIMIT + 2]);
}

pub async fn deleting_removes_webhook_and_deliveries(store: Arc<dyn Store>) {
    must(
        &store,
        changes([registered("w1", "t1"), decided("w1", 0, NOW)]),
    )
    .await;
    must(
        &store,
        changes([WebhookChange::Delete {
            webhook: "w1".into(),
        }]),
    )
    .await;
    let late = WebhookChange::Health {
        webhook: "w1".into(),
        health: "{}".into(),
    };
    let dead = settled("w1", 1, DeliveryState::Dead);
    must(&store, changes([decided("w1", 1, NOW), late, dead])).await;
    assert_eq!(store.webhook(&"w1".into()).await.unwrap(), None);
    assert_eq!(store.next_delivery(&"w1".into()).await.unwrap(), None);
    let page = store.list_deliveries(&"w1".into(), None, 9).await.unwrap();
    assert!(page.rows.is_empty() && !page.more);
}

pub async fn no_delivery_guard_rejects_pending_deliveries(store: Arc<dyn Store>) {
    let asleep = |due: Option<Timestamp>| Commit {
        guards: vec![CommitGuard::NoDeliveryBefore {
            webhook: "w1".into(),
            due,
        }],
        ..changes([registered("w1", "t1")])
    };
    must(&store, asleep(None)).await;
    must(&store, changes([decided("w1", 0, later(5))])).await;
    conflict(&store, asleep(None)).await;
    conflict(&store, asleep(Some(later(6)))).await;
    must(&store, asleep(Some(later(5)))).await;
    must(&store, changes([settled("w1", 1, DeliveryState::Dead)])).await;
    must(&store, asleep(None)).await;
}

pub async fn waking_moves_an_entry_earlier_only(store: Arc<dyn Store>) {
    let wake = |at: Timestamp| Commit {
        outbox: vec![OutboxChange::Wake(entry("e1", at))],
        ..Commit::default()
    };
    let next = async || store.next_due().await.unwrap();
    must(&store, wake(later(50))).await;
    assert_eq!(next().await, Some(later(50)), "added when there was none");
    must(&store, wake(later(20))).await;
    assert_eq!(next().await, Some(later(20)));
    must(&store, wake(later(90))).await;
    assert_eq!(next().await, Some(later(20)));
    let request = LeaseRequest {
        lease: LeaseId::new("a", 1),
        now: later(20),
        until: later(500),
        lane_limits: vec![(super::sample::lane(), 1)],
    };
    assert_eq!(store.lease(request).await.unwrap().len(), 1);
    must(&store, wake(later(1))).await;
    assert_eq!(next().await, Some(later(500)), "its holder keeps it");
    must(&store, put([entry("e1", later(70))])).await;
    assert_eq!(next().await, Some(later(70)), "a put replaces");
}
