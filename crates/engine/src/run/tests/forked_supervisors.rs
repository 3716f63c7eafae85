//! Branches that begin in the middle of a supervised run, or at the end of any run: recorded events
//! are not repeated, open work is done, and an ended run stays ended.

use super::gates::answer;
use super::harness::RunHarness;
use super::supervising::{started, supervised, terminate, workers};
use super::workflow_builder::workflow;
use serde_json::json;
use std::collections::BTreeSet;
use tandem_record::ForkMode::Branch;
use tandem_record::{Event, HandoffStep, RunStatus, TimerKey};

fn count(run: &RunHarness, wanted: impl Fn(&Event) -> bool) -> usize {
    run.log().iter().filter(|r| wanted(&r.event)).count()
}

fn handoffs(run: &RunHarness, wanted: impl Fn(&HandoffStep) -> bool) -> usize {
    count(
        run,
        |event| matches!(event, Event::Handoff(h) if wanted(&h.step)),
    )
}

fn place(run: &RunHarness, wanted: impl Fn(&Event) -> bool) -> u64 {
    let found = run.log().iter().position(|r| wanted(&r.event));
    found.expect("it happened") as u64
}

#[test]
fn branch_of_a_supervised_run_works_from_every_event() {
    for dispatch in [
        json!({"outputMapping": {"mine": "theirs"}}),
        json!({"outputMapping": {"mine": "theirs"}, "fanOutPolicy": "parallel"}),
    ] {
        let plan = json!([workers(&["one"]), terminate()]);
        let mut run = started(supervised(plan, dispatch.clone()));
        run.child_ended("send", RunStatus::Completed, json!({"theirs": "after"}));
        assert_eq!(run.status(), RunStatus::Completed);
        for from in 1..run.log().len() as u64 {
            let mut branch = run.fork(Branch, from);
            let created: Vec<_> = branch.created_children().map(|b| b.child.clone()).collect();
            let distinct: BTreeSet<_> = created.iter().collect();
            assert_eq!(
                distinct.len(),
                created.len(),
                "a child born twice, from {from}"
            );
            if let Some(child) = created.first() {
                assert!(
                    run.created_children().all(|b| b.child != *child),
                    "from {from}"
                );
                branch.child_ended("send", RunStatus::Completed, json!({"theirs": "after"}));
            }
            assert_eq!(branch.status(), RunStatus::Completed, "from {from}");
            let left = branch.run().view().variables["mine"].clone();
            assert_eq!(left, json!("after"), "from {from}");
            let harvests = handoffs(&branch, |s| matches!(s, HandoffStep::Harvested { .. }));
            assert_eq!(harvests, 1, "from {from} of {dispatch}");
            let decisions = count(&branch, |e| matches!(e, Event::OrchestratorDecided { .. }));
            assert_eq!(decisions, 2, "from {from}");
            let changes = count(&branch, |e| matches!(e, Event::VariableChanged { .. }));
            assert_eq!(changes, 1, "from {from}");
            // A worker with a run of the source starts again with a run of the fork.
            let began = handoffs(&branch, |s| matches!(s, HandoffStep::Began));
            let dispatched = count(&branch, |e| matches!(e, Event::NodeDispatched { .. }));
            assert!(began <= dispatched, "began twice for one run, from {from}");
        }
    }
}

#[test]
fn recorded_decision_is_not_made_again() {
    let plan = json!([workers(&["one"]), terminate()]);
    let lead = json!({"mockDispatchPlan": plan, "mockConfidence": 0.2});
    let agents_workflow = workflow("conformance-loop")
        .node("lead", "core.orchestrator.supervisor", lead)
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = started(agents_workflow);
    run.when(answer("lead", json!({"action": "accept"})));
    let decided = place(&run, |e| matches!(e, Event::OrchestratorDecided { .. }));
    let branch = run.fork(Branch, decided + 1);
    let decisions = count(&branch, |e| matches!(e, Event::OrchestratorDecided { .. }));
    assert_eq!(decisions, 1);
    assert_eq!(branch.created_children().count(), 1, "and is carried out");
}

#[test]
fn branch_at_the_end_ends_like_its_source() {
    let waiting = || {
        workflow("f")
            .noops("a")
            .node("gate", "core.approvalGate", json!({"title": "ok?"}))
            .noops("z")
            .path("a gate z")
    };
    let mut late = RunHarness::new(waiting()).configured(json!({"runTimeoutMs": 200}));
    late.create(json!({}));
    late.elapse(200);
    late.fire(TimerKey::RunDeadline);
    let mut called_off = RunHarness::started(waiting());
    called_off.cancel();
    let mut deep = RunHarness::new(workflow("f").noops("a b c").path("a b c"))
        .configured(json!({"recursionLimit": 2}));
    deep.create(json!({}));
    for (run, ended) in [
        (late, RunStatus::Failed),
        (called_off, RunStatus::Cancelled),
        (deep, RunStatus::Failed),
    ] {
        assert_eq!(run.status(), ended);
        let last = run.log().len() as u64 - 1;
        let branch = run.fork(Branch, last);
        assert_eq!(branch.status(), ended);
        let names = |run: &RunHarness| -> Vec<_> {
            let log = run.log().iter();
            log.map(|r| std::mem::discriminant(&r.event)).collect()
        };
        assert_eq!(names(&branch), names(&run));
        let error = |run: &RunHarness| run.run().error().cloned();
        assert_eq!(error(&branch), error(&run));
    }
}

#[test]
fn a_branch_of_a_run_being_cancelled_is_cancelled_and_starts_nothing() {
    let parent_workflow = workflow("parent")
        .call("call", "child", json!({}))
        .noops("z")
        .path("call z");
    let mut run = RunHarness::new(parent_workflow).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    run.cancel();
    let child = run.child_of("call");
    run.child_ends(&child, RunStatus::Cancelled);
    let cancelled_at = place(&run, |e| matches!(e, Event::RunCancelRequested { .. }));
    let branch = run.fork(Branch, cancelled_at + 1);
    assert_eq!(branch.status(), RunStatus::Cancelled);
    assert_eq!(branch.created_children().count(), 0);
    assert_eq!(branch.outbox().count(), 0);
}
