//! Speech in, and whether a text goes out as text or as speech. Also profiles.

use super::harness::{TestSession, code, effect, text_of, value};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, CodeError, InboundMessage, MediaRef, Modality, SentMessage,
    SessionEventBody as Body, SessionWork,
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

/// Z-19 (half: speech becomes text before the agent looks at it)
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

/// Z-19 (half: speech that cannot be read keeps its caption and is no command)
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

/// Z-19: what was written in the same burst stays beside what was said.
#[test]
fn speech_in_a_burst_keeps_the_other_texts() {
    let mut desk = TestSession::new(json!({"inbound": {"debounceMs": 1_000}}), &[]);
    desk.say("hello");
    desk.transcripts.push_back(Ok("a chair".to_owned()));
    spoken(&mut desk, "");
    desk.wait_seconds(1);
    assert_eq!(last_user_text(&desk), "hello\na chair");
}

/// Z-56
#[test]
fn spoken_answer_of_a_flow_is_its_transcript_and_other_media_its_caption() {
    let trip = code(|step, with, _| match step {
        0..3 => effect(json!({"type": "ask", "key": format!("k{step}"), "text": text_of(with)})),
        _ => effect(json!({"type": "say", "text": text_of(with)})),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("trip", trip)]);
    desk.functions.insert(
        "beforeLLM".to_owned(),
        Box::new(|call| {
            let starts = call.args[0]["text"] == "go";
            value(match starts {
                true => json!({"action": "route_flow", "flowId": "trip"}),
                false => Value::Null,
            })
        }),
    );
    desk.say("go");
    desk.transcripts.push_back(Ok("on Monday".to_owned()));
    spoken(&mut desk, "caption");
    let error = CodeError {
        code: "failed".to_owned(),
        message: "noise".to_owned(),
    };
    desk.transcripts.push_back(Err(error));
    spoken(&mut desk, "in Rome");
    let photo = InboundMessage {
        kind: Some("image".to_owned()),
        media: Some(json!({"id": "p-1"})),
        ..desk.message("u1", "a view")
    };
    desk.deliver(photo);
    desk.perform_all();
    let answers = desk.events.iter().filter_map(|event| match event {
        Body::FlowResumed {
            answer: Some((_, text)),
            ..
        } => Some(text.as_str()),
        _ => None,
    });
    let answers: Vec<&str> = answers.collect();
    assert_eq!(answers, ["on Monday", "in Rome", "a view"]);
}

/// Z-40 (half: a text whose speech cannot be made is sent as text), Z-247 (half: what was sent is recorded)
#[test]
fn speech_that_cannot_be_made_is_reported_and_its_text_is_sent() {
    let mut desk = TestSession::new(json!({"modality": "voice"}), &[]);
    let speech = MediaRef {
        id: "out-1".into(),
        content_type: "audio/mpeg".to_owned(),
        bytes: 700,
    };
    desk.sent_messages.push_back(SentMessage {
        speech: Some(speech.clone()),
        ..SentMessage::default()
    });
    desk.sent_messages.push_back(SentMessage {
        speech_error: Some("no voice".to_owned()),
        ..SentMessage::default()
    });
    desk.say("hi");
    desk.say("hi");
    let sent = desk.events.iter().filter_map(|event| match event {
        Body::ResponseSent { speech, .. } => Some(speech.clone()),
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    assert_eq!(sent, [Some(speech), None]);
    let is_report =
        |event: &&Body| matches!(event, Body::ResponseFailed { stage, .. } if stage == "speech");
    assert_eq!(desk.events.iter().filter(is_report).count(), 1);
    assert_eq!(desk.state().media_bytes(), 700);
}

/// Z-40 (half: replies take the form that was chosen first)
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

/// Z-40 (half: dynamic replies follow the answer then the words of the user)
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

/// Z-40 (half: the order of the rules, but for an agent's own extractor)
#[test]
fn first_rule_that_decides_chooses_the_form() {
    struct Case {
        agent: &'static str,
        /// The command by which the user says what they prefer.
        prefers: &'static str,
        /// What the answer says itself.
        answer: Value,
        words: &'static str,
        is_spoken: bool,
        chosen: Modality,
    }
    let case = |agent, prefers, answer: Value, words, is_spoken, chosen| Case {
        agent,
        prefers,
        answer,
        words,
        is_spoken,
        chosen,
    };
    let (text, voice) = (Modality::Text, Modality::Voice);
    let cases = [
        // The agent comes before everything.
        case("text", "/voice", json!("voice"), "by voice", true, text),
        case("voice", "/text", json!("text"), "as text", false, voice),
        // Then a preference for one form.
        case("auto", "/text", json!("voice"), "by voice", true, text),
        case("auto", "/voice", json!("text"), "as text", false, voice),
        // `mirror` looks at the form of the message alone.
        case("auto", "/mirror", json!("text"), "as text", true, voice),
        case("auto", "/mirror", json!("voice"), "by voice", false, text),
        // `dynamic`: the answer, then words, then the form.
        case("auto", "/dynamic", json!("text"), "by voice", true, text),
        case("auto", "/dynamic", json!("voice"), "as text", false, voice),
        case("auto", "/dynamic", Value::Null, "as text", true, text),
        case("auto", "/dynamic", Value::Null, "by voice", false, voice),
        case(
            "auto",
            "/dynamic",
            Value::Null,
            "by voice as text",
            true,
            voice,
        ),
        case("auto", "/dynamic", Value::Null, "hello", true, voice),
        case("auto", "/dynamic", Value::Null, "hello", false, text),
        // Without a preference it is mirrored.
        case("auto", "", json!("text"), "as text", true, voice),
        case("auto", "", json!("voice"), "by voice", false, text),
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let config = json!({"modality": case.agent,
            "outputSchema": {"type": "object", "required": ["reply"]}});
        let mut desk = TestSession::new(config, &[]);
        if !case.prefers.is_empty() {
            desk.say(case.prefers);
        }
        let structured = json!({"reply": "a", "modality": case.answer});
        desk.answers.push_back(Ok(ChatAnswer {
            structured: Some(structured),
            ..ChatAnswer::default()
        }));
        if case.is_spoken {
            desk.transcripts.push_back(Ok(case.words.to_owned()));
            spoken(&mut desk, "");
        } else {
            desk.say(case.words);
        }
        assert_eq!(
            modalities(&desk).last(),
            Some(&case.chosen),
            "case {number}"
        );
    }
}

/// Z-121 (half: the modality), Z-125 (half: the modality)
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

/// Z-248 (half: name that the user gives is kept as chosen)
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
