//! External events: expected, too early, repeated, too many.

use super::harness::{RunHarness, object};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{Command, ExternalEventOutcome, Principal, Reply, RunStatus};

fn waits(node: &str, order: u32) -> impl Fn(WorkflowBuilder) -> WorkflowBuilder {
    let config = json!({
        "kind": "external-event",
        "data": {"eventType": "paid", "correlation": {"order": order}},
        "resumeSchema": {"properties": {"amount": {"type": "number"}}},
    });
    move |workflow| workflow.node(node, "core.interrupt", config.clone())
}

fn event(id: &str, kind: &str, payload: Value) -> Command {
    Command::DeliverEvent {
        event_id: id.to_owned(),
        event_type: kind.to_owned(),
        payload: object(payload),
        by: Some(Principal::new("shop")),
    }
}

fn external_event_outcome(reply: Reply) -> ExternalEventOutcome {
    match reply {
        Reply::ExternalEventAccepted { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    }
}

/// Sleeps first, so that events can arrive before the wait opens.
fn later() -> RunHarness {
    let build = waits("ext", 7)(workflow("later").delay("nap", 100));
    RunHarness::started(build.path("nap ext")).given()
}

#[test]
fn an_event_answers_the_wait_that_is_open() {
    let mut run = RunHarness::started(waits("ext", 7)(workflow("now"))).given();
    let reply = run.when(event("e1", "paid", json!({"order": 7, "amount": 1})));
    assert!(
        matches!(external_event_outcome(reply), ExternalEventOutcome::Matched { node, .. } if node.as_str() == "ext")
    );
    run.then(
        r#"
        event.received e1 paid
        interrupt.resolved ext
        node.resumed ext
        node.completed ext {"amount":1,"order":7}
        run.completed {"amount":1,"order":7}
        "#,
    );
    let again = run.when(event("e1", "paid", json!({"order": 7})));
    assert_eq!(
        external_event_outcome(again),
        ExternalEventOutcome::Duplicate,
        "even after the end"
    );
    let late = run.try_when(event("e2", "paid", json!({"order": 7})));
    let status = RunStatus::Completed;
    assert_eq!(late, Err(Refusal::RunEnded { status }));
}

#[test]
fn early_event_is_stored_for_its_wait() {
    let mut run = later();
    for (id, kind, order) in [("e0", "paid", 8), ("e1", "shipped", 7), ("e2", "paid", 7)] {
        let reply = run.when(event(id, kind, json!({"order": order})));
        assert_eq!(
            external_event_outcome(reply),
            ExternalEventOutcome::Retained,
            "{id}"
        );
    }
    let again = run.when(event("e2", "paid", json!({"order": 7, "other": true})));
    assert_eq!(
        external_event_outcome(again),
        ExternalEventOutcome::Duplicate
    );
    run.then(
        "
        event.received e0 paid
        event.received e1 shipped
        event.received e2 paid
        ",
    );
    run.elapse(100);
    run.then(
        r#"
        node.completed nap {"waitedMs":100}
        node.started ext
        interrupt.requested ext
        node.suspended ext waiting-external
        interrupt.resolved ext
        node.resumed ext
        node.completed ext {"order":7}
        run.completed {"order":7}
        "#,
    );
}

#[test]
fn one_event_answers_one_wait_the_oldest_first() {
    let two = waits("b", 7)(waits("a", 7)(workflow("two").delay("nap", 100)));
    let mut run = RunHarness::started(two.path("nap a").path("nap b"));
    run.when(event("e1", "paid", json!({"order": 7, "n": 1})));
    run.elapse(100);
    assert_eq!(run.status(), RunStatus::WaitingExternal, "one is left");
    run.when(event("e2", "paid", json!({"order": 7, "n": 2})));
    assert_eq!(run.status(), RunStatus::Completed);
    let answered: Vec<Value> = ["a", "b"]
        .iter()
        .map(|node| run.node(node).outputs.as_ref().unwrap()["n"].clone())
        .collect();
    assert_eq!(answered, [json!(1), json!(2)]);
}

#[test]
fn an_early_event_of_the_wrong_shape_is_not_taken() {
    let mut run = later();
    run.when(event("e1", "paid", json!({"order": 7, "amount": "much"})));
    run.elapse(100);
    assert_eq!(run.status(), RunStatus::WaitingExternal);
    let refused = run.try_when(event("e2", "paid", json!({"order": 7, "amount": "much"})));
    assert!(matches!(refused, Err(Refusal::Invalid(_))), "{refused:?}");
    run.when(event("e2", "paid", json!({"order": 7, "amount": 2})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn unmatched_events_are_bounded_in_number_and_size() {
    let mut run = later();
    let large = "x".repeat(65 * 1024);
    for bad in [
        event("", "paid", json!({})),
        event("e", "", json!({})),
        event(&"e".repeat(257), "paid", json!({})),
        event("e", "paid", json!({"text": large})),
    ] {
        let refused = run.try_when(bad);
        assert!(matches!(refused, Err(Refusal::Invalid(_))), "{refused:?}");
    }
    for n in 0..64 {
        run.when(event(&format!("e{n}"), "other", json!({})));
    }
    let refused = run.try_when(event("one-more", "other", json!({})));
    assert_eq!(refused, Err(Refusal::TooManyEvents { limit: 64 }));
    run.elapse(100);
    run.when(event("the-one", "paid", json!({"order": 7})));
    assert_eq!(
        run.status(),
        RunStatus::Completed,
        "what is waited for still comes in"
    );
}
