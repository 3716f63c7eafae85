//! Every trigger rule against every mix of what comes before it.

use super::flow::{Flow, flow};
use super::stage::Stage;
use serde_json::json;

const RULES: [&str; 5] = [
    "all_success",
    "any_success",
    "all_complete",
    "none_failed",
    "any_failed",
];

/// A node of the given fate: `+` completes, `-` is skipped, `!` fails (and says so to a handler,
/// so that the run goes on), `~` sleeps.
fn source(flow: Flow, id: &str, fate: char) -> Flow {
    match fate {
        '+' => flow.noops(id),
        '-' => flow.noops(id).with("disabled", json!(true)),
        '!' => {
            let handler = format!("{id}-handler");
            let flow = flow.fail(id, "broken").noops(&handler);
            flow.ruled(id, &handler, "any_failed")
        }
        '~' => flow.delay(id, 100),
        other => panic!("{other:?} is no fate"),
    }
}

/// What becomes of a target behind two sources: `started`, `waits`, or why it was skipped.
fn verdict(rule: &str, fates: &str) -> String {
    let mut fates_of = fates.chars();
    let (first, second) = (fates_of.next().expect("two"), fates_of.next().expect("two"));
    let flow = source(flow("rule"), "one", first);
    let flow = source(flow, "two", second)
        .noops("target")
        .ruled("one", "target", rule)
        .ruled("two", "target", rule);
    let run = Stage::started(flow);
    let target = run.node("target");
    match (&target.skipped, target.execution) {
        (Some(reason), _) => reason.clone(),
        (None, 0) => "waits".to_owned(),
        (None, _) => "started".to_owned(),
    }
}

#[test]
fn ready_and_skipped() {
    let table: Vec<String> = ["++", "+-", "--", "+!", "!!", "-!", "+~", "-~", "!~"]
        .iter()
        .map(|fates| {
            let verdicts: Vec<String> = RULES.iter().map(|rule| verdict(rule, fates)).collect();
            format!("{fates} {}", verdicts.join(" "))
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
    let flow = flow("rules")
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
    Stage::started(flow).then(
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
fn a_failure_is_open_until_another_branch_satisfies_any_success() {
    let flow = flow("rescue")
        .fail("broken", "first_try")
        .delay("slow", 100)
        .noops("target")
        .ruled("broken", "target", "any_success")
        .ruled("slow", "target", "any_success");
    let mut run = Stage::started(flow);
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
fn a_failure_nobody_took_fails_the_run_once_the_last_hope_is_gone() {
    let no = json!({"triggerRule": "any_success",
        "condition": {"type": "truthy", "left": "nothing"}});
    let flow = flow("no-rescue")
        .fail("broken", "first_try")
        .delay("slow", 100)
        .noops("target")
        .ruled("broken", "target", "any_success")
        .edge("slow", "target", no);
    let mut run = Stage::started(flow).given();
    run.elapse(100);
    run.then(
        r#"
            node.completed slow {"waitedMs":100}
            node.skipped target trigger-rule
            run.failed first_try broken
        "#,
    );
}
