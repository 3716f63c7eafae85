//! Discovery, the OpenAPI document, health, metrics.

use crate::test_server::{HostOptions, TestServer, noop};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tandem_access::Scope;

const WELL_KNOWN: &str = "/.well-known/openwop";

fn families(document: &Value) -> BTreeSet<String> {
    document.as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn public_document_is_cacheable_with_etag() {
    let server = TestServer::new().await;
    let first = server.call_as("", "GET", WELL_KNOWN, &[], "").await;
    assert_eq!(first.ok(200)["protocolVersion"], "1.0");
    assert_eq!(first.header("cache-control"), "public, max-age=300");
    let etag = first.header("etag");
    let again = server
        .call_as("", "GET", WELL_KNOWN, &[("if-none-match", etag)], "")
        .await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(again.header("etag"), etag);
    let stale = server
        .call_as("", "GET", WELL_KNOWN, &[("if-none-match", "\"old\"")], "")
        .await;
    assert_eq!(stale.text, first.text);
    let limit = &first.json()["limits"]["maxRequestBodyBytes"];
    assert_eq!(limit.as_u64(), Some(1024 * 1024));
}

#[tokio::test]
async fn scope_without_routes_is_not_shown() {
    for test_seams in [true, false] {
        let server = TestServer::with_options(HostOptions {
            test_seams,
            ..HostOptions::default()
        })
        .await;
        let document = server.get(WELL_KNOWN).await;
        assert_eq!(document.text.contains("tandem:test"), test_seams);
        let key = json!({"name": "tests", "scopes": ["runs:read", "tandem:test"]});
        let made = server.post("/v1/host/tandem/keys", key).await;
        match test_seams {
            true => drop(made.ok(201)),
            false => drop(made.refused(400, "validation_error")),
        }
        let keys = server.get("/v1/host/tandem/keys").await;
        assert_eq!(
            keys.text.contains("tandem:test"),
            test_seams,
            "{}",
            keys.text
        );
    }
}

#[tokio::test]
async fn authenticated_discovery_contains_the_public_document() {
    let server = TestServer::new().await;
    let public = server.call_as("", "GET", WELL_KNOWN, &[], "").await;
    let strong = server.get(WELL_KNOWN).await;
    assert_eq!(strong.header("cache-control"), "private, max-age=300");
    assert_eq!(strong.header("vary"), "Authorization");
    let weak_key = server.new_key("default", &[Scope::ManifestRead]).await;
    let weak = server.call_as(&weak_key, "GET", WELL_KNOWN, &[], "").await;
    let of_weak = weak.json()["extensions"]["caller"].clone();
    let expected = json!({"tenant": "default", "scopes": ["manifest:read"]});
    assert_eq!(of_weak, expected, "the view is the key's own");
    assert!(public.json()["extensions"]["caller"].is_null());
    let [public, weak, strong] = [public, weak, strong].map(|view| families(&view.ok(200)));
    assert!(public.is_subset(&weak), "{public:?} {weak:?}");
    assert!(weak.is_subset(&strong), "{weak:?} {strong:?}");
    server
        .call_as("wrong", "GET", WELL_KNOWN, &[], "")
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn openapi_lists_every_route_with_its_public_path() {
    let server = TestServer::new().await;
    let reply = server.call_as("", "GET", "/v1/openapi.json", &[], "").await;
    let document = reply.ok(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = families(&document["paths"]);
    for path in [
        "/.well-known/openwop",
        "/v1/openapi.json",
        "/v1/workflows",
        "/v1/workflows/{workflowId}",
        "/v1/runs",
        "/v1/runs/{runId}",
        "/v1/runs/{runId}/events",
        "/v1/runs/{runId}/events/poll",
        "/v1/runs/{runId}/cancel",
        "/v1/runs:bulk-cancel",
        "/v1/runs/{runId}:pause",
        "/v1/runs/{runId}:resume",
        "/v1/runs/{runId}/artifacts/{artifactId}",
        "/v1/runs/{runId}/debug-bundle",
        "/v1/host/tandem/runs",
        "/v1/host/tandem/workflows",
        "/v1/host/tandem/workflows/{workflowId}",
        "/v1/host/tandem/keys",
        "/v1/host/tandem/keys/{keyId}",
        "/v1/host/tandem/keys/{keyId}:rotate",
        "/v1/host/tandem/test/clock",
        "/healthz",
        "/v1/host/tandem/parked",
        "/v1/host/tandem/parked/{subject}/retry",
        "/readyz",
        "/metrics",
    ] {
        assert!(paths.contains(path), "{path} is missing in {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains('@')));
    let create = &document["paths"]["/v1/runs"]["post"];
    assert!(create["security"].is_array() && create["responses"]["default"].is_object());
    assert!(document["components"]["schemas"]["CreateRun"]["properties"]["workflowId"].is_object());
}

#[tokio::test]
async fn health_and_metrics_need_no_key() {
    let server = TestServer::new().await;
    server.start("w", &[noop("a")]).await;
    server.call_as("", "GET", "/healthz", &[], "").await.ok(200);
    server.call_as("", "GET", "/readyz", &[], "").await.ok(200);
    let text = server.call_as("", "GET", "/metrics", &[], "").await.text;
    assert!(text.contains("openwop_run_created_total 1"), "{text}");
    let served = "tandem_http_requests_total{method=\"POST\",route=\"/v1/runs\",status=\"2xx\"} 1";
    assert!(text.contains(served), "{text}");
    server.stopping.send(true).unwrap();
    server
        .call_as("", "GET", "/readyz", &[], "")
        .await
        .refused(503, "service_unavailable");
}
