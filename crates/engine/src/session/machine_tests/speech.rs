//! Speech in, and whether a text goes out as text or as speech. Also profiles.

use super::harness::{TestSession, value};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, CodeError, InboundMessage, Modality, SessionEventBody as Body,
    SessionWork,
};

fn spoken(desk: &mut TestSession, body: &str) -> Vec<String> {
    let before = desk.sent.len();
    let message = InboundMessage {
        kind: Some("voice".to_owned()),
        media: Some(json!({"id": "a-1"})),
        ..desk.message("u1", body)
    };
    desk.deliver(message);
    desk.perform_all();
    desk.sent[before..].to_vec()
}

fn modalities(desk: &TestSession) -> Vec<Modality> {
    let queued = desk.events.iter().filter_map(|event| match event {
        Body::ResponseQueued { candidate, .. } => Some(candidate.modality),
        _ => None,
    });
    queued.collect()
}

fn last_user_text(desk: &TestSession) -> String {
    match desk.model_calls.last() {
        Some(SessionWork::Model { messages, .. }) => messages.last().expect("one").content.clone(),
        other => panic!("{other:?} is no model call"),
    }
}

/// Z-19
#[test]
fn speech_becomes_text_before_the_agent_looks_at_it() {
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[]);
    desk.functions.insert(
        "beforeLLM".to_owned(),
        Box::new(|call| {
            let heard = (&call.args[0]["text"], &call.args[0]["inbound"]["body"]);
            assert_eq!(heard, (&json!("a chair"), &json!("a chair")));
            value(Value::Null)
        }),
    );
    desk.transcripts.push_back(Ok("a chair".to_owned()));
    assert_eq!(spoken(&mut desk, ""), ["model speaks"]);
    assert_eq!(last_user_text(&desk), "a chair");
}

/// Z-19
#[test]
fn speech_that_cannot_be_read_keeps_its_caption_and_is_no_command() {
    let mut desk = TestSession::new(json!({}), &[]);
    let error = CodeError {
        code: "timeout".to_owned(),
        message: "slow".to_owned(),
    };
    desk.transcripts.push_back(Err(error));
    assert_eq!(spoken(&mut desk, "caption"), ["model speaks"]);
    assert_eq!(last_user_text(&desk), "caption");
    desk.transcripts.push_back(Ok("/reset".to_owned()));
    assert_eq!(spoken(&mut desk, ""), ["model speaks"]);
    assert!(desk.state().ended().is_none());
}

/// Z-40
#[test]
fn replies_take_the_form_that_was_chosen_first() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("hi");
    spoken(&mut desk, "");
    desk.say("/voice");
    desk.say("hi");
    desk.say("/text");
    spoken(&mut desk, "");
    let expected = [
        Modality::Text,
        Modality::Voice,
        Modality::Text,
        Modality::Voice,
        Modality::Text,
        Modality::Text,
    ];
    assert_eq!(modalities(&desk), expected, "commands are answered as text");
    for (setting, modality) in [("text", Modality::Text), ("voice", Modality::Voice)] {
        let mut desk = TestSession::new(json!({ "modality": setting }), &[]);
        desk.say("hi");
        spoken(&mut desk, "");
        assert_eq!(modalities(&desk), [modality; 2]);
    }
}

/// Z-40
#[test]
fn dynamic_replies_follow_the_answer_then_the_words_of_the_user() {
    let config = json!({"outputSchema": {"type": "object", "required": ["reply"]}});
    let mut desk = TestSession::new(config, &[]);
    let answer = |value: Value| {
        Ok(ChatAnswer {
            structured: Some(value),
            ..ChatAnswer::default()
        })
    };
    desk.answers.extend([
        answer(json!({"reply": "a", "modality": "voice"})),
        answer(json!({"reply": "b", "modality": null})),
        answer(json!({"reply": "c"})),
    ]);
    desk.say("/dynamic");
    desk.say("write it");
    desk.say("send a voice message");
    desk.say("hi");
    let expected = [
        Modality::Text,
        Modality::Voice,
        Modality::Voice,
        Modality::Text,
    ];
    assert_eq!(modalities(&desk), expected);
}

/// Z-121, Z-125
#[test]
fn hook_sees_and_replaces_the_modality() {
    let mut desk = TestSession::new(json!({"beforeResponse": {"$fn": true}}), &[]);
    desk.functions.insert(
        "beforeResponse".to_owned(),
        Box::new(|call| {
            assert_eq!(call.args[0]["candidate"]["modality"], "text");
            value(json!({"action": "replace", "reply": "aloud", "modality": "voice"}))
        }),
    );
    assert_eq!(desk.say("hi"), ["aloud"]);
    assert_eq!(modalities(&desk), [Modality::Voice]);
}

/// Z-248
#[test]
fn name_that_the_user_gives_is_kept_as_chosen() {
    let mut desk = TestSession::new(json!({"profileTool": true}), &[]);
    let call = |args: Value| {
        Ok(ChatAnswer {
            tool_calls: vec![ChatToolCall {
                id: "c1".to_owned(),
                name: "update_my_profile".to_owned(),
                args,
            }],
            ..ChatAnswer::default()
        })
    };
    desk.answers
        .push_back(call(json!({"displayName": "Zoë", "tags": ["vip"]})));
    desk.say("call me Zoë");
    let user = &desk.state().start().user;
    assert_eq!(
        (user.display_name.as_str(), user.name_is_chosen),
        ("Zoë", true)
    );
    assert!(user.tags.is_empty(), "tags are the desk's");
    desk.answers.push_back(call(json!({"displayName": " "})));
    desk.say("call me nothing");
    assert_eq!(desk.state().start().user.display_name, "Zoë");
}
