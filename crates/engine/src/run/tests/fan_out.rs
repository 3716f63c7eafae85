//! Parallel workers: every join mode against every way workers may end.

use super::harness::RunHarness;
use super::supervising::{started, supervised, terminate, workers};
use serde_json::{Value, json};
use tandem_record::{ChildOutcome, ErrorInfo, InterruptId, NodeId, RunId, RunStatus};

const COMPLETED: RunStatus = RunStatus::Completed;
const FAILED: RunStatus = RunStatus::Failed;
const CANCELLED: RunStatus = RunStatus::Cancelled;

fn fanned(join: Value, more: Value) -> RunHarness {
    let mut dispatch = json!({
        "fanOutPolicy": "parallel", "joinPolicy": join, "outputMapping": {"mine": "theirs"},
    });
    if let Some(bound) = more.get("maxConcurrency") {
        dispatch["maxConcurrency"] = bound.clone();
    }
    let plan = json!([workers(&["one", "two", "three"]), terminate()]);
    started(supervised(plan, dispatch))
}

fn children(run: &RunHarness) -> Vec<RunId> {
    run.run()
        .view()
        .children
        .into_iter()
        .map(|c| c.run_id)
        .collect()
}

fn ends(run: &mut RunHarness, child: &RunId, status: RunStatus, variables: Value) {
    let outcome = ChildOutcome::Ended {
        child: child.clone(),
        status,
        variables: super::harness::object(variables),
        untrusted: Vec::new(),
        error: (status == FAILED).then(|| ErrorInfo::new("boom", "it broke")),
    };
    run.child_reports("send", outcome);
}

#[test]
fn each_join_mode_decides_on_time_and_cancels_the_rest() {
    let quorum = |n| json!({"mode": "quorum", "quorum": n});
    let with = |mode: &str, on: &str| json!({"mode": mode, "onChildFailure": on});
    // Ends, in order; the number of ends after which the join is decided; its result.
    type Ends<'e> = &'e [(usize, RunStatus)];
    let table: [(Value, Ends<'_>, usize, &str); 11] = [
        (
            json!({}),
            &[(0, COMPLETED), (1, COMPLETED), (2, COMPLETED)],
            3,
            "satisfied 3/0/0",
        ),
        (
            json!({}),
            &[(0, COMPLETED), (1, FAILED), (2, COMPLETED)],
            3,
            "partial 2/1/0",
        ),
        (
            json!({}),
            &[(0, FAILED), (1, CANCELLED), (2, FAILED)],
            3,
            "failed 0/2/1",
        ),
        (
            with("wait-all", "absorb"),
            &[(0, FAILED), (1, COMPLETED), (2, FAILED)],
            3,
            "satisfied 1/2/0",
        ),
        (
            with("wait-all", "fail-fast"),
            &[(1, FAILED), (0, COMPLETED), (2, CANCELLED)],
            1,
            "failed 1/1/1",
        ),
        (
            quorum(2),
            &[(2, COMPLETED), (0, COMPLETED), (1, CANCELLED)],
            2,
            "satisfied 2/0/1",
        ),
        (
            quorum(2),
            &[(0, FAILED), (1, FAILED), (2, CANCELLED)],
            2,
            "failed 0/2/1",
        ),
        (
            with("first", "collect"),
            &[(0, FAILED), (2, COMPLETED), (1, CANCELLED)],
            2,
            "satisfied 1/1/1",
        ),
        (
            with("first", "collect"),
            &[(0, FAILED), (1, FAILED), (2, FAILED)],
            3,
            "failed 0/3/0",
        ),
        (
            with("race", "collect"),
            &[(1, COMPLETED), (0, FAILED), (2, CANCELLED)],
            1,
            "satisfied 1/1/1",
        ),
        (
            with("race", "collect"),
            &[(1, FAILED), (0, COMPLETED), (2, CANCELLED)],
            1,
            "failed 1/1/1",
        ),
    ];
    for (join, steps, decided_after, outcome) in table {
        let mut run = fanned(join.clone(), json!({}));
        let all = children(&run);
        assert_eq!(all.len(), 3);
        run.lines();
        for (n, (child, status)) in steps.iter().enumerate() {
            ends(&mut run, &all[*child], *status, json!({}));
            let lines = run.lines();
            let called = lines.iter().filter(|l| *l == "> cancel child").count();
            let expected = if n + 1 == decided_after { 2 - n } else { 0 };
            assert_eq!(called, expected, "{join} after {} ends: {lines:?}", n + 1);
            if n < 2 {
                assert!(
                    !lines.iter().any(|l| l.starts_with("fan-in")),
                    "{join} joined early"
                );
            } else {
                let joined = format!("fan-in {outcome}");
                assert!(lines.contains(&joined), "{join}: {lines:?}");
            }
        }
        assert_eq!(
            run.status(),
            COMPLETED,
            "{join}: the supervisor's next iteration ends it"
        );
    }
}

#[test]
fn variables_are_merged_once_in_the_order_in_which_workers_ended() {
    let mut run = fanned(json!({}), json!({}));
    let all = children(&run);
    ends(&mut run, &all[2], COMPLETED, json!({"theirs": "third"}));
    ends(&mut run, &all[1], COMPLETED, json!({"theirs": "second"}));
    assert_eq!(
        run.run().view().variables["mine"],
        "before",
        "not before the join"
    );
    ends(&mut run, &all[0], COMPLETED, json!({"theirs": "first"}));
    assert_eq!(run.run().view().variables["mine"], "first");
    let harvests = run.lines();
    let harvests = harvests
        .iter()
        .filter(|l| l.starts_with("output.harvested"));
    let order: Vec<&String> = harvests.collect();
    assert_eq!(
        order,
        [
            "output.harvested three mine",
            "output.harvested two mine",
            "output.harvested one mine"
        ]
    );
}

#[test]
fn concurrent_workers_stay_within_the_limit() {
    let mut run = fanned(json!({}), json!({"maxConcurrency": 2}));
    let first = children(&run);
    assert_eq!(first.len(), 2);
    ends(&mut run, &first[0], COMPLETED, json!({}));
    let all = children(&run);
    assert_eq!(all.len(), 3);
    ends(&mut run, &all[2], COMPLETED, json!({}));
    ends(&mut run, &all[1], COMPLETED, json!({}));
    assert_eq!(run.status(), COMPLETED);
}

#[test]
fn two_waiting_workers_are_both_mirrored() {
    let mut run = fanned(json!({}), json!({}));
    let all = children(&run);
    let waits = |child: &RunId, status, id: &str| ChildOutcome::Waiting {
        child: child.clone(),
        asker: child.clone(),
        node: NodeId::new("gate"),
        status,
        interrupt: InterruptId::new(id),
        kind: "approval".to_owned(),
        key: None,
        data: None,
    };
    ends(&mut run, &all[0], COMPLETED, json!({}));
    run.child_reports("send", waits(&all[1], RunStatus::WaitingApproval, "int-1"));
    run.child_reports("send", waits(&all[2], RunStatus::WaitingInput, "int-2"));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    run.child_reports(
        "send",
        ChildOutcome::Resumed {
            child: all[1].clone(),
        },
    );
    assert_eq!(
        run.status(),
        RunStatus::WaitingInput,
        "the other one still waits"
    );
    ends(&mut run, &all[1], COMPLETED, json!({}));
    ends(&mut run, &all[2], COMPLETED, json!({}));
    assert_eq!(run.status(), COMPLETED);
}

#[test]
fn cancel_waits_for_all_workers() {
    let mut run = fanned(json!({}), json!({}));
    let all = children(&run);
    run.lines();
    run.cancel();
    let lines = run.lines();
    assert_eq!(lines.iter().filter(|l| *l == "> cancel child").count(), 3);
    for child in &all {
        assert_eq!(run.status(), RunStatus::Cancelling);
        ends(&mut run, child, CANCELLED, json!({}));
    }
    assert_eq!(run.status(), CANCELLED);
}
