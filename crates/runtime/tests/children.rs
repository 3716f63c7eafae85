//! Child runs: no order of effects and crashes loses one.

use serde_json::json;
use tandem_record::RunStatus;
use tandem_testkit::test_host::{TestHost, children, tenant};
use tandem_testkit::{InjectedFault, wf};
use tokio::test;

async fn parent_and_child() -> TestHost {
    let host = TestHost::new().await;
    host.register(wf("child").delay("nap", 3_600_000)).await;
    host.register(wf("parent").call("call", "child", json!({})))
        .await;
    host
}

#[test(start_paused = true)]
async fn child_run_is_created_in_the_commit_that_dispatches_it() {
    let host = parent_and_child().await;
    // Only the parent's own commit succeeds.
    host.faults
        .next([InjectedFault::None, InjectedFault::FailsBefore]);
    let parent = host.create("parent", json!({})).await;
    let child = &children(&host.log(&parent).await)[0];
    let found = host.runtime.find_run(&tenant(), child).await;
    let found = found.expect("the store answers").expect("it is named");
    assert_eq!(found.row.parent, Some(parent));
}

#[test(start_paused = true)]
async fn child_cancelled_before_its_first_step_runs_no_node() {
    let host = parent_and_child().await;
    host.faults
        .next([InjectedFault::None, InjectedFault::FailsBefore]);
    let parent = host.create("parent", json!({})).await;
    host.elapse(10).await;
    host.cancel(&parent).await.expect("running");
    host.elapse(5_000).await;
    assert_eq!(host.status(&parent).await, RunStatus::Cancelled);
    let child = &children(&host.log(&parent).await)[0];
    assert_eq!(host.status(child).await, RunStatus::Cancelled);
    let started = host.log(child).await;
    let started = started.iter().any(|r| r.event.node().is_some());
    assert!(!started, "no run waits for it");
}

#[test(start_paused = true)]
async fn started_child_is_cancelled_before_its_parent() {
    let host = parent_and_child().await;
    let parent = host.create("parent", json!({})).await;
    host.elapse(10).await;
    host.cancel(&parent).await.expect("running");
    host.elapse(1).await;
    let child = &children(&host.log(&parent).await)[0];
    assert_eq!(host.status(child).await, RunStatus::Cancelled);
    assert_eq!(host.status(&parent).await, RunStatus::Cancelled);
}

#[test(start_paused = true)]
async fn child_is_created_once_when_the_commit_reports_a_false_failure() {
    let host = TestHost::new().await;
    host.register(wf("child").delay("nap", 100)).await;
    host.register(wf("parent").call("call", "child", json!({})))
        .await;
    host.faults.next([
        InjectedFault::None,
        InjectedFault::FailsAfter,
        InjectedFault::FailsAfter,
    ]);
    let parent = host.create("parent", json!({})).await;
    assert_eq!(host.ended(&parent).await, RunStatus::Completed);
}
