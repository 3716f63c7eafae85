//! Timers that fire late, early, twice, or for something that is over; and clocks that step back.

use super::flow::{Flow, flow};
use super::stage::Stage;
use serde_json::json;
use tandem_record::{Reply, RunStatus, TimerKey, Timestamp};

fn nap() -> Flow {
    flow("nap")
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
fn a_wake_up_is_told_how_long_it_really_slept() {
    let mut run = Stage::started(nap()).given();
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
    let mut run = Stage::started(nap()).given();
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
fn the_clock_may_step_back_but_the_log_does_not() {
    let mut run = Stage::started(nap()).given();
    let start = run.now;
    run.now = Timestamp(start.0 - 50_000);
    assert_eq!(run.fire(wake(0)), Reply::Unchanged, "it has not slept");
    run.cancel();
    assert_eq!(run.status(), RunStatus::Cancelled);
    assert_eq!(run.log().last().map(|r| r.at), Some(start));
}

#[test]
fn where_a_delay_takes_its_length_from() {
    let port = json!({"type": "static", "value": 30});
    let cases = [
        (
            flow("d").node(
                "nap",
                "core.delay",
                json!({"delayMs": 10, "durationMs": 11, "ms": 12}),
            ),
            json!({}),
            10,
        ),
        (
            flow("d").node("nap", "core.delay", json!({"durationMs": 11, "ms": 12})),
            json!({}),
            11,
        ),
        (
            flow("d").node("nap", "core.delay", json!({"ms": 12})),
            json!({}),
            12,
        ),
        (
            flow("d")
                .node("nap", "core.delay", json!({"ms": 12}))
                .port("delayMs", port),
            json!({}),
            30,
        ),
        (
            flow("d").node("nap", "core.delay", json!({"ms": 12})),
            json!({"delaySeconds": 0.25}),
            250,
        ),
    ];
    for (flow, inputs, ms) in cases {
        let mut run = Stage::new(flow);
        run.create(inputs);
        assert_eq!(run.timers(), [format!("wake nap 0 +{ms}")]);
    }
    Stage::started(flow("d").node("nap", "core.delay", json!({}))).then(
        r#"
            run.started
            node.started nap
            node.completed nap {"waitedMs":0}
            run.completed {"waitedMs":0}
        "#,
    );
    let words = json!({"type": "static", "value": "soon"});
    let wrong = flow("d")
        .node("nap", "core.delay", json!({}))
        .port("delayMs", words);
    Stage::started(wrong).then(
        "
            run.started
            node.started nap
            node.failed nap validation_error
            run.failed validation_error nap
        ",
    );
}
