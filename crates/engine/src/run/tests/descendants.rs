//! The bound on runs a run brings about, over all levels.

use super::flow::{Flow, flow};
use super::stage::Stage;
use serde_json::json;
use tandem_record::{ChildOutcome, Object, RunId, RunStatus};

/// A workflow that calls another one at several nodes, side by side or one after the other.
fn calls(id: &str, child: &str, times: usize, chained: bool) -> Flow {
    let nodes: Vec<String> = (0..times).map(|n| format!("c{n}")).collect();
    let calls = nodes
        .iter()
        .fold(flow(id), |flow, node| flow.call(node, child, json!({})));
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

/// Each child born and not heard of: its node, its id, what it was granted.
fn granted(run: &Stage) -> Vec<(String, RunId, u64)> {
    let births = run.born().map(|birth| {
        let parent = birth.request.parent.as_ref().unwrap();
        let granted = parent.descendants.expect("every child is told");
        (parent.node_id.to_string(), birth.child.clone(), granted)
    });
    let mut births: Vec<_> = births.collect();
    births.sort();
    births
}

#[test]
fn the_child_over_the_limit_is_refused_by_its_node() {
    let mut run = Stage::new(calls("parent", "child", 4, true)).knows(flow("child").noops("n"));
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
fn a_child_that_starts_nothing_takes_one_place_only() {
    let mut run = Stage::new(calls("parent", "child", 6, false)).knows(flow("child").noops("n"));
    run.limits.max_descendants = 6;
    run.create(json!({}));
    assert!(granted(&run).iter().all(|(_, _, granted)| *granted == 0));
    assert_eq!(granted(&run).len(), 6);
}

#[test]
fn what_is_left_is_shared_by_those_that_may_start_children_and_comes_back() {
    let child = || calls("child", "leaf", 1, false);
    let mut run = Stage::new(calls("parent", "child", 2, false))
        .knows(child())
        .knows(flow("leaf").noops("n"));
    run.limits.max_descendants = 100;
    run.create(json!({}));
    let shares: Vec<u64> = granted(&run)
        .iter()
        .map(|(_, _, granted)| *granted)
        .collect();
    // 99 less a quarter for two; then 61 less a quarter for two.
    assert_eq!(shares, [37, 23]);

    let mut run = Stage::new(calls("parent", "child", 3, true))
        .knows(child())
        .knows(flow("leaf").noops("n"));
    run.limits.max_descendants = 100;
    run.create(json!({}));
    let mut shares = Vec::new();
    for unused in [24, 20, 0] {
        let (node, child, share) = granted(&run).pop().unwrap();
        shares.push(share);
        run.child_reports(&node, ended(&child, unused));
    }
    // All that a child did not use can be used by the next one.
    assert_eq!(shares, [25, 36, 60]);
    assert_eq!(run.status(), RunStatus::Completed);
}

/// Starts all it can at every level; how many runs came of it.
fn family(levels: usize, width: usize, allowance: Option<u64>, limit: u64) -> u64 {
    let (own, next) = (
        format!("level{levels}"),
        format!("level{}", levels.saturating_sub(1)),
    );
    let leaf = levels <= 1;
    let below = match leaf {
        true => flow(&next).noops("n"),
        false => calls(&next, &format!("level{}", levels - 2), width, false),
    };
    let mut run = Stage::new(calls(&own, &next, width, false)).knows(below);
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
            total += family(levels - 1, width, Some(share), limit);
        }
    }
    total
}

#[test]
fn a_family_that_starts_all_it_can_stays_within_the_limit() {
    // Without a bound 4 + 16 + 64 + 256 + 1024.
    for limit in [1, 7, 50, 300] {
        let total = family(5, 4, None, limit);
        assert!(total <= limit, "{total} of {limit}");
    }
    let total = family(3, 4, None, 10_000);
    assert_eq!(total, 4 + 16 + 64, "a small family is not touched");
}
