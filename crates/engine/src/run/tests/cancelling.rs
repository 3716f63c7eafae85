//! Cancel, in every phase of a run.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::DrainPolicy::{DrainCurrentNode, Immediate};
use tandem_record::{Command, Reply, RunId, RunStatus};

fn busy() -> WorkflowBuilder {
    workflow("busy").http("call", json!({})).delay("nap", 1_000)
}

fn cancelled(already_terminal: bool, status: RunStatus) -> Reply {
    Reply::Cancel {
        status,
        already_terminal,
    }
}

#[test]
fn cancel_while_running() {
    let mut run = RunHarness::started(busy()).given();
    assert_eq!(run.cancel(), cancelled(false, RunStatus::Cancelled));
    run.then(
        "
            node.cancelled call run-cancelled
            node.cancelled nap run-cancelled
            run.cancelled
        ",
    );
    assert_eq!(run.outbox().count(), 0);
}

#[test]
fn cancel_while_a_pause_drains() {
    let mut run = RunHarness::started(busy());
    run.pause(DrainCurrentNode).expect("running");
    let mut run = run.given();
    run.cancel();
    run.then(
        "
            node.cancelled call run-cancelled
            node.cancelled nap run-cancelled
            run.cancelled
        ",
    );
}

#[test]
fn cancel_while_paused() {
    let mut run = RunHarness::started(busy());
    run.pause(Immediate).expect("running");
    let mut run = run.given();
    run.cancel();
    run.then(
        "
            run.cancelled
        ",
    );
}

#[test]
fn cancel_after_the_end_changes_nothing() {
    let mut run = RunHarness::started(workflow("done").noops("n")).given();
    assert_eq!(run.cancel(), cancelled(true, RunStatus::Completed));
    let mut run = RunHarness::started(workflow("bad").fail("n", "broken"));
    assert_eq!(run.cancel(), cancelled(true, RunStatus::Failed));
    let mut run = RunHarness::started(busy());
    run.cancel();
    assert_eq!(run.cancel(), cancelled(true, RunStatus::Cancelled));
}

fn run_tree(config: Value) -> RunHarness {
    let workflow = workflow("parent")
        .call("call", "child", config)
        .delay("nap", 1_000);
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    run.given()
}

#[test]
fn cancelled_parent_waits_for_its_child_to_end() {
    let mut run = run_tree(json!({}));
    assert_eq!(run.cancel(), cancelled(false, RunStatus::Cancelling));
    run.then(
        "
            run.cancel-requested
            node.cancelled nap run-cancelled
            > cancel child
        ",
    );
    assert_eq!(run.cancel(), cancelled(false, RunStatus::Cancelling));
    run.then("");
    run.child_ended("call", RunStatus::Cancelled, json!({}));
    run.then(
        "
            node.cancelled call run-cancelled
            run.cancelled
        ",
    );
}

#[test]
fn parent_is_cancelled_even_if_its_child_completes() {
    let mut run = run_tree(json!({"outputMapping": {"x": "y"}}));
    run.cancel();
    let mut run = run.given();
    run.child_ended("call", RunStatus::Completed, json!({"y": 1}));
    run.then(
        "
            node.cancelled call run-cancelled
            run.cancelled
        ",
    );
}

#[test]
fn detached_child_is_not_cancelled() {
    let mut run = run_tree(json!({"propagateCancellation": false}));
    assert_eq!(run.cancel(), cancelled(false, RunStatus::Cancelled));
    run.then(
        "
            node.cancelled call run-cancelled
            node.cancelled nap run-cancelled
            run.cancelled
        ",
    );
}

#[test]
fn two_children_are_both_awaited() {
    let workflow =
        workflow("parent")
            .call("one", "child", json!({}))
            .call("two", "child", json!({}));
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    run.cancel();
    run.child_ended("two", RunStatus::Cancelled, json!({}));
    assert_eq!(run.status(), RunStatus::Cancelling);
    run.child_ended("one", RunStatus::Cancelled, json!({}));
    assert_eq!(run.status(), RunStatus::Cancelled);
}

#[test]
fn cancel_while_paused_with_a_running_child() {
    let mut run = run_tree(json!({}));
    run.pause(Immediate).expect("running");
    let mut run = run.given();
    run.cancel();
    run.then(
        "
            run.cancel-requested
            > cancel child
        ",
    );
    assert_eq!(run.run().view().paused_at, None);
    run.child_ended("call", RunStatus::Cancelled, json!({}));
    assert_eq!(run.status(), RunStatus::Cancelled);
}

#[test]
fn cancel_by_the_parent() {
    let mut run = RunHarness::new(busy()).child_under(&["root"], &[]);
    run.create(json!({}));
    let mut run = run.given();
    let by = |parent: &str| Command::Cancel {
        reason: Some("ignored".to_owned()),
        by: None,
        by_parent: Some(RunId::new(parent)),
    };
    run.when(by("run-stranger"));
    run.then("");
    run.when(by("run-parent"));
    run.then(
        "
            node.cancelled call run-cancelled
            node.cancelled nap run-cancelled
            run.cancelled parent-cancelled by run-parent
            > tell parent call cancelled {}
        ",
    );
}

#[test]
fn failing_parent_cancels_children_without_waiting() {
    let workflow = workflow("parent")
        .call("call", "child", json!({}))
        .delay("nap", 10)
        .fail("f", "broken")
        .path("nap f");
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    let mut run = run.given();
    run.elapse(10);
    run.then(
        r#"
            node.completed nap {"waitedMs":10}
            node.started f
            node.failed f broken
            node.cancelled call upstream-failed
            run.failed broken f
            > cancel child
        "#,
    );
}
