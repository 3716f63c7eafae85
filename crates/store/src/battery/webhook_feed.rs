//! The feed of a tenant: rows are added with their event, and removed once every subscription has
//! its deliveries.

use super::sample::{NOW, append, body, commit, conflict, must};
use super::webhooks::{changes, decided, due, registered};
use crate::{Commit, CommitGuard, Store, WebhookChange, WebhookFeed};
use std::sync::Arc;
use tandem_record::{Seq, StreamId, TenantId};

fn published(tenant: &str, body: &str) -> WebhookChange {
    WebhookChange::Publish {
        tenant: TenantId::new(tenant),
        body: body.to_owned(),
    }
}

fn expanded(chunk_end: u64, through: Option<&str>) -> WebhookChange {
    WebhookChange::Expand {
        tenant: "t1".into(),
        chunk_end,
        through: through.map(Into::into),
    }
}

async fn feed(store: &Arc<dyn Store>, tenant: &str) -> WebhookFeed {
    store.webhook_feed(&tenant.into(), 100).await.unwrap()
}

fn rows(feed: &WebhookFeed) -> Vec<(u64, &str)> {
    let rows = feed.rows.iter();
    rows.map(|row| (row.position, row.body.as_str())).collect()
}

pub async fn rows_are_numbered_for_each_tenant(store: Arc<dyn Store>) {
    assert_eq!(feed(&store, "t1").await, WebhookFeed::default());
    must(
        &store,
        changes([published("t1", "a"), published("t2", "b")]),
    )
    .await;
    must(&store, changes([published("t1", "c")])).await;
    let first = feed(&store, "t1").await;
    assert_eq!((first.head, rows(&first)), (2, vec![(1, "a"), (2, "c")]));
    assert_eq!(rows(&feed(&store, "t2").await), [(1, "b")]);
    let limited = store.webhook_feed(&"t1".into(), 1).await.unwrap();
    assert_eq!((limited.head, rows(&limited)), (2, vec![(1, "a")]));
}

pub async fn row_is_stored_only_with_its_event(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:r1");
    must(&store, commit([append(&stream, None, 1)])).await;
    let mut stale = commit([append(&stream, None, 1)]);
    stale.webhooks = vec![published("t1", "stale")];
    conflict(&store, stale).await;
    assert!(feed(&store, "t1").await.rows.is_empty());
    let mut next = commit([append(&stream, Some(0), 1)]);
    next.webhooks = vec![published("t1", "next")];
    must(&store, next).await;
    assert_eq!(rows(&feed(&store, "t1").await), [(1, "next")]);
    let slice = store.events(&stream, Some(Seq(0)), 1).await.unwrap();
    assert_eq!(slice.events[0].body, body(&stream, 1));
}

pub async fn progress_is_stored_with_its_deliveries(store: Arc<dyn Store>) {
    must(&store, changes([registered("w1", "t1")])).await;
    must(
        &store,
        changes([published("t1", "a"), published("t1", "b")]),
    )
    .await;
    let step = || changes([decided("w1", 0, NOW), expanded(1, Some("w1"))]);
    let mut refused = step();
    refused.guards = vec![CommitGuard::HoldsLease {
        effect: "nothing".into(),
        lease: crate::LeaseId::new("nobody", 1),
    }];
    conflict(&store, refused).await;
    assert_eq!(feed(&store, "t1").await.chunk, None);
    assert!(due(&store, "w1", NOW).await.is_empty());
    must(&store, step()).await;
    let found = feed(&store, "t1").await;
    assert_eq!(found.chunk, Some((1, "w1".into())));
    assert_eq!(rows(&found).len(), 2, "others still need the rows");
    assert_eq!(due(&store, "w1", NOW).await, [1]);
}

pub async fn finished_chunk_is_removed(store: Arc<dyn Store>) {
    let all = ["a", "b", "c"].map(|body| published("t1", body));
    must(&store, changes(all)).await;
    must(&store, changes([published("t2", "other")])).await;
    must(&store, changes([expanded(2, Some("w1"))])).await;
    must(&store, changes([expanded(2, None)])).await;
    let found = feed(&store, "t1").await;
    assert_eq!((found.chunk.clone(), rows(&found)), (None, vec![(3, "c")]));
    must(&store, changes([expanded(3, None)])).await;
    must(&store, changes([published("t1", "d")])).await;
    let found = feed(&store, "t1").await;
    assert_eq!(rows(&found), [(4, "d")], "positions are not used again");
    assert_eq!(rows(&feed(&store, "t2").await), [(1, "other")]);
}

pub async fn webhook_starts_at_the_end_of_the_feed(store: Arc<dyn Store>) {
    let start = async |id: &str| {
        let found = store.webhook(&id.into()).await.unwrap();
        found.unwrap().feed_start
    };
    must(&store, changes([registered("w1", "t1")])).await;
    must(
        &store,
        changes([published("t1", "a"), published("t1", "b")]),
    )
    .await;
    must(
        &store,
        changes([registered("w2", "t1"), registered("w3", "t2")]),
    )
    .await;
    assert_eq!(
        (start("w1").await, start("w2").await, start("w3").await),
        (0, 2, 0)
    );
    must(&store, changes([registered("w1", "t1")])).await;
    assert_eq!(start("w1").await, 0, "a change is no registration");
}

pub async fn feed_guard_rejects_later_rows(store: Arc<dyn Store>) {
    let ends_at = |position: u64| Commit {
        guards: vec![CommitGuard::FeedEndsAt {
            tenant: "t1".into(),
            position,
        }],
        ..Commit::default()
    };
    must(&store, ends_at(0)).await;
    must(
        &store,
        changes([published("t1", "a"), published("t2", "b")]),
    )
    .await;
    conflict(&store, ends_at(0)).await;
    must(&store, ends_at(1)).await;
    must(&store, changes([expanded(1, None)])).await;
    must(&store, ends_at(1)).await;
}

pub async fn webhook_guard_rejects_another_body(store: Arc<dyn Store>) {
    let unchanged = |body: &str| Commit {
        guards: vec![CommitGuard::WebhookUnchanged {
            webhook: "w1".into(),
            body: body.to_owned(),
        }],
        ..Commit::default()
    };
    conflict(&store, unchanged(r#"{"id":"w1"}"#)).await;
    must(&store, changes([registered("w1", "t1")])).await;
    must(&store, unchanged(r#"{"id":"w1"}"#)).await;
    conflict(&store, unchanged("{}")).await;
}

pub async fn dropped_deliveries_are_counted(store: Arc<dyn Store>) {
    let dropped = |webhook: &str, count: u64| WebhookChange::Drop {
        webhook: webhook.into(),
        count,
    };
    must(&store, changes([registered("w1", "t1"), dropped("w1", 3)])).await;
    must(&store, changes([dropped("w1", 4), dropped("gone", 1)])).await;
    let found = store.webhook(&"w1".into()).await.unwrap().unwrap();
    assert_eq!(found.dropped, 7);
    assert_eq!(store.webhook(&"gone".into()).await.unwrap(), None);
}
