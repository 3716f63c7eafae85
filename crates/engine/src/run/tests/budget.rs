//! Limits in bytes of one event, one decision and one run, and how a run ends that exceeds them.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Limits;
use proptest::prelude::*;
use serde_json::{Value, json};
use tandem_record::{ChildOutcome, Command, Event, Object, RunStatus, Size};

const KIB: usize = 1024;

fn from_variable(name: &str) -> Value {
    json!({"type": "variable", "variableName": name})
}

fn expression(text: &str) -> Value {
    json!({"type": "expression", "expression": text})
}

/// A chain of nodes, each of which outputs the input again.
fn passed_on(nodes: usize) -> WorkflowBuilder {
    let ids: Vec<String> = (0..nodes).map(|n| format!("n{n}")).collect();
    let workflow = workflow("passed-on").variable("v", json!({}));
    let workflow = ids.iter().fold(workflow, |workflow, id| {
        let workflow = workflow.node(id, "core.noop", json!({}));
        workflow.port("v", from_variable("v"))
    });
    workflow.path(&ids.join(" "))
}

/// Continues until the run waits or ends. Returns the text that each decision drafted; that of the
/// first without the start event.
fn drafts(run: &mut RunHarness, inputs: Value) -> Vec<usize> {
    let mut drafts = Vec::new();
    let mut seen = 1;
    run.create(inputs);
    loop {
        let new = &run.log()[seen..];
        drafts.push(new.iter().map(|r| Size::of(&r.event).text).sum());
        seen = run.log().len();
        let mut waiting = run.outbox().map(|effect| effect.id.clone());
        let next = waiting.find(|id| id.as_str().starts_with("continue:"));
        drop(waiting);
        let Some(next) = next.filter(|_| !run.status().is_terminal()) else {
            return drafts;
        };
        run.performed(&next);
        run.when(Command::Continue);
    }
}

fn code(run: &RunHarness) -> Option<&str> {
    run.run().error().map(|error| error.code.as_str())
}

#[test]
fn run_over_its_state_budget_fails_with_run_state_too_large() {
    let mut run = RunHarness::new(passed_on(200));
    run.limits.max_state_bytes = 2 * KIB * KIB;
    drafts(&mut run, json!({"v": "x".repeat(100 * KIB)}));
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(code(&run), Some("run_state_too_large"));
    let held = Size::of(run.run().state()).memory;
    // At most what is drafted between two checks, plus one node.
    assert!(held < (2 * KIB + 512) * KIB, "{held}");
    let failed = run.log().iter();
    let failed = failed.filter(|r| matches!(r.event, Event::RunFailed { .. }));
    assert_eq!(failed.count(), 1);
    assert!(
        run.timers().is_empty() && run.outbox().count() == 0,
        "nothing is left to be tried again"
    );
}

#[test]
fn open_questions_are_closed_when_the_budget_is_exceeded() {
    let grows = workflow("grows")
        .variable("v", json!({}))
        .node("ask", "core.approvalGate", json!({}))
        .node("loop", "core.loop", json!({"times": 100}))
        .node(
            "write",
            "core.channelWrite",
            json!({"channelName": "all", "reducer": "append"}),
        )
        .port("value", from_variable("v"))
        .path("loop write loop");
    let mut run = RunHarness::new(grows);
    run.limits.max_state_bytes = KIB * KIB;
    drafts(&mut run, json!({"v": "x".repeat(40 * KIB)}));
    assert_eq!(code(&run), Some("run_state_too_large"));
    assert!(run.run().open_questions().is_empty());
    let cancelled =
        |e: &Event| matches!(e, Event::NodeCancelled { node, .. } if node.as_str() == "ask");
    assert!(run.log().iter().any(|r| cancelled(&r.event)));
}

#[test]
fn large_decision_is_split() {
    let mut run = RunHarness::new(passed_on(20));
    run.limits.max_decision_bytes = 300 * KIB;
    let drafts = drafts(&mut run, json!({"v": "x".repeat(100 * KIB)}));
    assert_eq!(run.status(), RunStatus::Completed);
    assert!(drafts.len() >= 6, "{drafts:?}");
    let largest = drafts.into_iter().max().unwrap();
    assert!(largest <= 420 * KIB, "{largest}");
}

#[test]
fn inputs_of_children_count_in_the_decision_that_creates_them() {
    let children: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let parent = workflow("parent").variable("v", json!({}));
    let parent = children.iter().fold(parent, |parent, id| {
        parent.call(id, "child", json!({"inputMapping": {"given": "v"}}))
    });
    let mut run = RunHarness::new(parent).with_workflow(workflow("child").noops("n"));
    run.limits.max_decision_bytes = 100 * KIB;
    run.create(json!({"v": "x".repeat(10 * KIB)}));
    let created = run.created_children().count();
    assert!((1..10).contains(&created), "{created}");
    let drafts = run
        .outbox()
        .filter(|e| e.id.as_str().starts_with("continue:"));
    assert_eq!(drafts.count(), 1, "the rest follows");
}

#[test]
fn many_ports_of_one_large_value_are_refused_before_copying() {
    let ports = workflow("ports").variable("v", json!({})).noops("wide");
    let ports = (0..40).fold(ports, |workflow, n| {
        workflow.port(&format!("p{n}"), from_variable("v"))
    });
    let mut run = RunHarness::new(ports);
    run.limits.max_event_bytes = 256 * KIB;
    run.create(json!({"v": "x".repeat(10 * KIB)}));
    assert_eq!(code(&run), Some("value_too_large"));
}

#[test]
fn value_that_grows_each_round_fails_at_the_event_size_limit() {
    let doubling = workflow("doubling")
        .variable("a", json!({}))
        .variable("b", json!({}))
        .node("loop", "core.loop", json!({"times": 60}))
        .node("one", "core.setVariable", json!({"name": "a"}))
        .port("value", expression("variables"))
        .node("two", "core.setVariable", json!({"name": "b"}))
        .port("value", expression("variables"))
        .path("loop one two loop");
    let mut run = RunHarness::new(doubling);
    run.limits.max_event_bytes = 64 * KIB;
    let drafts = drafts(&mut run, json!({"a": "x".repeat(KIB)}));
    assert!(
        matches!(code(&run), Some("value_too_large" | "event_too_large")),
        "{:?}",
        code(&run)
    );
    assert!(drafts.into_iter().max().unwrap() <= ceiling(&run.limits));
}

#[test]
fn run_outputs_larger_than_an_event_fail_the_run() {
    let wide = workflow("wide").variable("v", json!({}));
    let wide = (0..10).fold(wide, |workflow, n| {
        let workflow = workflow.node(&format!("end{n}"), "core.noop", json!({}));
        workflow.port("v", from_variable("v"))
    });
    let mut run = RunHarness::new(wide);
    run.limits.max_event_bytes = 64 * KIB;
    drafts(&mut run, json!({"v": "x".repeat(8 * KIB)}));
    assert_eq!(code(&run), Some("value_too_large"));
    assert_eq!(run.status(), RunStatus::Failed);
}

fn calling(inputs: usize, outputs: usize) -> RunHarness {
    let mapping = |n: usize, from: &str| {
        let pairs = (0..n).map(|n| (format!("m{n}"), json!(from)));
        Value::Object(Object::from_iter(pairs))
    };
    let config = json!({
        "inputMapping": mapping(inputs, "v"), "outputMapping": mapping(outputs, "left"),
    });
    let parent = workflow("parent")
        .variable("v", json!({}))
        .call("call", "child", config);
    let mut run = RunHarness::new(parent).with_workflow(workflow("child").noops("n"));
    run.limits.max_event_bytes = 64 * KIB;
    run.create(json!({"v": "x".repeat(8 * KIB)}));
    run
}

#[test]
fn child_with_oversized_inputs_is_refused() {
    let run = calling(40, 0);
    assert_eq!(run.created_children().count(), 0);
    let notification = run.outbox().find(|e| e.id.as_str().starts_with("unborn:"));
    assert!(
        notification.is_some(),
        "its node is notified that there is no child"
    );
    assert_eq!(calling(2, 0).created_children().count(), 1);
}

#[test]
fn oversized_child_outputs_are_refused_before_copying() {
    let mut run = calling(0, 40);
    let child = run.created_children().next().unwrap().child.clone();
    let left = json!({"left": "x".repeat(8 * KIB)});
    let ended = ChildOutcome::Ended {
        child,
        status: RunStatus::Completed,
        variables: super::harness::object(left),
        untrusted: Vec::new(),
        error: None,
    };
    run.child_reports("call", ended);
    assert_eq!(code(&run), Some("value_too_large"));
}

#[test]
fn tracked_size_is_never_less_than_the_state() {
    let mut run = RunHarness::new(passed_on(12));
    run.create(json!({"v": "x".repeat(5 * KIB)}));
    let (kept, real) = (run.run().size(), Size::of(run.run().state()));
    assert!(
        kept.memory >= real.memory && kept.text >= real.text,
        "{kept:?} {real:?}"
    );
}

/// The limit no decision may exceed: the draft limit, and what one more step may add.
fn ceiling(limits: &Limits) -> usize {
    limits.max_decision_bytes + 8 * limits.max_event_bytes
}

#[derive(Debug, Clone, Copy)]
enum Grows {
    Passes(usize),
    Sets,
    Wraps,
    Writes,
    Calls(usize),
}

fn grows() -> impl Strategy<Value = Grows> {
    prop_oneof![
        (1_usize..40).prop_map(Grows::Passes),
        Just(Grows::Sets),
        Just(Grows::Wraps),
        Just(Grows::Writes),
        (1_usize..40).prop_map(Grows::Calls),
    ]
}

fn growing(steps: &[Grows], times: u64) -> WorkflowBuilder {
    let mut workflow = workflow("growing")
        .variable("v", json!({}))
        .variable("w", json!({}))
        .node("loop", "core.loop", json!({"times": times}));
    let mut path = "loop".to_owned();
    for (n, step) in steps.iter().enumerate() {
        let id = format!("s{n}");
        workflow = match step {
            Grows::Passes(ports) => {
                let workflow = workflow.node(&id, "core.noop", json!({}));
                (0..*ports).fold(workflow, |workflow, n| {
                    workflow.port(&format!("p{n}"), from_variable("v"))
                })
            }
            Grows::Sets => workflow
                .node(&id, "core.setVariable", json!({"name": "w"}))
                .port("value", from_variable("v")),
            Grows::Wraps => workflow
                .node(&id, "core.setVariable", json!({"name": "v"}))
                .port("value", expression("variables")),
            Grows::Writes => workflow
                .node(
                    &id,
                    "core.channelWrite",
                    json!({"channelName": "all", "reducer": "append"}),
                )
                .port("value", expression("variables")),
            Grows::Calls(names) => {
                let pairs = (0..*names).map(|n| (format!("m{n}"), json!("v")));
                let mapping = Value::Object(Object::from_iter(pairs));
                workflow.call(&id, "child", json!({"inputMapping": mapping}))
            }
        };
        path = format!("{path} {id}");
    }
    workflow.path(&format!("{path} loop"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For every document with an input of limited size.
    #[test]
    fn decisions_and_runs_stay_within_their_budgets(
        steps in proptest::collection::vec(grows(), 1..6),
        times in 1_u64..60,
        length in 0_usize..40_000,
    ) {
        let mut run = RunHarness::new(growing(&steps, times)).with_workflow(workflow("child").noops("n"));
        run.limits.max_event_bytes = 64 * KIB;
        run.limits.max_decision_bytes = 64 * KIB;
        run.limits.max_state_bytes = 512 * KIB;
        let drafts = drafts(&mut run, json!({"v": "x".repeat(length)}));
        let largest = drafts.into_iter().max().unwrap_or(0);
        prop_assert!(largest <= ceiling(&run.limits), "{largest}");
        let held = Size::of(run.run().state()).memory;
        prop_assert!(held <= (512 + 256 + 512) * KIB, "{held}");
        let created: usize = run.created_children().map(|b| Size::of(&b.request.inputs).text).max().unwrap_or(0);
        prop_assert!(created <= run.limits.max_event_bytes, "{created}");
    }
}
