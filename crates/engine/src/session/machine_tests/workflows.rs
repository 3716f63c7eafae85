//! Flows that start workflows, and workflows that start flows.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::{ProgramStep, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, OnActiveFlow, ParentNode, SessionCommand, SessionEventBody as Body, SessionReply,
    SessionWork, TurnTrigger, WorkflowResult,
};
use tandem_record::{RunId, Seq};

fn starting(workflow: Value) -> Code {
    code(move |step, with, _| match step {
        0 => effect(workflow.clone()),
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    })
}

fn desk(config: Value, flow: Code) -> TestSession {
    let mut fields = json!({"beforeLLM": {"$fn": true}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let asking = code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        _ => ProgramStep::Returned(json!({"reason": "asked", "score": 3})),
    });
    let sure = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        _ => done(),
    });
    let flows = [("one", flow), ("asking", asking), ("sure", sure)];
    let mut desk = TestSession::new(fields, &flows);
    route_on_start(&mut desk);
    desk
}

fn finish(desk: &mut TestSession, status: &str) {
    let interrupt = desk.workflows[0].interrupt_id.clone().expect("waited for");
    let result = Box::new(WorkflowResult {
        run_id: RunId::from("run-1"),
        status: status.to_owned(),
        output: Some(json!({"ok": 1})),
        error: None,
    });
    desk.command(SessionCommand::WorkflowFinished { interrupt, result })
        .expect("never refused");
    desk.perform_all();
}

/// §10.8, Z-191 (half: an event for a wait that is over is recorded as late)
#[test]
fn flow_waits_for_the_workflow_it_starts() {
    let run = json!({"type": "workflow.run", "workflowId": "report", "input": {"of": "May"}});
    let mut desk = desk(
        json!({"hitl": {"asyncPendingPolicy": {"ackText": "Working."}}}),
        starting(run),
    );
    desk.say("start one");
    assert_eq!(desk.paused_on(), Some("workflow"));
    assert_eq!(desk.workflows[0].workflow_id.as_str(), "report");
    assert_eq!(desk.say("ready?"), ["Working."]);
    desk.wait_seconds(3_600);
    assert_eq!(
        desk.paused_on(),
        Some("workflow"),
        "the session is not idle"
    );
    finish(&mut desk, "completed");
    let told: Value = serde_json::from_str(desk.sent.last().expect("a text")).expect("JSON");
    assert_eq!(
        told,
        json!({"runId": "run-1", "status": "completed", "output": {"ok": 1}})
    );
    finish(&mut desk, "completed");
    assert_eq!(desk.count(|e| matches!(e, Body::InterruptLate { .. })), 1);
}

/// §10.8, Z-78 (half: a workflow that is faster than the record of its start)
#[test]
fn workflow_that_ends_before_the_flow_waits_is_not_lost() {
    let run = json!({"type": "workflow.run", "workflowId": "report"});
    let mut desk = desk(json!({}), starting(run));
    desk.held.push("session.workflow");
    desk.say("start one");
    let interrupt = desk.state().flow().expect("a flow").run_id().to_string() + ":0";
    let result = Box::new(WorkflowResult {
        run_id: RunId::from("run-1"),
        status: "failed".to_owned(),
        output: None,
        error: Some(json!("x")),
    });
    let interrupt = interrupt.into();
    desk.command(SessionCommand::WorkflowFinished { interrupt, result })
        .expect("never refused");
    desk.held.clear();
    desk.perform_all();
    assert!(
        desk.sent[0].contains(r#""status":"failed""#),
        "{:?}",
        desk.sent
    );
}

/// §10.8
#[test]
fn workflow_that_takes_too_long_is_left_or_cancelled() {
    for cancel in [false, true] {
        let run = json!({"type": "workflow.run", "workflowId": "report", "timeoutSeconds": 60,
            "cancelOnTimeout": cancel});
        let mut desk = desk(json!({}), starting(run));
        desk.say("start one");
        desk.wait_seconds(61);
        assert!(
            desk.sent[0].contains(r#""status":"timed_out""#),
            "{:?}",
            desk.sent
        );
        let run_id = RunId::from("run-1");
        let expected = cancel.then_some(SessionWork::CancelWorkflow { run_id });
        assert_eq!(desk.other_work, Vec::from_iter(expected));
    }
}

/// §10.8
#[test]
fn flow_goes_on_without_waiting_and_within_the_allow_list() {
    let run = json!({"type": "workflow.run", "workflowId": "report", "wait": false});
    let mut desk = desk(json!({"workflows": ["report"]}), starting(run.clone()));
    assert_eq!(
        desk.say("start one"),
        [r#"{"runId":"run-1","status":"running"}"#]
    );
    let mut desk = self::desk(json!({"workflows": ["other"]}), starting(run));
    assert_eq!(desk.say("start one"), ["workflow_not_allowed"]);
    assert!(desk.workflows.is_empty());
}

fn parent() -> ParentNode {
    ParentNode {
        run_id: RunId::from("run-9"),
        node_id: "talk".into(),
        flow_run_id: None,
        dispatched_at: Seq(0),
    }
}

fn start(
    desk: &mut TestSession,
    flow: &str,
    on_active: OnActiveFlow,
) -> Result<SessionReply, SessionRefusal> {
    start_for(desk, parent(), flow, on_active)
}

fn start_for(
    desk: &mut TestSession,
    parent: ParentNode,
    flow: &str,
    on_active: OnActiveFlow,
) -> Result<SessionReply, SessionRefusal> {
    let reply = desk.command(SessionCommand::StartFlow {
        flow_id: flow.into(),
        input: None,
        parent,
        on_active,
    });
    desk.perform_all();
    reply
}

/// §10.8
#[test]
fn workflow_starts_a_flow_and_learns_how_it_ended() {
    let mut desk = desk(json!({}), starting(json!({"type": "end"})));
    desk.say("hi");
    start(&mut desk, "asking", OnActiveFlow::Fail).expect("free");
    assert_eq!(desk.sent.last().map(String::as_str), Some("x?"));
    let is_it = |e: &Body| {
        matches!(
            e,
            Body::TurnStarted {
                trigger: TurnTrigger::Workflow,
                ..
            }
        )
    };
    assert_eq!(desk.count(is_it), 1);
    desk.say("7");
    let report = &desk.reports[0];
    assert_eq!(report.parent, parent());
    assert_eq!(
        (report.status.as_str(), report.reason.as_deref()),
        ("completed", Some("asked"))
    );
    assert_eq!(report.result, Some(json!({"reason": "asked", "score": 3})));
    assert_eq!(report.answers["x"], "7");
}

/// §10.8
#[test]
fn active_flow_makes_a_workflow_wait_fail_or_preempt() {
    let mut desk = desk(json!({}), starting(json!({"type": "end"})));
    desk.say("start asking");
    let refused = start(&mut desk, "sure", OnActiveFlow::Fail);
    assert_eq!(refused, Err(SessionRefusal::FlowActive));
    start(&mut desk, "sure", OnActiveFlow::Wait).expect("waits");
    assert_eq!(desk.paused_on(), Some("ask"));
    desk.say("7");
    assert_eq!(
        desk.paused_on(),
        Some("confirm"),
        "the other flow has ended"
    );
    let other = ParentNode {
        node_id: "other".into(),
        ..parent()
    };
    let refused = start_for(&mut desk, other, "asking", OnActiveFlow::Preempt);
    assert_eq!(
        refused,
        Err(SessionRefusal::FlowActive),
        "an open interrupt is not ended"
    );
    desk.say("yes");
    desk.say("start asking");
    start(&mut desk, "sure", OnActiveFlow::Preempt).expect("merely asks");
    assert_eq!(desk.paused_on(), Some("confirm"));
    assert!(desk.flow_ends().contains(&Some("preempted".to_owned())));
}

/// §10.8, Z-190 (half: the start of a flow by a node): a start that is repeated starts nothing.
#[test]
fn repeated_start_of_a_node_is_accepted_once() {
    let mut desk = desk(json!({}), starting(json!({"type": "end"})));
    desk.say("start sure");
    for _ in 0..2 {
        start(&mut desk, "asking", OnActiveFlow::Wait).expect("waits");
    }
    desk.say("yes");
    assert_eq!(desk.paused_on(), Some("ask"));
    start(&mut desk, "asking", OnActiveFlow::Wait).expect("active already");
    desk.say("7");
    assert_eq!(desk.paused_on(), None, "there is no second one");
    assert_eq!(desk.reports.len(), 1);
}

/// §10.8
#[test]
fn cancelled_workflow_ends_its_flow_or_keeps_it_from_beginning() {
    let mut desk = desk(json!({}), starting(json!({"type": "end"})));
    desk.say("hi");
    start(&mut desk, "asking", OnActiveFlow::Fail).expect("free");
    desk.command(SessionCommand::CancelFlow { parent: parent() })
        .expect("never refused");
    assert_eq!(desk.flow_ends(), [Some("parent_cancelled".to_owned())]);
    desk.say("start asking");
    start(&mut desk, "sure", OnActiveFlow::Wait).expect("waits");
    desk.command(SessionCommand::CancelFlow { parent: parent() })
        .expect("never refused");
    desk.say("7");
    assert_eq!(desk.paused_on(), None);
}

/// §10.8, Z-15 (half: end of the session is told to a workflow that waits)
#[test]
fn end_of_the_session_is_told_to_a_workflow_that_waits() {
    let mut desk = desk(json!({}), starting(json!({"type": "end"})));
    desk.say("start asking");
    start(&mut desk, "sure", OnActiveFlow::Wait).expect("waits");
    desk.act("ana", AdminRequest::EndSession).expect("open");
    let report = &desk.reports[0];
    assert_eq!(
        (report.status.as_str(), report.flow_run_id.as_ref()),
        ("cancelled", None)
    );
}
