//! What is told about a decision before it is made, held against what the decision then does; and
//! edits that have to fit a schema.

use super::flow::{Flow, flow};
use super::stage::Stage;
use crate::run::{Ahead, Refusal};
use serde_json::{Value, json};
use tandem_record::{Command, NodeId, Principal};

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
