//! Forks: what is copied, what is executed again, and which interrupts are opened again.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{EffectKind, Event, RunId, RunStatus};

/// The replay has the same events as the source, at the same times, and no effects.
#[track_caller]
pub(super) fn assert_same_course(source: &RunHarness, replay: &RunHarness) {
    let (was, is) = (source.log(), replay.log());
    assert_eq!(is.len(), was.len(), "from {:?}", replay.run().fork_point());
    for (was, is) in was.iter().zip(is).skip(1) {
        assert_eq!(was, is);
    }
    assert_eq!(replay.outbox().count(), 0, "a replay does nothing");
    assert!(replay.timers().is_empty(), "a replay waits for nothing");
    assert_eq!(replay.status(), source.status());
}

fn gated() -> WorkflowBuilder {
    workflow("gated")
        .noops("a")
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .http("call", json!({"output": "said"}))
        .noops("z")
        .path("a gate call z")
}

fn decided() -> RunHarness {
    let mut run = RunHarness::started(gated());
    run.elapse(5_000);
    run.when(answer("gate", json!({"action": "accept"})));
    run.elapse(7);
    run.done("call", json!({"body": {"n": 1}}));
    assert_eq!(run.status(), RunStatus::Completed);
    run
}

#[test]
fn replay_repeats_questions_and_calls_from_any_event() {
    let run = decided();
    for from in 0..run.log().len() as u64 {
        let replay = run.fork(Replay, from);
        assert_eq!(replay.log().len(), run.log().len(), "from {from}");
        for (was, is) in run.log().iter().zip(replay.log()).skip(1) {
            assert_eq!(was.at, is.at);
            assert_eq!(was.cause, is.cause);
            assert_eq!(was.event.node(), is.event.node());
        }
        assert_eq!(replay.outbox().count(), 0);
        assert_eq!(replay.run().view().variables, run.run().view().variables);
        assert!(replay.run().open_questions().is_empty());
        let ids = |harness: &RunHarness| -> Vec<String> {
            let log = harness.log().iter();
            log.filter_map(|r| match &r.event {
                Event::InterruptRequested { interrupt, .. } => Some(interrupt.id.to_string()),
                _ => None,
            })
            .collect()
        };
        assert_ne!(ids(&replay), ids(&run), "a question has the fork's own id");
    }
}

#[test]
fn branch_asks_and_calls_again_with_its_own_ids() {
    let run = decided();
    let log = run.log();
    let answered = log
        .iter()
        .position(|r| matches!(r.event, Event::InterruptResolved { .. }))
        .expect("the gate was decided");
    for from in 0..log.len() as u64 {
        let mut branch = run.fork(Branch, from);
        // Until the end of the deciding burst, the gate has not completed.
        if from <= answered as u64 + 2 {
            assert_eq!(branch.status(), RunStatus::WaitingApproval, "from {from}");
            assert_eq!(branch.run().open_questions().len(), 1, "from {from}");
            branch.when(answer("gate", json!({"action": "accept"})));
        }
        let calls: Vec<_> = branch.outbox().cloned().collect();
        for call in calls {
            assert!(matches!(call.kind, EffectKind::Http { .. }));
            let taken = log.iter().any(|r| match &r.event {
                Event::NodeStarted {
                    work: Some(work), ..
                } => format!("{work:?}").contains(call.id.as_str()),
                _ => false,
            });
            assert!(!taken, "the call at {from} has the source's identity");
            branch.done("call", json!({"body": {"n": 2}}));
        }
        assert_eq!(branch.status(), RunStatus::Completed, "from {from}");
        let starts = |harness: &RunHarness, wanted: &str| {
            let log = harness.log().iter();
            log.filter(
                |r| matches!(&r.event, Event::NodeStarted { node, .. } if node.as_str() == wanted),
            )
            .count()
        };
        for node in ["a", "gate", "call", "z"] {
            assert_eq!(starts(&branch, node), 1, "{node} starts once, from {from}");
        }
    }
}

#[test]
fn replay_of_a_waiting_run_fails_where_nothing_is_recorded() {
    let run = RunHarness::started(gated());
    let replay = run.fork(Replay, 0);
    assert_eq!(replay.status(), RunStatus::Failed);
    let error = replay.run().error().expect("it failed").clone();
    assert_eq!(error.code, "replay_source_missing");
    assert!(replay.run().open_questions().is_empty());
}

#[test]
fn branch_during_a_child_starts_its_own_child() {
    let parent_workflow = || {
        workflow("parent")
            .call("call", "child", json!({}))
            .noops("z")
            .path("call z")
    };
    let mut run = RunHarness::new(parent_workflow()).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    let theirs = run.child_of("call");
    run.child_ended("call", RunStatus::Completed, json!({}));
    assert_eq!(run.status(), RunStatus::Completed);
    for from in 2..=3 {
        let mut branch = run.fork(Branch, from);
        let ours = branch.child_of("call");
        assert_ne!(ours, theirs, "from {from}");
        let started: Vec<RunId> = branch
            .created_children()
            .map(|new_child| new_child.child.clone())
            .collect();
        assert_eq!(started, [ours], "from {from}");
        branch.cancel();
        let cancels_theirs = branch.outbox().any(
            |effect| matches!(&effect.kind, EffectKind::CancelChild { child } if *child == theirs),
        );
        assert!(!cancels_theirs, "the source's child is not the fork's");
    }
    assert_same_course(&run, &run.fork(Replay, 0));
}

#[test]
fn forks_of_forks_work() {
    let run = decided();
    let second = run.fork(Replay, 3);
    let third = second.fork(Replay, 6);
    assert_eq!(third.log().len(), run.log().len());
    let mut branch = third.fork(Branch, 2);
    assert_eq!(branch.status(), RunStatus::WaitingApproval);
    branch.when(answer("gate", json!({"action": "reject"})));
    assert_eq!(branch.status(), RunStatus::Failed);
    let again = branch.fork(Replay, 1);
    assert_eq!(again.status(), RunStatus::Failed);
    assert_eq!(again.log().len(), branch.log().len());
}

#[test]
fn nondeterministic_node_is_copied_not_executed() {
    let once = workflow("dice").node("n", "core.identity", json!({"nondeterministic": true}));
    let run = RunHarness::started(once);
    assert_same_course(&run, &run.fork(Replay, 0));
}

#[test]
fn branch_gets_the_full_duration_limit() {
    let workflow = workflow("timed").settings(json!({"timeout": 10_000})).node(
        "gate",
        "core.approvalGate",
        json!({"title": "ok?", "timeoutMs": 4_000}),
    );
    let mut run = RunHarness::started(workflow);
    run.elapse(3_000);
    run.when(answer("gate", json!({"action": "accept"})));
    run.elapse(60_000);
    let mut branch = run.fork(Branch, 4);
    assert_eq!(branch.status(), RunStatus::WaitingApproval);
    branch.elapse(3_900);
    assert_eq!(
        branch.status(),
        RunStatus::WaitingApproval,
        "opened again, so its time starts again"
    );
    branch.elapse(200);
    assert_eq!(branch.status(), RunStatus::Failed, "no answer arrived");
}

/// A wait, then a side effect, cancelled during the wait.
fn cancelled_before_its_effect() -> RunHarness {
    let mut run = RunHarness::started(
        workflow("f")
            .delay("nap", 5_000)
            .delay("more", 10)
            .http("effect", json!({}))
            .path("nap more effect"),
    );
    run.elapse(100);
    run.cancel();
    assert_eq!(run.status(), RunStatus::Cancelled);
    run
}

#[test]
fn replay_of_a_cancelled_run_fails_where_nothing_was_recorded() {
    let run = cancelled_before_its_effect();
    let mut replay = run.fork(Replay, 0);
    replay.then(
        r#"
            run.started
            node.started nap sleep=5000
            node.completed nap {"waitedMs":5000}
            node.started more
            node.completed more {"waitedMs":10}
            node.started effect
            node.failed effect replay_source_missing
            run.failed replay_source_missing effect
        "#,
    );
    assert_eq!(replay.outbox().count(), 0, "a replay does nothing");
    assert!(replay.timers().is_empty());
}

#[test]
fn replay_keeps_a_cancel_that_lies_below_the_fork_point() {
    let run = cancelled_before_its_effect();
    let last = run.log().len() as u64 - 1;
    let replay = run.fork(Replay, last);
    assert_eq!(replay.status(), RunStatus::Cancelled);
    assert_same_course(&run, &replay);
}

#[test]
fn replay_of_a_branch_has_the_duration_of_the_branch() {
    let flow = workflow("slow")
        .http("call", json!({}))
        .noops("z")
        .path("call z");
    let mut run = RunHarness::started(flow);
    run.elapse(5_000);
    let mut branch = run.fork(Branch, 2);
    branch.elapse(7);
    branch.done("call", json!({"body": 1}));
    let end = |run: &RunHarness| run.log().last().expect("it has events").event.clone();
    assert!(matches!(
        end(&branch),
        Event::RunCompleted { duration_ms: 7, .. }
    ));
    for from in 0..branch.log().len() as u64 {
        let replay = branch.fork(Replay, from);
        assert_eq!(end(&replay), end(&branch), "from {from}");
        assert_eq!(
            end(&replay.fork(Replay, from)),
            end(&branch),
            "of the replay"
        );
    }
}

#[test]
fn replay_names_the_first_event_that_differs() {
    let mut run = RunHarness::started(workflow("w").noops("a b c").path("a b c"));
    run.tamper(|event| match event {
        Event::NodeCompleted { node, outputs, .. } if node.as_str() == "b" => {
            outputs.insert("changed".to_owned(), json!(true));
        }
        _ => {}
    });
    let completes_b =
        |event: &Event| matches!(event, Event::NodeCompleted { node, .. } if node.as_str() == "b");
    let differs = run.log().iter().position(|r| completes_b(&r.event));
    let differs = differs.expect("b completed");
    let lines = run.fork(Replay, 0).lines();
    let expected = format!("replay.diverged {differs} output");
    assert!(lines.contains(&expected), "{lines:?}");
}

#[test]
fn child_that_a_branch_creates_at_its_fork_point_is_its_own() {
    let parent = workflow("parent").call("sub", "child", json!({}));
    let mut run = RunHarness::new(parent).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    let dispatched = run
        .log()
        .iter()
        .position(|r| matches!(r.event, Event::NodeDispatched { .. }));
    let from = dispatched.expect("a child was created") as u64;
    let mut branch = run.fork(Branch, from);
    let child = branch.created_children().next().expect("its own child");
    let child = child.child.clone();
    let live: Vec<_> = branch.run().live_children().map(|c| &c.run_id).collect();
    assert_eq!(live, [&child], "a cancel reaches it");
    branch.child_ends(&child, RunStatus::Completed);
    assert_eq!(branch.status(), RunStatus::Completed);
}
