//! Children that cannot be: unknown, recursive, too deep, or not served here.

use super::flow::{Flow, flow};
use super::stage::Stage;
use serde_json::json;

fn caller(id: &str) -> Flow {
    flow(id).call("call", "child", json!({}))
}

fn child() -> Flow {
    flow("child").noops("n")
}

#[test]
fn an_unknown_child() {
    Stage::started(caller("parent")).then(
        "
            run.started
            node.started call
            node.failed call unknown_child_workflow
            run.failed unknown_child_workflow call
        ",
    );
}

#[test]
fn a_workflow_that_would_start_itself() {
    Stage::started(caller("child")).then(
        "
            run.started
            node.started call
            node.failed call subworkflow_cycle_detected
            run.failed subworkflow_cycle_detected call
        ",
    );
}

#[test]
fn a_workflow_that_an_ancestor_is_running() {
    let mut run = Stage::new(caller("middle"))
        .knows(child())
        .child_under(&["child"], &[]);
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started call
            node.failed call subworkflow_cycle_detected
            run.failed subworkflow_cycle_detected call
            > tell parent call failed {}
        ",
    );
}

#[test]
fn a_child_below_the_deepest_level() {
    let mut run = Stage::new(caller("middle"))
        .knows(child())
        .child_under(&["a", "b"], &[]);
    run.limits.max_depth = 3;
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started call
            node.failed call subworkflow_depth_exceeded
            run.failed subworkflow_depth_exceeded call
            > tell parent call failed {}
        ",
    );
    let mut run = Stage::new(caller("middle"))
        .knows(child())
        .child_under(&["a"], &[]);
    run.limits.max_depth = 3;
    run.create(json!({}));
    assert!(!run.status().is_terminal());
}

#[test]
fn a_child_with_a_type_this_host_does_not_serve() {
    let gated = flow("child").node("ask", "core.openwop.governance.approvalGate", json!({}));
    let mut run = Stage::new(caller("parent")).knows(gated);
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started call
            node.failed call capability_not_provided
            run.failed capability_not_provided call
        ",
    );
}
