//! The limit of descendants of a run, over all levels.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::{ChildOutcome, Object, RunId, RunStatus};

/// A workflow that calls another one at several nodes, in parallel or one after the other.
fn calls(id: &str, child: &str, times: usize, chained: bool) -> WorkflowBuilder {
    let nodes: Vec<String> = (0..times).map(|n| format!("c{n}")).collect();
    let calls = nodes.iter().fold(workflow(id), |workflow, node| {
        workflow.call(node, child, json!({}))
    });
    match chained {
        true => calls.path(&nodes.join(" ")),
        false => calls,
    }
}

fn ended(child: &RunId, unused: u64) -> ChildOutcome {
    ChildOutcome::Ended {
        child: child.clone(),
        status: RunStatus::Completed,
        variables: Object::new(),
        untrusted: Vec::new(),
        error: None,
        unused,
    }
}

/// Each child that was created and has not reported: its node, its id, its allowance.
fn granted(run: &RunHarness) -> Vec<(String, RunId, u64)> {
    let new_children = run.created_children().map(|new_child| {
        let parent = new_child.request.parent.as_ref().unwrap();
        let granted = parent.descendants.expect("every child has an allowance");
        (parent.node_id.to_string(), new_child.child.clone(), granted)
    });
    let mut new_children: Vec<_> = new_children.collect();
    new_children.sort();
    new_children
}

#[test]
fn child_over_the_descendant_limit_is_refused() {
    let mut run = RunHarness::new(calls("parent", "child", 4, true))
        .with_workflow(workflow("child").noops("n"));
    run.limits.max_descendants = 3;
    run.create(json!({}));
    for n in 0..3 {
        let (_, child, _) = granted(&run).pop().unwrap();
        run.child_ends(&child, RunStatus::Completed);
        assert_eq!(run.run().error().is_some(), n == 2, "after {n}");
    }
    assert_eq!(run.run().error().unwrap().code, "descendants_exceeded");
}

#[test]
fn child_without_children_uses_one_descendant() {
    let mut run = RunHarness::new(calls("parent", "child", 6, false))
        .with_workflow(workflow("child").noops("n"));
    run.limits.max_descendants = 6;
    run.create(json!({}));
    assert!(granted(&run).iter().all(|(_, _, granted)| *granted == 0));
    assert_eq!(granted(&run).len(), 6);
}

#[test]
fn remaining_allowance_is_shared_and_unused_part_returns() {
    let child = || calls("child", "leaf", 1, false);
    let mut run = RunHarness::new(calls("parent", "child", 2, false))
        .with_workflow(child())
        .with_workflow(workflow("leaf").noops("n"));
    run.limits.max_descendants = 100;
    run.create(json!({}));
    let shares: Vec<u64> = granted(&run)
        .iter()
        .map(|(_, _, granted)| *granted)
        .collect();
    // 99 less a quarter for two; then 61 less a quarter for two.
    assert_eq!(shares, [37, 23]);

    let mut run = RunHarness::new(calls("parent", "child", 3, true))
        .with_workflow(child())
        .with_workflow(workflow("leaf").noops("n"));
    run.limits.max_descendants = 100;
    run.create(json!({}));
    let mut shares = Vec::new();
    for unused in [24, 20, 0] {
        let (node, child, share) = granted(&run).pop().unwrap();
        shares.push(share);
        run.child_reports(&node, ended(&child, unused));
    }
    // The next child can use everything that a child did not use.
    assert_eq!(shares, [25, 36, 60]);
    assert_eq!(run.status(), RunStatus::Completed);
}

/// Starts as many runs as possible at every level; returns how many were started.
fn run_tree(levels: usize, width: usize, allowance: Option<u64>, limit: u64) -> u64 {
    let (own, next) = (
        format!("level{levels}"),
        format!("level{}", levels.saturating_sub(1)),
    );
    let leaf = levels <= 1;
    let below = match leaf {
        true => workflow(&next).noops("n"),
        false => calls(&next, &format!("level{}", levels - 2), width, false),
    };
    let mut run = RunHarness::new(calls(&own, &next, width, false)).with_workflow(below);
    run.limits.max_descendants = limit;
    run.limits.max_in_flight = width;
    if let Some(allowance) = allowance {
        run = run.child_under(&["root"], &[]);
        run.request.parent.as_mut().unwrap().descendants = Some(allowance);
    }
    run.create(json!({}));
    let children = run.log().iter();
    let children =
        children.filter(|r| matches!(r.event, tandem_record::Event::NodeDispatched { .. }));
    let mut total = children.count() as u64;
    if !leaf {
        for (_, _, share) in granted(&run) {
            total += run_tree(levels - 1, width, Some(share), limit);
        }
    }
    total
}

#[test]
fn run_tree_that_starts_all_it_can_stays_within_the_limit() {
    // Without a limit 4 + 16 + 64 + 256 + 1024.
    for limit in [1, 7, 50, 300] {
        let total = run_tree(5, 4, None, limit);
        assert!(total <= limit, "{total} of {limit}");
    }
    let total = run_tree(3, 4, None, 10_000);
    assert_eq!(total, 4 + 16 + 64, "a small run tree is not touched");
}
