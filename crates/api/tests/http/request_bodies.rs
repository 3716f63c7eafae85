//! Request bodies are closed, limited and strict.

use crate::test_server::{TestServer, chain, noop};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use tandem_api::HttpSettings;

#[tokio::test]
async fn create_body_rejects_unknown_fields_and_wrong_types() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let deep = json!({"a": {"b": {"c": {"d": {"e": 1}}}}});
    let bad = [
        json!({}),
        json!({"workflowId": ""}),
        json!({"workflowId": 7}),
        json!({"workflowId": "w", "bogus": 1}),
        json!({"workflowId": "w", "inputs": [1]}),
        json!({"workflowId": "w", "configurable": "fast"}),
        json!({"workflowId": "w", "inputs": null}),
        json!({"workflowId": "w", "configurable": null}),
        json!({"workflowId": "w", "tags": null}),
        json!({"workflowId": "w", "metadata": null}),
        json!({"workflowId": "w", "scopeId": null}),
        json!({"workflowId": "w", "callbackUrl": null}),
        json!(["w"]),
        json!(["w", {}]),
        json!({"workflowId": "w", "configurable": {"recursionLimit": 0}}),
        json!({"workflowId": "w", "tags": vec!["t"; 101]}),
        json!({"workflowId": "w", "tags": ["t".repeat(257)]}),
        json!({"workflowId": "w", "metadata": deep}),
        json!({"workflowId": "w", "callbackUrl": "not a url"}),
        json!({"workflowId": "w", "callbackUrl": "ftp://host/x"}),
        json!({"workflowId": "w", "mode": "other"}),
        json!({"workflowId": "w", "agentId": "a"}),
        json!([]),
        json!("text"),
        Value::Null,
    ];
    for body in bad {
        let details = server.post("/v1/runs", body.clone()).await;
        let details = details.refused(400, "validation_error");
        let errors = details["errors"].as_array().unwrap();
        assert!(!errors.is_empty(), "{body}");
        assert!(errors[0]["path"].is_string() && errors[0]["message"].is_string());
    }
    let raw: [&[u8]; 4] = [
        b"{bad",
        b"",
        b"\xff\xfe",
        b"{\"workflowId\":\"w\"} trailing",
    ];
    for body in raw {
        let reply = server.call_as(&server.key, "POST", "/v1/runs", &[], body.to_vec());
        reply.await.refused(400, "validation_error");
    }
    let wrong_type = server.post("/v1/runs", json!({"workflowId": "w", "tags": ["ok", 7]}));
    let details = wrong_type.await.refused(400, "validation_error");
    assert_eq!(details["errors"][0]["path"], "/tags/1");
}

#[tokio::test]
async fn callback_url_is_vetted_like_a_webhook_url() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let body = json!({"workflowId": "w", "callbackUrl": "http://10.0.0.1/x"});
    let details = server.post("/v1/runs", body).await;
    let details = details.refused(400, "webhook_url_rejected");
    assert!(details["reason"].is_string());
}

#[tokio::test]
async fn array_body_is_refused_by_every_route() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let run = server.start("g", &[gate]).await;
    let inbox = server.get("/v1/host/tandem/interrupts").await.ok(200);
    let id = inbox["interrupts"][0]["interruptId"].as_str().unwrap();
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let token = snapshot["interrupt"]["interruptToken"].as_str().unwrap();
    let accept = json!({"action": "accept"});
    let tried = [
        (format!("/v1/runs/{run}/interrupts/gate"), json!([accept])),
        (format!("/v1/interrupts/{token}"), json!([accept])),
        (
            format!("/v1/host/tandem/interrupts/{id}:resolve"),
            json!([accept]),
        ),
        (format!("/v1/runs/{run}:pause"), json!(["why", "immediate"])),
        (format!("/v1/runs/{run}:pause"), json!([])),
        (
            format!("/v1/runs/{run}:pause"),
            json!({"drainPolicy": {"immediate": null}}),
        ),
        (format!("/v1/runs/{run}:resume"), json!([])),
        (format!("/v1/runs/{run}/cancel"), json!([])),
        ("/v1/runs:bulk-cancel".to_owned(), json!([[run]])),
        (format!("/v1/runs/{run}:fork"), json!(["replay"])),
        (
            format!("/v1/runs/{run}:fork"),
            json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": [{"a": 1}]}),
        ),
        (
            "/v1/webhooks".to_owned(),
            json!(["https://example.com/x", ["run.completed"]]),
        ),
        (
            "/v1/host/tandem/keys".to_owned(),
            json!(["k", ["runs:read"]]),
        ),
        (
            "/v1/host/sample/test/mock-ai/program".to_owned(),
            json!({"nodeId": "n", "program": [["text"]]}),
        ),
    ];
    for (path, body) in tried {
        let reply = server.post(&path, body.clone()).await;
        assert_eq!(reply.status.as_u16(), 400, "{path} {body}: {reply:?}");
        reply.refused(400, "validation_error");
    }
    let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(after["status"], "waiting-approval");
}

#[tokio::test]
async fn valid_create_returns_status_and_event_urls() {
    // R-0040-5 (half: an incoming trace is continued)
    // R-0040-6 (half: an incoming trace is continued): every run continues the trace of its caller.
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let body = json!({"workflowId": "w", "inputs": {"x": 1}, "tags": ["t"], "metadata": {"a": 1},
        "callbackUrl": "https://example.com/back", "tenantId": "default"});
    let reply = server
        .post_with("/v1/runs", body, &[("traceparent", parent)])
        .await;
    let made = reply.ok(201);
    let run = made["runId"].as_str().unwrap();
    assert_eq!(made["eventsUrl"], format!("/v1/runs/{run}/events"));
    assert_eq!(reply.header("location"), format!("/v1/runs/{run}"));
    assert!(reply.header("traceparent").starts_with(&parent[..36]));
    let bundle = server.get(&format!("/v1/runs/{run}/debug-bundle")).await;
    for span in bundle.ok(200)["spans"].as_array().unwrap() {
        assert_eq!(span["traceId"], parent[3..35]);
    }
    assert_eq!(
        server.get(&format!("/v1/runs/{run}")).await.ok(200)["runId"],
        run
    );
}

#[tokio::test]
async fn test_only_features_get_named_errors() {
    let server = TestServer::new().await;
    server.register("w", &[noop("a")]).await;
    let w = json!({"workflowId": "w"});
    let forced = [("x-force-engine-version", "1")];
    server
        .post_with("/v1/runs", w.clone(), &forced)
        .await
        .refused(403, "force_engine_version_forbidden");
    let mut new = tandem_access::NewKey::new(
        "t",
        "default".into(),
        tandem_access::Scope::all().iter().copied(),
    );
    new.test = true;
    let test_key = server.mint(new).await;
    let document = chain("w", &[noop("a")]).to_string();
    server
        .call_as(
            &test_key,
            "PUT",
            "/v1/host/tandem/workflows/w",
            &[],
            document,
        )
        .await
        .ok(201);
    for (version, status) in [("1", 201), ("2", 400), ("x", 400)] {
        let headers = [("x-force-engine-version", version)];
        let reply = server.call_as(&test_key, "POST", "/v1/runs", &headers, w.to_string());
        assert_eq!(reply.await.status.as_u16(), status, "{version}");
    }
    let mock = json!({"workflowId": "w", "configurable": {"mockProvider": {"id": "stream-text"}}});
    let details = server
        .post("/v1/runs", mock)
        .await
        .refused(403, "mock_provider_forbidden");
    assert_eq!(details["requestedProvider"], "stream-text");
    server
        .post("/v1/runs", json!({"mode": "eval", "agentId": "a"}))
        .await
        .refused(501, "capability_not_provided");
    server
        .get("/v1/runs/r/annotations")
        .await
        .refused(501, "capability_not_provided");
}

#[tokio::test]
async fn oversized_body_gets_413_with_or_without_length() {
    let settings = HttpSettings {
        max_body_bytes: 1024,
        ..HttpSettings::default()
    };
    let server = TestServer::with_settings(settings).await;
    let declared = server.call_as(&server.key, "POST", "/v1/runs", &[], "x".repeat(2000));
    let details = declared.await.refused(413, "payload_too_large");
    assert_eq!(details["maxRequestBodyBytes"], 1024);
    let chunk = || Ok::<_, Infallible>(Bytes::from(vec![b' '; 600]));
    let streamed = Body::from_stream(stream::iter((0..50).map(move |_| chunk())));
    let reply = server.call_as(&server.key, "POST", "/v1/runs", &[], streamed);
    reply.await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn oversized_body_over_a_socket_gets_413() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = TestServer::new().await;
    let mut socket = tokio::net::TcpStream::connect(server.listen().await)
        .await
        .unwrap();
    let length = 3 * 1024 * 1024;
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n",
        server.key
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b' '; length]).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("payload_too_large"));
}

#[tokio::test]
async fn unknown_paths_get_404_or_400() {
    let server = TestServer::new().await;
    server
        .get("/v1/no-such-path")
        .await
        .refused(404, "not_found");
    server.get("/runs").await.refused(400, "validation_error");
    server
        .get("/v1/runs/run-nobody")
        .await
        .refused(404, "not_found");
    server
        .get("/v1/workflows/nobody")
        .await
        .refused(404, "workflow_not_found");
    server
        .post("/v1/runs", json!({"workflowId": "nobody"}))
        .await
        .refused(404, "workflow_not_found");
    let packs = server.get("/v1/packs/x").await;
    assert_eq!(packs.status.as_u16(), 404);
    assert!(serde_json::from_str::<Value>(&packs.text).is_err());
    let patched = server.call_as(&server.key, "PATCH", "/v1/runs", &[], "");
    patched.await.refused(405, "method_not_allowed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_first_puts_create_one_document() {
    let server = std::sync::Arc::new(TestServer::new().await);
    let mut putting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let server = std::sync::Arc::clone(&server);
        putting.spawn(async move {
            let document = crate::test_server::chain("w", &[noop("a")]);
            let reply = server.put("/v1/host/tandem/workflows/w", document).await;
            reply.status.as_u16()
        });
    }
    let mut statuses = putting.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
}

#[tokio::test]
async fn options_out_of_range_are_refused_with_their_path_and_large_ones_are_capped() {
    let server = TestServer::new().await;
    let run = server.start("w", &[noop("a")]).await;
    let fork = format!("/v1/runs/{run}:fork");
    let bounds = [
        "recursionLimit",
        "runTimeoutMs",
        "maxLoopIterations",
        "maxTokens",
    ];
    let wrong = [
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!("9"),
        Value::Null,
    ];
    let bounds = bounds
        .iter()
        .flat_map(|key| wrong.iter().map(move |value| (*key, value)));
    let (low, high, empty) = (json!(-0.1), json!(2.1), json!(""));
    let others = [
        ("temperature", &low),
        ("temperature", &high),
        ("escalationThreshold", &low),
        ("escalationThreshold", &high),
        ("model", &empty),
        ("ai.model", &empty),
    ];
    for (key, value) in bounds.chain(others) {
        let options = json!({"configurable": {key: value}});
        let mut create = options.clone();
        create["workflowId"] = json!("w");
        let branch = json!({"mode": "branch", "fromSeq": 0, "runOptionsOverlay": options});
        for (path, body, below) in [
            ("/v1/runs", create, ""),
            (&fork, branch, "/runOptionsOverlay"),
        ] {
            let details = server
                .post(path, body)
                .await
                .refused(400, "validation_error");
            let place = format!("{below}/configurable/{key}");
            assert_eq!(details["errors"][0]["path"], place, "{key} {value}");
        }
    }
    // Above the host's limits: accepted, and the limits apply.
    let large = json!({"recursionLimit": 1_000_000_000, "runTimeoutMs": 1_000_000_000_000_000_u64,
        "maxLoopIterations": 1_000_000});
    let body = json!({"workflowId": "w", "configurable": large});
    server.post("/v1/runs", body).await.ok(201);
}

/// Texts of users are kept by their session, so each is bounded.
#[tokio::test]
async fn parts_of_a_users_message_are_bounded() {
    let server = TestServer::new().await;
    let path = "/v1/host/tandem/agents/desk/inbound";
    let (kib64, name) = ("x".repeat(64 * 1024), "n".repeat(256));
    let longest = json!({"messageId": name, "from": name, "body": kib64, "type": name,
        "senderProfile": {"displayName": name}, "media": {"caption": "c"}});
    // There is no such agent: everything else was accepted.
    server
        .post(path, longest.clone())
        .await
        .refused(404, "not_found");
    let longer = [
        ("/messageId", json!({"messageId": format!("{name}n")})),
        ("/from", json!({"from": format!("{name}n")})),
        ("/from", json!({"from": ""})),
        ("/body", json!({"body": format!("{kib64}x")})),
        ("/type", json!({"type": format!("{name}n")})),
        (
            "/senderProfile/displayName",
            json!({"senderProfile": {"displayName": format!("{name}n")}}),
        ),
        ("/media", json!({"media": {"caption": kib64}})),
    ];
    for (place, changed) in longer {
        let mut message = longest.clone();
        for (key, value) in changed.as_object().unwrap() {
            message[key] = value.clone();
        }
        let details = server.post(path, message).await;
        let details = details.refused(400, "validation_error");
        assert_eq!(details["errors"][0]["path"], place);
    }
}
