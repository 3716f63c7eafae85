//! Results of effects, expected and unexpected.

use super::harness::{RunHarness, object};
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::DrainPolicy::Immediate;
use tandem_record::{Effect, EffectId, EffectKind, EffectOutcome, ErrorInfo, Reply, RunStatus};

fn call(config: Value) -> WorkflowBuilder {
    workflow("call")
        .http("call", config)
        .noops("after")
        .path("call after")
}

fn answer() -> EffectOutcome {
    EffectOutcome::Done {
        outputs: object(json!({"status": 200, "body": {"ok": true}})),
    }
}

#[test]
fn effect_result_completes_the_node() {
    let mut run = RunHarness::started(call(json!({"method": "POST"})));
    run.then(
        "
            run.started
            node.started call http
            > http call POST http://world.test/ attempt=0
        ",
    );
    run.done("call", json!({"status": 200}));
    run.then(
        r#"
            node.completed call {"status":200}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn the_body_goes_into_the_output_variable() {
    let mut run = RunHarness::started(call(json!({"output": "reply"}))).given();
    let effect = run.effect_of("call");
    run.finish(effect, answer());
    run.then(
        r#"
            variable.changed reply: unset -> {"ok":true}
            node.completed call {"body":{"ok":true},"status":200}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn permanent_failure_fails_the_node() {
    let mut run = RunHarness::started(call(json!({}))).given();
    run.failed("call", ErrorInfo::new("http_status", "404"));
    run.then(
        "
            node.failed call http_status
            run.failed http_status call
        ",
    );
}

#[test]
fn unexpected_effect_result_changes_nothing() {
    let mut run = RunHarness::started(call(json!({})));
    let effect = run.effect_of("call");
    assert_eq!(
        run.finish(EffectId::new("other"), answer()),
        Reply::Unchanged
    );
    assert_eq!(run.finish(effect.clone(), answer()), Reply::Accepted);
    let mut run = run.given();
    assert_eq!(
        run.finish(effect, answer()),
        Reply::Unchanged,
        "a second time"
    );
    run.then("");
}

#[test]
fn effect_result_after_pause_cancel_or_during_backoff_changes_nothing() {
    let mut paused = RunHarness::started(call(json!({})));
    let effect = paused.effect_of("call");
    paused.pause(Immediate).expect("running");
    assert_eq!(paused.finish(effect.clone(), answer()), Reply::Unchanged);

    let mut cancelled = RunHarness::started(call(json!({})));
    cancelled.cancel();
    assert_eq!(cancelled.finish(effect.clone(), answer()), Reply::Unchanged);

    let mut waiting = RunHarness::started(call(json!({"retry": {"maxAttempts": 2}})));
    waiting.failed(
        "call",
        ErrorInfo::new("external_call_failed", "").retryable(),
    );
    assert_eq!(waiting.finish(effect, answer()), Reply::Unchanged);
    assert_eq!(waiting.status(), RunStatus::Running);
}

#[test]
fn effect_result_is_accepted_after_the_resume() {
    let mut run = RunHarness::started(call(json!({})));
    let effect = run.effect_of("call");
    run.pause(Immediate).expect("running");
    run.resume().expect("paused");
    assert_eq!(run.finish(effect, answer()), Reply::Accepted);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn headers_reach_the_http_call_but_not_the_log() {
    let config = json!({"headers": {"authorization": "Bearer s3cret"}, "url": "http://api.test/"});
    let run = RunHarness::started(call(config));
    let log = serde_json::to_string(run.log()).expect("events are plain data");
    assert!(!log.contains("s3cret"));
    let sent: Vec<&Effect> = run.outbox().collect();
    let EffectKind::Http { request, .. } = &sent[0].kind else {
        panic!("{sent:?}");
    };
    assert_eq!(request.headers["authorization"], "Bearer s3cret");
}

#[test]
fn ports_replace_absent_configuration() {
    let workflow = workflow("ports")
        .node("call", "vendor.tandem.http", json!({"method": "put"}))
        .port(
            "url",
            json!({"type": "static", "value": "http://port.test/"}),
        )
        .port("body", json!({"type": "static", "value": [1]}));
    let mut run = RunHarness::started(workflow);
    run.then(
        "
            run.started
            node.started call http
            > http call PUT http://port.test/ attempt=0
        ",
    );
    let nowhere =
        super::workflow_builder::workflow("nowhere").node("call", "vendor.tandem.http", json!({}));
    RunHarness::started(nowhere).then(
        "
            run.started
            node.started call
            node.failed call validation_error
            run.failed validation_error call
        ",
    );
}
