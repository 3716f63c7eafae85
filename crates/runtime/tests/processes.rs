//! Several processes on one store: work has one holder, and no process decides on an old state.

use serde_json::json;
use std::time::Duration;
use tandem_record::{Event, RunId, RunStatus, StreamId};
use tandem_runtime::HostTask;
use tandem_store::memory::MemoryStore;
use tandem_store::{ClaimTimers, ReadTimers};
use tandem_testkit::test_host::{TestHost, TestHostBuilder};
use tandem_testkit::{CallFaults, StoreConnection, wf};
use tokio::test;

/// Two processes on one store. Calls of the first take up to this long.
async fn two_processes(max_latency_ms: u64) -> (TestHost, TestHost) {
    let store = MemoryStore::new();
    let process = |incarnation, max_latency_ms| TestHostBuilder {
        store: store.clone(),
        incarnation,
        shares_store: true,
        call_faults: CallFaults {
            retryable_percent: 0,
            permanent_percent: 0,
            max_latency_ms,
        },
        ..TestHostBuilder::default()
    };
    let first = process(1, max_latency_ms).build().await;
    let second = process(2, 0).build().await;
    (first, second)
}

async fn completions(host: &TestHost, run: &RunId) -> usize {
    let log = host.log(run).await;
    let completed = |event: &Event| matches!(event, Event::NodeCompleted { .. });
    log.iter()
        .filter(|recorded| completed(&recorded.event))
        .count()
}

#[test(start_paused = true)]
async fn long_call_keeps_its_lease() {
    let (first, second) = two_processes(600_000).await;
    first.register(wf("call").http("call", 1)).await;
    let run = first.create("call", json!({})).await;
    first.elapse(120_000).await;
    assert_eq!(
        first.status(&run).await,
        RunStatus::Running,
        "it is a long call"
    );
    assert_eq!(first.ended(&run).await, RunStatus::Completed);
    assert_eq!(first.performer.performed().len(), 1);
    assert!(
        second.performer.performed().is_empty(),
        "the lease was renewed"
    );
    assert_eq!(first.runtime.metrics().leases_lost.get(), 0);
}

#[test(start_paused = true)]
async fn work_of_an_ended_process_is_taken_over_after_its_lease() {
    let (first, second) = two_processes(600_000).await;
    first.register(wf("call").http("call", 1)).await;
    let run = first.create("call", json!({})).await;
    first.elapse(5).await;
    first.runtime.shutdown(Duration::ZERO).await;
    second.elapse(25_000).await;
    assert_eq!(
        second.status(&run).await,
        RunStatus::Running,
        "the lease holds"
    );
    second.elapse(15_000).await;
    assert_eq!(second.status(&run).await, RunStatus::Completed);
    assert_eq!(second.performer.performed().len(), 1);
}

#[test(start_paused = true)]
async fn process_that_was_paused_past_its_lease_records_nothing() {
    // The call ends during the pause, or after it.
    for latency_ms in [20_000, 600_000] {
        let (first, second) = two_processes(latency_ms).await;
        first.register(wf("call").http("call", 1)).await;
        let run = first.create("call", json!({})).await;
        first.elapse(10).await;
        first.faults.set_connection(StoreConnection::Stalled);
        second.elapse(60_000).await;
        assert_eq!(second.status(&run).await, RunStatus::Completed);
        first.faults.set_connection(StoreConnection::Up);
        first.elapse(600_000).await;
        assert_eq!(completions(&second, &run).await, 1);
        assert_eq!(first.performer.performed().len(), 1);
        assert_eq!(second.performer.performed().len(), 1);
        assert_eq!(first.runtime.metrics().leases_lost.get(), 1);
        assert_eq!(first.runtime.metrics().panics.get(), 0);
    }
}

#[test(start_paused = true)]
async fn due_timers_are_fired_by_one_process() {
    let (first, second) = two_processes(0).await;
    first.register(wf("nap").delay("nap", 500)).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(first.create("nap", json!({})).await);
    }
    for run in &runs {
        assert_eq!(first.ended(run).await, RunStatus::Completed);
    }
    let conflicts = |host: &TestHost| host.runtime.metrics().conflicts.get();
    assert_eq!(conflicts(&first) + conflicts(&second), 0);
    let left = first.store.next_timer().await.expect("the store answers");
    assert_eq!(left, None);
}

#[test(start_paused = true)]
async fn timer_claimed_by_a_process_that_ends_is_fired_by_another() {
    let (first, second) = two_processes(0).await;
    first.register(wf("nap").delay("nap", 500)).await;
    let run = first.create("nap", json!({})).await;
    let due = first.runtime.clock().now().plus_ms(500);
    let claimed = first.store.claim_timers(due, due.plus_ms(8_000), 1).await;
    let claimed = claimed.expect("the store answers");
    assert_eq!(claimed[0].stream, StreamId::of_run(&run));
    assert!(claimed[0].name.as_str().contains("node_wake"));
    first.elapse(8_000).await;
    assert_eq!(second.status(&run).await, RunStatus::Running);
    first.elapse(1_000).await;
    assert_eq!(second.status(&run).await, RunStatus::Completed);
}

/// Z-189 (half: several processes on one store)
#[test(start_paused = true)]
async fn commands_are_not_refused_on_an_old_state() {
    let (first, second) = two_processes(0).await;
    first.register(wf("nap").delay("nap", 60_000)).await;
    let run = first.create("nap", json!({})).await;
    second.pause(&run).await.expect("it runs");
    first
        .resume(&run)
        .await
        .expect("the other process paused it");
    second
        .pause(&run)
        .await
        .expect("the other process resumed it");
    assert_eq!(first.status(&run).await, RunStatus::Paused);
    first.cancel(&run).await.expect("it has not ended");
    let refused = second.resume(&run).await;
    assert!(
        refused.is_err(),
        "the other process cancelled it: {refused:?}"
    );
}

#[test(start_paused = true)]
async fn timer_decided_on_an_old_state_is_not_cleared() {
    let (first, second) = two_processes(0).await;
    let flow = wf("naps").delay("a", 1_000).delay("b", 1_000).path("a b");
    first.register(flow).await;
    let run = first.create("naps", json!({})).await;
    // Both have the run in their caches, at different states.
    second.pause(&run).await.expect("it runs");
    second.resume(&run).await.expect("it is paused");
    assert_eq!(first.ended(&run).await, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn registration_by_another_process_is_seen() {
    let (first, second) = two_processes(0).await;
    first.register(wf("flow").noop("a")).await;
    let before = second.create("flow", json!({})).await;
    first.register(wf("flow").noop("b")).await;
    first.elapse(500).await;
    let after = second.create("flow", json!({})).await;
    let expected = first.create("flow", json!({})).await;
    let definition = |run| {
        let second = &second;
        async move { second.folded(run).await.definition().hash.clone() }
    };
    assert_ne!(definition(&before).await, definition(&after).await);
    assert_eq!(definition(&expected).await, definition(&after).await);
}

#[test(start_paused = true)]
async fn task_is_done_by_one_process_until_its_lease_ends() {
    let (first, second) = two_processes(0).await;
    let holds = |host: &TestHost| {
        let runtime = host.runtime.clone();
        async move {
            let held = runtime.holds_task(HostTask::SealAudit).await;
            held.expect("the store answers")
        }
    };
    assert!(holds(&first).await);
    assert!(!holds(&second).await);
    first.elapse(100_000).await;
    assert!(holds(&first).await, "extended");
    first.elapse(100_000).await;
    assert!(!holds(&second).await);
    first.elapse(20_000).await;
    assert!(
        holds(&second).await,
        "the first has not asked for two minutes"
    );
    assert!(!holds(&first).await);
}
