//! Graceful shutdown of a process.

use serde_json::json;
use std::time::Duration;
use tandem_record::RunStatus;
use tandem_store::{Outbox, ReadRuns};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{CallFaults, wf};
use tokio::test;

async fn host(max_latency_ms: u64) -> TestHost {
    let plan = TestHostBuilder {
        call_faults: CallFaults {
            retryable_percent: 0,
            permanent_percent: 0,
            max_latency_ms,
        },
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    host.register(wf("call").http("call", 1).noop("after").path("call after"))
        .await;
    host
}

#[test(start_paused = true)]
async fn shutdown_finishes_and_records_running_effects() {
    let host = host(2_000).await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(host.create("call", json!({})).await);
    }
    host.elapse(1).await;
    host.runtime.shutdown(Duration::from_secs(10)).await;
    let left = host.store.reopen();
    for run in &runs {
        let stored = left.run(&tenant(), run).await.expect("the store answers");
        assert_eq!(
            stored.expect("the run exists").row.status,
            RunStatus::Completed
        );
    }
    assert_eq!(left.depth().await.expect("the store answers"), 0);
}

#[test(start_paused = true)]
async fn shutdown_leaves_slow_effects_to_the_next_process() {
    let host = host(600_000).await;
    let run = host.create("call", json!({})).await;
    host.elapse(1).await;
    host.runtime.shutdown(Duration::from_millis(10)).await;
    let left = host.store.reopen();
    let stored = left.run(&tenant(), &run).await.expect("the store answers");
    assert_eq!(
        stored.expect("the run exists").row.status,
        RunStatus::Running
    );
    assert_eq!(left.depth().await.expect("the store answers"), 1);
}

#[test(start_paused = true)]
async fn commands_after_shutdown_fail() {
    let host = host(0).await;
    host.runtime.shutdown(Duration::ZERO).await;
    let refused = host.create_with("call", json!({}), None).await;
    assert!(refused.is_err());
}
