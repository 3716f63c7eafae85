//! Failed attempts: what is retried, when, and how often.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{ErrorInfo, TimerKey};

fn call(retry: Value) -> WorkflowBuilder {
    workflow("call").http("call", json!({"retry": retry}))
}

fn trouble() -> ErrorInfo {
    ErrorInfo::new("external_call_failed", "no answer").retryable()
}

/// Delays before each retry until the node fails.
fn delays(retry: Value) -> Vec<u64> {
    let mut run = RunHarness::started(call(retry));
    let mut delays = Vec::new();
    while !run.status().is_terminal() {
        run.failed("call", trouble());
        if let Some(at) = run.node("call").retry_at {
            let wait = at.ms_since(run.now);
            delays.push(wait);
            run.elapse(wait);
        }
    }
    delays
}

#[test]
fn backoff_kinds() {
    let policy = |backoff: &str| json!({"maxAttempts": 5, "backoff": backoff, "backoffMs": 100});
    assert_eq!(delays(policy("none")), [0, 0, 0, 0]);
    assert_eq!(delays(policy("fixed")), [100, 100, 100, 100]);
    assert_eq!(delays(policy("exponential")), [100, 200, 400, 800]);
    let capped = json!({"maxAttempts": 5, "backoffMs": 100, "maxBackoffMs": 250});
    assert_eq!(delays(capped), [100, 200, 250, 250]);
    assert_eq!(delays(json!({"maxAttempts": 1})), [0; 0]);
    assert_eq!(delays(json!({"maxAttempts": 3})), [500, 1000]);
}

#[test]
fn a_retry_waits_for_its_timer_and_keeps_the_effects_identity() {
    let mut run = RunHarness::started(call(
        json!({"maxAttempts": 2, "backoff": "fixed", "backoffMs": 70}),
    ));
    let effect = run.effect_of("call");
    run.then(
        "
            run.started
            node.started call http
            > http call GET http://world.test/ attempt=0
        ",
    );
    run.failed("call", trouble());
    run.then(
        "
            node.retried call external_call_failed attempt=1 delay=70
        ",
    );
    assert_eq!(run.timers(), ["wake call 1 +70"]);
    assert_eq!(run.outbox().count(), 0);
    run.elapse(70);
    run.then(
        "
            node.started call attempt=1 http
            > http call GET http://world.test/ attempt=1
        ",
    );
    assert_eq!(run.effect_of("call"), effect);
    run.done("call", json!({"status": 200}));
    run.then(
        r#"
            node.completed call {"status":200}
            run.completed {"status":200}
        "#,
    );
}

#[test]
fn non_retryable_error_is_not_retried() {
    let mut run = RunHarness::started(call(json!({"maxAttempts": 5}))).given();
    run.failed("call", ErrorInfo::new("validation_error", "bad url"));
    run.then(
        "
            node.failed call validation_error
            run.failed validation_error call
        ",
    );
}

#[test]
fn workflow_retry_limit_applies_to_nodes_without_their_own() {
    let workflow = workflow("budget")
        .settings(json!({"maxRetries": 2}))
        .http("call", json!({}));
    let mut run = RunHarness::started(workflow);
    for _ in 0..3 {
        run.failed("call", trouble());
        run.elapse(5_000);
    }
    run.then(
        "
            run.started
            node.started call http
            > http call GET http://world.test/ attempt=0
            node.retried call external_call_failed attempt=1 delay=500
            node.started call attempt=1 http
            > http call GET http://world.test/ attempt=1
            node.retried call external_call_failed attempt=2 delay=1000
            node.started call attempt=2 http
            > http call GET http://world.test/ attempt=2
            node.failed call external_call_failed attempts=3
            run.failed external_call_failed call
        ",
    );
}

#[test]
fn a_node_that_takes_too_long_is_a_failed_attempt() {
    let workflow = workflow("slow")
        .http(
            "call",
            json!({"retry": {"maxAttempts": 2, "backoff": "none"}}),
        )
        .with("settings", json!({"timeoutMs": 300}));
    let mut run = RunHarness::started(workflow);
    run.then(
        "
            run.started
            node.started call http deadline=+300
            > http call GET http://world.test/ attempt=0
        ",
    );
    assert_eq!(run.timers(), ["deadline call 0 +300"]);
    run.elapse(300);
    run.then(
        "
            node.retried call node_timeout attempt=1 delay=0
            node.started call attempt=1 http deadline=+300
            > http call GET http://world.test/ attempt=1
        ",
    );
    run.elapse(300);
    run.then(
        "
            node.failed call node_timeout attempts=2
            run.failed node_timeout call
        ",
    );
}

#[test]
fn deadline_of_an_earlier_attempt_is_ignored() {
    let workflow = workflow("slow")
        .http(
            "call",
            json!({"retry": {"maxAttempts": 2, "backoff": "none"}}),
        )
        .with("settings", json!({"timeoutMs": 300}));
    let mut run = RunHarness::started(workflow);
    run.elapse(300);
    let mut run = run.given();
    run.now = run.now.plus_ms(300);
    let stale = TimerKey::NodeDeadline {
        node: "call".into(),
        attempt: 0,
    };
    run.fire(stale);
    run.then("");
}

#[test]
fn a_delay_longer_than_its_timeout_fails() {
    let workflow = workflow("slow")
        .delay("nap", 1_000)
        .with("settings", json!({"timeoutMs": 300}));
    let mut run = RunHarness::started(workflow).given();
    run.elapse(1_000);
    run.then(
        "
            node.failed nap node_timeout
            run.failed node_timeout nap
        ",
    );
}

#[test]
fn retries_count_as_node_executions() {
    let retry = json!({"maxAttempts": 9, "backoff": "none"});
    let mut run = RunHarness::new(call(retry)).configured(json!({"recursionLimit": 2}));
    run.create(json!({}));
    run.failed("call", trouble());
    run.elapse(0);
    let mut run = run.given();
    run.failed("call", trouble());
    run.elapse(0);
    run.then(
        "
            node.retried call external_call_failed attempt=2 delay=0
            cap.breached node-executions 3>2 call
            node.cancelled call upstream-failed
            run.failed recursion_limit_exceeded
        ",
    );
}

#[test]
fn time_limit_of_an_attempt_does_not_run_between_attempts() {
    let retry = json!({"maxAttempts": 2, "backoff": "fixed", "backoffMs": 70});
    let limited = call(retry).with("settings", json!({"timeout": 1_000}));
    let mut run = RunHarness::started(limited);
    assert_eq!(run.timers().len(), 1, "the time limit of the attempt");
    run.failed("call", trouble());
    assert_eq!(run.timers().len(), 1, "only the next attempt");
    assert_eq!(run.node("call").deadline, None);
}
