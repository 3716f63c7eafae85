use super::server::{CannedResponse, Server};
use crate::{UrlGuard, WebhookCaller};
use std::time::Duration;
use tandem_record::ErrorInfo;

fn caller(allow_private: bool) -> WebhookCaller {
    let guard = UrlGuard {
        allow_private,
        ..UrlGuard::default()
    };
    WebhookCaller::new(guard).unwrap()
}

async fn post(caller: &WebhookCaller, url: &str) -> Result<u16, ErrorInfo> {
    let headers = [("X-openwop-Webhook-Id", "wh-1".to_owned())];
    caller
        .post(url, &headers, b"{\"a\":1}".to_vec(), None)
        .await
}

#[tokio::test]
async fn a_delivery_is_one_signed_post_of_exactly_these_bytes() {
    let server = Server::responding_with(CannedResponse::new("204 No Content", &[], "")).await;
    let url = format!("{}/in?x=1", server.url);
    assert_eq!(post(&caller(true), &url).await, Ok(204));
    let request = server.only_request().await;
    assert_eq!(request.line, "POST /in?x=1 HTTP/1.1");
    assert_eq!(request.body, "{\"a\":1}");
    assert_eq!(request.header("x-openwop-webhook-id"), ["wh-1"]);
    assert_eq!(request.header("content-type"), ["application/json"]);
    let agent = request.header("user-agent");
    assert!(
        agent[0].starts_with("openwop-webhook-dispatcher/") && agent.len() == 1,
        "{agent:?}"
    );
    assert_eq!(request.header("traceparent").len(), 1);
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let inside = Server::responding_with(CannedResponse::new("200 OK", &[], "secret")).await;
    let location = format!("location: {}/latest", inside.url);
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = Server::responding_with(CannedResponse::new(status, &[&location], "")).await;
        let failed = post(&caller(true), &server.url).await.unwrap_err();
        assert!(failed.message.contains(&status[..3]), "{failed:?}");
        server.only_request().await;
    }
    assert!(inside.requests().await.is_empty());
}

#[tokio::test]
async fn errors_disconnects_and_timeouts_are_failures_without_the_body() {
    for answer in [
        CannedResponse::new("500 Oops", &[], "password=hunter2"),
        CannedResponse::new("404 Not Found", &[], ""),
        CannedResponse::HangUp,
        CannedResponse::Stall(Vec::new()),
    ] {
        let server = Server::responding_with(answer).await;
        let caller = caller(true).with_timeout(Duration::from_millis(50));
        let failed = post(&caller, &format!("{}/a/secret/path", server.url)).await;
        let text = format!("{:?}", failed.unwrap_err());
        assert!(
            !text.contains("hunter2") && !text.contains("/a/secret"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_status_counts_even_if_the_body_never_ends() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec();
    let server = Server::responding_with(CannedResponse::Stall(head)).await;
    let caller = caller(true).with_timeout(Duration::from_millis(50));
    assert_eq!(post(&caller, &server.url).await, Ok(200));
}

#[tokio::test]
async fn private_targets_are_refused_at_registration_and_at_delivery() {
    let server = Server::responding_with(CannedResponse::new("200 OK", &[], "")).await;
    let port = server.url.rsplit_once(':').unwrap().1;
    for url in [
        server.url.clone(),
        "http://example.com/in".to_owned(),
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        "https://10.1.2.3/in".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "https://[::1]/in".to_owned(),
        "https://[::ffff:127.0.0.1]/in".to_owned(),
        "https://printer.local/".to_owned(),
        "not a url".to_owned(),
    ] {
        assert!(caller(false).vet(&url).await.is_err(), "{url}");
        let refused = post(&caller(false), &url).await.unwrap_err();
        assert_eq!(refused.code, "url_rejected", "{url}");
    }
    assert!(server.requests().await.is_empty());
    assert!(caller(false).vet("https://1.1.1.1/in").await.is_ok());
    assert!(caller(true).vet(&server.url).await.is_ok());
    let metadata = "http://169.254.169.254/latest";
    assert!(
        caller(true).vet(metadata).await.is_err(),
        "not even in tests"
    );
}
