//! Nodes of packs: the call is recorded before it is made, its answer is recorded, and replays
//! repeat it.

use super::harness::{RunHarness, object};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::pack::PackTypes;
use serde_json::{Value, json};
use tandem_record::{
    CapKind, EffectKind, EffectOutcome, ErrorInfo, ForkMode, PackAnswer, PackLogLine, PackResult,
    RunStatus,
};

fn acts(settings: Value) -> WorkflowBuilder {
    workflow("acts")
        .node("act", "vendor.acme.act", json!({"tone": "kind"}))
        .with("settings", settings)
        .noops("after")
        .path("act after")
}

fn answer(run: &mut RunHarness, result: PackResult) {
    let effect = run.effect_of("act");
    let log_lines = Vec::new();
    run.finish(
        effect,
        EffectOutcome::Pack(Box::new(PackAnswer { result, log_lines })),
    );
}

fn completed(outputs: Value) -> PackResult {
    PackResult::Completed {
        outputs: object(outputs),
    }
}

fn too_much() -> PackResult {
    PackResult::Breached {
        kind: CapKind::WasmMemory,
        limit: 100,
        observed: 101,
        error: ErrorInfo::new("sandbox_memory_exceeded", "too much"),
    }
}

#[test]
fn a_call_is_recorded_before_it_is_made_and_its_answer_completes_the_node() {
    let mut run = RunHarness::new(acts(json!({}))).configured(json!({"acme.mode": "x"}));
    run.create(json!({"name": "you"}));
    run.then(
        r#"
            run.started {"name":"you"}
            node.started act vendor.acme.tools@1.0.0
            > pack act vendor.acme.act {"name":"you"} attempt=0
        "#,
    );
    let call = run.outbox().find_map(|effect| match &effect.kind {
        EffectKind::Pack { call, .. } => Some(call.clone()),
        _ => None,
    });
    let call = call.expect("a pack's node is called");
    // The time it gets is the recorded time.
    assert_eq!(call.at, run.now);
    assert_eq!(call.config, object(json!({"tone": "kind"})));
    assert_eq!(call.configurable, object(json!({"acme.mode": "x"})));

    answer(&mut run, completed(json!({"greeting": "hello"})));
    run.then(
        r#"
            node.completed act {"greeting":"hello"}
            node.started after
            node.completed after
            run.completed
        "#,
    );
}

#[test]
fn pack_log_lines_are_recorded_before_the_node_ends() {
    let mut run = RunHarness::started(acts(json!({}))).given();
    let effect = run.effect_of("act");
    let line = |message: &str| PackLogLine {
        level: "info".to_owned(),
        message: message.to_owned(),
    };
    let answer = PackAnswer {
        result: completed(json!({})),
        log_lines: vec![line("one"), line("two")],
    };
    run.finish(effect, EffectOutcome::Pack(Box::new(answer)));
    run.then(
        "
            log one
            log two
            node.completed act
            node.started after
            node.completed after
            run.completed
        ",
    );
}

#[test]
fn pack_failure_is_final_unless_marked_retryable() {
    let failed = |error| PackResult::Failed { error };
    let retry = json!({"retry": {"maxAttempts": 2, "backoff": "fixed", "backoffMs": 10}});
    let mut run = RunHarness::started(acts(retry.clone())).given();
    answer(&mut run, failed(ErrorInfo::new("no_stock", "none")));
    run.then(
        "
            node.failed act no_stock
            run.failed no_stock act
        ",
    );

    let mut run = RunHarness::started(acts(retry)).given();
    let first = run.effect_of("act");
    answer(
        &mut run,
        failed(ErrorInfo::new("busy", "later").retryable()),
    );
    run.then("node.retried act busy attempt=1 delay=10");
    run.elapse(10);
    run.then(
        "
            node.started act attempt=1 vendor.acme.tools@1.0.0
            > pack act vendor.acme.act {} attempt=1
        ",
    );
    assert_eq!(
        run.effect_of("act"),
        first,
        "a second attempt is the same effect"
    );
}

#[test]
fn pack_cap_breach_fails_the_run() {
    let retry = json!({"retry": {"maxAttempts": 3}});
    let mut run = RunHarness::started(acts(retry)).given();
    answer(&mut run, too_much());
    run.then(
        "
            cap.breached wasm-memory 101>100 act
            node.failed act sandbox_memory_exceeded
            run.failed sandbox_memory_exceeded act
        ",
    );
}

#[test]
fn node_of_a_missing_pack_fails() {
    let mut run = RunHarness::new(acts(json!({})));
    run.packs = PackTypes::default();
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started act
            node.failed act pack_unavailable
            run.failed pack_unavailable act
        ",
    );
}

#[test]
fn a_replay_repeats_what_was_recorded_without_the_pack() {
    for (result, status) in [
        (completed(json!({"n": 1})), RunStatus::Completed),
        (too_much(), RunStatus::Failed),
    ] {
        let mut run = RunHarness::started(acts(json!({})));
        answer(&mut run, result);
        run.packs = PackTypes::default();
        let length = run.log().len();
        let replay = run.fork(ForkMode::Replay, 0);
        assert_eq!(replay.status(), status);
        assert_eq!(replay.log().len(), length);
        assert_eq!(replay.outbox().count(), 0);
    }
}

#[test]
fn branch_calls_the_pack_with_its_own_effect_id() {
    let run = RunHarness::started(acts(json!({})));
    let branch = run.fork(ForkMode::Branch, 1);
    assert_ne!(run.effect_of("act"), branch.effect_of("act"));
}
