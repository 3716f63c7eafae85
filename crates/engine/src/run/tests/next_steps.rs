//! The preview of a decision, compared with what the decision then does; and edits that must match
//! a schema.

use super::gates::answer;
use super::harness::RunHarness;
use super::supervising::{staged, supervised};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::{NextSteps, Refusal};
use serde_json::{Value, json};
use tandem_record::{Command, Event, NodeId, Principal, RunStatus, WorkflowId};

fn gate(config: Value) -> WorkflowBuilder {
    workflow("gated").node("gate", "core.approvalGate", config)
}

fn when(expression: &str) -> Value {
    json!({"condition": {"type": "expression", "expression": expression}})
}

fn decide(value: Value) -> Command {
    Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value,
        by: Some(Principal::new("ana")),
        by_link: false,
        decider: Default::default(),
    }
}

fn predicted(harness: &RunHarness, action: &str) -> NextSteps {
    harness
        .run()
        .predict_next_steps(&NodeId::new("gate"), action)
}

fn nodes(names: &[&str]) -> NextSteps {
    NextSteps::Nodes(names.iter().map(|name| NodeId::new(*name)).collect())
}

#[test]
fn rejection_without_an_edge_fails_the_node() {
    let harness = RunHarness::started(gate(json!({})).noops("after").path("gate after"));
    assert_eq!(predicted(&harness, "accept"), nodes(&["after"]));
    assert_eq!(predicted(&harness, "edit-accept"), nodes(&["after"]));
    assert_eq!(predicted(&harness, "reject"), NextSteps::NodeFails);
    let alone = RunHarness::started(gate(json!({})));
    assert_eq!(predicted(&alone, "accept"), nodes(&[]));
}

#[test]
fn predicted_edges_are_taken() {
    let drawn = || {
        gate(json!({}))
            .noops("pay decline")
            .edge("gate", "pay", when("output.action != 'reject'"))
            .edge("gate", "decline", when("output.action == 'reject'"))
    };
    for (action, expected) in [("accept", "pay"), ("reject", "decline")] {
        let mut harness = RunHarness::started(drawn());
        assert_eq!(predicted(&harness, action), nodes(&[expected]), "{action}");
        harness.when(decide(json!({"action": action})));
        let done = harness.node(expected).status;
        assert_eq!(done, tandem_record::NodeStatus::Completed, "{action}");
    }
}

#[test]
fn refine_predicts_the_producer_of_the_gate() {
    let config = json!({"actions": ["accept", "refine"]});
    let harness = RunHarness::started(gate(config).noops("draft").path("draft gate"));
    assert_eq!(predicted(&harness, "refine"), nodes(&["draft"]));
}

#[test]
fn edit_must_match_the_artifact_schema() {
    let schema = json!({"type": "object", "properties": {"amount": {"maximum": 5}}});
    let config = json!({"actions": ["accept", "edit-accept"], "artifactSchema": schema});
    let mut harness = RunHarness::started(gate(config));
    let edit = |amount: u32| {
        decide(json!({"action": "edit-accept", "editedArtifactData": {"amount": amount}}))
    };
    match harness.try_when(edit(9)) {
        Err(Refusal::Invalid(problems)) => {
            assert_eq!(problems[0].path, "/resumeValue/editedArtifactData/amount");
        }
        other => panic!("{other:?}"),
    }
    assert!(harness.status().is_waiting(), "the question stays open");
    harness.when(edit(4));
    assert!(harness.status().is_terminal());
}

/// A supervisor whose first decision is held.
fn held(decision: Value) -> RunHarness {
    let mut run = staged(supervised(json!([decision]), json!({})));
    run.create(json!({}));
    assert!(run.status().is_waiting());
    run
}

#[test]
fn predicted_steps_of_a_held_decision_happen() {
    let at =
        |run: &RunHarness, action: &str| run.run().predict_next_steps(&NodeId::new("send"), action);
    let handing_over =
        || held(json!({"kind": "next-worker", "nextWorkerIds": ["one"], "confidence": 0.1}));
    let ending = || held(json!({"kind": "terminate", "confidence": 0.1}));
    let again = NextSteps::NextIteration(NodeId::new("lead"));

    let mut run = handing_over();
    assert_eq!(
        at(&run, "accept"),
        NextSteps::Workers(vec![WorkflowId::new("one")])
    );
    assert_eq!(at(&run, "edit-accept"), NextSteps::ReplacementCarriedOut);
    assert_eq!(at(&run, "reject"), again);
    run.when(answer("send", json!({"action": "accept"})));
    assert_eq!(run.run().view().children.len(), 1, "the worker started");

    let mut run = handing_over();
    run.when(answer("send", json!({"action": "reject"})));
    assert_eq!(run.run().view().children.len(), 0);
    assert_eq!(
        run.node("lead").execution,
        2,
        "the supervisor had another iteration"
    );

    let mut run = ending();
    assert_eq!(at(&run, "accept"), NextSteps::RunEnds);
    run.when(answer("send", json!({"action": "accept"})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn rejecting_a_low_confidence_agent_fails_its_run() {
    let config = json!({"mockDecision": {"decision": {"go": true}, "confidence": 0.1}});
    let workflow =
        workflow("conformance-agent").node("gate", "core.conformance.mock-agent", config);
    let mut run = RunHarness::started(workflow.noops("after").path("gate after"));
    assert_eq!(predicted(&run, "accept"), nodes(&["after"]));
    assert_eq!(predicted(&run, "reject"), NextSteps::NodeFails);
    run.when(decide(json!({"action": "reject"})));
    assert_eq!(run.status(), RunStatus::Failed);
}

#[test]
fn answer_that_would_be_refused_is_predicted_as_refused() {
    let config = json!({"actions": ["accept", "refine"]});
    let alone = RunHarness::started(gate(config));
    assert_eq!(
        predicted(&alone, "refine"),
        NextSteps::Refused,
        "nobody could make the changes"
    );
}

fn title(harness: &RunHarness) -> String {
    let open = &harness.run().view().interrupts[0];
    open.interrupt.data["title"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn question_title_is_rendered_from_the_run() {
    let asks = || {
        let title = "Refund {{ variables.customer }} {{ nodes.quote.outputs.amount }} EUR?";
        workflow("refund")
            .variable("customer", json!({"defaultValue": "somebody"}))
            .node("quote", "core.noop", json!({}))
            .with(
                "inputs",
                json!({"amount": {"type": "static", "value": 129}}),
            )
            .node("gate", "core.approvalGate", json!({"title": title}))
            .path("quote gate")
    };
    assert_eq!(
        title(&RunHarness::started(asks())),
        "Refund somebody 129 EUR?"
    );
    let mut other = RunHarness::new(asks());
    other.create(json!({"customer": "Ada"}));
    assert_eq!(title(&other), "Refund Ada 129 EUR?");
    let title = other.log().iter().find_map(|r| match &r.event {
        Event::ApprovalRequested { title, .. } => Some(title.clone()),
        _ => None,
    });
    assert_eq!(
        title.as_deref(),
        Some("Refund Ada 129 EUR?"),
        "the title is the same everywhere"
    );
}

#[test]
fn question_title_never_shows_sensitive_values() {
    let workflow = workflow("secret")
        .variable("pin", json!({"sensitive": true, "defaultValue": "1234"}))
        .noops("copy")
        .with(
            "inputs",
            json!({"pin": {"type": "variable", "variableName": "pin"}}),
        )
        .node(
            "gate",
            "core.approvalGate",
            json!({"title": "{{ variables.pin }} {{ inputs.pin }} {{ nodes.copy.outputs.pin }}",
                   "description": "{{ variables.pin == '1234' }}"}),
        )
        .path("copy gate");
    let harness = RunHarness::started(workflow);
    assert_eq!(title(&harness), "••• ••• •••");
    let log = format!("{:?}", harness.run().view().interrupts);
    assert!(!log.contains("1234") && !log.contains("true\""), "{log}");
}
