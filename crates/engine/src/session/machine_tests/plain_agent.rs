//! Agents without flows: model, tools, commands, router.

use super::harness::{TestSession, code, done, effect, value};
use serde_json::json;
use tandem_record::Timestamp;
use tandem_record::conversation::{
    ChatAnswer, ChatRole, ChatToolCall, InboundMessage, RouterReason, SessionEventBody as Body,
    SessionWork,
};

fn says(text: &str) -> ChatAnswer {
    ChatAnswer {
        text: Some(text.to_owned()),
        ..ChatAnswer::default()
    }
}

fn calls(name: &str, args: serde_json::Value) -> ChatAnswer {
    ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            args,
        }],
        ..ChatAnswer::default()
    }
}

fn structured(value: serde_json::Value) -> ChatAnswer {
    ChatAnswer {
        structured: Some(value),
        ..ChatAnswer::default()
    }
}

/// The messages and tools of a model call.
fn shown(work: &SessionWork) -> (Vec<(ChatRole, &str)>, &[String]) {
    match work {
        SessionWork::Model {
            messages, tools, ..
        } => {
            let messages = messages.iter().map(|m| (m.role, m.content.as_str()));
            (messages.collect(), tools)
        }
        other => panic!("{other:?} is no model call"),
    }
}

/// Z-3 (half: plain agent makes one model call and writes no reserved key)
#[test]
fn plain_agent_makes_one_model_call_and_writes_no_reserved_key() {
    let mut desk = TestSession::new(json!({}), &[]);
    assert_eq!(desk.say("hi"), ["model speaks"]);
    assert_eq!(desk.model_calls.len(), 1);
    assert!(desk.state().reserved_keys().is_empty());
}

/// Z-36 (half: the history), Z-186 (half: the history)
#[test]
fn model_call_includes_earlier_messages() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("one");
    desk.say("two");
    let (messages, _) = shown(&desk.model_calls[1]);
    let expected = [
        (ChatRole::User, "one"),
        (ChatRole::Assistant, "model speaks"),
        (ChatRole::User, "two"),
    ];
    assert_eq!(messages, expected);
}

/// Z-37 (half: results and the last call), Z-38 (half: invalid arguments)
#[test]
fn tool_results_reach_the_model_and_the_last_call_offers_no_tools() {
    let price = json!({"name": "price", "kind": "record", "parameters": {
        "type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}});
    let mut desk = TestSession::new(json!({"tools": [price], "maxToolIterations": 2}), &[]);
    desk.functions.insert(
        "tools.price".to_owned(),
        Box::new(|_| value(json!({"eur": 5}))),
    );
    desk.answers.extend([
        Ok(calls("price", json!({"item": "chair"}))),
        Ok(calls("price", json!({}))),
        Ok(says("done")),
    ]);
    assert_eq!(desk.say("a chair?"), ["done"]);
    let offered: Vec<usize> = desk.model_calls.iter().map(|c| shown(c).1.len()).collect();
    assert_eq!(offered, [1, 1, 0]);
    let (messages, _) = shown(&desk.model_calls[1]);
    assert_eq!(messages.last(), Some(&(ChatRole::Tool, r#"{"eur":5}"#)));
    let (messages, _) = shown(&desk.model_calls[2]);
    let last = messages.last().expect("a message").1;
    assert!(last.starts_with("Invalid tool params for price"), "{last}");
}

/// Z-39 (half: a model that never stops asking for tools)
#[test]
fn model_that_asks_for_tools_in_its_last_call_gives_no_answer() {
    let note = json!({"name": "note", "kind": "record"});
    let agent = json!({"tools": [note], "maxToolIterations": 1, "fallbackReply": "Oops."});
    let mut desk = TestSession::new(agent, &[]);
    desk.answers
        .extend([Ok(calls("note", json!({}))), Ok(calls("note", json!({})))]);
    assert_eq!(desk.say("note it"), ["Oops."]);
    assert_eq!(desk.failures("model").len(), 1);
}

/// Z-38 (half: arguments that are no object, also of a tool without a schema)
#[test]
fn arguments_that_are_no_object_go_back_to_the_model() {
    let note = json!({"name": "note", "kind": "record"});
    let mut desk = TestSession::new(json!({"tools": [note]}), &[]);
    desk.answers
        .extend([Ok(calls("note", json!("{\"a\":"))), Ok(says("done"))]);
    assert_eq!(desk.say("note it"), ["done"]);
    let (messages, _) = shown(&desk.model_calls[1]);
    assert_eq!(
        messages.last(),
        Some(&(
            ChatRole::Tool,
            "Invalid tool params for note: they are not a JSON object"
        ))
    );
}

/// Z-39 (half: failed model call sends the fallback reply)
#[test]
fn failed_model_call_sends_the_fallback_reply() {
    let mut desk = TestSession::new(json!({"fallbackReply": "Oops."}), &[]);
    desk.answers
        .push_back(Err(tandem_record::conversation::CodeError {
            code: "failed".to_owned(),
            message: "overloaded".to_owned(),
        }));
    assert_eq!(desk.say("hi"), ["Oops."]);
    assert_eq!(desk.failures("model"), ["overloaded"]);
    assert_eq!(desk.say("hi"), ["model speaks"]);
}

/// Z-22 (half: names and unknown names), Z-23 (half: help and removed builtins), Z-28 (half: nothing else runs)
#[test]
fn commands_answer_before_anything_else() {
    let config = json!({"commands": {"usage": false,
        "note": {"description": "Remembers", "handler": {"$fn": true}}}});
    let mut desk = TestSession::new(config, &[]);
    let help = desk.say("/help").join("\n");
    assert!(
        help.contains("/note – Remembers") && help.contains("/reset"),
        "{help}"
    );
    assert!(!help.contains("/usage"));
    for unknown in ["/nope", "/usage"] {
        assert_eq!(desk.say(unknown), ["Unknown command. Try /help"]);
    }
    desk.functions.insert(
        "commands.note.handler".to_owned(),
        Box::new(|_| value(json!("Noted."))),
    );
    assert_eq!(desk.say("  /NOTE milk"), ["Noted."]);
    assert!(desk.model_calls.is_empty());
    assert_eq!(
        desk.state().memory().count(),
        0,
        "commands are not part of the conversation"
    );
}

/// Z-15 (half: reset ends the session)
#[test]
fn reset_ends_the_session() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("hi");
    desk.say("/reset");
    assert!(desk.state().ended().is_some());
}

/// Z-137 (half: the reasons), Z-139 (half: the detector)
#[test]
fn detector_selects_a_flow_or_falls_back() {
    let hello = || {
        code(|step, _, _| match step {
            0 => effect(json!({"type": "say", "text": "hello"})),
            _ => done(),
        })
    };
    let router =
        json!({"flowRouter": {"mode": "detector", "prompt": "Which?", "minConfidence": 0.6}});
    let cases = [
        (
            json!({"flow": "hello", "confidence": 0.9}),
            RouterReason::Selected,
        ),
        (
            json!({"flow": "hello", "confidence": 0.5}),
            RouterReason::LowConfidence,
        ),
        (json!({"flow": "hello"}), RouterReason::LowConfidence),
        (
            json!({"flow": "nowhere", "confidence": 1}),
            RouterReason::UnknownFlow,
        ),
        (json!({"confidence": 1}), RouterReason::Missing),
    ];
    for (answer, expected) in cases {
        let mut desk = TestSession::new(router.clone(), &[("hello", hello())]);
        desk.answers.push_back(Ok(structured(answer)));
        let selected = expected == RouterReason::Selected;
        let text = if selected { "hello" } else { "model speaks" };
        assert_eq!(desk.say("hi"), [text]);
        let decided = desk.events.iter().find_map(|event| match event {
            Body::RouterDecided {
                reason,
                fallback_used,
                ..
            } => Some((*reason, *fallback_used)),
            _ => None,
        });
        assert_eq!(decided, Some((expected, !selected)));
    }
}

/// Z-138 (half: the field), Z-141 (half: no further call)
#[test]
fn field_of_the_structured_answer_selects_the_flow() {
    let order = code(|step, _, input| match step {
        0 => effect(json!({"type": "say", "text": format!("for {}", input["mood"])})),
        _ => done(),
    });
    let config = json!({
        "outputSchema": {"type": "object", "required": ["reply"]},
        "flowRouter": {"mode": "schema_flow", "field": "flow"},
    });
    let mut desk = TestSession::new(config, &[("order", order)]);
    desk.answers.extend([
        Ok(structured(
            json!({"reply": "dropped", "flow": "order", "mood": "joy"}),
        )),
        Ok(structured(json!({"reply": "kept", "flow": null}))),
    ]);
    assert_eq!(desk.say("one"), ["for \"joy\""]);
    assert_eq!(desk.say("two"), ["kept"]);
    assert_eq!(desk.model_calls.len(), 2);
}

/// Z-240 (half: since the user wrote, which may be long before the message arrives)
#[test]
fn message_that_arrives_late_was_written_before() {
    let mut desk = TestSession::new(json!({}), &[]);
    let began = desk.now;
    desk.say("hi");
    assert_eq!(desk.state().last_received_at(), Some(began));
    desk.now = began.plus_ms(60_000);
    for (ago_seconds, last) in [(86_400, 0), (30, 30), (-5, 60)] {
        let sent_at = Timestamp(desk.now.0 - ago_seconds * 1_000);
        let message = InboundMessage {
            sent_at: Some(sent_at),
            ..desk.message("u1", "late")
        };
        desk.deliver(message);
        let expected = began.plus_ms(last * 1_000);
        assert_eq!(desk.state().last_received_at(), Some(expected));
    }
}
