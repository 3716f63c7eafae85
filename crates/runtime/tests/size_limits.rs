//! Decisions that cannot be stored, logs read in pages, and snapshots of large runs.

use serde_json::{Value, json};
use tandem_record::{Event, RecordedEvent, RunStatus, Seq, StreamId};
use tandem_runtime::{Limits, PageLimit};
use tandem_store::{ReadLog, ReadTimers};
use tandem_testkit::test_host::{TestHost, TestHostBuilder};
use tandem_testkit::{InjectedFault, wf};
use tokio::test;

fn failure(log: &[RecordedEvent]) -> Option<String> {
    log.iter().find_map(|recorded| match &recorded.event {
        Event::RunFailed { error, .. } => Some(error.code.clone()),
        _ => None,
    })
}

/// A decision that the store refuses permanently is not retried forever: the run fails.
#[test(start_paused = true)]
async fn run_too_large_to_store_fails_and_clears_its_timer() {
    let host = TestHost::new().await;
    host.register(wf("nap").delay("nap", 500)).await;
    let run = host.create("nap", json!({})).await;
    host.faults.next([InjectedFault::NeverFits]);
    host.elapse(5_000).await;
    assert_eq!(host.status(&run).await, RunStatus::Failed);
    let log = host.log(&run).await;
    assert_eq!(failure(&log).as_deref(), Some("run_too_large_to_store"));
    assert_eq!(host.store.next_timer().await.unwrap(), None);
    // Other runs are not affected.
    let other = host.create("nap", json!({})).await;
    host.elapse(1_000).await;
    assert_eq!(host.status(&other).await, RunStatus::Completed);
}

/// The caller whose command cannot be stored gets an error, and the run has ended.
#[test(start_paused = true)]
async fn command_too_large_to_store_is_refused_and_fails_the_run() {
    let host = TestHost::new().await;
    host.register(wf("nap").delay("nap", 60_000)).await;
    let run = host.create("nap", json!({})).await;
    host.faults.next([InjectedFault::NeverFits]);
    assert!(host.pause(&run).await.is_err());
    assert_eq!(host.status(&run).await, RunStatus::Failed);
}

fn chain_of_copies(nodes: usize) -> tandem_testkit::WorkflowBuilder {
    let ids: Vec<String> = (0..nodes).map(|n| format!("n{n}")).collect();
    let bound = json!({"v": {"type": "variable", "variableName": "v"}});
    let flow = ids.iter().fold(wf("large"), |flow, id| {
        flow.node(id, "core.noop", json!({}))
            .with("inputs", bound.clone())
    });
    flow.variable("v", json!("")).path(&ids.join(" "))
}

#[test(start_paused = true)]
async fn pages_limited_by_bytes_return_the_whole_log_in_order() {
    let host = TestHost::new().await;
    host.register(chain_of_copies(12)).await;
    let run = host.create("large", json!({"v": "x".repeat(4_000)})).await;
    let whole = host.log(&run).await;
    let (mut read, mut after): (Vec<RecordedEvent>, Option<Seq>) = (Vec::new(), None);
    let limit = PageLimit {
        events: 1_000,
        bytes: 10_000,
    };
    loop {
        let page = host.runtime.event_page(&run, after, limit).await;
        let page = page.unwrap().unwrap();
        assert!(
            page.bytes <= 10_000 || page.events.len() == 1,
            "{}",
            page.bytes
        );
        let Some(last) = page.events.last() else {
            break;
        };
        after = Some(last.seq);
        read.extend(page.events);
    }
    assert_eq!(read, whole);
}

/// A snapshot holds the state, so the limit on the state limits the snapshot. A reader after a
/// restart sees the same run.
#[test(start_paused = true)]
async fn a_run_over_its_budget_fails_and_leaves_no_large_snapshot() {
    let plan = TestHostBuilder {
        limits: Limits {
            max_state_bytes: 1024 * 1024,
            max_decision_bytes: 256 * 1024,
            max_starts_per_decision: 1_000,
            ..Limits::default()
        },
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    host.register(chain_of_copies(150)).await;
    let value: Value = json!("x".repeat(20_000));
    let run = host.create("large", json!({"v": value})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Failed);
    let log = host.log(&run).await;
    assert_eq!(failure(&log).as_deref(), Some("run_state_too_large"));
    let snapshot = host.store.snapshot(&StreamId::of_run(&run)).await.unwrap();
    let length = snapshot.map_or(0, |snapshot| snapshot.body.len());
    assert!(length < 2 * 1024 * 1024, "{length}");
    assert_eq!(host.folded(&run).await.status(), RunStatus::Failed);
}
