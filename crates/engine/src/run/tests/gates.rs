//! Interrupts: who may answer, what an answer does, and that a timeout never approves.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{Cause, Command, DeciderSnapshot, Event, NodeId, Principal, Reply, RunStatus};

pub(super) fn gate(config: Value) -> WorkflowBuilder {
    workflow("gated").node("gate", "core.approvalGate", config)
}

pub(super) fn answer(node: &str, value: Value) -> Command {
    Command::ResolveInterrupt {
        node: NodeId::new(node),
        interrupt: None,
        value,
        by: Some(Principal::new("ana")),
        by_link: false,
        decider: DeciderSnapshot::default(),
    }
}

fn shown(run: &RunHarness) -> &Value {
    let data = run.run().shown_data(&NodeId::new("gate"), None);
    data.expect("the question is open")
}

fn vote(action: &str, voter: &str) -> Command {
    answer("gate", json!({"action": action, "voter": voter}))
}

#[test]
fn accepted_gate_puts_out_the_artifact() {
    let artifact = json!({"type": "static", "value": {"amount": 10}});
    let actions = json!({"actions": ["accept", "edit-accept", "reject"]});
    let edit = json!({"action": "edit-accept", "editedArtifactData": {"amount": 3}});
    for (value, amount) in [(json!({"action": "accept"}), 10), (edit, 3)] {
        let takes = json!({"type": "connection", "nodeId": "gate", "outputKey": "artifactData"});
        let workflow = gate(actions.clone()).port("artifact", artifact.clone());
        let workflow = workflow.noops("pay").port("x", takes).path("gate pay");
        let mut run = RunHarness::started(workflow);
        run.when(answer("gate", value));
        assert_eq!(run.status(), RunStatus::Completed);
        let paid = json!(run.node("pay").outputs);
        assert_eq!(paid, json!({"x": {"amount": amount}}));
    }
}

#[test]
fn second_resolve_is_refused_with_the_first_outcome() {
    let mut run = RunHarness::started(gate(json!({})).noops("after").path("gate after"));
    run.then(
        "
        run.started
        node.started gate
        interrupt.requested gate
        approval.requested gate
        node.suspended gate waiting-approval
        ",
    );
    run.when(answer("gate", json!({"action": "accept"})));
    run.then(
        r#"
        approval.received gate accept
        interrupt.resolved gate
        node.resumed gate
        node.completed gate {"action":"accept","decidedBy":"ana"}
        node.started after
        node.completed after
        run.completed
        "#,
    );
    match run.try_when(answer("gate", json!({"action": "reject"}))) {
        Err(Refusal::AlreadyResolved(closed)) => {
            assert_eq!(closed.outcome, "accepted");
            assert_eq!(closed.by, Some(Principal::new("ana")));
        }
        other => panic!("{other:?}"),
    }
    let requested = run
        .log()
        .iter()
        .find(|r| matches!(r.event, Event::InterruptRequested { .. }));
    let requested = requested.map(|r| Cause::Event(r.seq));
    for decided in run.log().iter().filter(|r| {
        matches!(
            r.event,
            Event::ApprovalReceived { .. } | Event::InterruptResolved { .. }
        )
    }) {
        assert_eq!(decided.cause, requested, "{:?}", decided.event);
    }
    let nobody = run.try_when(answer("after", json!({"action": "accept"})));
    assert!(matches!(nobody, Err(Refusal::InterruptNotFound { .. })));
}

#[test]
fn rejection_fails_the_run_unless_it_has_an_edge() {
    let mut run = RunHarness::started(gate(json!({}))).given();
    run.when(answer("gate", json!({"action": "reject"})));
    run.then(
        "
        approval.received gate reject
        interrupt.resolved gate
        node.resumed gate
        node.failed gate interrupt_rejected
        run.failed interrupt_rejected gate
        ",
    );
    let drawn = gate(json!({}))
        .noops("pay sorry")
        .edge(
            "gate",
            "pay",
            json!({"condition": {"type": "equals", "left": "action", "right": "accept"}}),
        )
        .edge(
            "gate",
            "sorry",
            json!({"condition": {"type": "equals", "left": "output.action", "right": "reject"}}),
        );
    let mut run = RunHarness::started(drawn);
    run.when(answer("gate", json!({"action": "reject"})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn an_answer_that_does_not_fit_leaves_the_question_open() {
    let mut run =
        RunHarness::started(gate(json!({"actions": ["accept", "edit", "refine"]}))).given();
    for bad in [
        json!({"action": "reject"}),
        json!({"action": "edit-accept"}),
        json!({"action": "edit-accept", "editedArtifactData": null}),
        json!({"action": "accept", "refineFeedback": {"scope": "whole"}}),
        json!({"action": "accept", "editedArtifactData": {"n": 1}}),
        json!({"decision": "approved", "editedArtifactData": {"n": 1}}),
        json!({"action": "refine"}),
        json!({"action": "refine", "refineFeedback": {"scope": "whole"}}), // nobody to redo it
        json!({}),
        json!("yes"),
        Value::Null,
    ] {
        let refused = run.try_when(answer("gate", bad.clone()));
        assert!(
            matches!(refused, Err(Refusal::Invalid(_))),
            "{bad}: {refused:?}"
        );
    }
    run.then("");
    run.when(answer(
        "gate",
        json!({"action": "edit", "editedArtifactData": {"n": 1}}),
    ));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn refine_repeats_the_producer_and_the_gate_up_to_the_limit() {
    let reviewed = workflow("reviewed")
        .settings(json!({"maxLoopbackIterations": 1}))
        .node("draft", "core.identity", json!({}))
        .node(
            "gate",
            "core.approvalGate",
            json!({"actions": ["accept", "refine"]}),
        )
        .path("draft gate");
    let refine = || {
        answer(
            "gate",
            json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "shorter"}}),
        )
    };
    let mut run = RunHarness::started(reviewed).given();
    run.when(refine());
    run.then(
        r#"
        approval.received gate refine
        interrupt.resolved gate
        node.resumed gate
        node.started draft execution=1 resets=gate
        node.completed draft {"refineFeedback":{"scope":"whole","text":"shorter"}}
        node.started gate execution=1
        interrupt.requested gate
        approval.requested gate
        node.suspended gate waiting-approval
        "#,
    );
    run.when(refine());
    assert_eq!(run.status(), RunStatus::Failed, "one loop-back was allowed");
}

#[test]
fn quorum_counts_each_voter_once() {
    let quorum = json!({"requiredApprovals": 3, "rejectionPolicy": "majority"});
    let mut run = RunHarness::started(gate(quorum.clone()));
    for voter in ["ana", "ana", "ben"] {
        let reply = run.when(vote("accept", voter));
        assert!(
            matches!(reply, Reply::Resolved { outcome: None, .. }),
            "{voter}"
        );
    }
    run.when(vote("accept", "eva"));
    assert_eq!(run.status(), RunStatus::Completed);
    let mut run = RunHarness::started(gate(quorum));
    run.when(vote("reject", "ana"));
    run.when(vote("reject", "ben"));
    assert_eq!(
        run.status(),
        RunStatus::Failed,
        "two of three is a majority"
    );
    let mut veto = RunHarness::started(gate(json!({"requiredApprovals": 3})));
    veto.when(vote("accept", "ana"));
    veto.when(vote("reject", "ben"));
    assert_eq!(veto.status(), RunStatus::Failed, "one veto ends it");
}

#[test]
fn edit_needs_the_same_quorum_and_is_shown_to_other_voters() {
    let edits = |voter: &str, text: &str| {
        let artifact = json!({"text": text});
        let value =
            json!({"action": "edit-accept", "voter": voter, "editedArtifactData": artifact});
        answer("gate", value)
    };
    let config = json!({
        "requiredApprovals": 2,
        "actions": ["accept", "reject", "edit-accept"],
        "artifactData": {"text": "draft"},
    });
    let mut run = RunHarness::started(gate(config));
    run.when(vote("accept", "ana"));
    let reply = run.when(edits("ben", "better"));
    let Reply::Resolved {
        outcome: None,
        votes,
        ..
    } = reply
    else {
        panic!("one vote for the edit is not two: {reply:?}");
    };
    assert_eq!(votes.len(), 1, "ana accepted something else");
    assert_eq!(shown(&run)["artifactData"], json!({"text": "better"}));
    let mut run = run.given();
    run.when(vote("accept", "eva"));
    run.then(
        r#"
        approval.received gate accept eva
        interrupt.resolved gate
        node.resumed gate
        node.completed gate {"action":"accept","artifactData":{"text":"better"},"decidedBy":"ana"}
        run.completed {"action":"accept","artifactData":{"text":"better"},"decidedBy":"ana"}
        "#,
    );
}

#[test]
fn timeout_never_approves() {
    let mut run = RunHarness::started(gate(json!({"timeoutMs": 1000}))).given();
    run.elapse(999);
    run.then("");
    run.elapse(1);
    run.then(
        "
        approval.received gate timeout
        interrupt.resolved gate
        node.resumed gate
        node.failed gate interrupt_rejected
        run.failed interrupt_rejected gate
        ",
    );
    let late = run.try_when(answer("gate", json!({"action": "accept"})));
    assert!(matches!(late, Err(Refusal::AlreadyResolved(_))));
}

#[test]
fn clarification_needs_every_answer_with_the_right_type() {
    let questions = json!([
        {"id": "colour", "question": "Which?"},
        {"id": "size", "question": "How big?", "schema": {"type": "integer"}},
    ]);
    let asked = || {
        workflow("asked").node(
            "ask",
            "core.clarificationGate",
            json!({"questions": questions}),
        )
    };
    let mut run = RunHarness::started(asked()).given();
    assert_eq!(run.status(), RunStatus::WaitingInput);
    for bad in [
        json!({"answers": {"colour": "red"}}),
        json!({"answers": {"colour": "red", "size": "big"}}),
        json!({"answers": {"colour": 1, "size": 1}}),
        json!({"answers": {"colour": "red", "size": 1, "extra": 1}}),
        json!({}),
    ] {
        let refused = run.try_when(answer("ask", bad.clone()));
        assert!(matches!(refused, Err(Refusal::Invalid(_))), "{bad}");
    }
    let list = json!({"answers": [{"id": "colour", "answer": "red"}, {"id": "size", "answer": 3}]});
    run.when(answer("ask", list));
    run.then(
        r#"
        clarification.resolved ask {"colour":"red","size":3}
        interrupt.resolved ask
        node.resumed ask
        node.completed ask {"answers":{"colour":"red","size":3}}
        run.completed {"answers":{"colour":"red","size":3}}
        "#,
    );
}

#[test]
fn only_the_matching_event_is_accepted() {
    let waits = json!({"kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": 7}}, "timeoutMs": 50});
    let mut run =
        RunHarness::started(workflow("waits").node("ext", "core.interrupt", waits.clone()));
    assert_eq!(run.status(), RunStatus::WaitingExternal);
    let other = run.try_when(answer("ext", json!({"order": 8})));
    let keys = vec!["order".to_owned()];
    assert_eq!(other, Err(Refusal::CorrelationMismatch { keys }));
    run.when(answer("ext", json!({"eventPayload": {"order": 7.0}})));
    assert_eq!(run.status(), RunStatus::Completed);
    let mut run =
        RunHarness::started(workflow("waits").node("ext", "core.interrupt", waits)).given();
    run.elapse(50);
    assert_eq!(
        run.status(),
        RunStatus::Failed,
        "the event did not arrive in time"
    );
}

#[test]
fn resolve_after_cancel_is_refused() {
    let mut run = RunHarness::started(gate(json!({})));
    run.cancel();
    let late = run.try_when(answer("gate", json!({"action": "accept"})));
    assert_eq!(late, Err(Refusal::InterruptGone));
}
