//! Pause and resume.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::json;
use tandem_record::DrainPolicy::{DrainCurrentNode, Immediate};
use tandem_record::{DrainPolicy, ErrorInfo, RunStatus};

fn busy() -> WorkflowBuilder {
    workflow("busy")
        .http(
            "call",
            json!({"retry": {"maxAttempts": 3, "backoff": "fixed", "backoffMs": 100}}),
        )
        .delay("nap", 1_000)
        .noops("after")
        .path("call after")
}

fn trouble() -> ErrorInfo {
    ErrorInfo::new("external_call_failed", "no answer").retryable()
}

#[test]
fn a_drain_lets_running_nodes_finish_and_starts_no_others() {
    let mut run = RunHarness::started(busy()).given();
    run.pause(DrainCurrentNode).expect("running");
    run.then(
        "
            run.pause-requested
        ",
    );
    assert_eq!(run.status(), RunStatus::Running);
    run.done("call", json!({}));
    run.then(
        "
            node.completed call
        ",
    );
    run.elapse(1_000);
    run.then(
        r#"
            node.completed nap {"waitedMs":1000}
            run.paused
        "#,
    );
    assert_eq!(run.status(), RunStatus::Paused);
    run.resume().expect("paused");
    run.then(
        r#"
            run.resumed
            node.started after
            node.completed after
            run.completed {"after":{},"nap":{"waitedMs":1000}}
        "#,
    );
}

#[test]
fn an_immediate_pause_cuts_nodes_off_and_they_start_afresh() {
    let mut run = RunHarness::started(busy()).given();
    let effect = run.effect_of("call");
    run.elapse(400);
    run.pause(Immediate).expect("running");
    run.then(
        "
            run.paused cut-off=call cut-off=nap
        ",
    );
    assert!(run.timers().is_empty());
    assert_eq!(run.outbox().count(), 0);
    run.elapse(60_000);
    run.resume().expect("paused");
    run.then(
        "
            run.resumed
            node.started call attempt=1 http
            node.started nap attempt=1 sleep=1000
            > http call GET http://world.test/ attempt=1
        ",
    );
    assert_eq!(
        run.effect_of("call"),
        effect,
        "the same effect, tried again"
    );
    assert_eq!(run.timers(), ["wake nap 1 +1000"]);
}

#[test]
fn node_cut_off_during_backoff_keeps_its_attempt() {
    let mut run = RunHarness::started(busy());
    run.failed("call", trouble());
    let mut run = run.given();
    run.pause(Immediate).expect("running");
    run.resume().expect("paused");
    run.then(
        "
            run.paused cut-off=call cut-off=nap
            run.resumed
            node.started call attempt=1 http
            node.started nap attempt=1 sleep=1000
            > http call GET http://world.test/ attempt=1
        ",
    );
}

#[test]
fn a_child_is_not_cut_off_and_may_end_while_its_parent_is_paused() {
    let workflow = workflow("parent")
        .call("call", "child", json!({}))
        .noops("after")
        .path("call after");
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    let mut run = run.given();
    run.pause(Immediate).expect("running");
    run.child_ended("call", RunStatus::Completed, json!({}));
    assert_eq!(run.status(), RunStatus::Paused);
    assert_eq!(run.node("after").execution, 0);
    run.resume().expect("paused");
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn deadline_of_a_child_node_is_extended_by_a_pause() {
    let workflow = workflow("parent")
        .settings(json!({"maxRetries": 1}))
        .call("call", "child", json!({}))
        .with("settings", json!({"timeoutMs": 100}));
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    run.elapse(40);
    run.pause(Immediate).expect("running");
    let mut run = run.given();
    run.elapse(10_000);
    run.then("");
    run.resume().expect("paused");
    run.elapse(59);
    run.then("run.resumed");
    run.elapse(1);
    run.then(
        "
            node.retried call node_timeout attempt=1 delay=500
            > cancel child
        ",
    );
}

#[test]
fn run_deadline_is_extended_by_every_pause() {
    let mut run = RunHarness::new(busy()).configured(json!({"runTimeoutMs": 500}));
    run.create(json!({}));
    for _ in 0..2 {
        run.elapse(200);
        run.pause(Immediate).expect("running");
        let mut paused = run.given();
        paused.elapse(10_000);
        paused.then("");
        paused.resume().expect("paused");
        run = paused;
    }
    let mut run = run.given();
    run.elapse(99);
    run.then("");
    run.elapse(1);
    run.then(
        "
            cap.breached run-duration 501>500
            node.cancelled call upstream-failed
            node.cancelled nap upstream-failed
            run.failed run_timeout
        ",
    );
}

#[test]
fn pause_between_two_decisions_takes_effect_at_once() {
    let mut run = RunHarness::new(workflow("chain").noops("a b c").path("a b c"));
    run.limits.max_starts_per_decision = 1;
    run.create(json!({}));
    let mut run = run.given();
    run.pause(DrainCurrentNode).expect("running");
    run.then(
        "
            run.pause-requested
            run.paused
        ",
    );
}

fn refused(run: &mut RunHarness, policy: DrainPolicy) -> RunStatus {
    match run.pause(policy) {
        Err(Refusal::NotPausable { status, .. }) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn paused_or_ended_run_refuses_pause() {
    let mut run = RunHarness::started(busy());
    run.pause(DrainCurrentNode).expect("running");
    assert_eq!(
        refused(&mut run, Immediate),
        RunStatus::Paused,
        "on its way"
    );
    let mut run = RunHarness::started(busy());
    run.pause(Immediate).expect("running");
    assert_eq!(refused(&mut run, Immediate), RunStatus::Paused);
    run.cancel();
    assert_eq!(refused(&mut run, Immediate), RunStatus::Cancelled);
}

#[test]
fn only_a_paused_run_resumes() {
    let mut run = RunHarness::started(busy());
    assert_eq!(
        run.resume(),
        Err(Refusal::NotPaused {
            status: RunStatus::Running
        })
    );
    run.pause(Immediate).expect("running");
    run.resume().expect("paused");
    assert_eq!(
        run.resume(),
        Err(Refusal::NotPaused {
            status: RunStatus::Running
        })
    );
}

#[test]
fn open_question_keeps_votes_and_deadline_through_a_pause() {
    let asked = || {
        workflow("asked")
            .node(
                "gate",
                "core.approvalGate",
                json!({"requiredApprovals": 2, "timeoutMs": 3_000}),
            )
            .delay("nap", 60_000)
    };
    let accept = |voter: &str| answer("gate", json!({"action": "accept", "voter": voter}));
    let mut run = RunHarness::started(asked());
    run.when(accept("ana"));
    let mut run = run.given();
    run.pause(Immediate).expect("running");
    run.then(
        "
            run.paused cut-off=nap
        ",
    );
    run.when(accept("ben"));
    run.then(
        r#"
            approval.received gate accept ben
            interrupt.resolved gate
            node.resumed gate
            node.completed gate {"action":"accept","decidedBy":"ana"}
        "#,
    );
    let mut late = RunHarness::started(asked()).given();
    late.pause(Immediate).expect("running");
    late.elapse(3_000);
    match late.try_when(accept("ana")) {
        Err(Refusal::AlreadyResolved(closed)) => assert_eq!(closed.outcome, "rejected"),
        other => panic!("the timeout applies, paused or not: {other:?}"),
    }
    late.resume().expect("paused");
    late.elapse(0);
    assert_eq!(late.status(), RunStatus::Failed);
}
