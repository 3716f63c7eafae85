//! Failed calls: the code, whether a retry helps, and what is not disclosed.

use super::http::{caller, effect, failed, request};
use super::server::{CannedResponse, Server};
use crate::{CallLimits, HttpCaller, UrlGuard};
use serde_json::{Value, json};
use tandem_record::Object;

#[tokio::test]
async fn the_status_decides_whether_a_retry_helps() {
    for (status, retryable) in [
        (301, false),
        (304, false),
        (400, false),
        (401, false),
        (404, false),
        (408, true),
        (409, false),
        (422, false),
        (425, true),
        (429, true),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
        (505, false),
    ] {
        let body = if status == 304 { "" } else { r#"{"why":1}"# };
        let answer = CannedResponse::json(&format!("{status} Said"), body);
        let server = Server::responding_with(answer).await;
        let error = failed(
            caller()
                .call(&request("GET", &server.url), &effect(), None)
                .await,
        );
        assert_eq!(error.code, "external_call_failed");
        assert_eq!(error.retryable, retryable, "{status}");
        assert_eq!(error.details, Some(json!({"status": status, "body": body})));
    }
}

#[tokio::test]
async fn redirects_are_never_followed() {
    let target = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = format!("location: {}/elsewhere", target.url);
        let server = Server::responding_with(CannedResponse::new(status, &[&location], "")).await;
        let error = failed(
            caller()
                .call(&request("GET", &server.url), &effect(), None)
                .await,
        );
        assert_eq!(error.code, "external_call_failed");
        assert_eq!(server.requests().await.len(), 1);
    }
    assert!(target.requests().await.is_empty());
}

#[tokio::test]
async fn a_response_over_the_limit_fails_the_call() {
    let limit = CallLimits::default().response_bytes;
    for (length, fits) in [(limit, true), (limit + 1, false), (3 * limit, false)] {
        let server =
            Server::responding_with(CannedResponse::new("200 OK", &[], &"x".repeat(length))).await;
        let outcome = caller()
            .call(&request("GET", &server.url), &effect(), None)
            .await;
        if fits {
            assert_eq!(
                super::http::done(outcome)["body"].as_str().unwrap().len(),
                limit
            );
        } else {
            let error = failed(outcome);
            assert_eq!(error.code, "response_too_large");
            assert!(!error.retryable);
        }
    }
}

#[tokio::test]
async fn endless_body_is_read_up_to_the_limit() {
    // Declares no length and never closes; only the limit ends the read.
    let mut endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    endless.resize(
        endless.len() + 2 * CallLimits::default().response_bytes,
        b'x',
    );
    let server = Server::responding_with(CannedResponse::Stall(endless)).await;
    let error = failed(
        caller()
            .call(&request("GET", &server.url), &effect(), None)
            .await,
    );
    assert_eq!(error.code, "response_too_large");
}

#[tokio::test]
async fn silent_server_times_out_before_and_within_the_response() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    for begun in [Vec::new(), half] {
        let server = Server::responding_with(CannedResponse::Stall(begun)).await;
        let mut get = request("GET", &server.url);
        get.timeout_ms = 50;
        let error = failed(caller().call(&get, &effect(), None).await);
        assert_eq!(error.code, "external_call_timeout");
        assert!(
            error.retryable && error.message.contains("50 ms"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn host_timeout_limits_the_request_timeout() {
    let server = Server::responding_with(CannedResponse::Stall(Vec::new())).await;
    let guard = UrlGuard {
        allow_private: true,
        ..UrlGuard::default()
    };
    let limits = CallLimits {
        timeout_ms: 50,
        ..CallLimits::default()
    };
    let caller = HttpCaller::new(guard, limits).unwrap();
    let mut get = request("GET", &server.url);
    get.timeout_ms = u64::MAX;
    let error = failed(caller.call(&get, &effect(), None).await);
    assert_eq!(error.code, "external_call_timeout");
}

#[tokio::test]
async fn failed_connections_are_retryable() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unreachable = format!("http://{}/path?token=hunter2", gone.local_addr().unwrap());
    drop(gone);
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let hangs_up = Server::responding_with(CannedResponse::HangUp).await;
    let breaks_off = Server::responding_with(CannedResponse::Bytes(half)).await;
    for url in [&unreachable, &hangs_up.url, &breaks_off.url] {
        let error = failed(caller().call(&request("GET", url), &effect(), None).await);
        assert_eq!(error.code, "external_call_failed", "{error:?}");
        assert!(error.retryable);
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    assert_eq!(hangs_up.requests().await.len(), 1, "no automatic retry");
}

#[tokio::test]
async fn rejected_url_is_not_called() {
    let server = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
    let caller = HttpCaller::new(UrlGuard::default(), CallLimits::default()).unwrap();
    let by_name = server.url.replace("127.0.0.1", "localhost");
    for url in [&server.url, &by_name, "ftp://example.com/", "nonsense"] {
        let error = failed(caller.call(&request("GET", url), &effect(), None).await);
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("url_rejected", false)
        );
    }
    assert!(server.requests().await.is_empty());
}

#[tokio::test]
async fn rejection_while_connecting_is_reported_as_url_rejected() {
    let server = Server::responding_with(CannedResponse::json("200 OK", "{}")).await;
    // The name is allowed, one of its addresses is not: a public name that resolves to a private
    // address.
    let guard = UrlGuard {
        allow_private: true,
        deny_hosts: vec!["127.0.0.1".to_owned()],
        require_https: false,
    };
    let caller = HttpCaller::new(guard, CallLimits::default()).unwrap();
    let url = server.url.replace("127.0.0.1", "localhost");
    let error = failed(caller.call(&request("GET", &url), &effect(), None).await);
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("url_rejected", false)
    );
    assert!(server.requests().await.is_empty());
}

#[tokio::test]
async fn invalid_request_is_reported_without_its_values() {
    let headers = [
        json!({ "bad name": "v" }),
        json!({ "Authorization": "hunter2\r\nX-Injected: 1" }),
        json!({ "X-List": ["hunter2"] }),
    ];
    let mut requests: Vec<_> = ["", "CONNECT", "TRACE", "GET /", "BREW"]
        .map(|method| request(method, "http://127.0.0.1:9/"))
        .to_vec();
    for header in headers {
        let mut get = request("GET", "http://127.0.0.1:9/");
        get.headers = serde_json::from_value::<Object>(header).unwrap();
        requests.push(get);
    }
    for request in requests {
        let error = failed(caller().call(&request, &effect(), None).await);
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("validation_error", false)
        );
        assert!(!error.message.contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn error_body_is_truncated_and_never_contains_a_credential() {
    let secret = "sk-live-0123456789abcdef";
    // The credential at every position around the cut, complete and repeated.
    for offset in [0, 4_060, 4_080, 4_095, 4_096, 4_110] {
        let page = format!("{}{}", "é".repeat(offset / 2), secret.repeat(400));
        let server = Server::responding_with(CannedResponse::new("500 Oops", &[], &page)).await;
        let mut get = request("GET", &server.url);
        get.headers
            .insert("authorization".into(), json!(format!("Bearer {secret}")));
        let error = failed(caller().call(&get, &effect(), None).await);
        let shown = format!("{error:?}");
        for part in 8..secret.len() {
            assert!(!shown.contains(&secret[..part]), "{offset}: {shown}");
        }
        let body = error
            .details
            .as_ref()
            .and_then(|details| details["body"].as_str());
        assert!(body.is_some_and(|body| body.len() <= 4_096));
    }
    let server =
        Server::responding_with(CannedResponse::new("500 Oops", &[], &"x".repeat(9_000))).await;
    let error = failed(
        caller()
            .call(&request("GET", &server.url), &effect(), None)
            .await,
    );
    let details = error.details.unwrap_or(Value::Null);
    assert_eq!(details["body"].as_str().map(str::len), Some(4_096));
}
