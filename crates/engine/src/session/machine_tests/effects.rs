//! Effects of flows one by one: results, errors, what the model remembers.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, failed, text_of};
use crate::session::{ProgramStep, Resume};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, FlowRecord, SessionEventBody as Body, SessionWork,
};

fn desk(config: Value, flows: &[(&str, Code)]) -> TestSession {
    let mut fields = json!({"beforeLLM": {"$fn": true}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let mut desk = TestSession::new(fields, flows);
    route_on_start(&mut desk);
    desk
}

/// Says what the effect before gave.
fn then_say(first: Value) -> Code {
    code(move |step, with, _| match step {
        0 => effect(first.clone()),
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    })
}

/// Z-46 (half: a say gives nothing), Z-51 (half: one candidate), Z-53 (half: no candidate)
#[test]
fn say_gives_nothing_and_blank_text_is_not_sent() {
    let flow = code(|step, with, _| {
        assert_eq!(*with, Resume::Value(None));
        match step {
            0 => effect(json!({"type": "say", "text": "  "})),
            1 => effect(json!({"type": "say", "text": "b"})),
            _ => done(),
        }
    });
    let mut desk = desk(json!({}), &[("a", flow)]);
    assert_eq!(desk.say("start a"), ["b"]);
    assert_eq!(
        desk.count(|e| matches!(e, Body::ResponsePrepared { .. })),
        1
    );
}

/// Z-45 (half: the message that started the flow is no answer)
#[test]
fn first_question_is_not_answered_by_the_message_that_started_the_flow() {
    let ask = then_say(json!({"type": "ask", "key": "x", "text": "x?"}));
    let mut desk = desk(json!({}), &[("a", ask)]);
    assert_eq!(desk.say("start a"), ["x?"]);
    let started = desk.journal.iter().find_map(|(_, record)| match record {
        FlowRecord::Started(start) => Some(start.context["inbound"]["body"].clone()),
        _ => None,
    });
    assert_eq!(started, Some(json!("start a")));
}

/// Z-52 (half: model remembers what the flow said)
#[test]
fn model_remembers_what_the_flow_said() {
    let ask = then_say(json!({"type": "ask", "key": "x", "text": "x?"}));
    let mut desk = desk(json!({}), &[("a", ask)]);
    desk.say("start a");
    desk.say("7");
    desk.say("hi");
    let Some(SessionWork::Model { messages, .. }) = desk.model_calls.last() else {
        panic!("the model was called");
    };
    let texts: Vec<&str> = messages.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(texts, ["start a", "x?", "7", "7", "hi"]);
}

/// Z-57 (half: arguments are checked), Z-58 (half: codes, thrown and returned)
#[test]
fn tool_problems_are_thrown_or_returned() {
    let tools = json!({"tools": [{"name": "note", "kind": "record", "parameters": {
        "type": "object", "required": ["t"]}}]});
    let cases = [
        (
            json!({"type": "tool", "name": "nope", "args": {}}),
            "not_found",
        ),
        (
            json!({"type": "tool", "name": "note", "args": {}}),
            "invalid_args",
        ),
        (
            json!({"type": "tool", "name": "note", "args": {"t": 1}}),
            "timeout",
        ),
    ];
    for (tool, code) in cases {
        let mut thrown = desk(tools.clone(), &[("a", then_say(tool.clone()))]);
        let slow = |_: &_| failed("timeout", "slow");
        thrown
            .functions
            .insert("tools.note".to_owned(), Box::new(slow));
        assert_eq!(thrown.say("start a"), [code]);
        let mut soft = tool;
        soft["onError"] = json!("return");
        let mut returned = desk(tools.clone(), &[("a", then_say(soft))]);
        returned
            .functions
            .insert("tools.note".to_owned(), Box::new(slow));
        let answer: Value = serde_json::from_str(&returned.say("start a")[0]).expect("JSON");
        assert_eq!(
            (&answer["ok"], &answer["code"]),
            (&json!(false), &json!(code))
        );
    }
}

/// Z-60 (half: an unknown target), Z-61 (half: a fresh run)
#[test]
fn handoff_to_itself_is_a_fresh_run_and_to_nobody_the_classic_path() {
    let again = code(|_, _, input| match input["n"].as_u64() {
        None => effect(json!({"type": "handoff", "to": "again", "input": {"n": 1}})),
        Some(_) => done(),
    });
    let lost = code(|_, _, _| effect(json!({"type": "handoff", "to": "nowhere"})));
    let mut desk = desk(json!({}), &[("again", again), ("lost", lost)]);
    assert!(desk.say("start again").is_empty());
    assert_eq!(desk.flow_ends(), [Some("handoff".to_owned()), None]);
    assert_eq!(desk.say("start lost"), ["model speaks"]);
    let last = desk.flow_ends().pop().expect("ended");
    assert_eq!(last.as_deref(), Some("handoff_unknown_target"));
}

/// Z-50 (half: handoffs in one turn are bounded)
#[test]
fn handoffs_in_one_turn_are_bounded() {
    let endless = code(|_, _, _| effect(json!({"type": "handoff", "to": "endless"})));
    let mut desk = desk(json!({}), &[("endless", endless)]);
    desk.say("start endless");
    let is_limit = |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "flow_limit");
    assert_eq!(desk.count(is_limit), 1);
    assert_eq!(desk.count(|e| matches!(e, Body::FlowHandoff { .. })), 8);
}

/// Z-65 (half: the reply is the flow's)
#[test]
fn failed_flow_sends_the_fallback_reply_as_its_own() {
    let boom = code(|_, _, _| {
        ProgramStep::Failed(tandem_record::conversation::FlowFailure {
            code: "exception".to_owned(),
            message: "boom".to_owned(),
            details: None,
        })
    });
    let mut desk = desk(json!({"fallbackReply": "Oops."}), &[("boom", boom)]);
    assert_eq!(desk.say("start boom"), ["Oops."]);
    let source = desk.events.iter().find_map(|event| match event {
        Body::ResponsePrepared { source, .. } => Some(*source),
        _ => None,
    });
    assert_eq!(
        source,
        Some(tandem_record::conversation::ResponseSource::Flow)
    );
    assert!(desk.state().reserved_keys().is_empty());
}

/// Z-112 (half: its name), Z-113 (half: it owns the turn)
#[test]
fn flow_as_a_tool_owns_the_rest_of_the_turn() {
    let quote = code(|step, _, input| match step {
        0 => effect(json!({"type": "say", "text": format!("Quote for {}", input["item"])})),
        _ => done(),
    });
    let mut desk = TestSession::with_tool_flow("quote", quote);
    let call = |id: &str, name: &str| ChatToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        args: json!({"item": id}),
    };
    desk.answers.push_back(Ok(ChatAnswer {
        text: Some("ignored".to_owned()),
        tool_calls: vec![
            call("a", "nope"),
            call("b", "quote"),
            call("c", "quote"),
            call("d", "nope"),
        ],
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("go"), ["Quote for \"b\""]);
    assert_eq!(desk.model_calls.len(), 1, "no second call");
    let answered = |e: &Body| matches!(e, Body::ToolAnswered { .. });
    assert_eq!(
        desk.count(answered),
        1,
        "the call before it, not those after"
    );
    let refused = |e: &Body| matches!(e, Body::FlowStartRefused { .. });
    assert_eq!(desk.count(refused), 1);
}

/// Z-44 (half: input that does not fit leaves the turn as if no flow had been chosen)
#[test]
fn flow_with_invalid_input_is_not_started() {
    let flow = json!({"quote": {"run": {"$fn": true},
        "inputSchema": {"type": "object", "required": ["item"]}}});
    let config = json!({"flows": flow, "beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(config, &[]);
    route_on_start(&mut desk);
    assert_eq!(desk.say("start quote"), ["model speaks"]);
    let failed =
        |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "invalid_input");
    assert_eq!(desk.count(failed), 1);
}

/// Z-44 (half: a command that declares a flow, and `/flow` where it is enabled)
#[test]
fn commands_start_flows() {
    let hello = || {
        code(|step, _, _| match step {
            0 => effect(json!({"type": "ask", "key": "x", "text": "hello?"})),
            _ => done(),
        })
    };
    let config = json!({"flowCommand": true,
        "commands": {"greet": {"description": "Greets", "flow": "hello"}}});
    let mut desk = TestSession::new(config, &[("hello", hello())]);
    assert_eq!(desk.say("/greet"), ["hello?"]);
    assert!(desk.say("/flow hello")[0].contains("Another flow"));
    desk.say("7");
    assert_eq!(desk.say("/flow hello"), ["hello?"]);
    let mut desk = TestSession::new(json!({}), &[("hello", hello())]);
    assert_eq!(desk.say("/flow hello"), ["Unknown command. Try /help"]);
}

/// What code reads and writes of the session.
/// Z-7 (half: a flow sends beside the conversation), Z-193 (half: a flow reads them),
/// Z-195 (half: a flow writes its own)
#[test]
fn flow_reads_reserved_keys_and_writes_its_own() {
    let call = |name: &str, args: Vec<Value>| ProgramStep::HostCall {
        name: name.to_owned(),
        args,
    };
    let flow = code(move |step, with, _| match step {
        0 => call("session.kv.set", vec![json!("a"), json!(1)]),
        1 => call("session.kv.get", vec![json!("__zupa.flow.activeFlowId")]),
        2 => {
            assert_eq!(*with, Resume::Host(Ok(Some(json!("a")))));
            call("session.kv.set", vec![json!("__zupa.x"), json!(1)])
        }
        3 => {
            let Resume::Host(Err(error)) = with else {
                panic!("a reserved key: {with:?}");
            };
            assert_eq!(error.code, "reserved_key");
            call(
                "resources.transport.sendMessage",
                vec![json!({"to": "boss", "text": "look"})],
            )
        }
        4 => call(
            "resources.domainStore.updateUser",
            vec![json!({"displayName": "Bo"})],
        ),
        _ => done(),
    });
    let mut desk = desk(json!({}), &[("a", flow)]);
    assert_eq!(desk.say("start a"), ["look"]);
    assert_eq!(desk.state().key("a"), Some(json!(1)));
    assert_eq!(desk.state().start().user.display_name, "Bo");
    assert_eq!(
        desk.state().memory().count(),
        1,
        "a side message is not remembered"
    );
}
