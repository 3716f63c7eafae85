//! Work that fails is put off, then parked; it is never tried in a hot loop and never delays others.

use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tandem_record::{
    Effect, EffectOutcome, Object, RunId, RunStatus, StreamId, TenantId, TimerKey, Timestamp,
    TraceContext,
};
use tandem_runtime::{Perform, Permissions, Runtime, RuntimeConfig};
use tandem_store::battery::sample::{entry, put};
use tandem_store::memory::MemoryStore;
use tandem_store::{
    Append, Commit, DueTimer, Log, NewEvent, Outbox, ReadLog, ReadTimers, Setbacks, TimerChange,
};
use tandem_testkit::house::{House, Plan, new_run, tenant};
use tandem_testkit::{Faults, Mishap, SimClock, SimIds, wf};
use tokio::test;

/// Makes a run's log unreadable, as damage would.
async fn damage(house: &House, run: &RunId) {
    let stream = StreamId::of_run(run);
    let slice = house.store.events(&stream, None, 100).await;
    let garbage = Commit {
        appends: vec![Append {
            stream,
            after: slice.expect("the store answers").head,
            events: vec![NewEvent {
                at: Default::default(),
                body: "not an event".to_owned(),
            }],
            run: None,
            snapshot: None,
        }],
        ..Commit::default()
    };
    let committed = house.store.commit(garbage).await;
    committed.expect("the store takes it");
}

async fn naps(house: &House, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(house.create("nap", json!({})).await);
    }
    runs
}

/// The timers that end naps; runs have deadlines besides.
async fn wakes(house: &House) -> Vec<DueTimer> {
    let far = Timestamp(i64::MAX - 1);
    let timers = house.store.due_timers(far, usize::MAX).await;
    let mut timers = timers.expect("the store answers");
    timers.retain(|timer| matches!(timer.key, TimerKey::NodeWake { .. }));
    timers
}

async fn parked(house: &House) -> u64 {
    house.store.count_parked().await.expect("the store answers")
}

#[test(start_paused = true)]
async fn more_failing_timers_than_a_page_do_not_stop_the_others() {
    let house = House::new().await;
    house.register(wf("nap").delay("nap", 500)).await;
    for run in &naps(&house, 300).await {
        damage(&house, run).await;
    }
    // Set later, and so due behind all of those.
    let good = naps(&house, 20).await;
    house.elapse(1_000).await;
    for run in &good {
        assert_eq!(house.status(run).await, RunStatus::Completed);
    }
    assert_eq!(wakes(&house).await.len(), 300, "none is forgotten");
}

#[test(start_paused = true)]
async fn a_timer_that_keeps_failing_is_tried_less_and_less_and_then_parked() {
    let house = House::new().await;
    house.register(wf("nap").delay("nap", 500)).await;
    let run = naps(&house, 1).await.remove(0);
    damage(&house, &run).await;
    // 1, 2, 4 … seconds after each other.
    for (after_ms, failures) in [(700, 1), (1_000, 2), (2_000, 3), (4_000, 4)] {
        house.elapse(after_ms).await;
        let timers = wakes(&house).await;
        assert_eq!(timers[0].failures, failures);
    }
    house.elapse(3_600_000).await;
    assert_eq!(wakes(&house).await, [], "it is tried no more");
    assert_eq!(parked(&house).await, 1);
    let shown = house.runtime.parked_work(&tenant()).await;
    let shown = shown.expect("the store answers");
    assert_eq!(shown[0].stream, StreamId::of_run(&run));
    assert_eq!((shown[0].kind.as_str(), shown[0].failures), ("timer", 10));
    assert!(
        shown[0].error.starts_with("corrupt: "),
        "{}",
        shown[0].error
    );
    let text = house.runtime.metrics().work_parked.clone();
    let label = tandem_runtime::KindLabel { kind: "timer" };
    assert_eq!(text.get_or_create(&label).get(), 1);

    // Asked for, it is tried at once, with a clean slate.
    let stream = StreamId::of_run(&run);
    let stranger = TenantId::new("stranger");
    let refused = house.runtime.retry_parked(&stranger, &stream).await;
    assert_eq!(refused.expect("the store answers"), None, "not theirs");
    let retried = house.runtime.retry_parked(&tenant(), &stream).await;
    assert_eq!(retried.expect("the store answers"), Some(1));
    house.elapse(10).await;
    assert_eq!(wakes(&house).await[0].failures, 1);
}

#[test(start_paused = true)]
async fn a_timer_of_nothing_is_parked_too() {
    let house = House::new().await;
    let odd = Commit {
        timers: vec![TimerChange::Set {
            stream: StreamId::new("conv:1"),
            key: TimerKey::RunDeadline,
            due: Timestamp(0),
        }],
        ..Commit::default()
    };
    house.store.commit(odd).await.expect("the store takes it");
    house.elapse(3_600_000).await;
    assert_eq!(parked(&house).await, 1);
}

#[test(start_paused = true)]
async fn a_store_that_refuses_writes_for_long_parks_nothing() {
    let first = House::new().await;
    first.register(wf("nap").delay("nap", 500)).await;
    let runs = naps(&first, 3).await;
    first.runtime.shutdown(Duration::ZERO).await;
    let full = Plan {
        store: first.store.clone(),
        faults: Faults::always(Mishap::FailsBefore),
        ..Plan::default()
    };
    let full = full.build().await;
    full.elapse(3_600_000).await;
    assert_eq!(parked(&full).await, 0);
    full.faults.heal();
    for run in &runs {
        assert_eq!(full.ended(run).await, RunStatus::Completed);
    }
}

/// Panics the first times it is asked.
struct Panics(AtomicU32);

#[async_trait]
impl Perform for Panics {
    async fn perform(&self, _: &Effect, _: Option<&TraceContext>) -> EffectOutcome {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
            panic!("as the test wants");
        }
        EffectOutcome::Done {
            outputs: Object::new(),
        }
    }
}

#[test(start_paused = true)]
async fn an_effect_that_panics_is_parked_and_performed_after_a_retry() {
    let store = MemoryStore::new();
    let performer = Arc::new(Panics(AtomicU32::new(10)));
    let mut config = RuntimeConfig::new(Arc::new(store.clone()), Arc::clone(&performer) as Arc<_>);
    config.clock = Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000)));
    config.ids = Arc::new(SimIds::new(1));
    let runtime = Runtime::start(config).await.expect("the store opens");
    let document = wf("call").http("call", 1).document();
    let registered = runtime
        .register(Some(&tenant().into()), &document, Permissions::default())
        .await;
    registered.expect("the workflow is sound");
    let created = runtime.create_run(new_run("call", json!({})), None).await;
    let run = created.expect("the run may start");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(performer.0.load(Ordering::Relaxed), 0, "ten attempts");
    let work = runtime.parked_work(&tenant()).await.expect("it answers");
    assert_eq!((work[0].kind.as_str(), work[0].failures), ("http", 10));
    assert_eq!(store.next_due().await.expect("it answers"), None);
    let retried = runtime.retry_parked(&tenant(), &work[0].stream).await;
    assert_eq!(retried.expect("the store answers"), Some(1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let found = runtime.find_run(&tenant(), &run).await;
    let found = found.expect("the store answers").expect("the run exists");
    assert_eq!(found.row.status, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn an_entry_that_cannot_be_read_is_parked_at_once() {
    let house = House::new().await;
    let odd = put([entry("odd", Timestamp(0))]);
    house.store.commit(odd).await.expect("the store takes it");
    house.elapse(10_000).await;
    assert_eq!(parked(&house).await, 1);
    let next = house.store.next_due().await.expect("the store answers");
    assert_eq!(next, None, "it is not tried again");
}

#[test(start_paused = true)]
async fn readiness_tells_of_a_store_that_refuses_writes() {
    let house = House::new().await;
    assert_eq!(house.runtime.readiness().await, Ok(()));
    house.runtime.store().close().await;
    house.elapse(2_000).await;
    let said = house.runtime.readiness().await.expect_err("it is closed");
    assert!(said.contains("refuses writes"), "{said}");
}

#[test(start_paused = true)]
async fn readiness_tells_of_timers_that_are_late() {
    let first = House::new().await;
    first.register(wf("nap").delay("nap", 500)).await;
    naps(&first, 1).await;
    first.runtime.shutdown(Duration::ZERO).await;
    let stuck = Plan {
        store: first.store.clone(),
        faults: Faults::always(Mishap::SlowBefore(100_000_000)),
        ..Plan::default()
    };
    let stuck = stuck.build().await;
    stuck.elapse(30_000).await;
    assert_eq!(stuck.runtime.readiness().await, Ok(()), "not yet");
    stuck.elapse(40_000).await;
    let said = stuck.runtime.readiness().await.expect_err("timers hang");
    assert!(said.contains("timers are late"), "{said}");
}
