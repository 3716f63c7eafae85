//! Straight lines, independent roots, disabled nodes.

use super::harness::RunHarness;
use super::workflow_builder::workflow;
use serde_json::json;
use tandem_record::RunStatus;

#[test]
fn a_chain_runs_in_one_decision() {
    let mut run = RunHarness::started(workflow("chain").noops("a b c").path("a b c"));
    run.then(
        "
            run.started
            node.started a
            node.completed a
            node.started b
            node.completed b
            node.started c
            node.completed c
            run.completed
        ",
    );
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn identity_passes_each_port_under_its_name() {
    let echo = workflow("echo").node("echo", "core.identity", json!({}));
    let mut run = RunHarness::new(echo);
    run.create(json!({"payload": {"n": [1, 2]}}));
    run.then(
        r#"
            run.started {"payload":{"n":[1,2]}}
            node.started echo
            node.completed echo {"payload":{"n":[1,2]}}
            run.completed {"payload":{"n":[1,2]}}
        "#,
    );
}

#[test]
fn independent_roots_overlap() {
    let roots = workflow("roots").delay("slow", 200).delay("quick", 100);
    let mut run = RunHarness::started(roots);
    run.then(
        "
            run.started
            node.started slow sleep=200
            node.started quick sleep=100
        ",
    );
    assert_eq!(run.timers(), ["wake quick 0 +100", "wake slow 0 +200"]);
    run.elapse(100);
    run.then(
        r#"
            node.completed quick {"waitedMs":100}
        "#,
    );
    run.elapse(100);
    run.then(
        r#"
            node.completed slow {"waitedMs":200}
            run.completed {"quick":{"waitedMs":100},"slow":{"waitedMs":200}}
        "#,
    );
}

#[test]
fn running_nodes_stay_within_the_limit() {
    let many = workflow("many")
        .delay("a", 10)
        .delay("b", 10)
        .delay("c", 10)
        .delay("d", 10);
    let mut run = RunHarness::new(many);
    run.limits.max_in_flight = 2;
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started a sleep=10
            node.started b sleep=10
        ",
    );
    run.elapse(10);
    run.then(
        r#"
            node.completed a {"waitedMs":10}
            node.started c sleep=10
            node.completed b {"waitedMs":10}
            node.started d sleep=10
        "#,
    );
    run.elapse(10);
    run.then(
        r#"
            node.completed c {"waitedMs":10}
            node.completed d {"waitedMs":10}
            run.completed {"a":{"waitedMs":10},"b":{"waitedMs":10},"c":{"waitedMs":10},"d":{"waitedMs":10}}
        "#,
    );
}

#[test]
fn a_disabled_node_is_skipped_and_so_is_what_needs_it() {
    let workflow = workflow("disabled")
        .noops("a b")
        .with("disabled", json!(true))
        .noops("c d")
        .path("a b c")
        .path("a d");
    RunHarness::started(workflow).then(
        "
            run.started
            node.started a
            node.completed a
            node.skipped b disabled
            node.skipped c upstream-skipped
            node.started d
            node.completed d
            run.completed
        ",
    );
}

#[test]
fn several_sinks_are_output_by_name_and_a_single_output_port_is_unwrapped() {
    let fan = workflow("fan")
        .node("left", "core.identity", json!({}))
        .port("x", json!({"type": "static", "value": 1}))
        .node("right", "core.identity", json!({}))
        .port("y", json!({"type": "static", "value": 2}));
    RunHarness::started(fan).then(
        r#"
            run.started
            node.started left
            node.completed left {"x":1}
            node.started right
            node.completed right {"y":2}
            run.completed {"left":{"x":1},"right":{"y":2}}
        "#,
    );
    let single = workflow("single")
        .node("only", "core.identity", json!({}))
        .port("output", json!({"type": "static", "value": {"k": "v"}}));
    RunHarness::started(single).then(
        r#"
            run.started
            node.started only
            node.completed only {"output":{"k":"v"}}
            run.completed {"k":"v"}
        "#,
    );
}

#[test]
fn a_node_that_fails_ends_the_run_and_stops_the_others() {
    let workflow = workflow("fails")
        .delay("slow", 500)
        .delay("soon", 10)
        .fail("broken", "out_of_paper")
        .noops("never")
        .path("soon broken never");
    let mut run = RunHarness::started(workflow).given();
    run.elapse(10);
    run.then(
        r#"
            node.completed soon {"waitedMs":10}
            node.started broken
            node.failed broken out_of_paper
            node.cancelled slow upstream-failed
            run.failed out_of_paper broken
        "#,
    );
    assert_eq!(
        run.run().error().map(|e| e.code.as_str()),
        Some("out_of_paper")
    );
    assert!(run.timers().is_empty());
}

#[test]
fn on_error_continue_completes_with_the_error_as_output() {
    let workflow = workflow("continue")
        .fail("broken", "out_of_paper")
        .with("settings", json!({"onError": "continue"}))
        .noops("after")
        .path("broken after");
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started broken
            node.completed broken {"error":{"code":"out_of_paper","message":"This node always fails."}}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}
