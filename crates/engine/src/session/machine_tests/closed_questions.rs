//! Questions that are open when their flow or their session ends are closed, and say so.

use super::escalations::waiting_desk_with;
use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect};
use crate::session::SessionRefusal;
use serde_json::json;
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, ChatToolCall, ResumedBy, SessionEventBody as Body,
};

/// The questions that ended without an answer: their kinds.
fn canceled(desk: &TestSession) -> Vec<String> {
    let resumed = desk.events.iter().filter_map(|event| match event {
        Body::InterruptResumed {
            kind,
            by: ResumedBy::Canceled,
            ..
        } => Some(kind.clone()),
        _ => None,
    });
    resumed.collect()
}

fn confirming_desk() -> TestSession {
    let confirming = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(config, &[("confirming", confirming)]);
    route_on_start(&mut desk);
    desk.say("start confirming");
    desk
}

/// Z-15 (half: end of a session closes an open confirmation)
#[test]
fn end_of_a_session_closes_an_open_confirmation() {
    let mut desk = confirming_desk();
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(canceled(&desk), ["confirm"]);
    let position = |is_it: fn(&Body) -> bool| desk.events.iter().position(is_it);
    let closed = position(|e| matches!(e, Body::InterruptResumed { .. }));
    let ended = position(|e| matches!(e, Body::FlowEnded { .. }));
    assert!(closed < ended, "the question is closed by its flow");
}

/// Z-15 (half: end of a session closes an open wait and its escalation)
#[test]
fn end_of_a_session_closes_an_open_wait_and_its_escalation() {
    let mut desk = waiting_desk_with(json!({}));
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(canceled(&desk), ["wait"]);
    let is_canceled = |e: &Body| matches!(e, Body::EscalationCanceled { .. });
    assert_eq!(desk.count(is_canceled), 1);
}

/// A decision that names only the session is told that it has ended, as one that names the escalation.
#[test]
fn decision_after_session_end_gets_interrupt_gone() {
    let mut desk = waiting_desk_with(json!({}));
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(desk.resolve(true, "ana"), Err(SessionRefusal::Ended));
}

/// Z-15 (half: end of a session closes the approval of a call)
#[test]
fn end_of_a_session_closes_the_approval_of_a_call() {
    let config = json!({"tools": [{"name": "pay", "kind": "record", "approval": "user"}]});
    let mut desk = TestSession::new(config, &[]);
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "pay".to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    }));
    desk.say("pay");
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(canceled(&desk), ["confirm"]);
}

/// Z-64 (half: a flow that is aborted at a question closes it)
#[test]
fn aborted_flow_closes_its_question() {
    let mut desk = confirming_desk();
    desk.act("ana", AdminRequest::AbortFlow).expect("active");
    assert_eq!(canceled(&desk), ["confirm"]);
    assert_eq!(desk.state().hitl_mode(), None);
}
