//! Sensitive values in questions: people are shown a mask, and the run continues with the value.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{ChildOutcome, EffectKind, Event};

const SECRET: &str = "4111-1111";
const MASK: &str = "[REDACTED]";

fn secretive() -> WorkflowBuilder {
    workflow("secretive")
        .variable("card", json!({"sensitive": true}))
        .variable("amount", json!({"type": "number"}))
}

fn config() -> Value {
    json!({"title": "Pay with {{ variables.card }}?", "description": "{{ inputs.card }}",
        "actions": ["accept", "reject", "edit-accept"]})
}

fn gated(workflow: WorkflowBuilder, inputs: &[(&str, Value)]) -> WorkflowBuilder {
    let gate = workflow.node("gate", "core.approvalGate", config());
    inputs.iter().fold(gate, |gate, (port, binding)| {
        gate.port(port, binding.clone())
    })
}

fn from_variable(name: &str) -> Value {
    json!({"type": "variable", "variableName": name})
}

/// Every way a value reaches a gate.
fn gates() -> Vec<WorkflowBuilder> {
    let expression = json!({"type": "expression", "expression": "variables.card"});
    let connection = json!({"type": "connection", "nodeId": "a", "outputKey": "card"});
    let hop = json!({"sourceOutput": "card", "targetInput": "card"});
    vec![
        gated(secretive(), &[]),
        gated(secretive(), &[("card", from_variable("card"))]),
        gated(secretive(), &[("artifact", from_variable("card"))]),
        gated(secretive(), &[("card", expression)]),
        gated(secretive().noops("a"), &[("card", connection)]).path("a gate"),
        gated(secretive().noops("a"), &[]).edge("a", "gate", hop),
    ]
}

fn asked(workflow: WorkflowBuilder) -> RunHarness {
    let after = workflow.noops("after").path("gate after");
    let mut run = RunHarness::new(after);
    run.create(json!({"card": SECRET, "amount": 5}));
    run
}

/// What leaves the process of a question: its data, and the events that only it has.
fn shown(run: &RunHarness) -> String {
    let mut shown = Vec::new();
    for open in run.run().open_questions() {
        shown.push(json!([
            open.interrupt.data,
            open.interrupt.resume_schema,
            open.proposed
        ]));
    }
    for recorded in run.log() {
        match &recorded.event {
            Event::InterruptRequested { interrupt, .. } => shown.push(interrupt.data.clone()),
            event @ (Event::ApprovalRequested { .. }
            | Event::ClarificationRequested { .. }
            | Event::NodeSuspended { .. }
            | Event::ApprovalReceived { .. }
            | Event::InterruptResolved { .. }
            | Event::NodeResumed { .. }) => {
                shown.push(serde_json::to_value(event).expect("plain data"));
            }
            _ => {}
        }
    }
    for effect in run.outbox() {
        if let EffectKind::NotifyParent {
            outcome: ChildOutcome::Waiting { data, .. },
            ..
        } = &effect.kind
        {
            shown.push(json!(data));
        }
    }
    Value::from(shown).to_string()
}

fn accepted(run: &RunHarness) -> Value {
    let outputs = run.node("gate").outputs.as_ref().expect("it was accepted");
    outputs.get("artifactData").cloned().unwrap_or_default()
}

#[test]
fn no_question_shows_a_sensitive_value_and_accepting_keeps_it() {
    for (i, workflow) in gates().into_iter().enumerate() {
        for mode in ["mask", "omit", "hash"] {
            let workflow = workflow.clone().key(
                "metadata",
                json!({"complianceConfig": {"maskingMode": mode}}),
            );
            let after = workflow.noops("after").path("gate after");
            let mut run = RunHarness::new(after).child_under(&["parent"], &[]);
            run.create(json!({"card": SECRET, "amount": 5}));
            assert!(
                !shown(&run).contains(SECRET),
                "gate {i} {mode}: {}",
                shown(&run)
            );
            run.when(answer("gate", json!({"action": "accept"})));
            assert!(
                !shown(&run).contains(SECRET),
                "gate {i} {mode}: {}",
                shown(&run)
            );
            assert!(
                accepted(&run).to_string().contains(SECRET),
                "gate {i} {mode}"
            );
            let sensitivity = run.run().sensitivity();
            let ports = &sensitivity.outputs[&tandem_record::NodeId::new("gate")];
            assert!(ports.contains("artifactData"), "the result is masked too");
        }
    }
}

#[test]
fn edit_keeps_what_is_behind_a_mask_and_puts_nothing_else_there() {
    let edit = |data: Value| {
        answer(
            "gate",
            json!({"action": "edit-accept", "editedArtifactData": data}),
        )
    };
    for (edited, becomes) in [
        (
            json!({"card": MASK, "amount": 6}),
            json!({"card": SECRET, "amount": 6}),
        ),
        (json!({"amount": 6}), json!({"amount": 6})),
    ] {
        let mut run = asked(gated(secretive(), &[]));
        run.when(edit(edited));
        assert_eq!(accepted(&run), becomes);
    }
    for (refused, at) in [
        (json!({"card": MASK, "note": MASK}), "/note"),
        (json!({"card": [MASK]}), "/card"),
        (json!({"card": "other", "amount": 5}), "/card"),
        (json!({"card": null}), "/card"),
        (json!("all of it"), ""),
    ] {
        let mut run = asked(gated(secretive(), &[]));
        match run.try_when(edit(refused)) {
            Err(Refusal::Invalid(problems)) => {
                assert_eq!(
                    problems[0].path,
                    format!("/resumeValue/editedArtifactData{at}")
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn schema_of_the_artifact_is_checked_with_the_value_and_quotes_nothing() {
    let schema = json!({"properties": {"card": {"pattern": "^[0-9-]+$", "maxLength": 9},
        "amount": {"maximum": 10}}});
    let mut strict = config();
    strict["artifactSchema"] = schema;
    let gate = |strict: &Value| secretive().node("gate", "core.approvalGate", strict.clone());
    let edit = |data: Value| {
        answer(
            "gate",
            json!({"action": "edit-accept", "editedArtifactData": data}),
        )
    };
    let mut run = asked(gate(&strict));
    run.when(edit(json!({"card": MASK, "amount": 7})));
    assert_eq!(accepted(&run), json!({"card": SECRET, "amount": 7}));
    strict["artifactSchema"]["properties"]["card"] = json!({"maxLength": 3});
    let mut run = asked(gate(&strict));
    match run.try_when(edit(json!({"card": MASK, "amount": 7}))) {
        Err(Refusal::Invalid(problems)) => assert!(!format!("{problems:?}").contains(SECRET)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn votes_of_a_quorum_keep_the_value_through_an_edit() {
    let mut quorum = config();
    quorum["requiredApprovals"] = json!(2);
    let gate = secretive().node("gate", "core.approvalGate", quorum);
    let mut run = asked(gate);
    let edited = json!({"card": MASK, "amount": 7});
    run.when(answer(
        "gate",
        json!({"action": "edit-accept", "editedArtifactData": edited, "voter": "ana"}),
    ));
    run.when(answer("gate", json!({"action": "accept", "voter": "ben"})));
    assert_eq!(accepted(&run), json!({"card": SECRET, "amount": 7}));
    assert!(!shown(&run).contains(SECRET));
}

#[test]
fn value_that_is_passed_through_on_purpose_is_shown() {
    let open = gated(secretive(), &[]).key(
        "metadata",
        json!({"complianceConfig": {"maskingMode": "passthrough"}}),
    );
    assert!(shown(&asked(open)).contains(SECRET));
}
