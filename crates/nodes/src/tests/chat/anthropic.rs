//! The messages API.

use super::super::server::Server;
use super::*;

fn answered(content: &Value, stop: &str) -> CannedResponse {
    ok(&json!({"content": content, "stop_reason": stop,
               "usage": {"input_tokens": 9, "output_tokens": 4}}))
}

async fn sent_body(server: &Server) -> Value {
    serde_json::from_str(&server.only_request().await.body).unwrap()
}

/// Z-42 (half: what a provider is sent)
#[tokio::test]
async fn request_has_prompt_alternating_turns_and_tools() {
    let text = json!([{"type": "text", "text": "For"}, {"type": "text", "text": "ty."}]);
    let server = Server::responding_with(answered(&text, "end_turn")).await;
    let model = hosted(ModelApi::Anthropic, &server.url);
    let mut request = request_after_tool();
    request
        .messages
        .insert(0, ChatMessage::new(ChatRole::Assistant, "Hello."));
    request
        .messages
        .push(ChatMessage::new(ChatRole::User, "and?"));
    request
        .messages
        .push(ChatMessage::new(ChatRole::System, "Ana held the floor."));
    let reply = call(&model, &request).await.unwrap();
    assert_eq!(reply.answer.text.as_deref(), Some("Forty."));
    assert_eq!(reply.answer.usage.unwrap().input_tokens, 9);

    let sent = server.only_request().await;
    assert_eq!(sent.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(sent.header("x-api-key"), [KEY]);
    assert_eq!(sent.header("anthropic-version"), ["2023-06-01"]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!({
        "model": "large", "temperature": 0.5, "max_tokens": 64,
        "system": "Be terse.\n\nAna held the floor.",
        "messages": [
            {"role": "user", "content": [text("(Earlier messages are not shown.)")]},
            {"role": "assistant", "content": [text("Hello.")]},
            {"role": "user", "content": [text("how much?")]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c_1", "name": "price",
                                               "input": {"service": "cleaning"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c_1", "content": "40"}, text("and?")]},
        ],
        "tools": [{"name": "price", "description": "Price of a service",
                   "input_schema": price_tool().parameters}],
    });
    assert_eq!(sent_body(&server).await, expected);
}

#[tokio::test]
async fn object_is_the_input_of_a_tool_beside_the_agents_own() {
    let used =
        json!([{"type": "tool_use", "id": "t1", "name": "answer_", "input": {"reply": "hi"}}]);
    let server = Server::responding_with(answered(&used, "tool_use")).await;
    let model = hosted(ModelApi::Anthropic, &server.url);
    let taken = ChatTool {
        name: "answer".to_owned(),
        ..price_tool()
    };
    let request = ChatRequest {
        output_schema: Some(reply_schema()),
        tools: vec![taken],
        ..request()
    };
    let answer = call(&model, &request).await.unwrap().answer;
    assert_eq!(answer.structured, Some(json!({"reply": "hi"})));
    assert!(answer.tool_calls.is_empty());
    let body = sent_body(&server).await;
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!(body["tools"][1]["name"], "answer_");
    assert_eq!(body["tools"][1]["input_schema"], reply_schema());
}

/// Z-37 (half: tool calls of a provider)
#[tokio::test]
async fn tools_of_the_agent_are_asked_for_also_where_an_object_is_wanted() {
    let used = json!([{"type": "text", "text": "One moment."},
                      {"type": "tool_use", "id": "t1", "name": "price", "input": {}}]);
    let server = Server::responding_with(answered(&used, "tool_use")).await;
    let model = hosted(ModelApi::Anthropic, &server.url);
    let request = ChatRequest {
        output_schema: Some(reply_schema()),
        ..request_after_tool()
    };
    let answer = call(&model, &request).await.unwrap().answer;
    assert_eq!(answer.tool_calls.len(), 1);
    assert_eq!(
        (answer.tool_calls[0].id.as_str(), &answer.tool_calls[0].args),
        ("t1", &json!({}))
    );
    assert_eq!(
        (answer.text.as_deref(), answer.structured),
        (Some("One moment."), None)
    );
}

#[tokio::test]
async fn schema_of_something_else_than_an_object_is_sent_in_words() {
    let text = json!([{"type": "text", "text": "[1]"}]);
    let server = Server::responding_with(answered(&text, "end_turn")).await;
    let model = hosted(ModelApi::Anthropic, &server.url);
    let request = ChatRequest {
        output_schema: Some(json!({"type": "array"})),
        ..request()
    };
    let answer = call(&model, &request).await.unwrap().answer;
    assert_eq!(answer.structured, Some(json!([1])));
    let body = sent_body(&server).await;
    assert!(
        body["system"]
            .as_str()
            .unwrap()
            .contains("{\"type\":\"array\"}")
    );
    assert_eq!(body.get("tools"), None);
}

#[tokio::test]
async fn every_bad_answer_has_a_code() {
    let text = json!([{"type": "text", "text": "hi"}]);
    for (response, code) in [
        (CannedResponse::json("200 OK", "{}"), "answer_invalid"),
        (answered(&json!([7]), "end_turn"), "answer_empty"),
        (answered(&json!([]), "end_turn"), "answer_empty"),
        (answered(&text, "banana"), "answer_invalid"),
        (answered(&text, "refusal"), "answer_refused"),
        (answered(&json!([]), "max_tokens"), "answer_truncated"),
        (
            CannedResponse::json("529 Overloaded", "{}"),
            "provider_unavailable",
        ),
    ] {
        let server = Server::responding_with(response).await;
        let model = hosted(ModelApi::Anthropic, &server.url);
        let failure = call(&model, &request()).await.unwrap_err();
        assert_eq!(failure.error.code, code, "{failure:?}");
    }
}
