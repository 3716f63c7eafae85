//! Effects: called once, started again after a resume, never lost.

use serde_json::json;
use tandem_record::RunStatus;
use tandem_testkit::test_host::{TestHost, TestHostBuilder};
use tandem_testkit::{CallFaults, InjectedFault, wf};
use tokio::test;

fn slow(ms: u64) -> CallFaults {
    CallFaults {
        retryable_percent: 0,
        permanent_percent: 0,
        max_latency_ms: ms,
    }
}

#[test(start_paused = true)]
async fn unrecorded_result_is_recorded_again_without_repeating_the_call() {
    for fault in [InjectedFault::FailsBefore, InjectedFault::FailsAfter] {
        let host = TestHost::new().await;
        host.register(wf("call").http("call", 3)).await;
        let run = host.create("call", json!({})).await;
        host.faults.next([fault, fault, fault]);
        assert_eq!(host.ended(&run).await, RunStatus::Completed);
        assert_eq!(host.performer.performed().len(), 1, "{fault:?}");
    }
}

#[test(start_paused = true)]
async fn call_aborted_by_pause_is_repeated_after_resume() {
    let host = TestHostBuilder {
        call_faults: slow(1_000),
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    host.register(wf("call").http("call", 1)).await;
    let run = host.create("call", json!({})).await;
    host.elapse(1).await;
    // Immediately after each other: the aborted task has not ended yet.
    host.pause(&run).await.expect("running");
    host.resume(&run).await.expect("paused");
    host.elapse(1_001).await;
    assert_eq!(host.status(&run).await, RunStatus::Completed);
    let attempts: Vec<u32> = host
        .performer
        .performed()
        .iter()
        .map(|p| p.attempt)
        .collect();
    assert_eq!(attempts, [0, 1]);
}

#[test(start_paused = true)]
async fn effects_beyond_the_worker_limit_wait() {
    let host = TestHostBuilder {
        max_effects: 2,
        call_faults: slow(20),
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    host.register(wf("calls").http("a", 1).http("b", 1)).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(host.create("calls", json!({})).await);
    }
    for run in &runs {
        assert_eq!(host.ended(run).await, RunStatus::Completed);
    }
    assert_eq!(host.performer.performed().len(), 100);
    let left = tandem_store::Outbox::depth(&host.store).await;
    assert_eq!(left.expect("the store answers"), 0);
}

#[test(start_paused = true)]
async fn load_counts_cached_runs_and_effects_under_way() {
    let host = TestHost::new().await;
    assert_eq!(host.runtime.load(), (0, 0));
    host.register(wf("gated").node("gate", "core.approvalGate", json!({"title": "Go?"})))
        .await;
    host.create("gated", json!({})).await;
    assert_eq!(host.runtime.load(), (1, 0));
}

#[test(start_paused = true)]
async fn effects_of_a_dead_process_are_performed_by_the_next() {
    let first = TestHostBuilder {
        call_faults: slow(60_000),
        ..TestHostBuilder::default()
    };
    let first = first.build().await;
    first.register(wf("call").http("call", 1)).await;
    let run = first.create("call", json!({})).await;
    first.elapse(5).await;
    first.runtime.shutdown(std::time::Duration::ZERO).await;
    let second = TestHostBuilder {
        store: first.store.clone(),
        ..TestHostBuilder::default()
    };
    let second = second.build().await;
    assert_eq!(second.ended(&run).await, RunStatus::Completed);
}
