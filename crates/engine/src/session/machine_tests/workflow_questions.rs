//! Questions of workflows that the session shows to its user and its admins.

use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect, text_of};
use serde_json::{Value, json};
use tandem_record::InterruptId;
use tandem_record::conversation::{
    ClosedWorkflowQuestion, CodeError, EscalationStatus, SessionCommand, SessionEventBody as Body,
    WorkflowQuestion, WorkflowResult,
};

fn desk() -> TestSession {
    let run = json!({"type": "workflow.run", "workflowId": "order", "surfaceInterrupts": true});
    let flow = code(move |step, with, _| match step {
        0 => effect(run.clone()),
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true},
        "hitl": {"asyncPendingPolicy": {"ackText": "Wait."}, "userCancelKeywords": ["stop"]}});
    let mut desk = TestSession::new(config, &[("one", flow)]);
    route_on_start(&mut desk);
    desk
}

fn wait(desk: &TestSession) -> InterruptId {
    let flow = desk.state().flow().expect("a flow");
    InterruptId::from(format!("{}:0", flow.run_id()))
}

fn question(id: &str, kind: &str, data: Value) -> Box<WorkflowQuestion> {
    Box::new(WorkflowQuestion {
        run_id: "run-1".into(),
        node_id: "ask".into(),
        interrupt_id: id.into(),
        kind: kind.to_owned(),
        data,
    })
}

fn size() -> Value {
    json!({"questions": [{"id": "size", "question": "How many?"}]})
}

fn asks(desk: &mut TestSession, id: &str, kind: &str, data: Value) {
    let (interrupt, question) = (wait(desk), question(id, kind, data));
    for _ in 0..2 {
        let (interrupt, question) = (interrupt.clone(), question.clone());
        let command = SessionCommand::WorkflowAsked {
            interrupt,
            question,
        };
        desk.command(command).expect("never refused");
    }
    desk.perform_all();
}

fn closes(desk: &mut TestSession, id: &str, outcome: &str, by: Option<&str>) {
    let closed = ClosedWorkflowQuestion {
        interrupt_id: id.into(),
        outcome: outcome.to_owned(),
        by: by.map(Into::into),
    };
    desk.command(SessionCommand::WorkflowQuestionClosed(Box::new(closed)))
        .expect("never refused");
    desk.perform_all();
}

/// Z-220 (half: asked once, also while the workflow is still being started; one answer, by the user)
#[test]
fn question_is_asked_once_and_answered_once() {
    let mut desk = desk();
    desk.held.push("session.workflow");
    desk.say("start one");
    asks(&mut desk, "q-1", "clarification", size());
    assert!(desk.sent.is_empty(), "the flow does not wait yet");
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.sent, ["How many?"]);
    desk.say("12");
    assert_eq!(desk.workflow_answers.len(), 1);
    let answer = &desk.workflow_answers[0];
    assert_eq!(answer.value, json!({"answers": {"size": "12"}}));
    assert_eq!(answer.by, ["usr-1".into()]);
    assert_eq!(desk.say("13"), ["Wait."], "it was answered");
    assert_eq!(desk.workflow_answers.len(), 1);
}

/// Z-220 (half: an answer that the workflow refuses is asked for again)
#[test]
fn refused_answer_is_asked_for_again() {
    let mut desk = desk();
    desk.say("start one");
    asks(&mut desk, "q-1", "clarification", size());
    desk.refused_answers.push_back(CodeError {
        code: "refused".to_owned(),
        message: "too many".to_owned(),
    });
    desk.say("1000");
    assert_eq!(desk.sent, ["How many?", "How many?"]);
    desk.say("10");
    let values: Vec<_> = desk.workflow_answers.iter().map(|a| &a.value).collect();
    assert_eq!(values[1], &json!({"answers": {"size": "10"}}));
}

/// Z-220 (half: one question after the other; one that is closed elsewhere is not asked)
#[test]
fn questions_are_put_one_after_the_other() {
    let mut desk = desk();
    desk.say("start one");
    asks(&mut desk, "q-1", "clarification", size());
    let name = json!({"questions": [{"id": "name", "question": "For whom?"}]});
    asks(&mut desk, "q-2", "clarification", name);
    assert_eq!(desk.sent, ["How many?"]);
    closes(&mut desk, "q-1", "answered", Some("ana"));
    assert_eq!(desk.sent, ["How many?", "For whom?"]);
    desk.say("Ben");
    let answer = desk.workflow_answers.last().expect("an answer");
    assert_eq!(answer.interrupt_id.as_str(), "q-2");
}

/// Z-220 (half: an approval is an escalation; the user's words do not close it, and its votes are the workflow's)
#[test]
fn approval_is_an_escalation_with_its_votes() {
    let mut desk = desk();
    desk.say("start one");
    let data = json!({"title": "Ship?", "requiredApprovals": 2, "actions": ["accept", "reject"]});
    asks(&mut desk, "q-1", "approval", data);
    let escalation = desk.state().escalations().next().expect("one").clone();
    assert_eq!(
        (&*escalation.reason, escalation.required_approvals),
        ("Ship?", 2)
    );
    assert_eq!(desk.say("stop"), ["Wait."]);
    desk.resolve(true, "ana").expect("open");
    assert!(desk.workflow_answers.is_empty(), "two must approve");
    desk.resolve(true, "ben").expect("open");
    desk.perform_all();
    let answer = &desk.workflow_answers[0];
    assert_eq!(answer.value, json!({"action": "accept"}));
    assert_eq!(answer.by, ["ana".into(), "ben".into()]);
    closes(&mut desk, "q-1", "accepted", Some("ben"));
    let result = Box::new(WorkflowResult {
        run_id: "run-1".into(),
        status: "completed".to_owned(),
        output: None,
        error: None,
    });
    let interrupt = wait(&desk);
    desk.command(SessionCommand::WorkflowFinished { interrupt, result })
        .expect("never refused");
    desk.perform_all();
    assert_eq!(desk.workflow_answers.len(), 1);
    assert_eq!(desk.state().hitl_mode(), None);
}

/// Z-220 (half: what is decided at the workflow resolves the escalation, what is called off there cancels it)
#[test]
fn escalation_follows_the_question_of_the_workflow() {
    let ends = [
        (
            "accepted",
            Some("ana"),
            EscalationStatus::Resolved,
            Some(true),
        ),
        (
            "rejected",
            Some("ana"),
            EscalationStatus::Resolved,
            Some(false),
        ),
        ("cancelled", None, EscalationStatus::Canceled, None),
        ("rejected", None, EscalationStatus::Canceled, None),
    ];
    for (outcome, by, status, approved) in ends {
        let mut desk = desk();
        desk.say("start one");
        asks(&mut desk, "q-1", "approval", json!({"title": "Ship?"}));
        closes(&mut desk, "q-1", outcome, by);
        let escalation = desk.state().escalations().next().expect("one");
        assert_eq!(escalation.status, status, "{outcome}");
        let resolution = escalation.resolution.as_ref();
        assert_eq!(resolution.map(|done| done.approved), approved, "{outcome}");
        assert!(desk.workflow_answers.is_empty(), "the workflow knows");
        assert_eq!(
            desk.count(|e| matches!(e, Body::WorkflowQuestionClosed { .. })),
            1
        );
    }
}
