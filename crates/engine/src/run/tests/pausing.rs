//! Pause and resume.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::DrainPolicy::{DrainCurrentNode, Immediate};
use tandem_record::{DrainPolicy, ErrorInfo, ForkMode, NodeStatus, RunStatus, Timestamp};

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
fn open_question_keeps_votes_through_a_pause() {
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
}

/// A workflow whose question has a time limit, beside a long delay.
fn timed(config: Value) -> WorkflowBuilder {
    workflow("timed")
        .node("gate", "core.approvalGate", config)
        .delay("nap", 60_000)
}

fn shown(run: &RunHarness) -> (Option<u64>, Option<u64>) {
    let open = run.run().open_questions()[0].clone();
    let left = |at: Option<Timestamp>| at.map(|at| at.ms_since(run.now));
    (left(open.deadline), left(open.expires_at))
}

#[test]
fn deadline_of_a_question_stands_still_during_every_pause() {
    let mut run = RunHarness::started(timed(json!({"timeoutMs": 3_000})));
    for left in [2_000, 1_000] {
        run.elapse(1_000);
        assert_eq!(shown(&run), (Some(left), Some(left)));
        run.pause(Immediate).expect("running");
        assert_eq!(shown(&run), (None, None), "it is not known yet");
        run.elapse(50_000);
        run.resume().expect("paused");
        assert_eq!(shown(&run), (Some(left), Some(left)));
    }
    let mut run = run.given();
    run.elapse(999);
    run.then("");
    run.elapse(1);
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(run.run().error().unwrap().code, "interrupt_rejected");
}

#[test]
fn steps_of_a_timeout_stand_still_during_a_pause() {
    let escalate =
        json!({"policy": "escalate", "levels": [{"approvers": ["boss"], "timeoutMs": 500}]});
    let remind = json!({"policy": "remind", "everyMs": 2000, "times": 2, "then": "reject"});
    for (policy, then) in [(escalate, [700, 500, 0]), (remind, [700, 2000, 2000])] {
        let config = json!({"timeoutMs": 1_000, "tandem": {"onTimeout": policy}});
        let mut run = RunHarness::started(timed(config));
        run.elapse(300);
        for left in then.into_iter().filter(|left| *left > 0) {
            let wait = run.timers();
            assert!(
                wait.contains(&format!("interrupt gate +{left}")),
                "{wait:?}"
            );
            run.pause(Immediate).expect("running");
            run.elapse(100_000);
            run.resume().expect("paused");
            run.elapse(left - 1);
            assert_eq!(run.timers().len(), 2, "nothing happened yet");
            run.elapse(1);
        }
        assert_eq!(run.status(), RunStatus::Failed);
    }
}

#[test]
fn question_is_answered_during_a_pause_unless_its_time_was_over_before() {
    let accept = || answer("gate", json!({"action": "accept"}));
    let mut run = RunHarness::started(timed(json!({"timeoutMs": 3_000})));
    run.pause(Immediate).expect("running");
    run.elapse(1_000_000);
    run.when(accept());
    run.resume().expect("paused");
    assert_eq!(run.node("gate").status, NodeStatus::Completed);

    let mut late = RunHarness::started(timed(json!({"timeoutMs": 3_000})));
    late.now = late.now.plus_ms(3_000);
    late.pause(Immediate).expect("its timer has not fired yet");
    late.elapse(5_000);
    assert!(shown(&late).1.is_some());
    match late.try_when(accept()) {
        Err(Refusal::AlreadyResolved(closed)) => assert_eq!(closed.outcome, "rejected"),
        other => panic!("its time was over: {other:?}"),
    }
    late.resume().expect("paused");
    late.elapse(0);
    assert_eq!(late.status(), RunStatus::Failed);
}

#[test]
fn branch_counts_no_pause_of_its_source_for_a_question() {
    let mut run = RunHarness::started(timed(json!({"timeoutMs": 3_000})));
    run.elapse(1_000);
    run.pause(Immediate).expect("running");
    run.elapse(50_000);
    let paused = run.fork(ForkMode::Branch, run.log().len() as u64);
    run.resume().expect("paused");
    let resumed = run.fork(ForkMode::Branch, run.log().len() as u64);
    assert_eq!(shown(&resumed), (Some(3_000), Some(3_000)), "a new time");
    let mut paused = paused;
    if paused.status() == RunStatus::Paused {
        paused.elapse(7_000);
        paused.resume().expect("paused");
    }
    assert_eq!(shown(&paused), (Some(3_000), Some(3_000)));
}
