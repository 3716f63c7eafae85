//! Nodes fired by writes to a channel, inside the same run.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::{DrainPolicy, RunStatus};

/// A writer after `naps`, and `react → after` fired by its write.
fn reacting(debounce_ms: u64) -> WorkflowBuilder {
    workflow("reacting")
        .channel("c", json!({"reducer": "append"}))
        .noops("react after")
        .path("react after")
        .write("w", "c", json!(1))
        .on_write("c", "react", debounce_ms)
}

#[test]
fn a_write_fires_the_node_and_what_follows_it() {
    RunHarness::started(reacting(0)).then(
        r#"
            run.started
            node.skipped after upstream-skipped
            node.started w
            channel.written c append 1
            node.completed w
            node.started react resets=after trigger=on-c
            node.completed react
            node.started after
            node.completed after
            run.completed {"after":{},"w":{}}
        "#,
    );
}

#[test]
fn unfired_trigger_node_does_not_keep_the_run_open() {
    let workflow = workflow("quiet")
        .channel("c", json!({"reducer": "append"}))
        .noops("react n")
        .on_write("c", "react", 0);
    RunHarness::started(workflow).then(
        "
            run.started
            node.started n
            node.completed n
            run.completed
        ",
    );
}

#[test]
fn a_debounced_trigger_waits_for_its_window_and_fires_once() {
    let workflow = reacting(250).write("w2", "c", json!(2)).path("w w2");
    let mut run = RunHarness::started(workflow);
    run.then(
        "
            run.started
            node.skipped after upstream-skipped
            node.started w
            channel.written c append 1
            trigger.armed on-c due=+250
            node.completed w
            node.started w2
            channel.written c append 2
            node.completed w2
        ",
    );
    assert_eq!(run.timers(), ["trigger on-c +250"]);
    run.elapse(250);
    run.then(
        r#"
            node.started react resets=after trigger=on-c
            node.completed react
            node.started after
            node.completed after
            run.completed {"after":{},"w2":{}}
        "#,
    );
}

#[test]
fn a_write_while_the_fired_node_is_busy_fires_it_again_afterwards() {
    for debounce_ms in [0, 100] {
        let workflow = workflow("busy")
            .channel("c", json!({"reducer": "append"}))
            .delay("react", 1_000)
            .write("w", "c", json!(1))
            .delay("nap", 300)
            .write("w2", "c", json!(2))
            .path("w nap w2")
            .on_write("c", "react", debounce_ms);
        let mut run = RunHarness::started(workflow);
        run.elapse(5_000);
        assert_eq!(run.status(), RunStatus::Completed);
        assert_eq!(run.node("react").execution, 2);
    }
}

#[test]
fn writes_downstream_of_a_trigger_do_not_fire_it_again() {
    let workflow = workflow("echo")
        .channel("c", json!({"reducer": "append"}))
        .write("w", "c", json!("outside"))
        .write("react", "c", json!("inside"))
        .write("after", "c", json!("behind"))
        .path("react after")
        .on_write("c", "react", 0);
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started w
            channel.written c append "outside"
            node.completed w
            node.started react resets=after trigger=on-c
            channel.written c append "inside"
            node.completed react
            node.started after
            channel.written c append "behind"
            node.completed after
            run.completed {"after":{},"w":{}}
        "#,
    );
}

/// Two triggers that fire each other forever.
fn ping_pong() -> WorkflowBuilder {
    workflow("ping-pong")
        .settings(json!({"maxLoopbackIterations": 2}))
        .channel("ping", json!({"reducer": "counter"}))
        .channel("pong", json!({"reducer": "counter"}))
        .write("serve", "ping", json!(1))
        .write("back", "pong", json!(1))
        .write("forth", "ping", json!(1))
        .on_write("ping", "back", 0)
        .on_write("pong", "forth", 0)
}

#[test]
fn a_loop_of_triggers_ends_at_the_loopback_limit() {
    let mut run = RunHarness::started(ping_pong());
    run.then(
        r#"
            run.started
            node.started serve
            channel.written ping counter 1
            node.completed serve
            node.started back trigger=on-ping
            channel.written pong counter 1
            node.completed back
            node.started forth trigger=on-pong
            channel.written ping counter 1
            node.completed forth
            node.started back execution=1 trigger=on-ping
            channel.written pong counter 1
            node.completed back
            node.started forth execution=1 trigger=on-pong
            channel.written ping counter 1
            node.completed forth
            loopback-limit back iterations=3
            run.completed {"back":{},"forth":{},"serve":{}}
        "#,
    );
}

#[test]
fn a_debounced_trigger_past_its_limit_does_not_keep_the_run_open() {
    let workflow = workflow("limit")
        .settings(json!({"maxLoopbackIterations": 1}))
        .channel("c", json!({"reducer": "append"}))
        .noops("react")
        .write("w", "c", json!(1))
        .delay("nap", 300)
        .write("w2", "c", json!(2))
        .path("w nap w2")
        .on_write("c", "react", 100);
    let mut run = RunHarness::started(workflow);
    run.elapse(1_000);
    run.then(
        r#"
            run.started
            node.started w
            channel.written c append 1
            trigger.armed on-c due=+100
            node.completed w
            node.started nap sleep=300
            node.started react trigger=on-c
            node.completed react
            node.completed nap {"waitedMs":300}
            node.started w2
            channel.written c append 2
            trigger.armed on-c due=+100
            node.completed w2
            loopback-limit react iterations=2
            run.completed {"react":{},"w2":{}}
        "#,
    );
}

#[test]
fn a_fired_node_counts_as_an_execution() {
    let mut run = RunHarness::new(reacting(0)).configured(json!({"recursionLimit": 1}));
    run.create(json!({}));
    run.then(
        "
            run.started
            node.skipped after upstream-skipped
            node.started w
            channel.written c append 1
            node.completed w
            cap.breached node-executions 2>1 react
            run.failed recursion_limit_exceeded
        ",
    );
}

#[test]
fn a_pause_holds_armed_triggers_back() {
    for policy in [DrainPolicy::Immediate, DrainPolicy::DrainCurrentNode] {
        let mut run = RunHarness::started(reacting(250)).given();
        run.pause(policy).expect("running");
        assert_eq!(run.status(), RunStatus::Paused);
        run.elapse(1_000);
        let mut run = run.given();
        run.resume().expect("paused");
        run.elapse(0);
        run.then(
            r#"
                run.resumed
                node.started react resets=after trigger=on-c
                node.completed react
                node.started after
                node.completed after
                run.completed {"after":{},"w":{}}
            "#,
        );
    }
}

#[test]
fn a_fired_node_cut_off_by_a_pause_starts_again() {
    let workflow = workflow("cut")
        .channel("c", json!({"reducer": "append"}))
        .delay("react", 1_000)
        .noops("after")
        .path("react after")
        .write("w", "c", json!(1))
        .on_write("c", "react", 0);
    let mut run = RunHarness::started(workflow).given();
    run.pause(DrainPolicy::Immediate).expect("running");
    run.resume().expect("paused");
    run.elapse(1_000);
    run.then(
        r#"
            run.paused cut-off=react
            run.resumed
            node.started react attempt=1 sleep=1000
            node.completed react {"waitedMs":1000}
            node.started after
            node.completed after
            run.completed {"after":{},"w":{}}
        "#,
    );
}

#[test]
fn nothing_is_fired_while_a_pause_drains() {
    let workflow = reacting(100).delay("slow", 500);
    let mut run = RunHarness::started(workflow).given();
    run.pause(DrainPolicy::DrainCurrentNode).expect("running");
    run.elapse(500);
    run.then(
        r#"
            run.pause-requested
            node.completed slow {"waitedMs":500}
            run.paused
        "#,
    );
    run.resume().expect("paused");
    run.elapse(0);
    run.then(
        r#"
            run.resumed
            node.started react resets=after trigger=on-c
            node.completed react
            node.started after
            node.completed after
            run.completed {"after":{},"slow":{"waitedMs":500},"w":{}}
        "#,
    );
}
