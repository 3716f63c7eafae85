//! Failures before an answer arrives: codes, retries, timeouts, and what they never disclose.

use super::super::server::Server;
use super::*;
use crate::{ApiKeyError, read_api_key};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn answer() -> CannedResponse {
    ok(&json!({"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]}))
}

fn with_message(message: &Value, finish: &Value) -> CannedResponse {
    ok(&json!({"choices": [{"finish_reason": finish, "message": message}]}))
}

/// A server with one response after the other; the last is repeated.
async fn in_turn(responses: Vec<CannedResponse>) -> Server {
    let next = Arc::new(AtomicUsize::new(0));
    Server::responding_by(move |_| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        responses[at.min(responses.len() - 1)].clone()
    })
    .await
}

/// Z-38 (half: arguments of a provider that are no JSON, and a call without a name, reach who answers the model)
#[tokio::test]
async fn malformed_tool_calls_are_returned_as_they_are() {
    let bad =
        |name: &str, args: &str| json!({"id": name, "function": {"name": name, "arguments": args}});
    let calls = json!([bad("price", "{\"service\":"), bad("", "{}")]);
    let message = json!({"content": null, "tool_calls": calls});
    let server = Server::responding_with(with_message(&message, &json!("tool_calls"))).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let reply = call(&model, &request()).await.expect("an answer");
    let found: Vec<_> = reply
        .answer
        .tool_calls
        .iter()
        .map(|c| (c.name.as_str(), &c.args))
        .collect();
    assert_eq!(
        found,
        [("price", &json!("{\"service\":")), ("unnamed", &json!({}))]
    );
}

#[tokio::test]
async fn every_bad_answer_has_a_code_and_discloses_nothing() {
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    let bad_call = |args: &str, name: &str| {
        let call = json!({"id": "a", "function": {"name": name, "arguments": args}});
        with_message(
            &json!({"content": null, "tool_calls": [call]}),
            &json!("tool_calls"),
        )
    };
    let text = json!({"content": "hi"});
    let page = format!("<html>{KEY} 127.0.0.1 how much?</html>");
    let invalid = ("answer_invalid", true);
    for (response, (code, is_transient)) in [
        (CannedResponse::json("200 OK", &page), invalid),
        (CannedResponse::json("200 OK", "{}"), invalid),
        (CannedResponse::json("200 OK", "{\"choices\": []}"), invalid),
        (
            CannedResponse::json("200 OK", "{\"choices\": [{}]}"),
            invalid,
        ),
        (CannedResponse::json("200 OK", ""), invalid),
        (ok(&deep), invalid),
        (bad_call(&deep.to_string(), "price"), invalid),
        (
            with_message(&text, &json!("banana")),
            ("answer_invalid", false),
        ),
        (with_message(&text, &Value::Null), ("answer_invalid", false)),
        (
            with_message(&json!({"content": " \n"}), &json!("stop")),
            ("answer_empty", false),
        ),
        (
            with_message(&json!({"content": null}), &json!("stop")),
            ("answer_empty", false),
        ),
        (
            with_message(&text, &json!("content_filter")),
            ("answer_refused", false),
        ),
        (
            with_message(&json!({"refusal": "No."}), &json!("stop")),
            ("answer_refused", false),
        ),
        (
            CannedResponse::json("401 No", &page),
            ("provider_unavailable", false),
        ),
        (
            CannedResponse::json("404 No", &page),
            ("model_not_supported", false),
        ),
        (
            CannedResponse::json("413 No", &page),
            ("content_too_long", false),
        ),
        (
            CannedResponse::json("429 No", &page),
            ("provider_quota_exhausted", true),
        ),
        (
            CannedResponse::json("503 No", &page),
            ("provider_unavailable", true),
        ),
        (
            CannedResponse::json("302 Found", &page),
            ("provider_unavailable", false),
        ),
        (CannedResponse::HangUp, ("provider_unavailable", true)),
    ] {
        let server = Server::responding_with(response).await;
        let model = hosted(ModelApi::OpenAi, &server.url);
        let failure = call(&model, &request()).await.unwrap_err();
        assert_eq!(
            (failure.error.code.as_str(), failure.is_transient),
            (code, is_transient),
            "{failure:?}"
        );
        let reported = format!("{failure:?}");
        for hidden in [KEY, "127.0.0.1", "how much"] {
            assert!(!reported.contains(hidden), "{reported}");
        }
    }
}

#[tokio::test]
async fn huge_answer_is_refused() {
    let text = "x".repeat(2 * 1024 * 1024);
    let server =
        Server::responding_with(with_message(&json!({"content": text}), &json!("stop"))).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let failure = call(&model, &request()).await.unwrap_err();
    assert_eq!(
        (failure.error.code.as_str(), failure.is_transient),
        ("answer_too_large", false)
    );
}

/// Z-42 (half: retries)
#[tokio::test]
async fn transient_failures_are_retried_under_the_same_key_up_to_the_limit() {
    let busy = CannedResponse::json("503 Busy", "{}");
    let server = in_turn(vec![busy.clone(), CannedResponse::HangUp, answer()]).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let two_retries = RetrySettings {
        max_retries: 2,
        ..ONE_RETRY
    };
    let reply = model.call(&request(), &two_retries, None).await.unwrap();
    assert_eq!(reply.answer.text.as_deref(), Some("ok"));
    let keys = server.requests().await;
    let keys: Vec<_> = keys
        .iter()
        .flat_map(|r| r.header("idempotency-key"))
        .collect();
    assert_eq!(keys, ["call-1"; 3]);

    let server = in_turn(vec![busy.clone(), busy, answer()]).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    assert!(model.call(&request(), &ONE_RETRY, None).await.is_err());
    assert_eq!(server.requests().await.len(), 2);

    let server = in_turn(vec![CannedResponse::json("401 No", "{}"), answer()]).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    assert!(model.call(&request(), &ONE_RETRY, None).await.is_err());
    assert_eq!(
        server.requests().await.len(),
        1,
        "a permanent failure is not retried"
    );
}

#[tokio::test]
async fn retry_after_beyond_the_timeout_fails_at_once() {
    let later = CannedResponse::new("429 Slow", &["retry-after: 31"], "");
    let server = in_turn(vec![later, answer()]).await;
    let model = hosted(ModelApi::OpenAi, &server.url);
    let failure = model.call(&request(), &ONE_RETRY, None).await.unwrap_err();
    assert_eq!(failure.error.code, "provider_quota_exhausted");
    assert_eq!(failure.retry_after_ms, Some(31_000));
    assert_eq!(server.requests().await.len(), 1);
}

/// Waits until the server has got so many requests, then lets time pass only by timers.
async fn pause_after(server: &Server, requests: usize) {
    while server.requests().await.len() < requests {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
}

/// Z-42 (half: timeouts)
#[tokio::test]
async fn hanging_provider_is_given_up_at_the_timeout() {
    let stalls = [
        CannedResponse::Stall(Vec::new()),
        CannedResponse::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"choi".to_vec()),
        CannedResponse::Stall(
            format!("HTTP/1.1 200 OK\r\n{STREAM_HEADER}\r\n\r\ndata: {{\"cho").into_bytes(),
        ),
    ];
    let retry = RetrySettings::default();
    for stall in stalls {
        let server = Server::responding_with(stall).await;
        let model = hosted(ModelApi::OpenAi, &server.url);
        let request = request();
        let (called, ()) =
            tokio::join!(model.call(&request, &retry, None), pause_after(&server, 1));
        let failure = called.unwrap_err();
        assert_eq!(
            (failure.error.code.as_str(), failure.is_transient),
            ("timeout", true)
        );
        tokio::time::resume();
        assert_eq!(server.requests().await.len(), 1);
    }
}

#[tokio::test]
async fn private_address_is_refused_unless_allowed() {
    let mut closed = settings(ModelApi::OpenAi, "http://127.0.0.1:9/v1");
    closed.hosted.guard = UrlGuard::default();
    let model = ChatModel::hosted(closed, CallLimits::default()).unwrap();
    let failure = call(&model, &request()).await.unwrap_err();
    assert_eq!(
        (failure.error.code.as_str(), failure.is_transient),
        ("provider_unavailable", false)
    );
    assert!(!failure.error.message.contains("127"), "{failure:?}");
}

#[test]
fn settings_do_not_show_the_key() {
    let shown = format!("{:?}", settings(ModelApi::OpenAi, "http://example.com"));
    assert!(!shown.contains(KEY), "{shown}");
}

#[test]
fn key_is_read_from_a_variable_that_is_not_the_hosts() {
    let environment = |name: &str| match name {
        "HOUSE_KEY" | "TANDEM_SIGNING_KEY" => Some(" secret \n".to_owned()),
        "EMPTY" => Some(" ".to_owned()),
        _ => None,
    };
    assert_eq!(read_api_key("HOUSE_KEY", environment).unwrap(), "secret");
    for name in ["EMPTY", "MISSING"] {
        let error = read_api_key(name, environment).unwrap_err();
        assert_eq!(error, ApiKeyError::NotSet(name.to_owned()));
    }
    let error = read_api_key("tandem_SIGNING_KEY", environment).unwrap_err();
    assert!(matches!(error, ApiKeyError::OfHost(_)));
}
