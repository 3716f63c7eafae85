//! Streamed answers, whole and broken.

use super::super::server::Server;
use super::*;

fn delta(delta: &Value, finish: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn text(text: &str) -> Value {
    delta(&json!({"content": text}), &Value::Null)
}

fn finish(reason: &str) -> Value {
    delta(&json!({}), &json!(reason))
}

fn call_piece(piece: &Value) -> Value {
    delta(&json!({"tool_calls": [piece]}), &Value::Null)
}

async fn stream_from(
    model_api: ModelApi,
    response: CannedResponse,
) -> (Result<ChatReply, ProviderFailure>, Vec<String>, Server) {
    let server = Server::responding_with(response).await;
    let model = hosted(model_api, &server.url);
    let (reply, pieces) = stream(&model, &request_after_tool(), &ONE_RETRY).await;
    (reply, pieces, server)
}

/// Z-42 (half: streaming)
#[tokio::test]
async fn openai_stream_hands_on_text_and_ends_with_usage() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let start = delta(&json!({"role": "assistant", "content": ""}), &Value::Null);
    let body = events(&[start, text("Forty "), text("euro."), finish("stop"), usage]);
    let body = format!(": comment\n\n{body}data: [DONE]\n\n");
    let (reply, pieces, server) = stream_from(ModelApi::OpenAi, streamed(&body)).await;
    let reply = reply.unwrap();
    assert_eq!(pieces, ["Forty ", "euro."]);
    assert_eq!(reply.answer.text.as_deref(), Some("Forty euro."));
    assert_eq!(reply.answer.usage.unwrap().output_tokens, 2);
    let sent: Value = serde_json::from_str(&server.only_request().await.body).unwrap();
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn openai_stream_puts_tool_calls_together() {
    let pieces = [
        json!({"index": 0, "id": "a", "function": {"name": "price", "arguments": ""}}),
        json!({"index": 1, "id": "b", "function": {"name": "price", "arguments": "{}"}}),
        json!({"index": 0, "function": {"arguments": "{\"service\":"}}),
        json!({"index": 0, "function": {"arguments": " \"cut\"}"}}),
    ];
    let mut all: Vec<Value> = pieces.iter().map(call_piece).collect();
    all.push(finish("tool_calls"));
    let (reply, _, _) = stream_from(ModelApi::OpenAi, streamed(&events(&all))).await;
    let calls = reply.unwrap().answer.tool_calls;
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (call.id.as_str(), &call.args))
        .collect();
    assert_eq!(
        calls,
        [("a", &json!({"service": "cut"})), ("b", &json!({}))]
    );

    // Without indexes, as some servers send them.
    let pieces = [
        json!({"id": "a", "function": {"name": "price", "arguments": "{\"service\""}}),
        json!({"function": {"arguments": ": 1}"}}),
        json!({"id": "b", "function": {"name": "price", "arguments": "{}"}}),
    ];
    let mut all: Vec<Value> = pieces.iter().map(call_piece).collect();
    all.push(finish("stop"));
    let (reply, _, _) = stream_from(ModelApi::OpenAi, streamed(&events(&all))).await;
    let calls = reply.unwrap().answer.tool_calls;
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (call.id.as_str(), &call.args))
        .collect();
    assert_eq!(calls, [("a", &json!({"service": 1})), ("b", &json!({}))]);
}

fn anthropic_events() -> Vec<Value> {
    let block = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    vec![
        json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 8, "output_tokens": 1}}}),
        block(0, json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "text_delta", "text": "One "})),
        delta(0, json!({"type": "text_delta", "text": "moment."})),
        json!({"type": "content_block_stop", "index": 0}),
        block(
            1,
            json!({"type": "tool_use", "id": "t1", "name": "price", "input": {}}),
        ),
        delta(
            1,
            json!({"type": "input_json_delta", "partial_json": "{\"service\":"}),
        ),
        delta(
            1,
            json!({"type": "input_json_delta", "partial_json": "\"cut\"}"}),
        ),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "something_new"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 6}}),
        json!({"type": "message_stop"}),
    ]
}

/// Z-42 (half: streaming)
#[tokio::test]
async fn anthropic_stream_hands_on_text_and_puts_tool_calls_together() {
    let response = streamed(&events(&anthropic_events()));
    let (reply, pieces, server) = stream_from(ModelApi::Anthropic, response).await;
    let reply = reply.unwrap();
    assert_eq!(pieces, ["One ", "moment."]);
    let call = &reply.answer.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), &call.args),
        ("t1", &json!({"service": "cut"}))
    );
    let usage = reply.answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (8, 6));
    let sent: Value = serde_json::from_str(&server.only_request().await.body).unwrap();
    assert_eq!(sent["stream"], true);
}

#[tokio::test]
async fn server_that_does_not_stream_is_read_whole() {
    let whole = json!({"choices": [{"finish_reason": "stop", "message": {"content": "hi you"}}]});
    let (reply, pieces, _) = stream_from(ModelApi::OpenAi, ok(&whole)).await;
    assert_eq!(reply.unwrap().answer.text.as_deref(), Some("hi you"));
    assert_eq!(pieces, ["hi you"]);
}

/// A stream that breaks after its first piece is not repeated: a reader has seen the piece.
#[tokio::test]
async fn cut_stream_is_a_failure_and_is_repeated_only_before_the_first_piece() {
    let anthropic = anthropic_events();
    let no_finish = &anthropic[..anthropic.len() - 2];
    // The body is shorter than its declared length.
    let cut = |body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\n{STREAM_HEADER}\r\ncontent-length: 9999\r\n\r\n");
        CannedResponse::Bytes(format!("{head}{body}").into_bytes())
    };
    let piece = events(&[text("Forty ")]);
    for (model_api, response, attempts) in [
        (ModelApi::OpenAi, streamed(&piece), 1),
        (
            ModelApi::OpenAi,
            streamed(&format!("{piece}data: [DONE]\n\n")),
            1,
        ),
        (ModelApi::OpenAi, cut(&piece), 1),
        (ModelApi::OpenAi, cut("data: {\"choices\": [{\"del"), 2),
        (ModelApi::OpenAi, streamed(""), 2),
        (ModelApi::Anthropic, streamed(&events(no_finish)), 1),
        (ModelApi::Anthropic, streamed(&events(&anthropic[..2])), 2),
    ] {
        let (reply, _, server) = stream_from(model_api, response).await;
        let failure = reply.unwrap_err();
        assert_eq!(
            (failure.error.code.as_str(), failure.is_transient),
            ("answer_cut_off", true)
        );
        assert_eq!(server.requests().await.len(), attempts);
    }
}

#[tokio::test]
async fn connection_that_breaks_after_the_answer_loses_nothing() {
    let body = events(&[text("hi"), finish("stop")]);
    let head = format!("HTTP/1.1 200 OK\r\n{STREAM_HEADER}\r\ncontent-length: 9999\r\n\r\n");
    let response = CannedResponse::Bytes(format!("{head}{body}").into_bytes());
    let (reply, _, _) = stream_from(ModelApi::OpenAi, response).await;
    assert_eq!(reply.unwrap().answer.text.as_deref(), Some("hi"));
}

#[tokio::test]
async fn malformed_streams_are_failures() {
    let far = json!({"index": u64::MAX, "id": "a", "function": {"name": "price"}});
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": KEY}});
    let stray = json!({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}});
    let openai = ModelApi::OpenAi;
    for (model_api, body, code) in [
        (
            openai,
            "data: {\"choices\": [\n\n".to_owned(),
            "answer_invalid",
        ),
        (openai, "data: hello\n\n".to_owned(), "answer_invalid"),
        (openai, "data: 7\n\n".to_owned(), "answer_invalid"),
        (openai, events(&[json!({"id": "x"})]), "answer_invalid"),
        (
            openai,
            events(&[json!({"error": {"message": KEY}})]),
            "provider_unavailable",
        ),
        (
            openai,
            events(&[call_piece(&far), finish("stop")]),
            "answer_invalid",
        ),
        (openai, events(&[finish("stop")]), "answer_empty"),
        (
            openai,
            events(&[text("hi"), finish("banana")]),
            "answer_invalid",
        ),
        (
            openai,
            events(&[text("hi"), finish("content_filter")]),
            "answer_refused",
        ),
        (
            ModelApi::Anthropic,
            events(&[overloaded]),
            "provider_unavailable",
        ),
        (ModelApi::Anthropic, events(&[stray]), "answer_invalid"),
        (ModelApi::Anthropic, events(&[json!([])]), "answer_invalid"),
    ] {
        let (reply, _, _) = stream_from(model_api, streamed(&body)).await;
        let failure = reply.unwrap_err();
        assert_eq!(failure.error.code, code, "{body}");
        assert!(!format!("{failure:?}").contains(KEY));
    }
}

#[tokio::test]
async fn huge_streams_are_refused() {
    let long_text: Vec<Value> = (0..40).map(|_| text(&"x".repeat(1024))).collect();
    let many_comments = ": nothing\n\n".repeat(600_000);
    for body in [
        events(&long_text),
        format!("data: {}", "x".repeat(40 * 1024)),
        many_comments,
    ] {
        let server = Server::responding_with(streamed(&body)).await;
        let limits = CallLimits {
            response_bytes: 32 * 1024,
            ..CallLimits::default()
        };
        let settings = settings(ModelApi::OpenAi, &server.url);
        let model = ChatModel::hosted(settings, limits).unwrap();
        let (reply, _) = stream(&model, &request(), &ONE_RETRY).await;
        assert_eq!(reply.unwrap_err().error.code, "answer_too_large");
    }
}

/// A server that sends a comment every second, for ever, is given up at the timeout.
#[tokio::test]
async fn slow_drip_is_given_up_at_the_timeout() {
    let head = format!("HTTP/1.1 200 OK\r\n{STREAM_HEADER}\r\n\r\n");
    let begin = format!("{head}{}", events(&[text("a")])).into_bytes();
    let server = Server::responding_with(CannedResponse::Drip(begin, b": wait\n\n")).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    // The first piece has arrived: from now on only timers move the time.
    let first_piece = |_: &str| tokio::time::pause();
    let request = request();
    let called = model.call(&request, &ONE_RETRY, Some(&first_piece));
    let failure = called.await.unwrap_err();
    assert_eq!(
        (failure.error.code.as_str(), failure.is_transient),
        ("timeout", true)
    );
}
