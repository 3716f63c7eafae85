//! Timers that fire late, early, twice, or after their work has ended; and clocks that step back.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::{Event, Reply, RunStatus, TimerKey, Timestamp};

fn nap() -> WorkflowBuilder {
    workflow("nap")
        .delay("nap", 100)
        .noops("after")
        .path("nap after")
}

fn wake(attempt: u32) -> TimerKey {
    TimerKey::NodeWake {
        node: "nap".into(),
        attempt,
    }
}

#[test]
fn woken_node_reports_the_actual_sleep_time() {
    let mut run = RunHarness::started(nap()).given();
    run.now = run.now.plus_ms(730);
    run.fire(wake(0));
    run.then(
        r#"
            node.completed nap {"waitedMs":730}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn early_repeated_and_unknown_timers_change_nothing() {
    let mut run = RunHarness::started(nap()).given();
    run.now = run.now.plus_ms(99);
    let useless = [
        wake(0),
        wake(1),
        TimerKey::NodeDeadline {
            node: "nap".into(),
            attempt: 0,
        },
        TimerKey::NodeWake {
            node: "nobody".into(),
            attempt: 0,
        },
        TimerKey::InterruptDeadline { node: "nap".into() },
        TimerKey::Trigger {
            id: "nothing".into(),
        },
    ];
    for key in useless {
        assert_eq!(run.fire(key), Reply::Unchanged);
    }
    run.elapse(1);
    let mut run = run.given();
    assert_eq!(run.fire(wake(0)), Reply::Unchanged);
    assert_eq!(run.fire(TimerKey::RunDeadline), Reply::Unchanged);
    run.then("");
}

#[test]
fn log_time_never_goes_back_when_the_clock_does() {
    let mut run = RunHarness::started(nap()).given();
    let start = run.now;
    run.now = Timestamp(start.0 - 50_000);
    assert_eq!(run.fire(wake(0)), Reply::Unchanged, "it has not slept");
    run.cancel();
    assert_eq!(run.status(), RunStatus::Cancelled);
    assert_eq!(run.log().last().map(|r| r.at), Some(start));
}

#[test]
fn delay_reads_its_length_from_input_or_config() {
    let port = json!({"type": "static", "value": 30});
    let cases = [
        (
            workflow("d").node(
                "nap",
                "core.delay",
                json!({"delayMs": 10, "durationMs": 11, "ms": 12}),
            ),
            json!({}),
            10,
        ),
        (
            workflow("d").node("nap", "core.delay", json!({"durationMs": 11, "ms": 12})),
            json!({}),
            11,
        ),
        (
            workflow("d").node("nap", "core.delay", json!({"ms": 12})),
            json!({}),
            12,
        ),
        (
            workflow("d")
                .node("nap", "core.delay", json!({"ms": 12}))
                .port("delayMs", port),
            json!({}),
            30,
        ),
        (
            workflow("d").node("nap", "core.delay", json!({"ms": 12})),
            json!({"delaySeconds": 0.25}),
            250,
        ),
    ];
    for (workflow, inputs, ms) in cases {
        let mut run = RunHarness::new(workflow);
        run.create(inputs);
        assert_eq!(run.timers(), [format!("wake nap 0 +{ms}")]);
    }
    RunHarness::started(workflow("d").node("nap", "core.delay", json!({}))).then(
        r#"
            run.started
            node.started nap
            node.completed nap {"waitedMs":0}
            run.completed {"waitedMs":0}
        "#,
    );
    let words = json!({"type": "static", "value": "soon"});
    let wrong = workflow("d")
        .node("nap", "core.delay", json!({}))
        .port("delayMs", words);
    RunHarness::started(wrong).then(
        "
            run.started
            node.started nap
            node.failed nap validation_error
            run.failed validation_error nap
        ",
    );
}

/// Fires every due timer, in the order in which the store may return them at worst.
fn fire_latest_first(run: &mut RunHarness) {
    for key in run.due_keys().into_iter().rev() {
        run.fire(key);
    }
}

#[test]
fn earlier_limit_decides_after_a_clock_jump() {
    // (limit of the node, limit of the run, how the run ends)
    for (node, run, code) in [
        (100, 200, "node_timeout"),
        (200, 100, "run_timeout"),
        (100, 100, "run_timeout"),
    ] {
        let child = workflow("parent")
            .call("call", "child", json!({}))
            .with("settings", json!({"timeoutMs": node}));
        let mut harness = RunHarness::new(child)
            .with_workflow(workflow("child").noops("n"))
            .configured(json!({"runTimeoutMs": run}));
        harness.create(json!({}));
        harness.now = harness.now.plus_ms(1_000_000);
        fire_latest_first(&mut harness);
        assert_eq!(harness.run().error().unwrap().code, code, "{node} {run}");
    }
}

#[test]
fn whatever_is_due_happens_in_order_whichever_timer_fires() {
    let naps = || {
        let all = [("c", 30), ("a", 10), ("d", 40), ("b", 20)];
        let nap = |builder: WorkflowBuilder, (id, ms)| builder.delay(id, ms);
        all.into_iter().fold(workflow("naps"), nap)
    };
    let order = |run: &RunHarness| -> Vec<String> {
        let ended = run.log().iter().filter_map(|r| match &r.event {
            Event::NodeCompleted { node, .. } => Some(node.to_string()),
            _ => None,
        });
        ended.collect()
    };
    let mut run = RunHarness::started(naps());
    run.now = run.now.plus_ms(35);
    let wake = |node: &str| TimerKey::NodeWake {
        node: node.into(),
        attempt: 0,
    };
    run.fire(wake("b"));
    assert_eq!(
        order(&run),
        ["a", "b"],
        "what is due later waits for its timer"
    );
    run.now = run.now.plus_ms(35);
    fire_latest_first(&mut run);
    assert_eq!(order(&run), ["a", "b", "c", "d"]);
}
