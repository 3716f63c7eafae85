//! Schema work within decisions: limited for each value and for each decision, and deferred when it
//! is too much for the thread that decides.

use super::harness::{NoMemory, RunHarness};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::definition::{Definition, Permissions};
use crate::pack::AllowedPackTypes;
use crate::run::{Context, Decision, Limits, Need, Undecided, create};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{Command, Effect, EffectKind, RunId, RunStatus, Timestamp};
use tandem_schema::{MAX_WORK, Meter};

/// A workflow that writes each value to a channel with this schema.
fn writes(schema: Value, values: &[Value]) -> WorkflowBuilder {
    let channel = json!({"reducer": "replace", "schema": schema});
    let mut workflow = workflow("writes").channel("c", channel);
    let mut path = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let id = format!("w{i}");
        workflow = workflow.write(&id, "c", value.clone());
        path.push(id);
    }
    workflow.path(&path.join(" "))
}

fn costly() -> Value {
    json!({"pattern": r"^(\p{L}{1,20}x){1,3}$"})
}

#[test]
fn value_over_the_schema_work_limit_fails_its_node() {
    let long = json!("a".repeat(400_000));
    let run = RunHarness::started(writes(costly(), &[long]));
    assert_eq!(run.status(), RunStatus::Failed);
    let error = run.run().error().expect("it failed");
    assert_eq!(error.code, "schema_work_exceeded");
}

/// The first decision of a run, with this much schema work allowed.
fn begin(def: &Arc<Definition>, work: &Meter) -> Result<Decision, Undecided> {
    let request = RunHarness::new(workflow("any").noops("n")).request;
    let context = Context {
        now: Timestamp(5),
        limits: &Limits::default(),
        conformance: true,
        agents: &Default::default(),
        notices: &[],
        definitions: &HashMap::new(),
        memory: &NoMemory,
        providers: &Default::default(),
        places: crate::run::TreePlaces::default(),
        tools: &Default::default(),
        packs: &Default::default(),
        model_answers: &NoMemory,
        work,
    };
    create(def, RunId::new("run-1"), request, None, &context)
}

#[test]
fn schema_no_longer_accepted_fails_the_node() {
    let document = writes(json!({"pattern": "(?=a)a"}), &[json!("a")]).document();
    let stored = Permissions {
        packs: AllowedPackTypes::PreviouslyAccepted,
        ..Permissions::default()
    };
    let def = Arc::new(Definition::compile(&document, stored).expect("it was accepted once"));
    let decision = begin(&def, &Meter::unlimited()).expect("it is decided");
    let error = decision.after.error().expect("it failed");
    assert_eq!(error.code, "schema_refused");
    assert!(error.message.contains("look-around"), "{}", error.message);
}

#[test]
fn decision_over_the_schema_budget_is_deferred() {
    let def = writes(json!({"items": {"type": "integer"}}), &[json!([1, 2, 3])]).compile();
    let undecided = begin(&def, &Meter::with_limit(10)).expect_err("too much for this place");
    assert_eq!(undecided, Undecided::Needs(Need::MoreWork));
    let enough = Meter::with_limit(100_000);
    let here = begin(&def, &enough).expect("it fits");
    let elsewhere = begin(&def, &Meter::unlimited()).expect("it fits");
    assert_eq!(
        here.events, elsewhere.events,
        "the same wherever it is made"
    );
    assert!((1..100_000).contains(&enough.spent()));
}

#[test]
fn decision_that_used_its_schema_budget_continues_later() {
    // Each of these values takes more work than a decision should do, and less than a value may.
    let mut kinds = vec![json!({"type": "integer"})];
    kinds.extend((0..500).map(|_| json!({"type": "string"})));
    let schema = json!({"items": {"anyOf": kinds}});
    let values = vec![Value::from(vec![1; 20_000]); 4];
    let mut run = RunHarness::started(writes(schema, &values));
    assert!(run.work.spent() >= MAX_WORK / 4);
    assert_eq!(run.status(), RunStatus::Running);
    let continues = |effect: &&Effect| matches!(effect.kind, EffectKind::Continue);
    while run.status() == RunStatus::Running {
        let next = run.outbox().find(continues).expect("a note to go on");
        let next = next.id.clone();
        run.performed(&next);
        run.work = Meter::unlimited();
        run.when(Command::Continue);
    }
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn text_too_long_for_a_condition_pattern_fails_the_run() {
    let condition = json!({"type": "regex", "left": "text", "right": r"^(\p{L}{1,20}x){1,3}$"});
    let way = || {
        workflow("ways")
            .node("n", "core.identity", json!({}))
            .noops("review")
            .edge("n", "review", json!({"condition": condition}))
    };
    let ends = |text: String| {
        let mut run = RunHarness::new(way());
        run.create(json!({"text": text}));
        run.run().error().map(|error| error.code.clone())
    };
    assert_eq!(ends("abx".to_owned()), None);
    assert_eq!(
        ends("a".repeat(400_000)).as_deref(),
        Some("schema_work_exceeded")
    );
}
