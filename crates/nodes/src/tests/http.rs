//! Successful calls: what is sent, and what a node returns.

use super::server::{CannedResponse, Server};
use crate::{CallLimits, HttpCaller, UrlGuard};
use serde_json::{Value, json};
use tandem_record::{
    EffectId, EffectOutcome, ErrorInfo, HttpRequest, MAX_NESTING, Object, TraceContext,
};

pub(super) fn caller() -> HttpCaller {
    let guard = UrlGuard {
        allow_private: true,
        ..UrlGuard::default()
    };
    HttpCaller::new(guard, CallLimits::default()).unwrap()
}

pub(super) fn request(method: &str, url: &str) -> HttpRequest {
    HttpRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: Object::new(),
        body: None,
        timeout_ms: 30_000,
    }
}

pub(super) fn effect() -> EffectId {
    EffectId::new("effect-1")
}

pub(super) fn done(outcome: EffectOutcome) -> Value {
    match outcome {
        EffectOutcome::Done { outputs } => Value::Object(outputs),
        other => panic!("not done: {other:?}"),
    }
}

pub(super) fn failed(outcome: EffectOutcome) -> ErrorInfo {
    match outcome {
        EffectOutcome::Failed { error } => error,
        other => panic!("not failed: {other:?}"),
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

#[tokio::test]
async fn a_call_carries_its_identity_and_its_trace() {
    // R-0040-4 (half: every call over HTTP)
    // R-0040-6 (half: a trace goes out with every call): whatever a run sends out goes this way.
    let server = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
    let trace = TraceContext {
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
        tracestate: Some("vendor=1".to_owned()),
    };
    let get = request("get", &format!("{}/things?q=1", server.url));
    done(caller().call(&get, &effect(), Some(&trace)).await);

    let sent = server.only_request().await;
    assert_eq!(sent.line, "GET /things?q=1 HTTP/1.1");
    assert_eq!(sent.header("idempotency-key"), ["effect-1"]);
    assert_eq!(sent.header("tracestate"), ["vendor=1"]);
    assert_eq!(sent.header("user-agent"), ["tandem/0.1.0"]);
    let traceparent = sent.header("traceparent")[0];
    assert!(traceparent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    assert!(!traceparent.contains("b7ad6b7169203331"));
    assert!(sent.header("content-type").is_empty() && sent.body.is_empty());
}

#[tokio::test]
async fn a_workflow_cannot_set_the_hosts_own_headers() {
    let server = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
    let mut post = request("POST", &server.url);
    post.body = Some(json!("x"));
    post.headers = object(json!({
        "idempotency-KEY": "mine", "Traceparent": "mine", "tracestate": "mine=1",
        "Host": "elsewhere.example", "Content-Length": "0", "Connection": "upgrade",
        "Upgrade": "websocket", "Transfer-Encoding": "chunked", "Expect": "100-continue",
        "X-Number": 7, "X-Flag": true, "X-Nothing": null, "User-Agent": "mine",
    }));
    done(caller().call(&post, &effect(), None).await);

    let sent = server.only_request().await;
    assert_eq!(sent.header("idempotency-key"), ["effect-1"]);
    assert_eq!(sent.header("traceparent")[0].len(), 55);
    assert_eq!(
        sent.header("host"),
        [server.url.trim_start_matches("http://")]
    );
    assert_eq!(sent.header("content-length"), ["3"]);
    for absent in [
        "tracestate",
        "connection",
        "upgrade",
        "transfer-encoding",
        "expect",
    ] {
        assert!(sent.header(absent).is_empty(), "{absent}");
    }
    assert_eq!(sent.header("x-number"), ["7"]);
    assert_eq!(sent.header("x-flag"), ["true"]);
    assert!(sent.header("x-nothing").is_empty());
    assert_eq!(sent.header("user-agent"), ["mine"]);
}

#[tokio::test]
async fn bodies_are_json_unless_the_workflow_says_otherwise() {
    let form = "application/x-www-form-urlencoded";
    for (content_type, body, sent_type, sent_body) in [
        (None, json!({"a": 1}), "application/json", r#"{"a":1}"#),
        (None, json!("text"), "application/json", r#""text""#),
        (
            Some("application/vnd.x+json; v=1"),
            json!("text"),
            "application/vnd.x+json; v=1",
            r#""text""#,
        ),
        (Some(form), json!("a=1&b=2"), form, "a=1&b=2"),
        (Some("text/plain"), json!([1]), "text/plain", "[1]"),
    ] {
        let server = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
        let mut post = request("POST", &server.url);
        post.body = Some(body);
        if let Some(content_type) = content_type {
            post.headers = object(json!({ "Content-Type": content_type }));
        }
        done(caller().call(&post, &effect(), None).await);
        let sent = server.only_request().await;
        assert_eq!(sent.header("content-type"), [sent_type]);
        assert_eq!(sent.body, sent_body);
    }
}

#[tokio::test]
async fn the_outputs_are_status_chosen_headers_and_body() {
    let headers = [
        "Content-Type: application/problem+json; charset=utf-8",
        "ETag: \"1\"",
        "Location: /next",
        "Retry-After: 3",
        "Set-Cookie: session=secret",
    ];
    let server =
        Server::responding_with(CannedResponse::new("201 Created", &headers, r#"{"a":[1]}"#)).await;
    let outcome = caller()
        .call(&request("PUT", &server.url), &effect(), None)
        .await;
    assert_eq!(
        done(outcome),
        json!({
            "status": 201,
            "headers": {
                "content-type": "application/problem+json; charset=utf-8",
                "etag": "\"1\"",
                "location": "/next",
                "retry-after": "3",
            },
            "body": {"a": [1]},
        })
    );
}

#[tokio::test]
async fn bodies_that_are_not_json_are_text() {
    for (headers, body, expected) in [
        (
            &["content-type: text/plain"][..],
            r#"{"a":1}"#,
            json!(r#"{"a":1}"#),
        ),
        (&[], "plain", json!("plain")),
        (
            &["content-type: application/json"],
            "{broken",
            json!("{broken"),
        ),
        (&["content-type: application/json"], "", Value::Null),
        (&["content-type: application/json"], "null", Value::Null),
    ] {
        let server = Server::responding_with(CannedResponse::new("200 OK", headers, body)).await;
        let outcome = caller()
            .call(&request("GET", &server.url), &effect(), None)
            .await;
        assert_eq!(done(outcome)["body"], expected);
    }
}

#[tokio::test]
async fn echoed_credential_is_masked() {
    let echo = r#"{"headers":{"authorization":"Bearer sk-very-secret"},"token":"sk-very-secret"}"#;
    let server = Server::responding_with(CannedResponse::json("200 OK", echo)).await;
    let mut get = request("GET", &server.url);
    get.headers = object(json!({ "Authorization": "Bearer sk-very-secret" }));
    let outputs = done(caller().call(&get, &effect(), None).await);
    let sent = server.only_request().await;
    assert_eq!(sent.header("authorization"), ["Bearer sk-very-secret"]);
    assert_eq!(
        outputs["body"],
        json!({"headers": {"authorization": "[REDACTED]"}, "token": "[REDACTED]"})
    );
}

#[tokio::test]
async fn too_deeply_nested_response_is_returned_as_text() {
    for (levels, is_text) in [(MAX_NESTING, false), (MAX_NESTING + 1, true)] {
        let nested = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let server = Server::responding_with(CannedResponse::json("200 OK", &nested)).await;
        let get = request("GET", &server.url);
        let outputs = done(caller().call(&get, &effect(), None).await);
        assert_eq!(outputs["body"].is_string(), is_text, "{levels}");
    }
}
