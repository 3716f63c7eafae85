//! The chat completions API.

use super::super::server::Server;
use super::*;
use tandem_record::conversation::ChatAnswer;

fn completion(message: &Value, finish: &str) -> Value {
    json!({
        "choices": [{"finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    })
}

/// Z-42 (half: what a provider is sent)
#[tokio::test]
async fn request_has_prompt_history_tools_and_key() {
    let server =
        Server::responding_with(ok(&completion(&json!({"content": "Forty."}), "stop"))).await;
    let model = hosted(ModelApi::OpenAi, &format!("{}/v1", server.url));
    let reply = call(&model, &request_after_tool()).await.unwrap();
    assert_eq!(reply.answer.text.as_deref(), Some("Forty."));
    let usage = reply.answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));

    let sent = server.only_request().await;
    assert_eq!(sent.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(sent.header("authorization"), [format!("Bearer {KEY}")]);
    assert_eq!(sent.header("idempotency-key"), ["call-1"]);
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let function = json!({"name": "price", "arguments": "{\"service\":\"cleaning\"}"});
    let expected = json!({
        "model": "large", "temperature": 0.5, "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "Be terse."},
            {"role": "user", "content": "how much?"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "c 1", "type": "function", "function": function}]},
            {"role": "tool", "content": "40", "tool_call_id": "c 1"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "price", "description": "Price of a service",
            "parameters": price_tool().parameters}}],
    });
    assert_eq!(body, expected);
}

/// Z-37 (half: tool calls of a provider)
#[tokio::test]
async fn tool_calls_are_returned_with_parsed_arguments_and_unique_ids() {
    let call_of = |id: &str, args: &Value| {
        json!({"id": id, "type": "function",
        "function": {"name": "price", "arguments": args}})
    };
    let calls = json!([
        call_of("a", &json!("{\"service\": \"cut\"}")),
        call_of("a", &json!("")),
        call_of("", &json!({"service": "wash"})),
    ]);
    let message = json!({"content": null, "tool_calls": calls});
    let server = Server::responding_with(ok(&completion(&message, "tool_calls"))).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let answer = call(&model, &request_after_tool()).await.unwrap().answer;
    let expected = |id: &str, args| ChatToolCall {
        id: id.to_owned(),
        name: "price".to_owned(),
        args,
    };
    assert_eq!(
        answer,
        ChatAnswer {
            tool_calls: vec![
                expected("a", json!({"service": "cut"})),
                expected("call-1-1", json!({})),
                expected("call-1-2", json!({"service": "wash"})),
            ],
            usage: answer.usage,
            ..ChatAnswer::default()
        }
    );
}

#[tokio::test]
async fn structured_output_is_requested_by_schema_and_parsed() {
    for written in ["{\"reply\": \"hi\"}", "```json\n{\"reply\": \"hi\"}\n```"] {
        let message = json!({"content": written});
        let server = Server::responding_with(ok(&completion(&message, "stop"))).await;
        let model = hosted(ModelApi::OpenAi, &server.url);
        let request = ChatRequest {
            output_schema: Some(reply_schema()),
            ..request()
        };
        let answer = call(&model, &request).await.unwrap().answer;
        assert_eq!(answer.structured, Some(json!({"reply": "hi"})));
        let sent = server.only_request().await;
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        let format = json!({"type": "json_schema", "json_schema": {
            "name": "answer", "strict": true, "schema": reply_schema()}});
        assert_eq!(body["response_format"], format);
    }
}

/// The raw output is kept, since a router records it. Z-140 (half: the output of an unusable answer)
#[tokio::test]
async fn answer_that_is_no_object_is_returned_as_text() {
    let server =
        Server::responding_with(ok(&completion(&json!({"content": "booking"}), "stop"))).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let request = ChatRequest {
        purpose: ModelPurpose::Router,
        ..request()
    };
    let answer = call(&model, &request).await.unwrap().answer;
    assert_eq!(
        (answer.text.as_deref(), answer.structured),
        (Some("booking"), None)
    );
}

#[tokio::test]
async fn text_at_the_output_limit_is_marked_and_half_an_object_is_a_failure() {
    let message = json!({"content": "{\"reply\": \"hi"});
    let server = Server::responding_with(ok(&completion(&message, "length"))).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let reply = call(&model, &request()).await.unwrap();
    assert!(reply.is_truncated);
    let request = ChatRequest {
        output_schema: Some(reply_schema()),
        ..request()
    };
    let failure = call(&model, &request).await.unwrap_err();
    assert_eq!(
        (failure.error.code.as_str(), failure.is_transient),
        ("answer_truncated", false)
    );
}
