//! Webhooks: decided with the event, delivered at least once, never in anybody's way.

use serde_json::json;
use tandem_record::{Seq, TenantId, Timestamp, Webhook, WebhookId};
use tandem_runtime::{DeliveryRow, DeliveryState, MAX_WEBHOOKS, Standing, WebhookError, standing};
use tandem_store::Outbox as _;
use tandem_testkit::house::{House, Plan, new_run, tenant};
use tandem_testkit::{Mishap, ScriptedCourier, Target, wf};
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
    }
}

async fn with_hook(id: &str) -> (House, WebhookId) {
    let house = House::new().await;
    let id = subscribe(&house, hook(id, &["run.completed"])).await;
    house.register(wf("flow").noop("a")).await;
    (house, id)
}

async fn subscribe(house: &House, hook: Webhook) -> WebhookId {
    let registered = house.runtime.register_webhook(&hook, None).await;
    registered.expect("there is room");
    hook.id
}

async fn log(house: &House, id: &WebhookId) -> Vec<DeliveryRow> {
    let listed = house.runtime.webhook_deliveries(id, None, 1000).await;
    let mut rows = listed.expect("the store answers").rows;
    rows.reverse();
    rows
}

async fn standing_of(house: &House, id: &WebhookId) -> Standing {
    let found = house.runtime.webhook(&tenant(), None, id).await;
    let found = found.expect("the store answers").expect("it is registered");
    standing(&found.health, house.runtime.clock().now())
}

/// Moves the clock past an open circuit and lets what is due happen.
async fn leap(house: &House) {
    let ms = i64::try_from(HOUR + HOUR / 4).expect("it fits");
    house.runtime.advance_clock(ms).await.expect("it moves");
    house.elapse(50).await;
}

fn now(house: &House) -> Timestamp {
    house.runtime.clock().now()
}

#[test(start_paused = true)]
async fn a_subscription_hears_what_it_asked_for_in_order() {
    let house = House::new().await;
    let all = ["run.started", "node.completed", "run.completed"];
    let everything = subscribe(&house, hook("wh-all", &all)).await;
    let ends = subscribe(&house, hook("wh-ends", &["run.completed"])).await;
    house.register(wf("flow").noop("a").noop("b")).await;
    let run = house.create("flow", json!({})).await;
    house.elapse(10).await;
    let heard = house.courier.taken(&everything);
    let sequences: Vec<u64> = heard.iter().map(|parcel| parcel.seq.0).collect();
    assert!(sequences.is_sorted(), "{sequences:?}");
    assert_eq!(heard.len(), 4, "a start, two nodes, an end");
    let last = house.log(&run).await.last().expect("it ended").seq;
    let heard = house.courier.taken(&ends);
    assert_eq!((heard.len(), heard[0].seq), (1, last));
    assert_eq!(heard[0].parcel, format!("wh-ends:{}", run.event_id(last)));
    let rows = log(&house, &ends).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Delivered);
    assert_eq!(rows[0].progress.outcome.as_deref(), Some("answered 200"));
    assert_eq!(house.store.depth().await.expect("it answers"), 0);
}

#[test(start_paused = true)]
async fn tenants_workspaces_and_tags_keep_events_apart() {
    let house = House::new().await;
    let mut foreign = hook("wh-foreign", &["run.completed"]);
    foreign.tenant = "other".into();
    let mut elsewhere = hook("wh-elsewhere", &["run.completed"]);
    elsewhere.workspace = Some("w2".into());
    let mut tagged = hook("wh-tagged", &["run.completed"]);
    tagged.tags = vec!["red".to_owned(), "blue".to_owned()];
    for hook in [foreign, elsewhere, tagged] {
        subscribe(&house, hook).await;
    }
    house.register(wf("flow").noop("a")).await;
    house.create("flow", json!({})).await;
    let mut blue = new_run("flow", json!({}));
    blue.request.options.tags = Some(vec!["blue".to_owned()]);
    blue.request.owner.workspace = Some("w1".into());
    let blue = house
        .runtime
        .create_run(blue, None)
        .await
        .expect("it may start");
    house.elapse(10).await;
    let heard = house.courier.carried();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(
        (heard[0].webhook.as_str(), &heard[0].run),
        ("wh-tagged", &blue)
    );
}

#[test(start_paused = true)]
async fn an_hour_of_errors_delays_and_loses_nothing() {
    let (house, id) = with_hook("wh-1").await;
    let well_at = now(&house).plus_ms(HOUR);
    house.courier.set(&id, Target::DownUntil(well_at));
    let mut runs = vec![house.create("flow", json!({})).await];
    house.elapse(30 * MINUTE).await;
    assert_eq!(standing_of(&house, &id).await, Standing::Paused);
    let tried = house.courier.carried().len();
    assert_eq!(tried, 4, "then the circuit is open");
    for _ in 0..20 {
        runs.push(house.create("flow", json!({})).await);
    }
    house.elapse(10 * MINUTE).await;
    assert_eq!(
        house.courier.carried().len(),
        tried,
        "nobody knocks meanwhile"
    );
    house.elapse(HOUR).await;
    let heard: Vec<_> = house
        .courier
        .taken(&id)
        .into_iter()
        .map(|p| p.run)
        .collect();
    assert_eq!(heard, runs, "each once, in order");
    assert_eq!(standing_of(&house, &id).await, Standing::Active);
    assert_eq!(log(&house, &id).await[0].progress.attempts, 5);
}

#[test(start_paused = true)]
async fn a_target_that_hangs_is_in_nobodys_way() {
    let house = Plan {
        max_effects: 8,
        ..Plan::default()
    };
    let house = house.build().await;
    let stuck = subscribe(&house, hook("wh-stuck", &["run.completed"])).await;
    let well = subscribe(&house, hook("wh-well", &["run.completed"])).await;
    house.courier.set(&stuck, Target::Hangs);
    house.register(wf("call").http("a", 1)).await;
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(house.create("call", json!({})).await);
    }
    house.elapse(1_000).await;
    assert_eq!(house.courier.taken(&well).len(), 100);
    assert!(house.courier.taken(&stuck).is_empty());
    let waiting = log(&house, &stuck).await;
    assert_eq!(waiting.len(), 100, "all of it is kept");
}

#[test(start_paused = true)]
async fn targets_of_one_tenant_that_hang_leave_workers_to_another_tenant() {
    let house = Plan {
        max_effects: 32,
        ..Plan::default()
    };
    let house = house.build().await;
    let document = wf("flow").noop("a").document();
    let permissions = tandem_runtime::Permissions::default();
    let registered = house.runtime.register(None, &document, permissions).await;
    registered.expect("the workflow is sound");
    for n in 0..MAX_WEBHOOKS {
        let hook = Webhook {
            url: format!("https://host-{n}.example.com/in"),
            ..hook(&format!("wh-{n}"), &["run.completed"])
        };
        let id = subscribe(&house, hook).await;
        house.courier.set(&id, Target::Hangs);
    }
    let other = TenantId::new("other");
    let theirs = Webhook {
        tenant: other.clone(),
        ..hook("wh-theirs", &["run.completed"])
    };
    let theirs = subscribe(&house, theirs).await;
    house.create("flow", json!({})).await;
    house.elapse(10).await;
    let mut new = new_run("flow", json!({}));
    new.request.owner.tenant = other;
    let created = house.runtime.create_run(new, None).await;
    created.expect("the run may start");
    house.elapse(500).await;
    assert_eq!(house.courier.taken(&theirs).len(), 1);
}

#[test(start_paused = true)]
async fn nothing_follows_a_deletion() {
    let (house, id) = with_hook("wh-1").await;
    house.courier.set(&id, Target::Hangs);
    house.create("flow", json!({})).await;
    house.elapse(10).await;
    let found = house.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    let deleted = house.runtime.delete_webhook(&found.webhook, None).await;
    deleted.expect("it was there");
    house.create("flow", json!({})).await;
    house.elapse(2 * HOUR).await;
    assert!(
        house.courier.carried().is_empty(),
        "not even the one under way"
    );
    assert_eq!(house.store.depth().await.expect("it answers"), 0);
    let again = house.runtime.delete_webhook(&found.webhook, None).await;
    assert!(matches!(again, Err(WebhookError::NotFound)));
}

#[test(start_paused = true)]
async fn a_death_after_the_delivery_repeats_it_under_the_same_id() {
    let (house, id) = with_hook("wh-1").await;
    house.faults.next([Mishap::None, Mishap::CrashesBefore]);
    house.create("flow", json!({})).await;
    house.faults.crashed().await;
    let next = Plan {
        store: house.store.reopen(),
        courier: house.courier.clone(),
        ..Plan::default()
    };
    let next = next.build().await;
    next.elapse(10).await;
    let heard = next.courier.taken(&id);
    assert_eq!(heard.len(), 2, "at least once");
    assert_eq!(heard[0].parcel, heard[1].parcel);
    let rows = log(&next, &id).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Delivered);
}

#[test(start_paused = true)]
async fn a_death_before_the_delivery_loses_nothing() {
    let (house, id) = with_hook("wh-1").await;
    house.courier.set(&id, Target::Hangs);
    house.create("flow", json!({})).await;
    house.elapse(10).await;
    house.runtime.shutdown(std::time::Duration::ZERO).await;
    let next = Plan {
        store: house.store.reopen(),
        courier: std::sync::Arc::new(ScriptedCourier::default()),
        ..Plan::default()
    };
    let next = next.build().await;
    next.elapse(HOUR).await;
    assert_eq!(next.courier.taken(&id).len(), 1);
}

#[test(start_paused = true)]
async fn a_record_the_store_did_not_take_is_no_reason_to_deliver_again() {
    for mishap in [Mishap::FailsBefore, Mishap::FailsAfter] {
        let (house, id) = with_hook("wh-1").await;
        house.faults.next([Mishap::None, mishap, mishap]);
        house.create("flow", json!({})).await;
        house.elapse(MINUTE).await;
        assert_eq!(house.courier.carried().len(), 1, "{mishap:?}");
        assert_eq!(
            log(&house, &id).await[0].progress.state,
            DeliveryState::Delivered
        );
    }
}

#[test(start_paused = true)]
async fn what_comes_in_while_the_work_is_put_away_is_not_left_behind() {
    let (house, id) = with_hook("wh-1").await;
    // The run, the record of its delivery, and the end of the work, which takes its time.
    let slow = Mishap::SlowBefore(50);
    house.faults.next([Mishap::None, Mishap::None, slow]);
    house.create("flow", json!({})).await;
    house.elapse(10).await;
    assert_eq!(house.courier.taken(&id).len(), 1);
    house.create("flow", json!({})).await;
    house.elapse(100).await;
    assert_eq!(house.courier.taken(&id).len(), 2);
}

#[test(start_paused = true)]
async fn one_event_nobody_takes_ends_as_a_dead_letter_and_stops_no_other() {
    let house = House::new().await;
    let id = subscribe(&house, hook("wh-1", &["run.started", "run.completed"])).await;
    house.courier.set(&id, Target::Poisoned(Seq(0)));
    house.register(wf("flow").noop("a")).await;
    house.create("flow", json!({})).await;
    house.elapse(MINUTE).await;
    for _ in 0..24 {
        leap(&house).await;
    }
    let rows = log(&house, &id).await;
    assert_eq!(rows[0].progress.state, DeliveryState::Dead);
    assert_eq!(rows[0].progress.attempts, 24);
    assert_eq!(rows[0].progress.outcome.as_deref(), Some("answered 500"));
    assert_eq!(rows[1].progress.state, DeliveryState::Delivered);
    let found = house.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    house.courier.set(&id, Target::Well);
    house
        .runtime
        .redeliver(&found, 1, None)
        .await
        .expect("it is in the log");
    house.elapse(2 * HOUR).await;
    assert_eq!(
        log(&house, &id).await[0].progress.state,
        DeliveryState::Delivered
    );
}

#[test(start_paused = true)]
async fn a_target_that_is_gone_for_days_ends_the_subscription() {
    let (house, id) = with_hook("wh-1").await;
    house
        .courier
        .set(&id, Target::DownUntil(Timestamp(i64::MAX)));
    for _ in 0..110 {
        house.create("flow", json!({})).await;
        leap(&house).await;
    }
    assert_eq!(standing_of(&house, &id).await, Standing::Failed);
    let tried = house.courier.carried().len();
    assert!((100..200).contains(&tried), "{tried}");
    house.create("flow", json!({})).await;
    leap(&house).await;
    assert_eq!(house.courier.carried().len(), tried);
    let rows = log(&house, &id).await;
    assert!(
        rows.iter()
            .all(|row| row.progress.state == DeliveryState::Dead)
    );
    assert_eq!(house.store.depth().await.expect("it answers"), 0);
    let found = house.runtime.webhook(&tenant(), None, &id).await;
    let found = found.expect("the store answers").expect("it is registered");
    let again = house.runtime.redeliver(&found, 1, None).await;
    assert!(matches!(again, Err(WebhookError::Failed)));
}

#[test(start_paused = true)]
async fn a_tenant_has_only_so_many() {
    let house = House::new().await;
    for i in 0..MAX_WEBHOOKS {
        subscribe(&house, hook(&format!("wh-{i}"), &["run.completed"])).await;
    }
    let one_more = hook("wh-more", &["run.completed"]);
    let refused = house.runtime.register_webhook(&one_more, None).await;
    assert!(matches!(refused, Err(WebhookError::TooMany)));
    let mut other = one_more;
    other.tenant = "other".into();
    subscribe(&house, other).await;
}
