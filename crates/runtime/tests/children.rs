//! Child runs: no order of effects and crashes loses one.

use serde_json::json;
use tandem_engine::run::Limits;
use tandem_record::{RunId, RunStatus};
use tandem_store::ReadRuns as _;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children, tenant};
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

/// A tree in which every workflow of a level calls the one below it several times.
async fn tree(levels: usize, width: usize, limits: Limits) -> TestHost {
    let setup = TestHostBuilder {
        limits,
        ..TestHostBuilder::default()
    };
    let host = setup.build().await;
    host.register(wf("level0").noop("n")).await;
    for level in 1..=levels {
        let below = format!("level{}", level - 1);
        let calls = (0..width).fold(wf(&format!("level{level}")), |workflow, n| {
            workflow.call(&format!("c{n}"), &below, json!({}))
        });
        host.register(calls).await;
    }
    host
}

async fn runs_below(host: &TestHost, root: &RunId) -> u64 {
    let tenant = tenant();
    let counted = host.store.count_descendants(&tenant, root, u64::MAX);
    counted.await.expect("the store answers")
}

#[test(start_paused = true)]
async fn tree_of_two_children_on_seven_levels_completes() {
    let host = tree(7, 2, Limits::default()).await;
    let root = host.create("level7", json!({})).await;
    assert_eq!(host.ended(&root).await, RunStatus::Completed);
    assert_eq!(runs_below(&host, &root).await, 254);
}

#[test(start_paused = true)]
async fn tree_has_as_many_runs_as_the_limit_allows() {
    let limits = Limits {
        max_descendants: 30,
        ..Limits::default()
    };
    let host = tree(4, 3, limits).await;
    let root = host.create("level4", json!({})).await;
    assert_eq!(host.ended(&root).await, RunStatus::Failed);
    host.elapse(60_000).await;
    assert_eq!(runs_below(&host, &root).await, 30, "without a limit 120");
    let again = host.create("level1", json!({})).await;
    assert_eq!(
        host.ended(&again).await,
        RunStatus::Completed,
        "a tree of its own"
    );
}
