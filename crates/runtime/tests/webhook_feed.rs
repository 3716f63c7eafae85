//! The feed of webhooks: a run's commit adds one row, and the expansion to deliveries survives
//! faults and crashes at every commit.

use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{Timestamp, Webhook, WebhookId};
use tandem_runtime::{MAX_WEBHOOKS, WebhookError};
use tandem_store::{Outbox as _, ReadWebhooks as _};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{InjectedFault, ScriptedWebhookSender, TargetBehavior, wf};
use tokio::test;

/// Enough subscriptions for four commits of one expansion.
const SUBSCRIPTIONS: usize = 50;
const EXPANSION_COMMITS: usize = 4;

fn hook(id: &str) -> Webhook {
    Webhook {
        id: WebhookId::new(id),
        tenant: tenant(),
        workspace: None,
        url: "https://example.com/in".to_owned(),
        events: vec!["run.completed".to_owned()],
        tags: Vec::new(),
        created_at: Timestamp(0),
        created_by: None,
        generation: 0,
        overlap_until: None,
        earlier_overlaps: Vec::new(),
    }
}

async fn subscribe(host: &TestHost, id: &str) -> WebhookId {
    let hook = hook(id);
    let registered = host.runtime.register_webhook(&hook, None).await;
    registered.expect("there is room");
    hook.id
}

async fn with_hooks(count: usize) -> (TestHost, Vec<WebhookId>) {
    let host = TestHost::new().await;
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(subscribe(&host, &format!("wh-{n}")).await);
    }
    host.register(wf("flow").noop("a")).await;
    (host, ids)
}

async fn numbers_in_log(host: &TestHost, id: &WebhookId) -> Vec<u64> {
    let listed = host.runtime.webhook_deliveries(id, None, 1000).await;
    let rows = listed.expect("the store answers").rows;
    rows.iter().map(|row| row.number).collect()
}

async fn assert_drained(host: &TestHost) {
    let feed = host.store.webhook_feed(&tenant(), 9).await;
    let feed = feed.expect("the store answers");
    assert_eq!((feed.rows, feed.chunk), (Vec::new(), None));
    assert_eq!(host.store.depth().await.expect("it answers"), 0);
}

#[test(start_paused = true)]
async fn commit_of_a_run_does_not_grow_with_the_number_of_webhooks() {
    let mut sizes = Vec::new();
    for count in [1, MAX_WEBHOOKS] {
        let (host, _) = with_hooks(count).await;
        host.create("flow", json!({})).await;
        sizes.push(host.committed.last_append_size());
        host.elapse(1_000).await;
        assert_eq!(host.webhook_sender.attempts().len(), count);
        assert_drained(&host).await;
    }
    assert_eq!(sizes[0], sizes[1]);
}

#[test(start_paused = true)]
async fn crash_at_any_commit_of_an_expansion_neither_loses_nor_repeats_a_delivery() {
    for fault in [InjectedFault::CrashesBefore, InjectedFault::CrashesAfter] {
        for at in 0..EXPANSION_COMMITS {
            let (host, ids) = with_hooks(SUBSCRIPTIONS).await;
            for id in &ids {
                // No attempt ends, so every commit after the run's is one of the expansion.
                host.webhook_sender.set(id, TargetBehavior::Hangs);
            }
            let before = std::iter::repeat_n(InjectedFault::None, 1 + at);
            host.faults.next(before.chain([fault]));
            host.create("flow", json!({})).await;
            host.faults.crashed().await;
            host.runtime.shutdown(Duration::ZERO).await;
            let next = TestHostBuilder {
                store: host.store.reopen(),
                webhook_sender: Arc::new(ScriptedWebhookSender::default()),
                ..TestHostBuilder::default()
            };
            let next = next.build().await;
            next.elapse(60_000).await;
            for id in &ids {
                let accepted = next.webhook_sender.accepted(id);
                assert_eq!(accepted.len(), 1, "{fault:?} at {at}: {id}");
                assert_eq!(numbers_in_log(&next, id).await, [1]);
            }
            assert_drained(&next).await;
        }
    }
}

#[test(start_paused = true)]
async fn failed_commit_of_an_expansion_is_retried_without_repetition() {
    for fault in [InjectedFault::FailsBefore, InjectedFault::FailsAfter] {
        for at in 0..EXPANSION_COMMITS {
            let (host, ids) = with_hooks(SUBSCRIPTIONS).await;
            let before = std::iter::repeat_n(InjectedFault::None, 1 + at);
            host.faults.next(before.chain([fault]));
            host.create("flow", json!({})).await;
            host.elapse(60_000).await;
            for id in &ids {
                assert_eq!(
                    host.webhook_sender.accepted(id).len(),
                    1,
                    "{fault:?} at {at}"
                );
                assert_eq!(numbers_in_log(&host, id).await, [1]);
            }
            assert_drained(&host).await;
        }
    }
}

#[test(start_paused = true)]
async fn webhook_registered_before_the_expansion_does_not_receive_earlier_events() {
    let (host, ids) = with_hooks(1).await;
    // The expansion fails once and is retried after the registration.
    host.faults
        .next([InjectedFault::None, InjectedFault::FailsBefore]);
    host.create("flow", json!({})).await;
    host.elapse(1).await;
    assert!(host.webhook_sender.attempts().is_empty());
    let late = subscribe(&host, "wh-late").await;
    host.elapse(1_000).await;
    assert_eq!(host.webhook_sender.accepted(&ids[0]).len(), 1);
    assert!(host.webhook_sender.accepted(&late).is_empty());
    host.create("flow", json!({})).await;
    host.elapse(1_000).await;
    assert_eq!(host.webhook_sender.accepted(&late).len(), 1);
}

#[test(start_paused = true)]
async fn webhook_deleted_before_the_expansion_receives_nothing() {
    let (host, _) = with_hooks(2).await;
    host.faults
        .next([InjectedFault::None, InjectedFault::FailsBefore]);
    host.create("flow", json!({})).await;
    host.elapse(1).await;
    let deleted = host.runtime.delete_webhook(&hook("wh-0"), None).await;
    deleted.expect("it was there");
    host.elapse(1_000).await;
    let attempts = host.webhook_sender.attempts();
    let to: Vec<_> = attempts.iter().map(|a| a.webhook.as_str()).collect();
    assert_eq!(to, ["wh-1"]);
    assert_drained(&host).await;
}

#[test(start_paused = true)]
async fn event_added_while_the_expansion_ends_is_still_delivered() {
    let (host, ids) = with_hooks(1).await;
    // The run, and the expansion that removes the entry, which is slow.
    host.faults
        .next([InjectedFault::None, InjectedFault::SlowBefore(50)]);
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    host.create("flow", json!({})).await;
    host.elapse(1_000).await;
    assert_eq!(host.webhook_sender.accepted(&ids[0]).len(), 2);
    assert_drained(&host).await;
}

#[test(start_paused = true)]
async fn second_of_two_concurrent_rotations_is_refused() {
    let (host, ids) = with_hooks(1).await;
    let read = hook("wh-0");
    let overlap = Some(Timestamp(i64::MAX));
    // Both computed their secret from the same generation.
    let (first, second) = tokio::join!(
        host.runtime.rotate_webhook(&read, overlap, None),
        host.runtime.rotate_webhook(&read, None, None),
    );
    first.expect("it is the first");
    let Err(WebhookError::Fault(fault)) = second else {
        panic!("{second:?}");
    };
    assert_eq!((fault.code, fault.retryable), ("contended", true));
    let found = host.runtime.webhook(&tenant(), None, &ids[0]).await;
    let found = found.expect("the store answers").expect("it is registered");
    let webhook = found.webhook;
    assert_eq!((webhook.generation, webhook.overlap_until), (1, overlap));
    let again = host.runtime.rotate_webhook(&webhook, None, None).await;
    again.expect("it was computed from the current secret");
}
