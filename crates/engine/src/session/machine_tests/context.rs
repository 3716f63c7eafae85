//! What code sees of a session, and the texts and states that follow from it.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, failed, text_of, value};
use crate::session::Resume;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use tandem_record::conversation::{
    AdminActor, AdminRequest, ChatAnswer, CodeCall, FlowRecord, ProfileChange, SessionCommand,
};

fn session_with(flow: Code) -> TestSession {
    let config = json!({
        "tools": [{"name": "book", "kind": "record"}],
        "beforeLLM": {"$fn": true},
    });
    let mut desk = TestSession::new(config, &[("flow", flow)]);
    route_on_start(&mut desk);
    desk
}

fn asking() -> Code {
    code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "date", "text": "When?"})),
        1 => effect(json!({"type": "ask", "key": "room", "text": "Where?"})),
        _ => done(),
    })
}

#[test]
fn hook_sees_the_message_it_is_called_for() {
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[]);
    let calls: Rc<RefCell<Vec<Value>>> = Rc::default();
    let seen = Rc::clone(&calls);
    let hook = move |call: &CodeCall| {
        seen.borrow_mut().push(call.args[0].clone());
        value(Value::Null)
    };
    desk.functions
        .insert("beforeLLM".to_owned(), Box::new(hook));
    desk.say("hi");
    assert_eq!(
        calls.borrow()[0]["inbound"],
        json!({
            "messageId": "m-1", "from": "u1", "body": "hi", "type": "text",
            "source": "transport", "receivedAt": desk.now.rfc3339(),
        })
    );
}

#[test]
fn flow_begins_with_user_session_and_message() {
    let mut desk = session_with(asking());
    desk.say("start flow");
    let started = desk.journal.iter().find_map(|(_, record)| match record {
        FlowRecord::Started(start) => Some(start.context.clone()),
        _ => None,
    });
    let context = started.expect("a flow run started");
    assert_eq!(context["user"]["displayName"], "Ada");
    assert_eq!(context["session"]["id"], "s-1");
    assert_eq!(context["replyTarget"], "u1");
    assert_eq!(context["inbound"]["body"], "start flow");
    assert!(context.contains_key("turnId") && context.contains_key("requestId"));
}

#[test]
fn answers_and_keys_of_a_flow_are_those_given_so_far() {
    let mut desk = session_with(asking());
    desk.say("start flow");
    assert!(desk.state().flow().expect("a flow").answers().is_empty());
    desk.say("Monday");
    let answers = desk.state().flow().expect("a flow").answers();
    assert_eq!(json!(answers), json!({"date": "Monday"}));
    let keys = desk.state().all_keys();
    assert_eq!(keys["__zupa.flow.activeFlowId"], "flow");
}

#[test]
fn only_a_wait_for_a_confirmation_is_pending_confirm() {
    let waiting = |wait_for: &'static str| {
        let flow = code(move |step, _, _| match step {
            0 => {
                effect(json!({"type": "interrupt.wait", "waitFor": wait_for, "timeoutSeconds": 60}))
            }
            _ => done(),
        });
        let mut desk = session_with(flow);
        desk.say("start flow");
        assert!(desk.state().flow().is_some_and(|flow| flow.is_paused()));
        desk.state().hitl_mode()
    };
    assert_eq!(waiting("confirm_response"), Some("pending_confirm"));
    assert_eq!(waiting("timeout"), None);
}

#[test]
fn failed_tool_is_thrown_with_its_name_or_returned() {
    for (mode, expected) in [("throw", "book"), ("return", "full")] {
        let flow = code(move |step, with, _| match (step, with) {
            (0, _) => effect(json!({
                "type": "tool", "name": "book", "args": {}, "onError": mode,
            })),
            (1, Resume::Throw(error)) => {
                let shown = json!(error);
                effect(json!({"type": "say", "text": shown["tool"]}))
            }
            (1, Resume::Value(Some(result))) => {
                effect(json!({"type": "say", "text": result["code"]}))
            }
            (1, _) => effect(json!({"type": "say", "text": text_of(with)})),
            _ => done(),
        });
        let mut desk = session_with(flow);
        let tool = |_: &CodeCall| failed("full", "no rooms");
        desk.functions
            .insert("tools.book".to_owned(), Box::new(tool));
        assert_eq!(desk.say("start flow"), [expected]);
    }
}

#[test]
fn new_user_is_greeted_once() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.welcome = Some("Welcome!".to_owned());
    assert_eq!(desk.say("hi"), ["Welcome!", "model speaks"]);
    assert_eq!(desk.say("again"), ["model speaks"]);
}

#[test]
fn flow_aborted_while_a_hook_runs_does_not_go_on() {
    let flow = code(|step, _, _| match step {
        0 => effect(json!({"type": "say", "text": "one"})),
        1 => effect(json!({"type": "say", "text": "two"})),
        _ => done(),
    });
    let config = json!({
        "beforeResponse": {"$fn": true},
        "flowRouter": {"mode": "detector", "prompt": "Which?"},
    });
    let mut desk = TestSession::new(config, &[("flow", flow)]);
    desk.answers.push_back(Ok(ChatAnswer {
        structured: Some(json!({"flow": "flow", "confidence": 1})),
        ..ChatAnswer::default()
    }));
    desk.held = vec!["session.code"];
    assert_eq!(desk.say("start"), [""; 0], "the hook looks at the text");
    let actor = AdminActor {
        id: "admin".to_owned(),
        role: None,
        channel: "ui_api".to_owned(),
        metadata: None,
    };
    let request = AdminRequest::AbortFlow;
    desk.command(SessionCommand::Act { actor, request })
        .expect("a flow is active");
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.sent, [""; 0], "its text was not queued yet");
    assert_eq!(
        desk.model_calls.len(),
        1,
        "only the router's: the turn is over"
    );
}

/// Z-248 (half: a profile that was changed from outside reaches the flow that runs)
#[test]
fn changed_profile_reaches_the_running_flow() {
    let asking = code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        _ => effect(json!({"type": "ask", "key": "y", "text": "y?"})),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("asking", asking)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    let change = ProfileChange {
        display_name: Some("Augusta".to_owned()),
        name_is_chosen: true,
        ..ProfileChange::default()
    };
    let command = SessionCommand::ChangeProfile(Box::new(change));
    desk.command(command.clone()).expect("it is active");
    desk.say("7");
    assert_eq!(desk.last_context()["user"]["displayName"], "Augusta");
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(
        desk.command(command),
        Err(crate::session::SessionRefusal::Ended)
    );
}

/// Z-207: what changes while a turn waits for work is not seen before a turn records it.
#[test]
fn code_sees_of_the_session_only_what_its_journal_has() {
    let flow = code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "date", "text": "When?"})),
        1 => effect(json!({"type": "tool", "name": "book", "args": {}})),
        _ => done(),
    });
    let mut desk = session_with(flow);
    desk.say("start flow");
    desk.held = vec!["session.tool"];
    desk.say("Monday");
    desk.now = desk.now.plus_ms(500);
    desk.receive("hello?");
    desk.held.clear();
    desk.perform_all();
    let mut segments = desk
        .journal
        .iter()
        .rev()
        .filter_map(|(_, record)| match record {
            FlowRecord::Segment { context, .. } => Some(json!(context)),
            _ => None,
        });
    let recorded = segments.next().expect("a turn went on with the run");
    let handed = desk.last_context();
    let handed = handed.as_object().expect("the code was resumed");
    for (name, value) in handed {
        assert_eq!(recorded[name], *value, "{name}");
    }
}
