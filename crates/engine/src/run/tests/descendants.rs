//! The limit of runs in one tree, as far as one run has a part in it.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::{Need, TreePlaces, Undecided, create};
use serde_json::json;
use tandem_record::{RunId, RunStatus};

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

fn parent_of(times: usize, chained: bool) -> RunHarness {
    RunHarness::new(calls("parent", "child", times, chained))
        .with_workflow(workflow("child").noops("n"))
}

#[test]
fn child_over_the_descendant_limit_is_refused() {
    let mut run = parent_of(4, true);
    run.limits.max_descendants = 3;
    run.create(json!({}));
    for n in 0..3 {
        let child = run
            .created_children()
            .next()
            .expect("a child")
            .child
            .clone();
        run.child_ends(&child, RunStatus::Completed);
        assert_eq!(run.run().error().is_some(), n == 2, "after {n}");
    }
    assert_eq!(run.run().error().unwrap().code, "descendants_exceeded");
}

#[test]
fn decision_asks_for_as_many_places_as_it_fills() {
    let run = parent_of(3, false);
    let mut context = run.context();
    let mut attempt = |places: TreePlaces| {
        context.places = places;
        let (definition, request) = (run.definition(), run.request.clone());
        create(&definition, RunId::new("run-1"), request, None, &context)
    };
    let places = |reserved, is_full| TreePlaces { reserved, is_full };
    for reserved in 0..3 {
        let needs = attempt(places(reserved, false));
        let asked = Undecided::Needs(Need::Places(reserved + 1));
        assert_eq!(needs.err(), Some(asked));
    }
    let decision = attempt(places(3, false)).expect("enough");
    assert_eq!(decision.children.len(), 3);
    let decision = attempt(places(2, true)).expect("a node fails");
    assert_eq!(decision.after.error().unwrap().code, "descendants_exceeded");
}

#[test]
fn every_child_knows_the_root_of_its_tree() {
    let mut root = parent_of(1, false);
    root.create(json!({}));
    assert!(!root.run().is_alone_in_tree());
    let child = root.created_children().next().expect("a child");
    let link = child.request.parent.as_ref().expect("its parent");
    assert_eq!(link.tree_root(), root.run().id());

    let mut middle = parent_of(1, false).child_under(&["top", "above"], &[]);
    middle.request.parent.as_mut().unwrap().root = Some(RunId::new("run-root"));
    middle.create(json!({}));
    let child = middle.created_children().next().expect("a child");
    let link = child.request.parent.as_ref().expect("its parent");
    assert_eq!(link.tree_root(), &RunId::new("run-root"));
}
