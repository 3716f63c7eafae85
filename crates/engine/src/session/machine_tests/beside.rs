//! Turns that take place while another one waits for its work.

use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect};
use super::takeover::desk;
use serde_json::{Value, json};
use tandem_record::conversation::{AdminRequest, TakeoverDirection};

const MODEL: &str = "session.model";

fn with_admin(more: Value) -> Value {
    let mut config = json!({"adminAuth": {
        "tokens": [],
        "chat": [{"transport": "desk", "address": "ana", "actorId": "ana", "role": "boss"}],
        "roles": {"boss": ["hitl.takeover.start", "hitl.takeover.end"]},
    }});
    let fields = config.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    config
}

impl TestSession {
    /// Performs everything but calls of the model.
    fn perform_beside_the_model(&mut self) {
        self.held = vec![MODEL];
        self.perform_all();
    }

    fn let_the_model_answer(&mut self) {
        self.held.clear();
        self.perform_all();
    }
}

/// Z-90 (half: a takeover by a command), Z-91 (half: what the turn under way would have sent)
#[test]
fn command_takes_over_during_a_call_of_the_model() {
    let mut desk = desk(with_admin(json!({})));
    desk.say("hi");
    desk.receive("slow");
    desk.perform_beside_the_model();
    desk.receive("and another");
    let before = desk.sent.len();
    desk.run_command("ana", "/takeover u1", "u1");
    assert_eq!(
        desk.sent[before..],
        ["You have the conversation with u1; the agent is silent."]
    );
    assert!(desk.state().is_taken_over());
    desk.let_the_model_answer();
    assert_eq!(desk.suppressed(), ["live_takeover"]);
    assert_eq!(desk.sent.len(), before + 1, "{:?}", desk.sent);
    assert_eq!(
        desk.takeover_messages(),
        [TakeoverDirection::UserToHuman],
        "what waited goes to the person"
    );
    let number = desk.state().last_turn;
    assert!((1..=number).all(|turn| desk.state().is_turn_over(turn)));
    assert_eq!(desk.model_calls.len(), 2);
}

/// Z-87 (half: during a call of the model), Z-29 (half: at once)
#[test]
fn user_reaches_the_person_during_a_call_of_the_model() {
    let mut desk = desk(
        json!({"hitl": {"targets": {"front": {"transport": "desk", "address": "fin"}},
        "takeover": {"adapter": "front"}}}),
    );
    desk.say("hi");
    desk.receive("slow");
    desk.perform_beside_the_model();
    desk.take_over("ana").expect("free");
    for text in ["urgent!", "please"] {
        desk.receive(text);
        desk.perform_beside_the_model();
        assert!(desk.sent.last().expect("sent").ends_with(text));
    }
    desk.hand_back("ana", None).expect("hers");
    desk.perform_beside_the_model();
    assert!(desk.state().is_taken_over(), "a handback has its place");
    desk.receive("for the agent");
    desk.perform_beside_the_model();
    assert_eq!(desk.takeover_messages().len(), 2);
    desk.let_the_model_answer();
    assert!(!desk.state().is_taken_over());
    assert_eq!(desk.suppressed(), ["live_takeover"]);
    assert_eq!(desk.sent.last().map(String::as_str), Some("model speaks"));
    assert_eq!(desk.takeover_messages().len(), 2);
}

/// Rules in code are asked beside the call of the model, whichever of both is done first.
#[test]
fn turns_beside_each_other_each_get_their_own_work() {
    for model_is_first in [false, true] {
        let rules = json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}});
        let mut desk = desk(json!({ "adminAuth": rules }));
        desk.functions.insert(
            "adminAuth.resolveActor".to_owned(),
            Box::new(|_| super::harness::value(json!({"id": "ana"}))),
        );
        desk.functions.insert(
            "adminAuth.can".to_owned(),
            Box::new(|_| super::harness::value(json!(true))),
        );
        desk.say("hi");
        desk.receive("slow");
        desk.perform_beside_the_model();
        desk.held = vec![MODEL, "session.code"];
        desk.run_command("ana", "/takeover u1", "u1");
        assert!(!desk.state().is_taken_over(), "the rules are asked first");
        desk.held = vec![if model_is_first {
            "session.code"
        } else {
            MODEL
        }];
        desk.perform_all();
        assert_eq!(desk.state().is_taken_over(), !model_is_first);
        desk.held.clear();
        desk.perform_all();
        assert!(desk.state().is_taken_over());
        let answers = desk.sent.iter().filter(|text| *text == "model speaks");
        assert_eq!(answers.count(), 1 + usize::from(model_is_first));
        assert!(desk.state().turn().is_none());
    }
}

/// Z-15 (half: turns beside each other)
#[test]
fn end_of_the_session_ends_both_turns() {
    let rules = json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}});
    let mut desk = desk(json!({ "adminAuth": rules }));
    desk.receive("slow");
    desk.perform_beside_the_model();
    desk.held = vec![MODEL, "session.code"];
    desk.run_command("ana", "/takeover u1", "u1");
    desk.act("ana", AdminRequest::EndSession).expect("allowed");
    assert!(desk.state().turn().is_none());
    assert_eq!(desk.dropped.len(), 2);
    desk.held.clear();
    desk.perform_all();
}

/// A flow that an admin aborts takes its own turn with it, not the one beside.
#[test]
fn aborted_flow_leaves_the_turn_beside_it() {
    let flow = code(|step, _, _| match step {
        0 => effect(json!({"type": "tool", "name": "note", "args": {}})),
        _ => done(),
    });
    let rules = json!({"resolveActor": {"$fn": true}, "can": {"$fn": true}});
    let config = json!({"beforeLLM": {"$fn": true}, "adminAuth": rules,
        "tools": [{"name": "note", "kind": "record"}]});
    let mut desk = TestSession::new(config, &[("slow", flow)]);
    route_on_start(&mut desk);
    desk.held = vec!["session.tool"];
    desk.say("start slow");
    desk.held.push("session.code");
    desk.run_command("ana", "/takeover u1", "u1");
    desk.act("ana", AdminRequest::AbortFlow).expect("active");
    assert_eq!(desk.flow_ends(), [Some("aborted".to_owned())]);
    let left = desk.state().turn().expect("the command").number();
    assert_eq!(left, 2);
    desk.held.clear();
    desk.perform_all();
    assert!(desk.state().turn().is_none());
    let answered = desk.sent.iter().filter(|text| text.starts_with("You have"));
    assert_eq!(answered.count(), 0, "nobody has nowhere to take it to");
}
