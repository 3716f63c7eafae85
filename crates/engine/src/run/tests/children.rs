//! Sub-workflows: inputs, outputs, and how the parent handles the end of a child.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{ChildOutcome, ErrorInfo, InterruptId, NodeId, Reply, RunStatus};

fn parent(config: Value) -> WorkflowBuilder {
    workflow("parent")
        .variable("set", json!({"defaultValue": "mine"}))
        .variable("unset", json!({}))
        .call("call", "child", config)
        .noops("after")
        .path("call after")
}

fn calling(config: Value) -> RunHarness {
    let mut run = RunHarness::new(parent(config)).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    run
}

#[test]
fn mapped_variables_reach_the_child_and_an_unset_one_erases_the_default() {
    let mut run = calling(json!({"inputMapping": {"a": "set", "b": "unset"}}));
    run.then(
        r#"
            run.started {"set":"mine"}
            node.started call child
            node.dispatched call child
            > start child {"a":"mine"} erased=["b"]
        "#,
    );
}

#[test]
fn child_cancelled_by_the_decision_that_creates_it_ends_at_once() {
    let parent_workflow = workflow("parent")
        .call("call", "child", json!({}))
        .fail("broken", "no_luck");
    let mut run = RunHarness::new(parent_workflow).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    run.then(
        r#"
            run.started
            node.started call child
            node.dispatched call child
            node.started broken
            node.failed broken no_luck
            node.cancelled call upstream-failed
            run.failed no_luck broken
            > start child {} erased=[] given up
        "#,
    );
    assert_eq!(run.outbox().count(), 0, "no child is left to cancel");
}

#[test]
fn refused_child_fails_its_node() {
    let child = workflow("child")
        .channel("box", json!({"reducer": "append"}))
        .noops("n");
    let config = json!({"inputMapping": {"box": "set"}});
    let mut run = RunHarness::new(parent(config)).with_workflow(child);
    run.create(json!({}));
    run.then(
        r#"
            run.started {"set":"mine"}
            node.started call child
            node.dispatched call child
            > tell parent call failed {}
        "#,
    );
}

#[test]
fn harvested_variables_are_merged_into_the_parent() {
    let mut run = calling(json!({"outputMapping": {"set": "result", "unset": "missing"}})).given();
    run.child_ended("call", RunStatus::Completed, json!({"result": "theirs"}));
    run.then(
        r#"
            variable.changed set: "mine" -> "theirs"
            node.completed call {"childRunId":"run-63bb1877de81e523e5481ea9","childStatus":"completed"}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn a_failed_child_fails_its_node() {
    let mut run = calling(json!({})).given();
    run.child_ended("call", RunStatus::Failed, json!({}));
    run.then(
        "
            node.failed call child_failed
            run.failed child_failed call
        ",
    );
    let error = run.run().error().expect("failed");
    assert_eq!(
        error.details.as_ref().expect("details")["childError"]["code"],
        "boom"
    );
}

#[test]
fn an_absorbed_failure_completes_without_mapping() {
    for word in ["absorb", "continue"] {
        let config = json!({"onChildFailure": word, "outputMapping": {"set": "result"}});
        let mut run = calling(config).given();
        run.child_ended("call", RunStatus::Failed, json!({"result": "no"}));
        let child = &run.node("call").outputs.clone().expect("completed")["childStatus"];
        assert_eq!(child, "failed");
        assert_eq!(run.run().view().variables["set"], "mine");
        assert_eq!(run.status(), RunStatus::Completed);
    }
}

#[test]
fn a_cancelled_child_cancels_its_node() {
    let mut run = calling(json!({})).given();
    run.child_ended("call", RunStatus::Cancelled, json!({}));
    run.then(
        "
            node.cancelled call child-cancelled
            node.skipped after upstream-skipped
            run.completed
        ",
    );
}

#[test]
fn child_report_is_accepted_once_and_only_from_that_child() {
    let mut run = calling(json!({})).given();
    let stranger = ChildOutcome::Ended {
        child: "run-other".into(),
        status: RunStatus::Completed,
        variables: Default::default(),
        untrusted: Vec::new(),
        error: None,
    };
    assert_eq!(run.child_reports("call", stranger), Reply::Unchanged);
    let child = run.child_of("call");
    let ended = ChildOutcome::Ended {
        child,
        status: RunStatus::Completed,
        variables: Default::default(),
        untrusted: Vec::new(),
        error: None,
    };
    assert_eq!(run.child_reports("call", ended.clone()), Reply::Accepted);
    assert_eq!(run.child_reports("call", ended), Reply::Unchanged);
}

#[test]
fn a_parent_mirrors_a_child_that_waits() {
    let mut run = calling(json!({})).given();
    let child = run.child_of("call");
    let waiting = ChildOutcome::Waiting {
        child: child.clone(),
        asker: child.clone(),
        node: NodeId::new("gate"),
        status: RunStatus::WaitingApproval,
        interrupt: InterruptId::new("int-1"),
        kind: "approval".to_owned(),
        key: Some("run-child:gate:1".to_owned()),
        data: Some(json!({"title": "May I?"})),
    };
    run.child_reports("call", waiting.clone());
    run.then(
        "
            node.suspended call waiting-approval
        ",
    );
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    let view = run.run().view();
    assert_eq!(view.current_node.as_ref().map(|n| n.as_str()), Some("call"));
    let asking = Some((child.clone(), NodeId::new("gate")));
    assert_eq!(view.interrupts[0].mirrors, asking, "who really asks");
    let shown = &view.interrupts[0].interrupt;
    assert_eq!(shown.key, "run-child:gate:1", "the key it has there");
    assert_eq!(shown.data, json!({"title": "May I?"}));
    run.child_reports("call", ChildOutcome::Resumed { child });
    assert_eq!(run.status(), RunStatus::Running);
    run.child_reports("call", waiting);
    run.child_ended("call", RunStatus::Completed, json!({}));
    run.then(
        r#"
            node.resumed call
            node.suspended call waiting-approval
            node.resumed call
            node.completed call {"childRunId":"run-63bb1877de81e523e5481ea9","childStatus":"completed"}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn child_notifies_its_parent_when_it_ends() {
    let child = || {
        workflow("child")
            .variable("result", json!({"defaultValue": "good"}))
            .http("call", json!({}))
    };
    let started = || {
        let mut run = RunHarness::new(child()).child_under(&["parent"], &["result", "nothing"]);
        run.create(json!({}));
        run.given()
    };
    let mut run = started();
    run.done("call", json!({}));
    run.then(
        r#"
            node.completed call
            run.completed
            > tell parent call completed {"result":"good"}
        "#,
    );
    let mut run = started();
    run.failed("call", ErrorInfo::new("broken", "no"));
    run.then(
        "
            node.failed call broken
            run.failed broken call
            > tell parent call failed {}
        ",
    );
    let mut run = started();
    run.cancel();
    run.then(
        "
            node.cancelled call run-cancelled
            run.cancelled
            > tell parent call cancelled {}
        ",
    );
}

#[test]
fn child_over_the_node_timeout_is_cancelled() {
    let workflow = workflow("parent")
        .call("call", "child", json!({}))
        .with("settings", json!({"timeoutMs": 100}))
        .noops("rescue")
        .ruled("call", "rescue", "any_failed");
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    let mut run = run.given();
    run.elapse(100);
    run.then(
        "
            node.failed call node_timeout
            node.started rescue
            node.completed rescue
            run.completed
            > cancel child
        ",
    );
}

#[test]
fn retry_after_a_timeout_starts_another_child() {
    let workflow = workflow("parent")
        .settings(json!({"maxRetries": 1}))
        .call("call", "child", json!({}))
        .with("settings", json!({"timeoutMs": 100}));
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    let first = run.child_of("call");
    run.elapse(650);
    assert_ne!(run.child_of("call"), first);
    let late = ChildOutcome::Ended {
        child: first,
        status: RunStatus::Cancelled,
        variables: Default::default(),
        untrusted: Vec::new(),
        error: None,
    };
    assert_eq!(run.child_reports("call", late), Reply::Unchanged);
    run.child_ended("call", RunStatus::Completed, json!({}));
    assert_eq!(run.status(), RunStatus::Completed);
}
