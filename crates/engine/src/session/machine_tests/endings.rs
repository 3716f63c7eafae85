//! How sessions end, from wherever.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, value};
use crate::session::SessionRefusal;
use serde_json::json;
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, CodeOutcome, SessionCommand, SessionEnd, SessionEventBody as Body,
    SideMessage, TurnOutcome,
};

fn asking() -> Code {
    code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        _ => done(),
    })
}

/// Z-15 (half: end by the api cuts off the turn under way and drops those that wait)
#[test]
fn end_by_the_api_cuts_off_the_turn_under_way_and_drops_those_that_wait() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.held.push("session.model");
    desk.say("one");
    desk.receive("two");
    desk.receive("three");
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(desk.dropped.len(), 1, "its model call");
    let canceled = |e: &Body| matches!(e, Body::TurnEnded(TurnOutcome::Canceled { .. }));
    assert_eq!(desk.count(canceled), 1);
    assert_eq!(desk.count(|e| matches!(e, Body::TurnDropped { .. })), 2);
    for number in 1..=3 {
        assert!(desk.state().is_turn_over(number));
    }
    desk.held.clear();
    desk.perform_all();
    assert!(desk.sent.is_empty());
    desk.act("ana", AdminRequest::EndSession)
        .expect("once is enough");
    let message = Box::new(desk.message("u1", "four"));
    let refused = desk.command(SessionCommand::Receive { message });
    assert_eq!(refused, Err(SessionRefusal::Ended));
}

/// Z-15 (half: the outcome of work that was under way changes nothing)
#[test]
fn late_outcome_of_a_cut_off_turn_is_ignored() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.held.push("session.model");
    desk.say("one");
    let effect = format!("{}", desk.held_effect());
    desk.act("ana", AdminRequest::EndSession).expect("open");
    let events = desk.events.len();
    let outcome = tandem_record::conversation::WorkOutcome::Model(Ok(ChatAnswer::default()));
    desk.command(SessionCommand::FinishWork {
        effect: effect.into(),
        outcome: Box::new(outcome),
    })
    .expect("never refused");
    assert_eq!(desk.events.len(), events);
}

/// Z-15 (half: the flow and its timers), Z-251 (half: ended by the API)
#[test]
fn flow_escalation_and_queue_end_with_the_session() {
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("asking", asking())]);
    route_on_start(&mut desk);
    desk.say("start asking");
    desk.act("ana", AdminRequest::EndSession).expect("open");
    assert_eq!(desk.flow_ends(), [Some("session_ended".to_owned())]);
    assert_eq!(
        desk.state().ended().map(|(_, why)| why),
        Some(SessionEnd::Api)
    );
    assert!(desk.state().required_timers().is_empty());
}

/// Z-15 (half: sessionEnded), Z-135 (half: sessionEnded)
#[test]
fn structured_answer_ends_the_session_after_its_turn() {
    let config = json!({"outputSchema": {"type": "object", "required": ["reply"]}});
    let mut desk = TestSession::new(config, &[]);
    desk.answers.push_back(Ok(ChatAnswer {
        structured: Some(json!({"reply": "Bye.", "sessionEnded": true})),
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("bye"), ["Bye."]);
    assert_eq!(
        desk.state().ended().map(|(_, why)| why),
        Some(SessionEnd::Agent)
    );
}

/// Z-15 (half: `ctx.endSession` of a command, a flow and of `onResponse`)
#[test]
fn code_ends_the_session() {
    let ends = CodeOutcome {
        end_session: true,
        ..value(json!(null))
    };
    let config = json!({"commands": {"bye": {"description": "", "handler": {"$fn": true}}},
        "outputSchema": {"type": "object"}, "onResponse": {"$fn": true}});
    for path in ["commands.bye.handler", "onResponse"] {
        let mut desk = TestSession::new(config.clone(), &[]);
        desk.answers.push_back(Ok(ChatAnswer {
            structured: Some(json!({"reply": "hello"})),
            ..ChatAnswer::default()
        }));
        let outcome = ends.clone();
        desk.functions
            .insert(path.to_owned(), Box::new(move |_| outcome.clone()));
        desk.say(if path == "onResponse" { "hi" } else { "/bye" });
        assert!(desk.state().ended().is_some(), "{path}");
    }
    let ending = code(|step, _, _| match step {
        0 => crate::session::ProgramStep::HostCall {
            name: "endSession".to_owned(),
            args: Vec::new(),
        },
        1 => effect(json!({"type": "say", "text": "Bye."})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("ending", ending)]);
    route_on_start(&mut desk);
    assert_eq!(desk.say("start ending"), ["Bye."]);
    assert!(desk.state().ended().is_some());
}

/// Z-134 (half: what `onResponse` does after the end of the session is done, and nothing breaks)
#[test]
fn report_after_the_end_may_still_write_and_send() {
    let config = json!({"onResponse": {"$fn": true}, "outputSchema": {"type": "object"}});
    let mut desk = TestSession::new(config, &[]);
    desk.answers.push_back(Ok(ChatAnswer {
        structured: Some(json!({"reply": "Bye.", "sessionEnded": true})),
        ..ChatAnswer::default()
    }));
    desk.functions.insert(
        "onResponse".to_owned(),
        Box::new(|_| CodeOutcome {
            kv: vec![("last".to_owned(), Some(json!(1)))],
            side_messages: vec![SideMessage {
                to: "boss".to_owned(),
                text: "gone".to_owned(),
            }],
            end_session: true,
            ..CodeOutcome::default()
        }),
    );
    assert_eq!(desk.say("bye"), ["Bye.", "gone"]);
    assert_eq!(desk.state().key("last"), Some(json!(1)));
}

/// Z-194 (half: code cannot write the host's keys)
#[test]
fn reserved_keys_are_not_written_by_code() {
    let config = json!({"commands": {"bad": {"description": "", "handler": {"$fn": true}}}});
    let mut desk = TestSession::new(config, &[]);
    desk.functions.insert(
        "commands.bad.handler".to_owned(),
        Box::new(|_| CodeOutcome {
            kv: vec![("__zupa.hitl.mode".to_owned(), Some(json!("live_takeover")))],
            ..CodeOutcome::default()
        }),
    );
    desk.say("/bad");
    assert_eq!(desk.state().key("__zupa.hitl.mode"), None);
    assert_eq!(desk.failures("kv").len(), 1);
}

/// Z-64 (half: an admin aborts a flow in the middle of a turn)
#[test]
fn aborted_flow_ends_the_turn_that_drives_it() {
    let calling = code(|step, _, _| match step {
        0 => effect(json!({"type": "tool", "name": "note", "args": {}})),
        _ => effect(json!({"type": "say", "text": "never"})),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "tools": [{"name": "note", "kind": "record"}]});
    let mut desk = TestSession::new(config, &[("calling", calling)]);
    route_on_start(&mut desk);
    desk.held.push("session.tool");
    desk.say("start calling");
    desk.act("ana", AdminRequest::AbortFlow).expect("active");
    assert_eq!(desk.flow_ends(), [Some("aborted".to_owned())]);
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.say("hi"), ["model speaks"]);
    assert_eq!(
        desk.act("ana", AdminRequest::AbortFlow),
        Err(SessionRefusal::NoFlow)
    );
}
