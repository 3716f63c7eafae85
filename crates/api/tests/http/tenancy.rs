//! Access: credentials, scopes, tenants, workspaces, rates.

use crate::test_server::{TestServer, chain, hour, noop};
use serde_json::json;
use std::net::SocketAddr;
use tandem_access::{NewKey, Scope};
use tandem_api::HttpSettings;

#[tokio::test]
async fn invalid_credential_gets_the_same_401_everywhere() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    for path in [
        format!("/v1/runs/{run}"),
        "/v1/runs/run-nobody".to_owned(),
        format!("/v1/runs/{run}/events"),
        format!("/v1/runs/{run}/events/poll"),
        "/v1/workflows/w".to_owned(),
        format!("/v1/runs/{run}/artifacts/none"),
        format!("/v1/runs/{run}/debug-bundle"),
        "/v1/runs".to_owned(),
        "/v1/host/tandem/workflows".to_owned(),
        "/v1/host/tandem/keys".to_owned(),
        "/v1/host/sample/test/otel/spans".to_owned(),
        "/v1/nothing/here".to_owned(),
    ] {
        for header in ["", "Bearer wrong-key-53c7", "Basic d3Jvbmc="] {
            let headers = [("authorization", header)];
            let headers = if header.is_empty() {
                &[][..]
            } else {
                &headers[..]
            };
            let reply = server.call_as("", "GET", &path, headers, "").await;
            reply.refused(401, "unauthenticated");
            assert!(!reply.text.contains("53c7"));
        }
    }
    // The body is not validated.
    server
        .call_as("", "POST", "/v1/runs", &[], "{bad")
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn missing_scope_is_reported_before_the_body_is_validated() {
    let server = TestServer::new().await;
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let reply = server
        .call_as(&reader, "POST", "/v1/runs", &[], "{bad")
        .await;
    let details = reply.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
}

#[tokio::test]
async fn expired_key_gets_key_expired() {
    let server = TestServer::new().await;
    let mut new = NewKey::new("t", "default".into(), [Scope::RunsRead]);
    new.expires_at = Some(server.now().plus_ms(3_600_000));
    let short = server.mint(new).await;
    let call = |key: String| async { server.call_as(&{ key }, "GET", "/v1/runs", &[], "").await };
    call(short.clone()).await.ok(200);
    server.advance(3601).await;
    call(short).await.refused(401, "key_expired");
}

#[tokio::test]
async fn run_of_another_tenant_gets_404() {
    let server = TestServer::new().await;
    let run = server.start("w", &[hour("a")]).await;
    let stranger = server.new_key("tenant2", Scope::all()).await;
    for (method, suffix) in [
        ("GET", ""),
        ("GET", "/events"),
        ("GET", "/events/poll?timeout=1"),
        ("POST", "/cancel"),
        ("POST", ":pause"),
        ("GET", "/debug-bundle"),
        ("GET", "/artifacts/a"),
    ] {
        let path = format!("/v1/runs/{run}{suffix}");
        let reply = server.call_as(&stranger, method, &path, &[], "").await;
        reply.refused(404, "not_found");
    }
    let body = json!({"workflowId": "w", "tenantId": "default"}).to_string();
    let reply = server
        .call_as(&stranger, "POST", "/v1/runs", &[], body)
        .await;
    reply.refused(403, "forbidden");
    let listed = server.call_as(&stranger, "GET", "/v1/runs", &[], "").await;
    assert_eq!(listed.ok(200)["runs"], json!([]));
    assert_eq!(
        server.get(&format!("/v1/runs/{run}")).await.ok(200)["status"],
        "running"
    );
}

#[tokio::test]
async fn test_and_live_keys_have_separate_data() {
    let server = TestServer::new().await;
    let live = server.start("w", &[noop("a")]).await;
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    new.test = true;
    let test_key = server.mint(new).await;
    let key = &test_key;
    let ask =
        async |method, path: &str, body: String| server.call_as(key, method, path, &[], body).await;
    let document = chain("w", &[noop("a")]).to_string();
    ask("PUT", "/v1/host/tandem/workflows/w", document)
        .await
        .ok(201);
    let made = json!({"workflowId": "w"}).to_string();
    let made = ask("POST", "/v1/runs", made).await.ok(201);
    let tested = made["runId"].as_str().expect("an id").to_owned();
    let shown = ask("GET", &format!("/v1/runs/{tested}"), String::new()).await;
    assert_eq!(shown.ok(200)["owner"]["tenant"], "default~test");
    let across = ask("GET", &format!("/v1/runs/{live}"), String::new()).await;
    across.refused(403, "run_forbidden");
    let back = server.get(&format!("/v1/runs/{tested}")).await;
    back.refused(403, "run_forbidden");
    // Both kinds of key belong to the tenant; only a live key sees all of them.
    let count = |keys: serde_json::Value| keys["keys"].as_array().map(Vec::len);
    let all = server.get("/v1/host/tandem/keys").await.ok(200);
    let own = ask("GET", "/v1/host/tandem/keys", String::new()).await;
    assert_eq!((count(all), count(own.ok(200))), (Some(2), Some(1)));
}

/// Covers every operation that names a run or an interrupt, so that a new one is not forgotten.
#[tokio::test]
async fn test_key_gets_a_hint_for_a_live_run_and_other_tenants_get_404() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let run = server.start("w", &[gate]).await;
    let found = server.get("/v1/host/tandem/interrupts").await.ok(200);
    let question = found["interrupts"][0]["interruptId"].as_str().unwrap();
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    new.test = true;
    let tester = server.mint(new).await;
    let stranger = server.new_key("tenant2", Scope::all()).await;
    let described = server.get("/v1/openapi.json").await.ok(200);
    let mut walked = 0;
    for (template, item) in described["paths"].as_object().unwrap() {
        if !template.contains("{runId}") && !template.contains("{interruptId}") {
            continue;
        }
        let path = template
            .replace("{runId}", &run)
            .replace("{interruptId}", question)
            .replace("{nodeId}", "gate")
            .replace("{artifactId}", "a");
        for method in item.as_object().unwrap().keys() {
            let (path, body) = match template.as_str() {
                t if t.ends_with(":diff") => (format!("{path}?against={run}"), json!({})),
                t if t.ends_with(":fork") => (path.clone(), json!({"mode": "replay"})),
                t if t.contains("/interrupts/") => {
                    (path.clone(), json!({"resumeValue": {"action": "accept"}}))
                }
                t if t.ends_with("/divergence") => (path.clone(), json!({"action": "abort"})),
                t if t.starts_with("/v1/host/tandem/runs") && method == "post" => (
                    path.clone(),
                    json!({"eventId": "e", "eventType": "t", "payload": {}}),
                ),
                _ => (path.clone(), json!({})),
            };
            let body = if method == "get" {
                String::new()
            } else {
                body.to_string()
            };
            let method = method.to_uppercase();
            let ask =
                async |key: &str| server.call_as(key, &method, &path, &[], body.clone()).await;
            let details = ask(&tester).await.refused(403, "run_forbidden");
            let hint = details["hint"].as_str().unwrap();
            assert!(hint.contains("default~test"), "{template}: {hint}");
            assert_eq!(details["actsIn"], "default~test");
            let reply = ask(&stranger).await;
            assert_eq!(reply.status.as_u16(), 404, "{template}: {reply:?}");
            assert!(!reply.text.contains("~test"), "{reply:?}");
            walked += 1;
        }
    }
    assert!(
        walked >= 15,
        "only {walked} operations name a run or a question"
    );
    // A key bound to a workspace is told the same.
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    (new.test, new.workspace) = (true, Some("blue".into()));
    let bound = server.mint(new).await;
    let path = format!("/v1/runs/{run}");
    let reply = server.call_as(&bound, "GET", &path, &[], "").await;
    let details = reply.refused(403, "run_forbidden");
    assert_eq!(details["actsIn"], "default~test");
    assert!(details["hint"].as_str().unwrap().contains("default~test"));
    assert_eq!(
        server.get(&path).await.ok(200)["status"],
        "waiting-approval"
    );
}

#[tokio::test]
async fn workspace_bound_key_stays_in_its_workspace() {
    let server = TestServer::new().await;
    server.register("w", &[hour("a")]).await;
    let mut keys = Vec::new();
    for workspace in ["red", "blue"] {
        let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
        new.workspace = Some(workspace.into());
        keys.push(server.mint(new).await);
    }
    let body = json!({"workflowId": "w"}).to_string();
    let made = server
        .call_as(&keys[0], "POST", "/v1/runs", &[], body)
        .await;
    let run = made.ok(201)["runId"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{run}");
    for (method, suffix) in [
        ("GET", ""),
        ("GET", "/events"),
        ("POST", "/cancel"),
        ("POST", ":pause"),
    ] {
        let path = format!("{path}{suffix}");
        let reply = server.call_as(&keys[1], method, &path, &[], "").await;
        reply.refused(403, "run_forbidden");
    }
    let bulk = json!({"runIds": [run]}).to_string();
    let reply = server
        .call_as(&keys[1], "POST", "/v1/runs:bulk-cancel", &[], bulk)
        .await;
    assert_eq!(reply.ok(200)["results"][0]["error"]["code"], "forbidden");
    let seen = |key: String| async { server.call_as(&{ key }, "GET", "/v1/runs", &[], "").await };
    assert_eq!(seen(keys[1].clone()).await.ok(200)["runs"], json!([]));
    assert_eq!(
        seen(keys[0].clone()).await.ok(200)["runs"][0]["owner"]["workspace"],
        "red"
    );
    server.get(&path).await.ok(200);
}

#[tokio::test]
async fn rate_limited_request_gets_retry_after() {
    let settings = HttpSettings {
        requests_per_second: 1,
        request_burst: 3,
        ..HttpSettings::default()
    };
    let server = TestServer::with_settings(settings).await;
    for _ in 0..3 {
        server.get("/v1/runs").await.ok(200);
    }
    let reply = server.get("/v1/runs").await;
    let details = reply.refused(429, "rate_limited");
    assert_eq!(reply.header("retry-after"), "1");
    assert!(details["retryAfterMs"].as_u64().unwrap() <= 1000);
    assert_eq!(details["scope"], "key");
    // Another key has its own bucket, and discovery is not limited.
    let other = server.new_key("default", Scope::all()).await;
    server
        .call_as(&other, "GET", "/v1/runs", &[], "")
        .await
        .ok(200);
    server
        .call_as("", "GET", "/.well-known/openwop", &[], "")
        .await
        .ok(200);
    // Not for a key that has used up its requests, either.
    for _ in 0..5 {
        server.get("/.well-known/openwop").await.ok(200);
    }
    server.get("/v1/runs").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn failed_authentication_is_limited_by_address() {
    let settings = HttpSettings {
        failures_per_second: 1,
        failure_burst: 2,
        ..HttpSettings::default()
    };
    let server = TestServer::with_settings(settings).await;
    let guess = |n: usize| {
        let address: SocketAddr = "192.0.2.7:1".parse().unwrap();
        let request = axum::http::Request::builder()
            .uri("/v1/runs")
            .header("authorization", format!("Bearer guess-{n}"))
            .extension(axum::extract::ConnectInfo(address))
            .body(axum::body::Body::empty())
            .unwrap();
        server.raw(request)
    };
    guess(0).await.refused(401, "unauthenticated");
    guess(1).await.refused(401, "unauthenticated");
    guess(2).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn listing_pages_return_each_run_once() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(server.create("w").await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/host/tandem/runs?workflowId=w&limit=2{cursor}");
        let page = server.get(&path).await.ok(200);
        for row in page["runs"].as_array().unwrap() {
            assert_eq!(row["status"], "completed");
            seen.push(row["runId"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    made.reverse();
    assert_eq!(seen, made);
    for bad in ["limit=0", "limit=201", "cursor=x", "status=odd", "tag=x"] {
        let reply = server.get(&format!("/v1/runs?{bad}")).await;
        reply.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn cursor_tells_nothing_about_runs_of_others() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    server.register("asks", &[gate]).await;
    let other = server.new_key("tenant2", Scope::all()).await;
    for workflow in ["w", "w", "asks", "asks"] {
        server.create(workflow).await;
    }
    for (path, list, id) in [
        ("/v1/runs", "runs", "runId"),
        ("/v1/host/tandem/interrupts", "interrupts", "interruptId"),
    ] {
        let first = server.get(&format!("{path}?limit=1")).await.ok(200);
        let cursor = first["nextCursor"].as_str().unwrap().to_owned();
        server.create("asks").await;
        let again = server.get(&format!("{path}?limit=2")).await.ok(200);
        assert_eq!(again[list][1][id], first[list][0][id]);
        assert_eq!(
            again["nextCursor"], cursor,
            "it names the last item, whatever was created since"
        );
        let next = format!("{path}?limit=1&cursor={cursor}");
        server.get(&next).await.ok(200);
        let foreign = server.call_as(&other, "GET", &next, &[], "").await;
        foreign.refused(400, "validation_error");
        for old in ["r5", "c", "c%FF"] {
            let path = format!("{path}?cursor={old}");
            let reply = server.get(&path).await;
            reply.refused(400, "validation_error");
        }
    }
}
