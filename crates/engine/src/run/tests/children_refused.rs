//! Children that cannot be created: unknown, recursive, too deep, or not provided by this host.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;

fn caller(id: &str) -> WorkflowBuilder {
    workflow(id).call("call", "child", json!({}))
}

fn child() -> WorkflowBuilder {
    workflow("child").noops("n")
}

#[test]
fn unknown_child_workflow_is_refused() {
    RunHarness::started(caller("parent")).then(
        "
            run.started
            node.started call
            node.failed call unknown_child_workflow
            run.failed unknown_child_workflow call
        ",
    );
}

#[test]
fn workflow_that_starts_itself_is_refused() {
    RunHarness::started(caller("child")).then(
        "
            run.started
            node.started call
            node.failed call subworkflow_cycle_detected
            run.failed subworkflow_cycle_detected call
        ",
    );
}

#[test]
fn workflow_already_running_in_an_ancestor_is_refused() {
    let mut run = RunHarness::new(caller("middle"))
        .with_workflow(child())
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
fn child_below_the_depth_limit_is_refused() {
    let mut run = RunHarness::new(caller("middle"))
        .with_workflow(child())
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
    let mut run = RunHarness::new(caller("middle"))
        .with_workflow(child())
        .child_under(&["a"], &[]);
    run.limits.max_depth = 3;
    run.create(json!({}));
    assert!(!run.status().is_terminal());
}

#[test]
fn child_with_an_unserved_node_type_is_refused() {
    let gated = workflow("child").node("ask", "core.openwop.governance.approvalGate", json!({}));
    let mut run = RunHarness::new(caller("parent")).with_workflow(gated);
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

/// A child that needs a number and may be given a text.
fn strict_child() -> WorkflowBuilder {
    child()
        .variable("amount", json!({"type": "number", "required": true}))
        .variable("note", json!({"type": "string", "defaultValue": "none"}))
}

#[test]
fn child_is_given_what_its_workflow_declares() {
    let mapped = json!({"amount": "total", "note": "text"});
    let parent = || workflow("parent").call("call", "child", json!({"inputMapping": mapped}));
    let cases = [
        (json!({"total": 1}), None),
        (json!({"total": 1, "text": "x"}), None),
        (json!({"total": "1"}), Some("/inputs/amount")),
        (json!({"text": "x"}), Some("/inputs/amount")),
        (json!({"total": 1, "text": [1]}), Some("/inputs/note")),
    ];
    for (inputs, refused) in cases {
        let mut run = RunHarness::new(parent()).with_workflow(strict_child());
        run.create(inputs.clone());
        let error = run.run().error();
        assert_eq!(error.is_some(), refused.is_some(), "{inputs}");
        if let (Some(error), Some(path)) = (error, refused) {
            assert_eq!(error.code, "child_refused");
            let details = error.details.as_ref().expect("paths");
            assert_eq!(details["problems"][0]["path"], path);
            assert!(error.message.contains(path), "{}", error.message);
            assert_eq!(run.created_children().count(), 0);
        }
    }
}

#[test]
fn child_without_a_mapping_needs_its_required_inputs() {
    let mut run = RunHarness::new(caller("parent")).with_workflow(strict_child());
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started call
            node.failed call child_refused
            run.failed child_refused call
        ",
    );
}
