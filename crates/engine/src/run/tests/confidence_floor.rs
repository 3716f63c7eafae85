//! Decisions below the confidence floor: they are held, recorded, put to a person, and never
//! carried out without an answer.

use super::gates::answer;
use super::harness::RunHarness;
use super::supervising::{staged, supervised, terminate, workers};
use crate::run::{AgentPolicy, Refusal};
use serde_json::{Value, json};
use tandem_record::{Cause, EscalationKind, Event, RunStatus};

fn unsure(mut decision: Value, confidence: f64) -> Value {
    decision["confidence"] = json!(confidence);
    decision
}

fn deciding(plan: Value, policy: AgentPolicy) -> RunHarness {
    let mut run = staged(supervised(plan, json!({})));
    run.agents = policy;
    run.create(json!({}));
    run
}

fn started_workers(run: &RunHarness) -> usize {
    let log = run.log().iter();
    log.filter(|r| matches!(r.event, Event::NodeDispatched { .. }))
        .count()
}

#[test]
fn decision_below_the_floor_is_escalated_and_held() {
    // R-0039-2, R-0039-3 (half: a decision of a supervisor), R-0039-9 (half: before the interrupt)
    // R-0039-10 (half: a decision to end names no worker)
    let plan = json!([unsure(workers(&["one"]), 0.49)]);
    let mut run = deciding(plan, AgentPolicy::default());
    run.then(
        r#"
        run.started {"mine":"before"}
        node.started lead
        decided lead #1 next-worker
        node.completed lead {"decision":{"confidence":0.49,"kind":"next-worker","nextWorkerIds":["one"]}}
        node.started send
        escalated 0.49<0.5 one
        interrupt.requested send
        approval.requested send
        node.suspended send waiting-approval
        "#,
    );
    let open = &run.run().view().interrupts[0];
    assert_eq!(
        open.interrupt.data["artifactData"]["nextWorkerIds"],
        json!(["one"])
    );

    let plan = json!([unsure(terminate(), 0.0)]);
    let mut run = deciding(plan, AgentPolicy::default());
    let lines = run.lines();
    assert!(lines.contains(&"escalated 0<0.5".to_owned()), "{lines:?}");
    assert_eq!(run.status(), RunStatus::WaitingApproval);
}

#[test]
fn confidence_at_the_floor_or_absent_is_not_escalated() {
    // R-0039-1 (half: values in the range are accepted), R-0039-12, R-0039-13
    for decision in [
        unsure(workers(&["one"]), 0.5),
        unsure(workers(&["one"]), 1.0),
        workers(&["one"]),
    ] {
        let run = deciding(json!([decision]), AgentPolicy::default());
        assert_eq!(started_workers(&run), 1, "{decision}");
    }
    let run = deciding(json!([unsure(terminate(), 0.5)]), AgentPolicy::default());
    assert_eq!(run.status(), RunStatus::Completed);
    let strict = AgentPolicy::new(Some(0.7), None).expect("a stricter floor");
    let run = deciding(json!([unsure(workers(&["one"]), 0.7)]), strict);
    assert_eq!(started_workers(&run), 1, "at a raised floor");
}

#[test]
fn a_confidence_is_a_number_from_zero_to_one() {
    // R-0039-1 (half: values outside the range are refused)
    for bad in [json!(-0.1), json!(1.1), json!("sure")] {
        let mut decision = workers(&["one"]);
        decision["confidence"] = bad.clone();
        let faults = supervised(json!([decision]), json!({})).faults();
        assert!(faults[0].path.ends_with("/confidence"), "{bad}: {faults:?}");
    }
}

#[test]
fn an_operator_may_raise_the_floor_and_a_run_may_not_lower_it() {
    // R-0039-4, R-0039-8 (half: no option of a run and no workflow lowers it)
    let strict = AgentPolicy::new(Some(0.7), None).expect("a stricter floor");
    let mut run = deciding(json!([unsure(workers(&["one"]), 0.69)]), strict);
    let lines = run.lines();
    assert!(
        lines.contains(&"escalated 0.69<0.7 one".to_owned()),
        "{lines:?}"
    );

    let mut run = staged(supervised(
        json!([unsure(workers(&["one"]), 0.3)]),
        json!({}),
    ))
    .configured(json!({"escalationThreshold": 0, "confidenceEscalationFloor": 0.1}));
    run.create(json!({}));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    assert_eq!(started_workers(&run), 0);
    let lowered = json!({"confidenceEscalationFloor": 0.1});
    let faults = supervised(json!([terminate()]), lowered).faults();
    assert!(
        faults[0]
            .path
            .ends_with("/config/confidenceEscalationFloor")
    );
}

#[test]
fn escalation_uses_the_configured_kind_and_its_status() {
    // R-0044-3, R-0044-4, R-0044-5, R-0044-6, R-0044-9 (half: the status follows from the kind)
    // R-0044-11 (half: each kind keeps its meaning)
    use EscalationKind::{Clarify, Escalate};
    use RunStatus::{WaitingApproval, WaitingClarification};
    let own = "x-host-tandem-doubt";
    for (kind, opened, meaning, status) in [
        (None, "approval", Escalate, WaitingApproval),
        (Some("none"), "approval", Escalate, WaitingApproval),
        (
            Some("clarification"),
            "clarification",
            Clarify,
            WaitingClarification,
        ),
        (Some(own), own, Escalate, WaitingApproval),
    ] {
        let policy = AgentPolicy::new(None, kind).expect("a known kind");
        let run = deciding(json!([unsure(workers(&["one"]), 0.1)]), policy);
        let view = run.run().view();
        assert_eq!(view.interrupts[0].interrupt.kind, opened);
        assert_eq!(view.status, status);
        let escalated = run.log().iter().find_map(|r| match &r.event {
            Event::ConfidenceEscalated { kind, .. } => Some(*kind),
            _ => None,
        });
        assert_eq!(escalated, Some(meaning), "{kind:?}");
    }
}

#[test]
fn escalation_kind_does_not_change_when_it_escalates() {
    // R-0044-10
    for kind in ["none", "approval", "clarification", "x-host-tandem-doubt"] {
        let policy = AgentPolicy::new(None, Some(kind)).expect("a known kind");
        for (decision, held) in [
            (unsure(workers(&["one"]), 0.49), true),
            (unsure(workers(&["one"]), 0.5), false),
            (workers(&["one"]), false),
        ] {
            let run = deciding(json!([decision]), policy.clone());
            assert_eq!(started_workers(&run) == 0, held, "{kind} {decision}");
        }
    }
}

#[test]
fn accepted_held_decision_is_carried_out_without_another_question() {
    for (kind, yes) in [
        ("approval", json!({"action": "accept"})),
        ("clarification", json!({"answers": {"proceed": "Proceed"}})),
        ("x-host-tandem-doubt", json!({"action": "accept"})),
    ] {
        let policy = AgentPolicy::new(None, Some(kind)).expect("a known kind");
        let plan = json!([unsure(workers(&["one"]), 0.1), terminate()]);
        let mut run = deciding(plan, policy);
        run.when(answer("send", yes));
        assert_eq!(started_workers(&run), 1, "{kind}");
        run.child_ended("send", RunStatus::Completed, json!({}));
        assert_eq!(run.status(), RunStatus::Completed, "{kind}");
        let lines = run.lines();
        let turns: Vec<&String> = lines.iter().filter(|l| l.starts_with("decided")).collect();
        assert_eq!(
            turns,
            ["decided lead #1 next-worker", "decided lead #2 terminate"]
        );
    }
}

#[test]
fn rejected_held_decision_is_dropped_and_the_supervisor_decides_again() {
    for (kind, no) in [
        ("approval", json!({"action": "reject"})),
        (
            "clarification",
            json!({"answers": {"proceed": "certainly not"}}),
        ),
    ] {
        let policy = AgentPolicy::new(None, Some(kind)).expect("a known kind");
        let plan = json!([unsure(workers(&["one"]), 0.1), workers(&["two"])]);
        let mut run = deciding(plan, policy);
        run.when(answer("send", no));
        let lines = run.lines();
        assert!(
            lines.contains(&"dispatch.began two".to_owned()),
            "{lines:?}"
        );
        assert!(
            !lines.contains(&"dispatch.began one".to_owned()),
            "{lines:?}"
        );
    }
}

#[test]
fn held_decision_can_be_replaced_by_a_valid_decision() {
    let plan = json!([unsure(workers(&["one"]), 0.1), terminate()]);
    let mut run = deciding(plan, AgentPolicy::default());
    let edit = |decision: Value| {
        answer(
            "send",
            json!({"action": "edit-accept", "editedArtifactData": decision}),
        )
    };
    let nobody = json!({"kind": "next-worker", "nextWorkerIds": []});
    // The error is reported at its path.
    for (value, place) in [
        (edit(nobody.clone()), "/editedArtifactData/nextWorkerIds"),
        (
            answer("send", json!({"decision": nobody})),
            "/decision/nextWorkerIds",
        ),
        (answer("send", nobody), "/nextWorkerIds"),
        (
            edit(json!({"kind": "terminate", "successCriteria": [{"key": "", "met": true}]})),
            "/editedArtifactData/successCriteria/0/key",
        ),
        (
            answer(
                "send",
                json!({"action": "accept", "editedArtifactData": terminate()}),
            ),
            "/editedArtifactData",
        ),
        (
            answer("send", json!({"action": "accept", "decision": terminate()})),
            "/decision",
        ),
        (
            answer("send", json!({"ratified": true, "decision": terminate()})),
            "/decision",
        ),
    ] {
        match run.try_when(value) {
            Err(Refusal::Invalid(problems)) => {
                assert_eq!(problems[0].path, format!("/resumeValue{place}"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(run.status(), RunStatus::WaitingApproval, "it stays open");
    let mut run = run.given();
    // R-0039-3 (half: a decision by a person): the edit ratifies the decision. A confidence below
    // the floor is still recorded.
    run.when(edit(unsure(workers(&["two"]), 0.2)));
    let lines = run.lines();
    let events: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|l| {
            ["decided", "escalated", "dispatch.began"]
                .iter()
                .any(|k| l.starts_with(k))
        })
        .collect();
    let expected = [
        "decided lead #1 next-worker",
        "escalated 0.2<0.5 two",
        "dispatch.began two",
    ];
    assert_eq!(events, expected);
    let newest = |wanted: fn(&Event) -> bool| {
        let mut log = run.log().iter();
        log.rfind(|recorded| wanted(&recorded.event))
    };
    let published = newest(|event| matches!(event, Event::OrchestratorDecided { .. }));
    let escalated = newest(|event| matches!(event, Event::ConfidenceEscalated { .. }));
    let cause = escalated.and_then(|r| r.cause.clone());
    assert_eq!(cause, published.map(|r| Cause::Event(r.seq)));
}

#[test]
fn question_about_a_held_decision_shows_its_reasoning() {
    let lead = json!({"endpoint": {"url": "http://brain.test/"}});
    let workflow = super::workflow_builder::workflow("real")
        .node("lead", "core.orchestrator.supervisor", lead)
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = staged(workflow);
    run.create(json!({}));
    let decision = unsure(workers(&["one"]), 0.2);
    let body = json!({"decision": decision, "reasoning": "I am only guessing."});
    run.done("lead", json!({"status": 200, "body": body}));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    let shown = run.run().view().interrupts[0].interrupt.data["description"].clone();
    assert!(
        shown
            .as_str()
            .expect("words")
            .ends_with("Its reasons: I am only guessing.")
    );
}

#[test]
fn supervisor_can_open_a_conversation_with_the_user() {
    let plan = json!([{"kind": "ask-user", "prompt": "Which city?"}, terminate()]);
    let mut run = deciding(plan, AgentPolicy::default());
    let open = run.run().view().interrupts[0].interrupt.clone();
    assert_eq!(open.kind, "conversation.exchange");
    assert_eq!(open.data["prompt"], "Which city?");
    let say = |operation: &str, text: &str| {
        answer(
            "send",
            json!({"operation": operation, "turn": {"content": text}, "outcome": text}),
        )
    };
    run.when(say("exchange", "By the sea?"));
    assert_eq!(run.status(), RunStatus::WaitingApproval, "it goes on");
    run.when(say("close", "Gdańsk"));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn supervisor_can_ask_the_user_or_request_approval() {
    let plan = json!([{"kind": "ask-user", "prompt": "Which city?"}, terminate()]);
    let workflow = supervised(plan, json!({"askUserRouting": "clarification"}));
    let mut run = staged(workflow);
    run.create(json!({}));
    assert_eq!(run.status(), RunStatus::WaitingInput);
    let question =
        run.run().view().interrupts[0].interrupt.data["questions"][0]["question"].clone();
    assert_eq!(question, "Which city?");
    let wrong = run.try_when(answer("send", json!({"answers": {"answer": 7}})));
    assert!(matches!(wrong, Err(Refusal::Invalid(_))), "{wrong:?}");
    run.when(answer("send", json!({"answers": {"answer": "Gdańsk"}})));
    assert_eq!(run.status(), RunStatus::Completed);

    let plan = json!([{"kind": "escalate", "prompt": "May I?"}, terminate()]);
    let mut run = deciding(plan, AgentPolicy::default());
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    run.when(answer("send", json!({"action": "reject"})));
    assert_eq!(
        run.status(),
        RunStatus::Completed,
        "the supervisor goes on either way"
    );
}
