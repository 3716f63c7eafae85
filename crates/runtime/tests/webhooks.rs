//! Webhooks: deliveries follow from the events of runs, are made at least once, and never delay runs.

use serde_json::json;
use tandem_record::{Seq, TenantId, Timestamp, Webhook, WebhookId};
use tandem_runtime::{
    DeliveryRow, DeliveryState, MAX_WEBHOOKS, Retention, WebhookError, WebhookStatus,
    webhook_status,
};
use tandem_store::Outbox as _;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run, tenant};
use tandem_testkit::{InjectedFault, ScriptedWebhookSender, TargetBehavior, wf};
use tokio::test;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn hook(id: &str, events: &[&str]) -> Webhook {
    Webhook {
        id: WebhookId::new(id),
        tenant: tenant(),
        workspace: None,
        url: "https://example.com/in".to_owned(),
        events: events.iter().map(ToString::to_string).collect(),
        tags: Vec::new(),
        created_at: Timestamp(0),
        created_by: None,
        generation: 0,
        overlap_until: None,
        earlier_overlaps: Vec::new(),
    }
}

async fn with_hook(id: &str) -> (TestHost, WebhookId) {
    let host = TestHost::new().await;
    let id = subscribe(&host, hook(id, &["run.completed"])).await;
    host.register(wf("flow").noop("a")).await;
    (host, id)
}

async fn subscribe(host: &TestHost, hook: Webhook) -> WebhookId {
    let registered = host.runtime.register_webhook(&hook, None).await;
    registered.expect("there is room");
    hook.id
}

async fn log(host: &TestHost, id: &WebhookId) -> Vec<DeliveryRow> {
    let listed = host.runtime.webhook_deliveries(id, None, 1000).await;
    let mut rows = listed.expect("the store answers").rows;
    rows.reverse();
    rows
}

async fn status_of(host: &TestHost, id: &WebhookId) -> WebhookStatus {
    let found = host.runtime.webhook(&tenant(), None, id).await;
    let found = found.expect("the store answers").expect("it is registered");
    webhook_status(&found.health, host.runtime.clock().now())
}

/// Moves the clock past an open circuit and waits for what is due.
async fn advance_one_hour(host: &TestHost) {
    let ms = i64::try_from(HOUR + HOUR / 4).expect("it fits");
    host.runtime.advance_clock(ms).await.expect("it moves");
    host.elapse(50).await;
}

fn now(host: &TestHost) -> Timestamp {
    host.runtime.clock().now()
}

#[test(start_paused = true)]
async fn subscription_receives_chosen_events_in_order() {
    let host = TestHost::new().await;
    let all = ["run.started", "node.completed", "run.completed"];
    let everything = subscribe(&host, hook("wh-all", &all)).await;
    let ends = subscribe(&host, hook("wh-ends", &["run.completed"])).await;
    host.register(wf("flow").noop("a").noop("b")).await;
    let run = host.create("flow", json!({})).await;
    host.elapse(10).await;
    let delivered = host.webhook_sender.accepted(&everything);
    let sequences: Vec<u64> = delivered.iter().map(|attempt| attempt.seq.0).collect();
    assert!(sequences.is_sorted(), "{sequences:?}");
    assert_eq!(delivered.len(), 4, "a start, two nodes, an end");
    let last = host.log(&run).await.last().expect("it ended").seq;
    let delivered = host.webhook_sender.accepted(&ends);
    assert_eq!((delivered.len(), delivered[0].seq), (1, last));
    assert_eq!(
        delivered[0].delivery_id,
        format!("wh-ends:{}", run.event_id(last))
    );
    let rows = log(&host, &ends).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Delivered);
    assert_eq!(rows[0].progress.outcome.as_deref(), Some("answered 200"));
    assert_eq!(host.store.depth().await.expect("it answers"), 0);
}

#[test(start_paused = true)]
async fn events_are_filtered_by_tenant_workspace_and_tags() {
    let host = TestHost::new().await;
    let mut foreign = hook("wh-foreign", &["run.completed"]);
    foreign.tenant = "other".into();
    let mut elsewhere = hook("wh-elsewhere", &["run.completed"]);
    elsewhere.workspace = Some("w2".into());
    let mut tagged = hook("wh-tagged", &["run.completed"]);
    tagged.tags = vec!["red".to_owned(), "blue".to_owned()];
    for hook in [foreign, elsewhere, tagged] {
        subscribe(&host, hook).await;
    }
    host.register(wf("flow").noop("a")).await;
    host.create("flow", json!({})).await;
    let mut blue = new_run("flow", json!({}));
    blue.request.options.tags = Some(vec!["blue".to_owned()]);
    blue.request.owner.workspace = Some("w1".into());
    let blue = host
        .runtime
        .create_run(blue, None)
        .await
        .expect("it may start");
    host.elapse(10).await;
    let delivered = host.webhook_sender.attempts();
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert_eq!(
        (delivered[0].webhook.as_str(), &delivered[0].run),
        ("wh-tagged", &blue)
    );
}

#[test(start_paused = true)]
async fn deliveries_are_delayed_and_not_lost_while_a_target_is_down() {
    let (host, id) = with_hook("wh-1").await;
    let well_at = now(&host).plus_ms(HOUR);
    host.webhook_sender
        .set(&id, TargetBehavior::DownUntil(well_at));
    let mut runs = vec![host.create("flow", json!({})).await];
    host.elapse(30 * MINUTE).await;
    assert_eq!(status_of(&host, &id).await, WebhookStatus::Paused);
    let tried = host.webhook_sender.attempts().len();
    assert_eq!(tried, 4, "then the circuit is open");
    for _ in 0..20 {
        runs.push(host.create("flow", json!({})).await);
    }
    host.elapse(10 * MINUTE).await;
    assert_eq!(
        host.webhook_sender.attempts().len(),
        tried,
        "no attempts while it is open"
    );
    host.elapse(HOUR).await;
    let delivered: Vec<_> = host
        .webhook_sender
        .accepted(&id)
        .into_iter()
        .map(|p| p.run)
        .collect();
    assert_eq!(delivered, runs, "each once, in order");
    assert_eq!(status_of(&host, &id).await, WebhookStatus::Active);
    assert_eq!(log(&host, &id).await[0].progress.attempts, 5);
}

#[test(start_paused = true)]
async fn hanging_target_does_not_block_other_targets() {
    let host = TestHostBuilder {
        max_effects: 8,
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    let stuck = subscribe(&host, hook("wh-stuck", &["run.completed"])).await;
    let well = subscribe(&host, hook("wh-well", &["run.completed"])).await;
    host.webhook_sender.set(&stuck, TargetBehavior::Hangs);
    host.register(wf("call").http("a", 1)).await;
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(host.create("call", json!({})).await);
    }
    host.elapse(1_000).await;
    assert_eq!(host.webhook_sender.accepted(&well).len(), 100);
    assert!(host.webhook_sender.accepted(&stuck).is_empty());
    let waiting = log(&host, &stuck).await;
    assert_eq!(waiting.len(), 100, "no delivery is lost");
}

#[test(start_paused = true)]
async fn hanging_targets_of_one_tenant_leave_workers_to_other_tenants() {
    let host = TestHostBuilder {
        max_effects: 32,
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    let document = wf("flow").noop("a").document();
    let permissions = tandem_runtime::Permissions::default();
    let registered = host.runtime.register(None, &document, permissions).await;
    registered.expect("the workflow is sound");
    for n in 0..MAX_WEBHOOKS {
        let hook = Webhook {
            url: format!("https://host-{n}.example.com/in"),
            ..hook(&format!("wh-{n}"), &["run.completed"])
        };
        let id = subscribe(&host, hook).await;
        host.webhook_sender.set(&id, TargetBehavior::Hangs);
    }
    let other = TenantId::new("other");
    let theirs = Webhook {
        tenant: other.clone(),
        ..hook("wh-theirs", &["run.completed"])
    };
    let theirs = subscribe(&host, theirs).await;
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    let mut new = new_run("flow", json!({}));
    new.request.owner.tenant = other;
    let created = host.runtime.create_run(new, None).await;
    created.expect("the run may start");
    host.elapse(500).await;
    assert_eq!(host.webhook_sender.accepted(&theirs).len(), 1);
}

#[test(start_paused = true)]
async fn deleted_webhook_receives_nothing() {
    let (host, id) = with_hook("wh-1").await;
    host.webhook_sender.set(&id, TargetBehavior::Hangs);
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    let found = host.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    let deleted = host.runtime.delete_webhook(&found.webhook, None).await;
    deleted.expect("it was there");
    host.create("flow", json!({})).await;
    host.elapse(2 * HOUR).await;
    assert!(
        host.webhook_sender.attempts().is_empty(),
        "not even the running delivery"
    );
    assert_eq!(host.store.depth().await.expect("it answers"), 0);
    let again = host.runtime.delete_webhook(&found.webhook, None).await;
    assert!(matches!(again, Err(WebhookError::NotFound)));
}

#[test(start_paused = true)]
async fn crash_after_delivery_repeats_it_under_the_same_id() {
    let (host, id) = with_hook("wh-1").await;
    // The run, the expansion of the feed, and the record of the delivery.
    host.faults.next([
        InjectedFault::None,
        InjectedFault::None,
        InjectedFault::CrashesBefore,
    ]);
    host.create("flow", json!({})).await;
    host.faults.crashed().await;
    let next = TestHostBuilder {
        store: host.store.reopen(),
        webhook_sender: host.webhook_sender.clone(),
        ..TestHostBuilder::default()
    };
    let next = next.build().await;
    next.elapse(10).await;
    let delivered = next.webhook_sender.accepted(&id);
    assert_eq!(delivered.len(), 2, "at least once");
    assert_eq!(delivered[0].delivery_id, delivered[1].delivery_id);
    let rows = log(&next, &id).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Delivered);
}

#[test(start_paused = true)]
async fn crash_before_delivery_loses_nothing() {
    let (host, id) = with_hook("wh-1").await;
    host.webhook_sender.set(&id, TargetBehavior::Hangs);
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    host.runtime.shutdown(std::time::Duration::ZERO).await;
    let next = TestHostBuilder {
        store: host.store.reopen(),
        webhook_sender: std::sync::Arc::new(ScriptedWebhookSender::default()),
        ..TestHostBuilder::default()
    };
    let next = next.build().await;
    next.elapse(HOUR).await;
    assert_eq!(next.webhook_sender.accepted(&id).len(), 1);
}

#[test(start_paused = true)]
async fn failed_record_of_a_delivery_does_not_repeat_the_delivery() {
    for fault in [InjectedFault::FailsBefore, InjectedFault::FailsAfter] {
        let (host, id) = with_hook("wh-1").await;
        let none = InjectedFault::None;
        host.faults.next([none, none, fault, fault]);
        host.create("flow", json!({})).await;
        host.elapse(MINUTE).await;
        assert_eq!(host.webhook_sender.attempts().len(), 1, "{fault:?}");
        assert_eq!(
            log(&host, &id).await[0].progress.state,
            DeliveryState::Delivered
        );
    }
}

#[test(start_paused = true)]
async fn delivery_added_while_the_outbox_entry_is_removed_is_still_sent() {
    let (host, id) = with_hook("wh-1").await;
    // The run, the expansion of the feed, the record of the delivery, and the removal of the entry,
    // which is slow.
    let (none, slow) = (InjectedFault::None, InjectedFault::SlowBefore(50));
    host.faults.next([none, none, none, slow]);
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    assert_eq!(host.webhook_sender.accepted(&id).len(), 1);
    host.create("flow", json!({})).await;
    host.elapse(100).await;
    assert_eq!(host.webhook_sender.accepted(&id).len(), 2);
}

#[test(start_paused = true)]
async fn rejected_event_becomes_a_dead_letter_and_does_not_block_others() {
    let host = TestHost::new().await;
    let id = subscribe(&host, hook("wh-1", &["run.started", "run.completed"])).await;
    host.webhook_sender
        .set(&id, TargetBehavior::Poisoned(Seq(0)));
    host.register(wf("flow").noop("a")).await;
    host.create("flow", json!({})).await;
    host.elapse(MINUTE).await;
    for _ in 0..24 {
        advance_one_hour(&host).await;
    }
    let rows = log(&host, &id).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Dead);
    assert_eq!(rows[0].progress.attempts, 24);
    assert_eq!(rows[0].progress.outcome.as_deref(), Some("answered 500"));
    assert_eq!(rows[1].progress.state, DeliveryState::Delivered);
    let found = host.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    host.webhook_sender.set(&id, TargetBehavior::Healthy);
    host.runtime
        .redeliver(&found, 1, None)
        .await
        .expect("it is in the log");
    host.elapse(2 * HOUR).await;
    assert_eq!(
        log(&host, &id).await[0].progress.state,
        DeliveryState::Delivered
    );
}

#[test(start_paused = true)]
async fn target_down_for_days_fails_the_subscription() {
    let (host, id) = with_hook("wh-1").await;
    host.webhook_sender
        .set(&id, TargetBehavior::DownUntil(Timestamp(i64::MAX)));
    for _ in 0..110 {
        host.create("flow", json!({})).await;
        advance_one_hour(&host).await;
    }
    assert_eq!(status_of(&host, &id).await, WebhookStatus::Failed);
    let tried = host.webhook_sender.attempts().len();
    assert!((100..200).contains(&tried), "{tried}");
    host.create("flow", json!({})).await;
    advance_one_hour(&host).await;
    assert_eq!(host.webhook_sender.attempts().len(), tried);
    let rows = log(&host, &id).await;
    assert!(
        rows.iter()
            .all(|row| row.progress.state == DeliveryState::Dead)
    );
    assert_eq!(host.store.depth().await.expect("it answers"), 0);
    let found = host.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    let again = host.runtime.redeliver(&found, 1, None).await;
    assert!(matches!(again, Err(WebhookError::Failed)));
}

#[test(start_paused = true)]
async fn webhooks_per_tenant_are_limited() {
    let host = TestHost::new().await;
    for i in 0..MAX_WEBHOOKS {
        subscribe(&host, hook(&format!("wh-{i}"), &["run.completed"])).await;
    }
    let one_more = hook("wh-more", &["run.completed"]);
    let refused = host.runtime.register_webhook(&one_more, None).await;
    assert!(matches!(refused, Err(WebhookError::TooMany)));
    let mut other = one_more;
    other.tenant = "other".into();
    subscribe(&host, other).await;
}

#[test(start_paused = true)]
async fn delivery_whose_event_was_purged_counts_as_dropped_once() {
    let plan = TestHostBuilder {
        retention: Retention {
            default_ms: HOUR,
            ..Retention::default()
        },
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let id = subscribe(&host, hook("wh-1", &["run.completed"])).await;
    host.register(wf("flow").noop("a")).await;
    let up_again = now(&host).plus_ms(3 * HOUR);
    host.webhook_sender
        .set(&id, TargetBehavior::DownUntil(up_again));
    host.create("flow", json!({})).await;
    host.elapse(10).await;
    for _ in 0..4 {
        advance_one_hour(&host).await;
    }
    let found = async || {
        let found = host.runtime.webhook(&tenant(), None, &id).await;
        found.expect("the store answers").expect("it is registered")
    };
    let rows = log(&host, &id).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Dead);
    assert_eq!(
        rows[0].progress.outcome.as_deref(),
        Some("the event is gone")
    );
    assert_eq!(found().await.dropped, 1);
    // Trying it again by hand loses nothing more.
    let again = host.runtime.redeliver(&found().await, 1, None).await;
    again.expect("it is in the log");
    host.elapse(2 * HOUR).await;
    assert_eq!(log(&host, &id).await[0].progress.state, DeliveryState::Dead);
    assert_eq!(found().await.dropped, 1);
}
