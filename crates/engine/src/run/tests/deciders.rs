//! Deciders: what is recorded about them, how their votes count, and that a denial is recorded and
//! leaves the interrupt open.

use super::gates::{answer, gate};
use super::harness::RunHarness;
use super::workflow_builder::workflow;
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{
    Command, DeciderSnapshot, Denial, Event, NodeId, Principal, Reply, RunStatus, Vote,
};

fn by(who: &str, acting_for: Option<&str>, value: Value) -> Command {
    Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value,
        by: Some(Principal::new(who)),
        by_link: false,
        decider: DeciderSnapshot {
            acting_for: acting_for.map(Principal::new),
            groups: vec!["desk".to_owned()],
            roles: vec!["clerk".to_owned()],
            link_of: None,
        },
    }
}

fn votes(reply: Reply) -> Vec<(String, Option<String>)> {
    match reply {
        Reply::Resolved { votes, .. } => votes
            .into_iter()
            .map(
                |Vote {
                     voter, delegate, ..
                 }| (voter, delegate),
            )
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn decision_policy_is_readable_from_the_run() {
    let config = json!({
        "approversList": ["ana"], "approverGroupRefs": ["desk"], "approverRoleRefs": ["clerk"],
        "profile": "openwop-interrupt-auth-required",
        "tandem": {"noSelfApproval": true, "approverGroups": ["leads"]},
    });
    let mut run = RunHarness::new(gate(config));
    run.request.owner.principal = Some(Principal::new("ina"));
    run.create(json!({}));
    let node = NodeId::new("gate");
    let policy = run.run().decision_policy(&node, None).expect("it is open");
    assert_eq!(policy.approvers, ["ana"]);
    assert_eq!(policy.groups, ["desk", "leads"]);
    assert_eq!(policy.roles, ["clerk"]);
    assert!(policy.auth_required && policy.no_self_approval);
    assert_eq!(policy.initiators, [Principal::new("ina")]);
    let data = &run.run().open_questions()[0].interrupt.data;
    assert_eq!(data["approverGroupRefs"], json!(["desk", "leads"]));
    run.when(answer("gate", json!({"action": "accept"})));
    assert_eq!(run.run().decision_policy(&node, None), None);
}

#[test]
fn a_denial_is_recorded_and_the_question_stays_open() {
    let deny = || Command::DenyDecision {
        node: NodeId::new("gate"),
        interrupt: None,
        by: Some(Principal::new("eve")),
        why: Denial::NotEligible,
    };
    let mut run = RunHarness::started(gate(json!({}))).given();
    let reply = run.when(deny());
    assert!(matches!(reply, Reply::Denied { .. }), "{reply:?}");
    run.then("decision.denied gate eve not-eligible");
    for _ in 0..100 {
        run.when(deny());
    }
    assert_eq!(run.log().len(), 5 + 32, "knocking does not fill the log");
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    run.when(answer("gate", json!({"action": "accept"})));
    let late = run.try_when(deny());
    assert!(matches!(late, Err(Refusal::AlreadyResolved(_))));
}

#[test]
fn decision_records_why_the_decider_was_eligible() {
    let mut run = RunHarness::started(gate(json!({"approverGroupRefs": ["desk"]})));
    let claims = json!({"action": "accept", "voter": "somebody-else"});
    run.when(by("ben", Some("ana"), claims));
    assert_eq!(run.status(), RunStatus::Completed);
    let decided = run.log().iter().find_map(|r| match &r.event {
        Event::ApprovalReceived { decision, .. } => Some(decision.clone()),
        _ => None,
    });
    let decided = decided.expect("it was decided");
    assert_eq!(decided.by, Some(Principal::new("ben")));
    assert_eq!(
        decided.voter, None,
        "a claim in the body counts for nothing"
    );
    assert_eq!(decided.decider.acting_for, Some(Principal::new("ana")));
    assert_eq!(decided.decider.groups, ["desk"]);
    assert_eq!(decided.decider.roles, ["clerk"]);
    let resolved = run.log().iter().any(|r| {
        matches!(&r.event, Event::InterruptResolved { resolution, .. }
            if resolution.decider == decided.decider)
    });
    assert!(resolved, "the end of the question says it too");
}

#[test]
fn delegate_and_delegator_share_one_vote() {
    let quorum = json!({"requiredApprovals": 4, "approverGroupRefs": ["desk"]});
    let accept = || json!({"action": "accept"});
    let mut run = RunHarness::started(gate(quorum));
    let own = |who: &str| (who.to_owned(), None);
    let cast = [
        (("ben", None), vec![own("ben")]),
        // Acting for another person uses one's own vote.
        (
            ("ben", Some("ana")),
            vec![("ana".to_owned(), Some("ben".to_owned()))],
        ),
        // The same delegate, now for another person, still has one vote.
        (
            ("ben", Some("eva")),
            vec![("eva".to_owned(), Some("ben".to_owned()))],
        ),
        // The delegator votes in person, and the delegate may vote again.
        (("eva", None), vec![own("eva")]),
        (("ben", None), vec![own("eva"), own("ben")]),
        (("ben", None), vec![own("eva"), own("ben")]),
    ];
    for ((who, acting_for), expected) in cast {
        let reply = run.when(by(who, acting_for, accept()));
        assert_eq!(votes(reply), expected, "{who} for {acting_for:?}");
    }
}

#[test]
fn interrupt_kinds_without_a_gate_wait_and_are_answered() {
    let asks = |kind: &str, data: Value| {
        workflow("asks").node(
            "gate",
            "core.interrupt",
            json!({"kind": kind, "data": data}),
        )
    };
    let low = json!({"agentId": "a-1", "threshold": 0.7, "observed": 0.5});
    let mut run = RunHarness::started(asks("low-confidence", low.clone()));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    let refused = run.try_when(answer("gate", Value::Null));
    assert!(matches!(refused, Err(Refusal::Invalid(_))));
    let reply = run.when(answer("gate", json!({"ratified": true})));
    assert!(
        matches!(reply, Reply::Resolved { outcome: Some(outcome), .. } if outcome == "ratified")
    );
    let mut run = RunHarness::started(asks("low-confidence", low));
    let reply = run.when(answer("gate", json!({"rejected": true})));
    assert!(
        matches!(reply, Reply::Resolved { outcome: Some(outcome), .. } if outcome == "rejected")
    );
    let run = RunHarness::started(asks("x-host-tandem-low-confidence", json!({})));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    for (kind, place) in [
        ("conversation.close", "kind"),
        ("approval", "data/artifactId"),
        ("clarification", "data/questions"),
        ("x-host-", "kind"),
        ("x-host-Acme-kind", "kind"),
        ("x-host-acme", "kind"),
        ("low-confidence", "data/agentId"),
        ("custom", "data/customKind"),
    ] {
        let faults = asks(kind, json!({})).faults();
        assert_eq!(faults[0].path, format!("/nodes/0/config/{place}"), "{kind}");
    }
}

#[test]
fn interrupt_kinds_with_a_gate_behave_like_the_gate() {
    let asks = |config: Value| workflow("asks").node("gate", "core.interrupt", config);
    let mut run = RunHarness::started(asks(json!({
        "kind": "approval",
        "data": {"artifactId": "doc-1", "artifactType": "doc", "title": "Publish?",
                 "actions": ["accept", "reject"], "requiredApprovals": 2},
        "resumeSchema": {"required": ["feedback"]},
        "timeoutMs": 1000,
    })));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    let curt = run.try_when(answer("gate", json!({"action": "accept", "voter": "ana"})));
    assert!(matches!(curt, Err(Refusal::Invalid(_))), "{curt:?}");
    for (voter, left) in [("ana", true), ("ben", false)] {
        let value = json!({"action": "accept", "voter": voter, "feedback": "good"});
        run.when(answer("gate", value));
        assert_eq!(run.status().is_waiting(), left, "{voter}");
    }
    assert_eq!(run.status(), RunStatus::Completed);
    let mut run = RunHarness::started(asks(json!({
        "kind": "clarification",
        "data": {"questions": [{"id": "colour", "question": "Which?"}]},
    })));
    assert_eq!(run.status(), RunStatus::WaitingInput);
    run.when(answer("gate", json!([{"id": "colour", "answer": "red"}])));
    assert_eq!(run.status(), RunStatus::Completed);
}
