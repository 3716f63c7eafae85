//! Every trigger rule against every combination of predecessor outcomes.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;

const RULES: [&str; 5] = [
    "all_success",
    "any_success",
    "all_complete",
    "none_failed",
    "any_failed",
];

/// A node with the given outcome: `+` completes, `-` is skipped, `!` fails (with a handler, so that
/// the run continues), `~` sleeps.
fn source(workflow: WorkflowBuilder, id: &str, outcome: char) -> WorkflowBuilder {
    match outcome {
        '+' => workflow.noops(id),
        '-' => workflow.noops(id).with("disabled", json!(true)),
        '!' => {
            let handler = format!("{id}-handler");
            let workflow = workflow.fail(id, "broken").noops(&handler);
            workflow.ruled(id, &handler, "any_failed")
        }
        '~' => workflow.delay(id, 100),
        other => panic!("{other:?} is no outcome"),
    }
}

/// The outcome of a target behind two sources: `started`, `waits`, or why it was skipped.
fn rule_outcome(rule: &str, outcomes: &str) -> String {
    let mut outcomes_left = outcomes.chars();
    let (first, second) = (
        outcomes_left.next().expect("two"),
        outcomes_left.next().expect("two"),
    );
    let workflow = source(workflow("rule"), "one", first);
    let workflow = source(workflow, "two", second)
        .noops("target")
        .ruled("one", "target", rule)
        .ruled("two", "target", rule);
    let run = RunHarness::started(workflow);
    let target = run.node("target");
    match (&target.skipped, target.execution) {
        (Some(reason), _) => reason.clone(),
        (None, 0) => "waits".to_owned(),
        (None, _) => "started".to_owned(),
    }
}

#[test]
fn trigger_rules_start_or_skip_a_node() {
    let table: Vec<String> = ["++", "+-", "--", "+!", "!!", "-!", "+~", "-~", "!~"]
        .iter()
        .map(|outcomes| {
            let verdicts: Vec<String> = RULES
                .iter()
                .map(|rule| rule_outcome(rule, outcomes))
                .collect();
            format!("{outcomes} {}", verdicts.join(" "))
        })
        .collect();
    assert_eq!(
        table,
        [
            //  all_success any_success all_complete none_failed any_failed
            "++ started started started started trigger-rule",
            "+- started started started started trigger-rule",
            "-- upstream-skipped upstream-skipped started started trigger-rule",
            "+! trigger-rule started started trigger-rule started",
            "!! trigger-rule trigger-rule started trigger-rule started",
            "-! trigger-rule trigger-rule started trigger-rule started",
            "+~ waits started waits waits waits",
            "-~ waits waits waits waits waits",
            "!~ waits waits waits trigger-rule started",
        ]
    );
}

#[test]
fn the_edge_with_the_smallest_id_sets_the_rule() {
    let workflow = workflow("rules")
        .noops("one")
        .fail("two", "broken")
        .noops("target")
        .edge(
            "one",
            "target",
            json!({"id": "z", "triggerRule": "all_success"}),
        )
        .edge(
            "two",
            "target",
            json!({"id": "a", "triggerRule": "all_complete"}),
        );
    RunHarness::started(workflow).then(
        "
            run.started
            node.started one
            node.completed one
            node.started two
            node.failed two broken
            node.started target
            node.completed target
            run.completed
        ",
    );
}

#[test]
fn failure_is_pending_until_another_branch_satisfies_any_success() {
    let workflow = workflow("rescue")
        .fail("broken", "first_try")
        .delay("slow", 100)
        .noops("target")
        .ruled("broken", "target", "any_success")
        .ruled("slow", "target", "any_success");
    let mut run = RunHarness::started(workflow);
    run.then(
        "
            run.started
            node.started broken
            node.failed broken first_try
            node.started slow sleep=100
        ",
    );
    run.elapse(100);
    run.then(
        r#"
            node.completed slow {"waitedMs":100}
            node.started target
            node.completed target
            run.completed
        "#,
    );
}

#[test]
fn unhandled_failure_fails_the_run_when_no_branch_can_handle_it() {
    let no = json!({"triggerRule": "any_success",
        "condition": {"type": "truthy", "left": "nothing"}});
    let workflow = workflow("no-rescue")
        .fail("broken", "first_try")
        .delay("slow", 100)
        .noops("target")
        .ruled("broken", "target", "any_success")
        .edge("slow", "target", no);
    let mut run = RunHarness::started(workflow).given();
    run.elapse(100);
    run.then(
        r#"
            node.completed slow {"waitedMs":100}
            node.skipped target trigger-rule
            run.failed first_try broken
        "#,
    );
}
