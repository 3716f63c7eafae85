//! What is told about a decision before it is made, held against what the decision then does; and
//! edits that have to fit a schema.

use super::flow::{Flow, flow};
use super::gates::answer;
use super::stage::Stage;
use super::supervising::{staged, supervised};
use crate::run::{Ahead, Refusal};
use serde_json::{Value, json};
use tandem_record::{Command, Event, NodeId, Principal, RunStatus, WorkflowId};

fn gate(config: Value) -> Flow {
    flow("gated").node("gate", "core.approvalGate", config)
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
        standing: Default::default(),
    }
}

fn foreseen(stage: &Stage, action: &str) -> Ahead {
    stage.run().foresee(&NodeId::new("gate"), action)
}

fn nodes(names: &[&str]) -> Ahead {
    Ahead::Nodes(names.iter().map(|name| NodeId::new(*name)).collect())
}

#[test]
fn without_an_edge_for_it_a_rejection_fails() {
    let stage = Stage::started(gate(json!({})).noops("after").path("gate after"));
    assert_eq!(foreseen(&stage, "accept"), nodes(&["after"]));
    assert_eq!(foreseen(&stage, "edit-accept"), nodes(&["after"]));
    assert_eq!(foreseen(&stage, "reject"), Ahead::Fails);
    let alone = Stage::started(gate(json!({})));
    assert_eq!(foreseen(&alone, "accept"), nodes(&[]));
}

#[test]
fn drawn_edges_are_foreseen_and_taken() {
    let drawn = || {
        gate(json!({}))
            .noops("pay decline")
            .edge("gate", "pay", when("output.action != 'reject'"))
            .edge("gate", "decline", when("output.action == 'reject'"))
    };
    for (action, expected) in [("accept", "pay"), ("reject", "decline")] {
        let mut stage = Stage::started(drawn());
        assert_eq!(foreseen(&stage, action), nodes(&[expected]), "{action}");
        stage.when(decide(json!({"action": action})));
        let done = stage.node(expected).status;
        assert_eq!(done, tandem_record::NodeStatus::Completed, "{action}");
    }
}

#[test]
fn changes_go_back_to_what_feeds_the_gate() {
    let config = json!({"actions": ["accept", "refine"]});
    let stage = Stage::started(gate(config).noops("draft").path("draft gate"));
    assert_eq!(foreseen(&stage, "refine"), nodes(&["draft"]));
}

#[test]
fn an_edit_has_to_fit_the_schema_of_its_artifact() {
    let schema = json!({"type": "object", "properties": {"amount": {"maximum": 5}}});
    let config = json!({"actions": ["accept", "edit-accept"], "artifactSchema": schema});
    let mut stage = Stage::started(gate(config));
    let edit = |amount: u32| {
        decide(json!({"action": "edit-accept", "editedArtifactData": {"amount": amount}}))
    };
    match stage.try_when(edit(9)) {
        Err(Refusal::Invalid(problems)) => {
            assert_eq!(problems[0].path, "/resumeValue/editedArtifactData/amount");
        }
        other => panic!("{other:?}"),
    }
    assert!(stage.status().is_waiting(), "the question stays open");
    stage.when(edit(4));
    assert!(stage.status().is_terminal());
}

/// A supervisor whose first decision is held.
fn held(decision: Value) -> Stage {
    let mut run = staged(supervised(json!([decision]), json!({})));
    run.create(json!({}));
    assert!(run.status().is_waiting());
    run
}

#[test]
fn what_follows_from_an_answer_about_a_held_decision_is_foreseen_and_happens() {
    let at = |run: &Stage, action: &str| run.run().foresee(&NodeId::new("send"), action);
    let handing_over =
        || held(json!({"kind": "next-worker", "nextWorkerIds": ["one"], "confidence": 0.1}));
    let ending = || held(json!({"kind": "terminate", "confidence": 0.1}));
    let again = Ahead::NextTurn(NodeId::new("lead"));

    let mut run = handing_over();
    assert_eq!(
        at(&run, "accept"),
        Ahead::Workers(vec![WorkflowId::new("one")])
    );
    assert_eq!(at(&run, "edit-accept"), Ahead::Instead);
    assert_eq!(at(&run, "reject"), again);
    run.when(answer("send", json!({"action": "accept"})));
    assert_eq!(run.run().view().children.len(), 1, "the worker started");

    let mut run = handing_over();
    run.when(answer("send", json!({"action": "reject"})));
    assert_eq!(run.run().view().children.len(), 0);
    assert_eq!(
        run.node("lead").execution,
        2,
        "the supervisor had another turn"
    );

    let mut run = ending();
    assert_eq!(at(&run, "accept"), Ahead::Ends);
    run.when(answer("send", json!({"action": "accept"})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn refusing_an_unsure_agent_fails_its_run() {
    let config = json!({"mockDecision": {"decision": {"go": true}, "confidence": 0.1}});
    let flow = flow("conformance-agent").node("gate", "core.conformance.mock-agent", config);
    let mut run = Stage::started(flow.noops("after").path("gate after"));
    assert_eq!(foreseen(&run, "accept"), nodes(&["after"]));
    assert_eq!(foreseen(&run, "reject"), Ahead::Fails);
    run.when(decide(json!({"action": "reject"})));
    assert_eq!(run.status(), RunStatus::Failed);
}

#[test]
fn an_answer_that_would_be_refused_is_foreseen_as_such() {
    let config = json!({"actions": ["accept", "refine"]});
    let alone = Stage::started(gate(config));
    assert_eq!(
        foreseen(&alone, "refine"),
        Ahead::Refused,
        "nobody could make the changes"
    );
}

fn title(stage: &Stage) -> String {
    let open = &stage.run().view().interrupts[0];
    open.interrupt.data["title"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_title_of_a_question_tells_what_this_run_is_about() {
    let asks = || {
        let title = "Refund {{ variables.customer }} {{ nodes.quote.outputs.amount }} EUR?";
        flow("refund")
            .variable("customer", json!({"defaultValue": "somebody"}))
            .node("quote", "core.noop", json!({}))
            .with(
                "inputs",
                json!({"amount": {"type": "static", "value": 129}}),
            )
            .node("gate", "core.approvalGate", json!({"title": title}))
            .path("quote gate")
    };
    assert_eq!(title(&Stage::started(asks())), "Refund somebody 129 EUR?");
    let mut other = Stage::new(asks());
    other.create(json!({"customer": "Ada"}));
    assert_eq!(title(&other), "Refund Ada 129 EUR?");
    let asked = other.log().iter().find_map(|r| match &r.event {
        Event::ApprovalRequested { title, .. } => Some(title.clone()),
        _ => None,
    });
    assert_eq!(
        asked.as_deref(),
        Some("Refund Ada 129 EUR?"),
        "told alike everywhere"
    );
}

#[test]
fn a_title_never_tells_what_is_sensitive() {
    let flow = flow("secret")
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
    let stage = Stage::started(flow);
    assert_eq!(title(&stage), "••• ••• •••");
    let log = format!("{:?}", stage.run().view().interrupts);
    assert!(!log.contains("1234") && !log.contains("true\""), "{log}");
}
