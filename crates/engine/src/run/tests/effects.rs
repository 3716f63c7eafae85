//! Answers of the world, wanted and unwanted.

use super::flow::{Flow, flow};
use super::stage::{Stage, object};
use serde_json::{Value, json};
use tandem_record::DrainPolicy::Immediate;
use tandem_record::{Effect, EffectId, EffectKind, EffectOutcome, ErrorInfo, Reply, RunStatus};

fn call(config: Value) -> Flow {
    flow("call")
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
fn an_answer_completes_the_node() {
    let mut run = Stage::started(call(json!({"method": "POST"})));
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
    let mut run = Stage::started(call(json!({"output": "reply"}))).given();
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
fn a_lasting_failure_fails_the_node() {
    let mut run = Stage::started(call(json!({}))).given();
    run.failed("call", ErrorInfo::new("http_status", "404"));
    run.then(
        "
            node.failed call http_status
            run.failed http_status call
        ",
    );
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing() {
    let mut run = Stage::started(call(json!({})));
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
fn an_answer_after_a_pause_a_cancel_or_during_backoff_changes_nothing() {
    let mut paused = Stage::started(call(json!({})));
    let effect = paused.effect_of("call");
    paused.pause(Immediate).expect("running");
    assert_eq!(paused.finish(effect.clone(), answer()), Reply::Unchanged);

    let mut cancelled = Stage::started(call(json!({})));
    cancelled.cancel();
    assert_eq!(cancelled.finish(effect.clone(), answer()), Reply::Unchanged);

    let mut waiting = Stage::started(call(json!({"retry": {"maxAttempts": 2}})));
    waiting.failed(
        "call",
        ErrorInfo::new("external_call_failed", "").retryable(),
    );
    assert_eq!(waiting.finish(effect, answer()), Reply::Unchanged);
    assert_eq!(waiting.status(), RunStatus::Running);
}

#[test]
fn an_answer_from_before_a_pause_is_as_good_after_the_resume() {
    let mut run = Stage::started(call(json!({})));
    let effect = run.effect_of("call");
    run.pause(Immediate).expect("running");
    run.resume().expect("paused");
    assert_eq!(run.finish(effect, answer()), Reply::Accepted);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn headers_reach_the_call_but_not_the_log() {
    let config = json!({"headers": {"authorization": "Bearer s3cret"}, "url": "http://api.test/"});
    let run = Stage::started(call(config));
    let log = serde_json::to_string(run.log()).expect("events are plain data");
    assert!(!log.contains("s3cret"));
    let sent: Vec<&Effect> = run.outbox().collect();
    let EffectKind::Http { request, .. } = &sent[0].kind else {
        panic!("{sent:?}");
    };
    assert_eq!(request.headers["authorization"], "Bearer s3cret");
}

#[test]
fn ports_stand_in_for_absent_configuration() {
    let flow = flow("ports")
        .node("call", "vendor.tandem.http", json!({"method": "put"}))
        .port(
            "url",
            json!({"type": "static", "value": "http://port.test/"}),
        )
        .port("body", json!({"type": "static", "value": [1]}));
    let mut run = Stage::started(flow);
    run.then(
        "
            run.started
            node.started call http
            > http call PUT http://port.test/ attempt=0
        ",
    );
    let nowhere = super::flow::flow("nowhere").node("call", "vendor.tandem.http", json!({}));
    Stage::started(nowhere).then(
        "
            run.started
            node.started call
            node.failed call validation_error
            run.failed validation_error call
        ",
    );
}
