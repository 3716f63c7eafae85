//! The scripted model.

use super::*;
use crate::{LocalScripts, NotedMessage, Script, ScriptChoice, ScriptProgress, ScriptedCall};
use std::sync::Arc;
use tandem_record::Timestamp;

fn memory() -> Arc<LocalScripts> {
    Arc::new(LocalScripts::new(|| Timestamp(5)))
}

fn scripted(script: &Value, memory: &Arc<LocalScripts>) -> ChatModel {
    let script = Script::parse(&script.to_string()).unwrap();
    ChatModel::scripted(script, memory.clone())
}

/// The request of the n-th call.
fn nth(n: u32, text: &str) -> ChatRequest {
    ChatRequest {
        key: format!("call-{n}").into(),
        messages: vec![ChatMessage::new(ChatRole::User, text)],
        ..request()
    }
}

/// Z-224 (half: matchers, order, delays and failures)
#[tokio::test(start_paused = true)]
async fn the_script_of_the_interface_is_followed() {
    let memory = memory();
    let model = scripted(
        &json!({ "answers": [
            { "when": { "purpose": "router", "contains": "book" },
              "structured": { "flow": "booking", "confidence": 0.9 }, "times": 0 },
            { "when": { "contains": "how much" },
              "toolCalls": [{ "name": "price", "args": { "service": "cleaning" } }] },
            { "text": "Forty euro.", "delayMs": 200 },
            { "fail": "overloaded" } ],
          "otherwise": { "text": "How can I help?" } }),
        &memory,
    );
    for n in 0..2 {
        let request = ChatRequest {
            purpose: ModelPurpose::Router,
            ..nth(n, "I want to book")
        };
        let answer = call(&model, &request).await.unwrap().answer;
        assert_eq!(
            answer.structured,
            Some(json!({"flow": "booking", "confidence": 0.9}))
        );
    }
    let asked = call(&model, &nth(2, "how much is it?"))
        .await
        .unwrap()
        .answer;
    assert_eq!(asked.text, None);
    assert_eq!(asked.tool_calls[0].args, json!({"service": "cleaning"}));

    // The current text stays the user's while tools are used.
    let mut after_tool = request_after_tool();
    after_tool.key = "call-3".into();
    let begin = tokio::time::Instant::now();
    let told = call(&model, &after_tool).await.unwrap();
    assert_eq!(told.answer.text.as_deref(), Some("Forty euro."));
    assert_eq!(begin.elapsed(), Duration::from_millis(200));
    let usage = told.answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (5, 2));

    let failure = call(&model, &nth(4, "hm")).await.unwrap_err();
    assert_eq!(failure.error.code, "provider_unavailable");
    assert!(failure.is_transient && failure.error.message.contains("overloaded"));
    for n in 5..7 {
        let answer = call(&model, &nth(n, "hm")).await.unwrap().answer;
        assert_eq!(answer.text.as_deref(), Some("How can I help?"));
    }
}

/// Z-224 (half: the call log)
#[tokio::test]
async fn calls_are_noted_when_they_begin_also_when_they_fail() {
    let memory = memory();
    let model = scripted(&json!({"answers": []}), &memory);
    let mut request = nth(0, "hello");
    request.tools.push(price_tool());
    let failure = call(&model, &request).await.unwrap_err();
    assert!(!failure.is_transient && failure.error.message.contains("no answer left"));
    let calls = memory.calls(&request.agent);
    let shown = serde_json::to_value(&calls).unwrap();
    assert_eq!(
        shown,
        json!([{"purpose": "chat", "sessionId": "s-1", "tools": ["price"], "at": 5,
                "messages": [{"role": "system", "content": "Be terse."},
                             {"role": "user", "content": "hello"}]}])
    );
    assert_eq!(
        calls[0].messages[0],
        NotedMessage {
            role: ChatRole::System,
            content: "Be terse.".to_owned()
        }
    );
}

/// Z-224 (half: streaming)
#[tokio::test]
async fn text_is_streamed_word_by_word_and_objects_are_not() {
    let memory = memory();
    let script = json!({"answers": [], "otherwise": {"text": "{\"reply\": \"a b\"}"}});
    let model = scripted(&script, &memory);
    let (reply, pieces) = stream(&model, &nth(0, "hi"), &RetrySettings::NEVER).await;
    assert_eq!(pieces, ["{\"reply\": ", "\"a ", "b\"}"]);
    assert_eq!(reply.unwrap().answer.structured, None);

    let request = ChatRequest {
        output_schema: Some(reply_schema()),
        ..nth(1, "hi")
    };
    let (reply, pieces) = stream(&model, &request, &RetrySettings::NEVER).await;
    assert_eq!(
        reply.unwrap().answer.structured,
        Some(json!({"reply": "a b"}))
    );
    assert!(pieces.is_empty());
}

/// Z-42 (half: the scripted provider)
#[tokio::test(start_paused = true)]
async fn only_transient_failures_are_retried_and_each_attempt_is_noted() {
    let script = |fail: &str| json!({"answers": [{"fail": fail}], "otherwise": {"text": "ok"}});
    let retry = RetrySettings::default();
    for (fail, attempts) in [
        ("overloaded", 2),
        ("timeout", 2),
        ("rate_limited", 2),
        ("broken", 1),
    ] {
        let memory = memory();
        let model = scripted(&script(fail), &memory);
        let result = model.call(&nth(0, "hi"), &retry, None).await;
        assert_eq!(memory.calls(&"desk".into()).len(), attempts, "{fail}");
        assert_eq!(result.is_ok(), attempts == 2, "{fail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_timeout_is_a_timeout() {
    let script = json!({"answers": [{"text": "late", "delayMs": 60_000}]});
    let model = scripted(&script, &memory());
    let failure = call(&model, &nth(0, "hi")).await.unwrap_err();
    assert_eq!(
        (failure.error.code.as_str(), failure.is_transient),
        ("timeout", true)
    );
}

#[tokio::test]
async fn a_repeated_call_gets_the_same_answer_and_progress_survives_storage() {
    let parse = |script: Value| Script::parse(&script.to_string()).unwrap();
    let script = parse(json!({"answers": [{"text": "a"}, {"text": "b", "times": 2}]}));
    let mut progress = ScriptProgress::default();
    let mut take = |call: &str, script: &Script| {
        let stored = serde_json::to_string(&progress).unwrap();
        progress = serde_json::from_str(&stored).unwrap();
        let asked = ScriptedCall {
            purpose: ModelPurpose::Chat,
            user_text: "hi",
            after_tool: None,
        };
        progress.take(script, &call.into(), &asked)
    };
    assert_eq!(take("1", &script), ScriptChoice::Answer(0));
    assert_eq!(take("2", &script), ScriptChoice::Answer(1));
    assert_eq!(take("1", &script), ScriptChoice::Answer(0));
    assert_eq!(take("3", &script), ScriptChoice::Answer(1));
    assert_eq!(take("4", &script), ScriptChoice::Nothing);
    let edited = parse(json!({"answers": [{"text": "c"}]}));
    assert_eq!(
        take("4", &edited),
        ScriptChoice::Answer(0),
        "another script starts anew"
    );
}

#[tokio::test]
async fn a_replaced_script_is_used_from_its_beginning() {
    let memory = memory();
    let script = json!({"answers": [{"text": "once"}]});
    let model = scripted(&script, &memory);
    call(&model, &nth(0, "hi")).await.unwrap();
    for n in [1, 2] {
        memory.replace(&"desk".into(), Script::parse(&script.to_string()).unwrap());
        let answer = call(&model, &nth(n, "hi")).await.unwrap().answer;
        assert_eq!(answer.text.as_deref(), Some("once"));
    }
    assert!(call(&model, &nth(3, "hi")).await.is_err());
}

#[test]
fn script_may_have_text_beside_tool_calls_and_nothing_contradictory() {
    let parse = |answer: Value| Script::parse(&json!({"answers": [answer]}).to_string());
    let calls = json!([{"name": "price"}]);
    assert!(parse(json!({"text": "a", "toolCalls": calls})).is_ok());
    for (answer, why) in [
        (
            json!({"text": "a", "structured": {}}),
            "text and structured",
        ),
        (json!({"fail": "x", "toolCalls": calls}), "fails and has"),
        (json!({"toolCalls": []}), "needs one of"),
        (json!({"toolCalls": [{"args": {}}]}), "name"),
        (json!({"when": {"purpose": "talk"}, "text": "a"}), "talk"),
    ] {
        let error = parse(answer.clone()).unwrap_err().to_string();
        assert!(error.contains(why), "{answer}: {error}");
    }
}

#[tokio::test]
async fn text_matches_any_part_without_regard_to_case() {
    let model = scripted(
        &json!({ "answers": [
            { "when": { "contains": "ROOM" }, "text": "room", "times": 0 },
            { "when": { "contains": ["Sauna", "pool"] }, "text": "water", "times": 0 } ],
          "otherwise": { "text": "?" } }),
        &memory(),
    );
    let table = [
        ("A room, please", "room"),
        ("is the POOL open?", "water"),
        ("sauna", "water"),
        ("hello", "?"),
    ];
    for (n, (text, expected)) in (0..).zip(table) {
        let answer = call(&model, &nth(n, text)).await.unwrap().answer;
        assert_eq!(answer.text.as_deref(), Some(expected), "{text}");
    }
}

#[tokio::test]
async fn answer_after_a_tool_uses_its_result() {
    let model = scripted(
        &json!({ "answers": [
            { "when": { "afterTool": "price" },
              "text": "{{ result.eur }} euro, {{result.of.name}}, {{ result.no }}, {{ x }}, {{", "times": 0 },
            { "when": { "contains": "how much" }, "toolCalls": [{ "name": "price" }], "times": 0 } ] }),
        &memory(),
    );
    let first = nth(0, "how much?");
    let asked = call(&model, &first).await.unwrap().answer;
    assert_eq!(asked.tool_calls[0].name, "price");
    let mut request = nth(1, "how much?");
    request.messages.push(ChatMessage {
        tool_calls: asked.tool_calls.clone(),
        ..ChatMessage::new(ChatRole::Assistant, "")
    });
    request.messages.push(ChatMessage {
        tool_call_id: Some(asked.tool_calls[0].id.clone()),
        ..ChatMessage::new(ChatRole::Tool, r#"{"eur": 40, "of": {"name": "cleaning"}}"#)
    });
    let answer = call(&model, &request).await.unwrap().answer;
    let expected = "40 euro, cleaning, {{ result.no }}, {{ x }}, {{";
    assert_eq!(answer.text.as_deref(), Some(expected));
}
