//! Limits of a run: node executions, duration, and what a caller may request.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::TimerKey;

fn six() -> WorkflowBuilder {
    workflow("six")
        .noops("n1 n2 n3 n4 n5 n6")
        .path("n1 n2 n3 n4 n5 n6")
}

#[test]
fn node_over_the_execution_limit_never_starts() {
    let mut run = RunHarness::new(six()).configured(json!({"recursionLimit": 3}));
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started n1
            node.completed n1
            node.started n2
            node.completed n2
            node.started n3
            node.completed n3
            cap.breached node-executions 4>3 n4
            run.failed recursion_limit_exceeded
        ",
    );
}

#[test]
fn host_limit_caps_a_larger_requested_limit() {
    let mut run = RunHarness::new(six()).configured(json!({"recursionLimit": 1000}));
    run.limits.max_node_executions = 2;
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started n1
            node.completed n1
            node.started n2
            node.completed n2
            cap.breached node-executions 3>2 n3
            run.failed recursion_limit_exceeded
        ",
    );
}

#[test]
fn run_that_exactly_reaches_the_limit_completes() {
    let mut run = RunHarness::new(six()).configured(json!({"recursionLimit": 6}));
    run.create(json!({}));
    assert!(run.status().is_terminal() && run.run().error().is_none());
}

#[test]
fn run_over_its_duration_limit_fails() {
    let mut run = RunHarness::new(
        workflow("slow")
            .delay("nap", 30_000)
            .http("call", json!({})),
    )
    .configured(json!({"runTimeoutMs": 1_000}));
    run.create(json!({}));
    let mut run = run.given();
    run.elapse(1_000);
    run.then(
        "
            cap.breached run-duration 1001>1000
            node.cancelled nap upstream-failed
            node.cancelled call upstream-failed
            run.failed run_timeout
        ",
    );
    let details = run.run().error().and_then(|e| e.details.clone());
    assert_eq!(details, Some(json!({"elapsedMs": 1_001})));
}

#[test]
fn late_deadline_reports_the_actual_elapsed_time() {
    let mut run = RunHarness::started(
        workflow("slow")
            .settings(json!({"timeout": 500}))
            .delay("nap", 30_000),
    )
    .given();
    run.now = run.now.plus_ms(2_000);
    run.fire(TimerKey::RunDeadline);
    run.then(
        "
            cap.breached run-duration 2000>500
            node.cancelled nap upstream-failed
            run.failed run_timeout
        ",
    );
}

#[test]
fn a_deadline_that_fires_early_changes_nothing() {
    let mut run = RunHarness::started(
        workflow("slow")
            .settings(json!({"timeout": 500}))
            .delay("nap", 30_000),
    )
    .given();
    run.now = run.now.plus_ms(499);
    run.fire(TimerKey::RunDeadline);
    run.then("");
}

#[test]
fn the_smallest_bound_on_duration_wins() {
    let cases = [
        (json!({"timeout": 700}), json!({}), 700),
        (json!({"timeout": 700}), json!({"runTimeoutMs": 300}), 300),
        (json!({"timeout": 200}), json!({"runTimeoutMs": 300}), 200),
        (json!({"timeout": 0}), json!({}), 9_000),
    ];
    for (settings, configurable, bound) in cases {
        let mut run = RunHarness::new(workflow("slow").settings(settings).delay("nap", 30_000))
            .configured(configurable);
        run.limits.max_run_duration_ms = 9_000;
        run.create(json!({}));
        run.elapse(bound - 1);
        assert!(!run.status().is_terminal(), "{bound} came early");
        run.elapse(1);
        assert!(run.status().is_terminal(), "{bound} did not strike");
    }
}

#[test]
fn bounds_must_be_positive_whole_numbers() {
    let wrong: [(&str, Value); 5] = [
        ("recursionLimit", json!(0)),
        ("recursionLimit", json!("3")),
        ("runTimeoutMs", json!(-5)),
        ("runTimeoutMs", json!(1.5)),
        ("maxLoopIterations", json!(0)),
    ];
    for (key, value) in wrong {
        let mut run = RunHarness::new(six()).configured(json!({key: value}));
        let Err(Refusal::Invalid(problems)) = run.try_create(json!({})) else {
            panic!("{key} {value} was accepted");
        };
        assert_eq!(problems[0].path, format!("/configurable/{key}"));
    }
}

#[test]
fn loop_that_nests_its_result_fails_at_the_depth_limit() {
    let wrapped = json!({"type": "expression", "expression": "variables"});
    let wrapping = workflow("wrapping")
        .node("loop", "core.loop", json!({"times": 200}))
        .node("wrap", "core.setVariable", json!({"name": "v"}))
        .port("value", wrapped)
        .variable("v", json!({"type": "object"}))
        .path("loop wrap loop");
    let mut run = RunHarness::started(wrapping);
    while run.status() == tandem_record::RunStatus::Running {
        run.when(tandem_record::Command::Continue);
    }
    let last = run.log().last().unwrap();
    let tandem_record::Event::RunFailed { error, .. } = &last.event else {
        panic!("{last:?}");
    };
    assert_eq!(error.code, "value_too_deep");
    for recorded in run.log() {
        let text = serde_json::to_string(recorded).unwrap();
        let read: Result<tandem_record::RecordedEvent, _> = serde_json::from_str(&text);
        assert_eq!(read.unwrap(), *recorded);
    }
}
