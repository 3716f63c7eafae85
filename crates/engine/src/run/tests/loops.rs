//! Loops: the number of rounds, what a round reads, and how a loop ends.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{Event, RunStatus};

/// `loop → body → loop`, then `after`.
fn looped(config: Value) -> WorkflowBuilder {
    workflow("loop")
        .node("loop", "core.loop", config)
        .noops("body after")
        .path("loop body loop after")
}

/// How often a node was started.
fn starts(run: &RunHarness, wanted: &str) -> usize {
    let starts = run.log().iter().filter(|recorded| {
        matches!(&recorded.event, Event::NodeStarted { node, .. } if node.as_str() == wanted)
    });
    starts.count()
}

#[test]
fn loop_runs_a_number_of_times() {
    RunHarness::started(looped(json!({"times": 2}))).then(
        r#"
            run.started
            node.started loop
            node.completed loop {"done":false,"iteration":0}
            node.started body
            node.completed body
            node.started loop execution=1 resets=body
            node.completed loop {"done":false,"iteration":1}
            node.started body execution=1
            node.completed body
            node.started loop execution=2
            node.completed loop {"done":true,"iteration":2}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn loop_with_zero_times_skips_its_body() {
    RunHarness::started(looped(json!({"times": 0}))).then(
        r#"
            run.started
            node.started loop
            node.completed loop {"done":true,"iteration":0}
            node.skipped body upstream-skipped
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn loop_runs_over_items() {
    let workflow = workflow("items")
        .node("loop", "core.loop", json!({"itemVariable": "item"}))
        .port("items", json!({"type": "static", "value": ["x", "y"]}))
        .node("body", "core.identity", json!({}))
        .port("item", json!({"type": "variable", "variableName": "item"}))
        .path("loop body loop");
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started loop
            variable.changed item: unset -> "x"
            node.completed loop {"done":false,"item":"x","iteration":0}
            node.started body
            node.completed body {"item":"x"}
            node.started loop execution=1 resets=body
            variable.changed item: "x" -> "y"
            node.completed loop {"done":false,"item":"y","iteration":1}
            node.started body execution=1
            node.completed body {"item":"y"}
            node.started loop execution=2
            node.completed loop {"done":true,"iteration":2}
            run.completed {"done":true,"iteration":2}
        "#,
    );
}

#[test]
fn loop_runs_while_a_condition_on_the_last_round_holds() {
    let workflow = workflow("polling")
        .node(
            "loop",
            "core.loop",
            json!({"while": "nodes.poll.outputs.status != 200"}),
        )
        .http("poll", json!({}))
        .node("after", "core.identity", json!({}))
        .port(
            "status",
            json!({"type": "connection", "nodeId": "poll", "outputKey": "status"}),
        )
        .path("loop poll loop after");
    let mut run = RunHarness::started(workflow).given();
    run.done("poll", json!({"status": 202}));
    run.then(
        r#"
            node.completed poll {"status":202}
            node.started loop execution=1 resets=poll
            node.completed loop {"done":false,"iteration":1}
            node.started poll execution=1 http
            > http poll GET http://world.test/ attempt=0
        "#,
    );
    run.done("poll", json!({"status": 200}));
    run.then(
        r#"
            node.completed poll {"status":200}
            node.started loop execution=2
            node.completed loop {"done":true,"iteration":2}
            node.started after
            node.completed after {"status":200}
            run.completed {"status":200}
        "#,
    );
}

#[test]
fn each_round_has_its_own_effect_id() {
    let workflow = workflow("calls")
        .node("loop", "core.loop", json!({"times": 2}))
        .http("call", json!({}))
        .path("loop call loop");
    let mut run = RunHarness::started(workflow);
    let first = run.effect_of("call");
    run.done("call", json!({}));
    assert_ne!(run.effect_of("call"), first);
}

#[test]
fn a_loop_that_is_not_done_at_its_limit_fails() {
    let mut run = RunHarness::started(looped(json!({"times": 5, "maxIterations": 2})));
    run.then(
        r#"
            run.started
            node.started loop
            node.completed loop {"done":false,"iteration":0}
            node.started body
            node.completed body
            node.started loop execution=1 resets=body
            node.completed loop {"done":false,"iteration":1}
            node.started body execution=1
            node.completed body
            node.started loop execution=2
            node.failed loop loop_limit_exceeded
            run.failed loop_limit_exceeded loop
        "#,
    );
}

#[test]
fn without_any_bound_the_limit_is_the_number_of_rounds() {
    let run = RunHarness::started(looped(json!({"maxIterations": 3})));
    assert_eq!(
        (run.status(), starts(&run, "body")),
        (RunStatus::Completed, 3)
    );
}

#[test]
fn a_round_whose_body_is_skipped_is_over() {
    let odd = json!({"condition": {"type": "equals", "left": "iteration", "right": 1}});
    let workflow = workflow("skips")
        .node("loop", "core.loop", json!({"times": 3}))
        .noops("body after")
        .edge("loop", "body", odd)
        .path("body loop after");
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started loop
            node.completed loop {"done":false,"iteration":0}
            node.skipped body condition
            node.started loop execution=1 resets=body
            node.completed loop {"done":false,"iteration":1}
            node.started body
            node.completed body
            node.started loop execution=2 resets=body
            node.completed loop {"done":false,"iteration":2}
            node.skipped body condition
            node.started loop execution=3
            node.completed loop {"done":true,"iteration":3}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn an_edge_back_to_itself_is_a_loop_without_a_body() {
    let workflow = workflow("spin")
        .node("loop", "core.loop", json!({"times": 3}))
        .noops("after")
        .path("loop loop after");
    let run = RunHarness::started(workflow);
    assert_eq!(
        (run.status(), starts(&run, "loop"), starts(&run, "after")),
        (RunStatus::Completed, 4, 1)
    );
}

/// `outer → inner → leaf → inner → tail → outer`, edges listed in the given order.
fn nested(edges: &[&str]) -> WorkflowBuilder {
    let workflow = workflow("nested")
        .noops("start")
        .node("outer", "core.loop", json!({"times": 2}))
        .node("inner", "core.loop", json!({"times": 3}))
        .noops("leaf tail after");
    edges
        .iter()
        .fold(workflow, |workflow, path| workflow.path(path))
}

#[test]
fn nested_loops_multiply() {
    let orders: [&[&str]; 3] = [
        &["start outer inner leaf inner tail outer after"],
        &[
            "tail outer",
            "leaf inner",
            "inner tail",
            "inner leaf",
            "outer inner",
            "outer after",
            "start outer",
        ],
        &[
            "outer inner",
            "start outer",
            "outer after",
            "inner leaf",
            "leaf inner",
            "inner tail",
            "tail outer",
        ],
    ];
    for order in orders {
        let run = RunHarness::started(nested(order));
        let counts = ["outer", "inner", "leaf", "tail", "after"].map(|node| starts(&run, node));
        assert_eq!(run.status(), RunStatus::Completed);
        assert_eq!(counts, [3, 8, 6, 2, 1], "{order:?}");
    }
}

#[test]
fn an_inner_loop_may_be_the_tail_of_the_outer() {
    let workflow = workflow("nested")
        .node("outer", "core.loop", json!({"times": 2}))
        .node("inner", "core.loop", json!({"times": 2}))
        .delay("leaf", 10)
        .path("outer inner leaf inner outer");
    let mut run = RunHarness::started(workflow);
    run.elapse(1_000);
    assert_eq!(run.status(), RunStatus::Completed);
    assert_eq!(
        ["outer", "inner", "leaf"].map(|node| starts(&run, node)),
        [3, 6, 4]
    );
}

#[test]
fn a_round_ends_with_its_slowest_branch() {
    let workflow = workflow("branches")
        .node("loop", "core.loop", json!({"times": 2}))
        .delay("slow", 100)
        .noops("quick tail")
        .path("loop slow")
        .path("loop quick")
        .ruled("slow", "tail", "any_success")
        .ruled("quick", "tail", "any_success")
        .path("tail loop");
    let mut run = RunHarness::started(workflow);
    run.elapse(1_000);
    assert_eq!(run.status(), RunStatus::Completed);
    let completed = |wanted: &str| {
        let events = run.log().iter().map(|recorded| &recorded.event);
        let done = events.filter(
            |event| matches!(event, Event::NodeCompleted { node, .. } if node.as_str() == wanted),
        );
        done.count()
    };
    assert_eq!(["slow", "quick", "tail"].map(completed), [2, 2, 2]);
}

#[test]
fn two_loops_at_the_execution_limit_fail_the_run_once() {
    let workflow = workflow("two")
        .node("one", "core.loop", json!({"times": 9}))
        .delay("a", 10)
        .path("one a one")
        .node("two", "core.loop", json!({"times": 9}))
        .delay("b", 10)
        .path("two b two");
    let mut run = RunHarness::new(workflow).configured(json!({"recursionLimit": 4}));
    run.create(json!({}));
    run.elapse(1_000);
    assert_eq!(run.status(), RunStatus::Failed);
}
