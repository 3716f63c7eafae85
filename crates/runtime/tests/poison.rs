//! Failing work is retried with backoff, then parked. It is never retried in a hot loop and never
//! delays other work.

use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tandem_record::{
    Effect, EffectOutcome, Object, RunId, RunStatus, StreamId, TenantId, TimerName, Timestamp,
    TraceContext,
};
use tandem_runtime::{Perform, Permissions, Runtime, RuntimeConfig};
use tandem_store::battery::sample::{entry, put};
use tandem_store::memory::MemoryStore;
use tandem_store::{
    Append, Audit, Commit, DueTimer, Log, NewEvent, Outbox, ReadLog, ReadTimers, TimerChange,
    WorkFailures,
};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run, tenant};
use tandem_testkit::{Faults, InjectedFault, SimClock, SimIds, wf};
use tokio::test;

/// Makes a run's log unreadable, like a damaged store.
async fn damage(host: &TestHost, run: &RunId) {
    let stream = StreamId::of_run(run);
    let slice = host.store.events(&stream, None, 100).await;
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
    let committed = host.store.commit(garbage).await;
    committed.expect("the store takes it");
}

async fn naps(host: &TestHost, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(host.create("nap", json!({})).await);
    }
    runs
}

/// The timers of delay nodes, without the deadlines of runs.
async fn due_timers(host: &TestHost) -> Vec<DueTimer> {
    let far = Timestamp(i64::MAX - 1);
    let timers = host.store.due_timers(far, usize::MAX).await;
    let mut timers = timers.expect("the store answers");
    timers.retain(|timer| timer.name.as_str().contains("node_wake"));
    timers
}

async fn parked(host: &TestHost) -> u64 {
    host.store.count_parked().await.expect("the store answers")
}

#[test(start_paused = true)]
async fn more_failing_timers_than_a_page_do_not_stop_the_others() {
    let host = TestHost::new().await;
    host.register(wf("nap").delay("nap", 500)).await;
    for run in &naps(&host, 300).await {
        damage(&host, run).await;
    }
    // Set later, and so due after all of those.
    let good = naps(&host, 20).await;
    host.elapse(1_000).await;
    for run in &good {
        assert_eq!(host.status(run).await, RunStatus::Completed);
    }
    assert_eq!(due_timers(&host).await.len(), 300, "no timer is lost");
}

/// Timers that passed together fire in their order. When they hang, the later ones wait once, not once for each.
#[test(start_paused = true)]
async fn timers_that_hang_cost_the_later_ones_one_wait() {
    const TIMERS: u64 = 20;
    let host = TestHost::new().await;
    let mut runs = Vec::new();
    for n in 0..TIMERS {
        let name = format!("nap-{n}");
        host.register(wf(&name).delay("nap", 1_000 * (n + 1))).await;
        runs.push(host.create(&name, json!({})).await);
    }
    let slow = std::iter::repeat_n(InjectedFault::SlowBefore(2_000), TIMERS as usize);
    host.faults.next(slow);
    host.runtime.clock().advance(60_000);
    host.elapse(3_000).await;
    for run in &runs {
        assert_eq!(host.status(run).await, RunStatus::Completed);
    }
}

#[test(start_paused = true)]
async fn failing_timer_is_retried_with_backoff_and_then_parked() {
    let host = TestHost::new().await;
    host.register(wf("nap").delay("nap", 500)).await;
    let run = naps(&host, 1).await.remove(0);
    damage(&host, &run).await;
    // 1, 2, 4 … seconds apart.
    for (after_ms, failures) in [(700, 1), (1_000, 2), (2_000, 3), (4_000, 4)] {
        host.elapse(after_ms).await;
        let timers = due_timers(&host).await;
        assert_eq!(timers[0].failures, failures);
    }
    host.elapse(3_600_000).await;
    assert_eq!(due_timers(&host).await, [], "no more attempts");
    assert_eq!(parked(&host).await, 1);
    let shown = host.runtime.parked_work(&tenant()).await;
    let shown = shown.expect("the store answers");
    assert_eq!(shown[0].stream, StreamId::of_run(&run));
    assert_eq!((shown[0].kind.as_str(), shown[0].failures), ("timer", 10));
    assert!(
        shown[0].error.starts_with("corrupt: "),
        "{}",
        shown[0].error
    );
    let text = host.runtime.metrics().work_parked.clone();
    let label = tandem_runtime::KindLabel { kind: "timer" };
    assert_eq!(text.get_or_create(&label).get(), 1);

    // A requested retry happens at once, with the failures reset.
    let stream = StreamId::of_run(&run);
    let stranger = TenantId::new("stranger");
    let refused = host.runtime.retry_parked(&stranger, &stream).await;
    assert_eq!(refused.expect("the store answers"), None, "not theirs");
    let retried = host.runtime.retry_parked(&tenant(), &stream).await;
    assert_eq!(retried.expect("the store answers"), Some(1));
    host.elapse(10).await;
    assert_eq!(due_timers(&host).await[0].failures, 1);
    // A retry of nothing is no action.
    let retried = host.runtime.retry_parked(&tenant(), &stream).await;
    assert_eq!(retried.expect("the store answers"), Some(0));
    let entries = host.store.audit_entries(0, 1000).await;
    let entries = entries.expect("the store answers");
    let retries = entries.iter().filter(|row| {
        let body = String::from_utf8_lossy(&row.body);
        body.contains("work.retry")
    });
    assert_eq!(retries.count(), 1);
}

#[test(start_paused = true)]
async fn timer_of_a_stream_without_a_machine_is_parked() {
    let host = TestHost::new().await;
    let odd = Commit {
        timers: vec![TimerChange::Set {
            stream: StreamId::new("conv:1"),
            name: TimerName::new("reminder"),
            due: Timestamp(0),
            tenant: tenant(),
        }],
        ..Commit::default()
    };
    host.store.commit(odd).await.expect("the store takes it");
    host.elapse(100).await;
    let parked = host.runtime.parked_work(&tenant()).await;
    let parked = parked.expect("the store answers");
    assert_eq!(parked.len(), 1, "at once, without retries");
    assert_eq!(parked[0].name, "reminder");
    let why = &parked[0].error;
    assert!(
        why.starts_with("no_machine: no machine of this host drives conv:1"),
        "{why}"
    );
}

#[test(start_paused = true)]
async fn store_outage_parks_nothing() {
    let first = TestHost::new().await;
    first.register(wf("nap").delay("nap", 500)).await;
    let runs = naps(&first, 3).await;
    first.runtime.shutdown(Duration::ZERO).await;
    let full = TestHostBuilder {
        store: first.store.clone(),
        faults: Faults::always(InjectedFault::FailsBefore),
        ..TestHostBuilder::default()
    };
    let full = full.build().await;
    full.elapse(3_600_000).await;
    assert_eq!(parked(&full).await, 0);
    full.faults.disable();
    for run in &runs {
        assert_eq!(full.ended(run).await, RunStatus::Completed);
    }
}

/// Panics on the first calls.
struct Panics(AtomicU32);

#[async_trait]
impl Perform for Panics {
    async fn perform(&self, _: &RunId, _: &Effect, _: Option<&TraceContext>) -> EffectOutcome {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
            panic!("injected by the test");
        }
        EffectOutcome::Done {
            outputs: Object::new(),
        }
    }
}

#[test(start_paused = true)]
async fn panicking_effect_is_parked_and_performed_after_retry() {
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
async fn unreadable_outbox_entry_is_parked_at_once() {
    let host = TestHost::new().await;
    let odd = put([entry("odd", Timestamp(0))]);
    host.store.commit(odd).await.expect("the store takes it");
    host.elapse(10_000).await;
    assert_eq!(parked(&host).await, 1);
    let next = host.store.next_due().await.expect("the store answers");
    assert_eq!(next, None, "no retry");
}

#[test(start_paused = true)]
async fn readiness_reports_a_store_that_refuses_writes() {
    let host = TestHost::new().await;
    assert_eq!(host.runtime.readiness().await, Ok(()));
    host.runtime.store().close().await;
    host.elapse(2_000).await;
    let reason = host.runtime.readiness().await.expect_err("it is closed");
    assert!(reason.contains("refuses writes"), "{reason}");
}

#[test(start_paused = true)]
async fn readiness_reports_late_timers() {
    let first = TestHost::new().await;
    first.register(wf("nap").delay("nap", 500)).await;
    naps(&first, 1).await;
    first.runtime.shutdown(Duration::ZERO).await;
    let stuck = TestHostBuilder {
        store: first.store.clone(),
        faults: Faults::always(InjectedFault::SlowBefore(100_000_000)),
        ..TestHostBuilder::default()
    };
    let stuck = stuck.build().await;
    stuck.elapse(30_000).await;
    assert_eq!(stuck.runtime.readiness().await, Ok(()), "not yet");
    stuck.elapse(40_000).await;
    let reason = stuck.runtime.readiness().await.expect_err("timers hang");
    assert!(reason.contains("timers are late"), "{reason}");
}
