//! Mock providers over HTTP: who may select one, what each stream mode shows, what is recorded, and
//! what a replay returns.

use crate::test_server::{Frame, HostOptions, Stream, TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_runtime::Providers;

const PATH: &str = "/v1/host/tandem/workflows";
const PROVIDERS: [&str; 4] = ["stream-text", "tool-calls", "error", "usage-only"];

/// A server with the conformance workflow, whose caller has a test key.
async fn server() -> TestServer {
    let mut server = TestServer::new().await;
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    new.test = true;
    server.key = server.mint(new).await;
    let config = json!({"promptId": "conformance.stream-text-noop", "expectsStreaming": true});
    let ai = json!({"id": "ai", "typeId": "core.ai.callPrompt", "config": config});
    let document = chain("conformance-stream-text", &[ai]);
    let path = format!("{PATH}/conformance-stream-text");
    server.put(&path, document).await.ok(201);
    server
}

fn run_with_mock(mock: Value) -> Value {
    json!({"workflowId": "conformance-stream-text", "configurable": {"mockProvider": mock}})
}

fn hello(delay: u64) -> Value {
    let usage = json!({"promptTokens": 5, "completionTokens": 4, "totalTokens": 9});
    json!({"id": "stream-text", "config": {
        "tokens": ["Hello", " ", "world", "!"], "delayMsPerToken": delay, "finishReason": "stop",
        "usage": usage,
    }})
}

async fn started(server: &TestServer, mock: Value) -> String {
    let reply = server.post("/v1/runs", run_with_mock(mock)).await.ok(201);
    reply["runId"].as_str().unwrap().to_owned()
}

async fn open(server: &TestServer, run: &str, query: &str, after: Option<u64>) -> Stream {
    let address = server.listen().await;
    let bearer = format!("Bearer {}", server.key);
    let after = after.map(|seq| seq.to_string());
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(after.as_deref().map(|seq| ("last-event-id", seq)));
    let stream = Stream::open(address, &format!("/v1/runs/{run}/events{query}"), &headers).await;
    assert!(stream.head[0].contains("200"), "{:?}", stream.head);
    stream
}

async fn frames(server: &TestServer, run: &str, query: &str) -> Vec<Frame> {
    open(server, run, query, None).await.rest().await
}

fn texts(frames: &[Frame]) -> Vec<&str> {
    let chunks = frames.iter().filter(|f| f.event == "ai.message.chunk");
    chunks.map(|f| f.data["chunk"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn messages_stream_sends_each_token_and_then_ends() {
    let server = server().await;
    let run = started(&server, hello(5_000)).await;
    let mut stream = open(&server, &run, "?streamMode=messages", None).await;
    let mut received = Vec::new();
    for _ in 0..3 {
        received.push(stream.next().await.unwrap());
        server.advance(5).await;
    }
    received.extend(stream.rest().await);
    assert_eq!(texts(&received), ["Hello", " ", "world", "!"]);
    assert_eq!(received.len(), 4, "nothing else is shown");
    let model = json!({"model": "mock-stream-text-v1"});
    let first = json!({"nodeId": "ai", "runId": run, "chunk": "Hello", "isLast": false,
                       "meta": model});
    assert_eq!(received[0].data, first);
    let last = &received[3].data;
    assert_eq!(last["isLast"], true);
    assert_eq!(last["meta"]["finishReason"], "stop");
    let usage = json!({"promptTokens": 5, "completionTokens": 4, "totalTokens": 9});
    assert_eq!(last["meta"]["usage"], usage);

    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "completed");
    assert_eq!(snapshot["outputs"]["content"], "Hello world!");
    let cost = &snapshot["metrics"]["openwopCost"];
    assert_eq!(cost["tokens"], json!({"input": 5, "output": 4}));
    assert_eq!(cost["provider"], "mock");
    // A reader resumes after its last event.
    let after = received[1].id;
    let rest = open(&server, &run, "?streamMode=messages", after)
        .await
        .rest()
        .await;
    assert_eq!(rest, received[2..]);
}

#[tokio::test]
async fn each_stream_mode_shows_chunks_in_its_own_form() {
    let server = server().await;
    let run = started(&server, hello(0)).await;
    let log = server.log(&run).await;
    let events = log["events"].as_array().unwrap();
    let names: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let chunk = "output.chunk";
    assert_eq!(
        names,
        [
            "run.started",
            "node.started",
            chunk,
            chunk,
            chunk,
            chunk,
            "provider.usage",
            "node.completed",
            "run.completed"
        ]
    );
    assert_eq!(events[2]["payload"]["chunk"], "Hello");
    let used = json!({"nodeId": "ai", "provider": "mock", "model": "mock-stream-text-v1",
                      "inputTokens": 5, "outputTokens": 4, "totalTokens": 9});
    assert_eq!(events[6]["payload"], used);

    let shown = |frames: &[Frame]| frames.iter().map(|f| f.event.clone()).collect::<Vec<_>>();
    let updates = frames(&server, &run, "").await;
    assert_eq!(
        shown(&updates),
        ["run.started", "node.completed", "run.completed"]
    );
    let debug = frames(&server, &run, "?streamMode=debug").await;
    assert_eq!(shown(&debug), names);
    let mixed = frames(&server, &run, "?streamMode=updates,messages").await;
    let message = "ai.message.chunk";
    assert_eq!(
        shown(&mixed),
        [
            "run.started",
            message,
            message,
            message,
            message,
            "node.completed",
            "run.completed"
        ]
    );
    assert_eq!(texts(&mixed).concat(), "Hello world!");
    // A batch contains whole events.
    let batched = frames(&server, &run, "?streamMode=messages&bufferMs=5000").await;
    assert_eq!(shown(&batched), ["batch"]);
    assert_eq!(batched[0].id, Some(5));
    assert_eq!(batched[0].data, json!(events[2..6]));
}

#[tokio::test]
async fn production_key_gets_403_before_validation() {
    let server = TestServer::new().await;
    for id in ["stream-text", "does-not-exist"] {
        let reply = server
            .post("/v1/runs", run_with_mock(json!({"id": id})))
            .await;
        let details = reply.refused(403, "mock_provider_forbidden");
        assert_eq!(details["requestedProvider"], id);
        assert_eq!(details["supportedProviders"], json!(PROVIDERS));
    }
    let run = server.start("w", &[crate::test_server::noop("a")]).await;
    let mock = json!({"configurable": {"mockProvider": {"id": "stream-text"}}});
    let fork = json!({"mode": "branch", "fromSeq": 1, "runOptionsOverlay": mock});
    let reply = server.post(&format!("/v1/runs/{run}:fork"), fork).await;
    reply.refused(403, "mock_provider_forbidden");
}

#[tokio::test]
async fn unknown_or_invalid_mock_provider_is_refused() {
    let server = server().await;
    let unknown = json!({"id": "does-not-exist", "config": {"tokens": 7}});
    let details = server
        .post("/v1/runs", run_with_mock(unknown))
        .await
        .refused(400, "unsupported_mock_provider");
    assert_eq!(details["requestedProvider"], "does-not-exist");
    assert_eq!(details["supportedProviders"], json!(PROVIDERS));
    let document = server.get("/.well-known/openwop").await.ok(200);
    let testing = json!({"mockProviders": PROVIDERS, "testKeyPrefix": "tdm_test_"});
    assert_eq!(document["testing"], testing);
    for (mock, at) in [
        (json!({"id": "x".repeat(129)}), "/id"),
        (
            json!({"id": "stream-text", "config": {"delayMsPerToken": 5_001}}),
            "/config/delayMsPerToken",
        ),
    ] {
        let reply = server.post("/v1/runs", run_with_mock(mock)).await;
        let details = reply.refused(400, "validation_error").to_string();
        let path = format!("/configurable/mockProvider{at}");
        assert!(details.contains(&path), "{details}");
    }
}

#[tokio::test]
async fn host_that_asks_no_models_has_no_mock_providers() {
    let server = TestServer::with_options(HostOptions {
        conformance: false,
        providers: Providers::default(),
        test_seams: false,
        ..HostOptions::default()
    })
    .await;
    server.register("w", &[noop("a")]).await;
    let mut new = NewKey::new("t", "default".into(), [Scope::RunsCreate, Scope::RunsRead]);
    new.test = true;
    let test_key = server.mint(new).await;
    for key in [&test_key, &server.key] {
        for id in ["stream-text", "made-up"] {
            let body = json!({"workflowId": "w", "configurable": {"mockProvider": {"id": id}}});
            let reply = server.call_as(key, "POST", "/v1/runs", &[], body.to_string());
            let reply = reply.await;
            reply.refused(400, "validation_error");
            assert!(reply.text.contains("/configurable/mockProvider"));
            assert!(!reply.text.contains("usage-only"), "{}", reply.text);
        }
    }
}

#[tokio::test]
async fn mock_provider_overrides_the_provider_of_a_node() {
    let server = server().await;
    let config = json!({"provider": "acme", "userPrompt": "Well?"});
    let ask = json!({"id": "ask", "typeId": "core.llm.chat", "config": config});
    server.register("asks", &[ask]).await;
    let error = json!({"id": "error", "config": {"code": "overloaded", "message": "Not now."}});
    let body = json!({"workflowId": "asks", "configurable": {"mockProvider": error}});
    let created = server.post("/v1/runs", body).await.ok(201);
    let run = created["runId"].as_str().unwrap();
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "failed");
    assert_eq!(snapshot["error"]["code"], "overloaded");
    assert_eq!(snapshot["error"]["message"], "Not now.");
}

#[tokio::test]
async fn prompt_without_mock_provider_fails_with_advice() {
    let server = server().await;
    let run = server.create("conformance-stream-text").await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["error"]["code"], "capability_not_provided");
    let message = snapshot["error"]["message"].as_str().unwrap();
    assert!(message.contains("configurable.mockProvider"), "{message}");
}

#[tokio::test]
async fn replay_produces_the_same_log() {
    let server = server().await;
    let run = started(&server, hello(5_000)).await;
    for _ in 0..3 {
        server.advance(5).await;
    }
    let ask = json!({"mode": "replay", "fromSeq": 0});
    let fork = server
        .post(&format!("/v1/runs/{run}:fork"), ask)
        .await
        .ok(201);
    let fork = fork["runId"].as_str().unwrap().to_owned();
    let shown = |log: Value, run: &str| -> Vec<Value> {
        let text = log["events"].to_string().replace(run, "RUN");
        let mut events: Vec<Value> = serde_json::from_str(&text).unwrap();
        events.remove(0);
        events
    };
    let (source, replay) = (server.log(&run).await, server.log(&fork).await);
    assert_eq!(shown(replay, &fork), shown(source, &run));
}

#[tokio::test]
async fn chunks_of_a_sensitive_port_are_masked() {
    let server = server().await;
    let config = json!({"promptId": "p"});
    let ai = json!({"id": "ai", "typeId": "core.ai.callPrompt", "config": config,
                    "outputSensitivity": {"content": true}});
    let id = "conformance-quiet";
    server
        .put(&format!("{PATH}/{id}"), chain(id, &[ai]))
        .await
        .ok(201);
    let mock = json!({"mockProvider": {"id": "stream-text", "config": {"tokens": ["sesame"]}}});
    let body = json!({"workflowId": id, "configurable": mock});
    let created = server.post("/v1/runs", body).await.ok(201);
    let run = created["runId"].as_str().unwrap();
    let received = frames(&server, run, "?streamMode=messages").await;
    assert_eq!(texts(&received), ["[REDACTED]"]);
    assert!(!server.log(run).await.to_string().contains("sesame"));
}
