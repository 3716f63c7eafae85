//! Recorded logs are folded again. A log of an earlier version must have the same meaning in every
//! later one. To record them again (only when the format of a history itself changes): `cargo test
//! -p tandem-runtime --test histories -- --ignored`.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tandem_record::{ForkMode, NodeId, RunId, RunStatus, Seq, StreamId};
use tandem_runtime::{ConformanceTypes, MockProgram, Permissions, RunRow};
use tandem_store::{Append, Commit, Log, NewEvent, ReadLog};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run, tenant};
use tandem_testkit::{CallFaults, WorkflowBuilder, wf};
use tokio::test;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories")
}

/// Writes a recorded log into a new store, as if this process had found it there.
async fn restore(host: &TestHost, history: &Value) -> RunId {
    let document = &history["document"];
    let permissions = Permissions {
        conformance: ConformanceTypes::Everywhere,
        ..Permissions::default()
    };
    let registered = host
        .runtime
        .register(Some(&tenant().into()), document, permissions)
        .await;
    registered.expect("recorded workflows stay valid");
    let id = document["id"].as_str().expect("a workflow id").into();
    let definition = host.runtime.current_definition(&tenant().into(), &id).await;
    let definition = definition
        .expect("the store answers")
        .expect("just registered");
    let run = RunId::from(history["run"].as_str().expect("a run id").to_owned());
    let events = history["events"].as_array().expect("a log");
    let events = events.iter().map(|event| NewEvent {
        at: serde_json::from_value(event["at"].clone()).expect("a time"),
        body: event["body"].to_string(),
    });
    let commit = Commit {
        appends: vec![Append {
            stream: StreamId::of_run(&run),
            after: None,
            events: events.collect(),
            run: Some(RunRow {
                run_id: run.clone(),
                tenant: tenant(),
                workspace: None,
                workflow_id: id,
                definition: definition.hash.clone(),
                status: RunStatus::Completed,
                parent: None,
                scope: None,
                created_at: Default::default(),
                ended_at: None,
                error_code: None,
            }),
            snapshot: None,
        }],
        ..Commit::default()
    };
    host.store.commit(commit).await.expect("the store takes it");
    run
}

/// The fields of a run that a history is compared with.
async fn summary(host: &TestHost, run: &RunId) -> Value {
    let observed = host.runtime.observe(&tenant(), run).await;
    let observed = observed
        .expect("the log is readable")
        .expect("the run exists");
    let view = observed.view;
    let nodes: Value = view
        .nodes
        .iter()
        .map(|node| (node.node.to_string(), json!(node.status.as_str())))
        .collect();
    json!({
        "status": view.status.as_str(),
        "outputs": observed.outputs,
        "variables": view.variables,
        "channels": view.channels,
        "nodes": nodes,
        "error": view.error.map(|error| error.code),
        "head": view.head.0,
    })
}

#[test(start_paused = true)]
async fn every_recorded_log_folds_to_the_same_state() {
    let files = fs::read_dir(folder()).expect("the histories are checked in");
    let mut folded = 0;
    for file in files {
        let path = file.expect("a readable folder").path();
        let text = fs::read_to_string(&path).expect("a readable history");
        let history: Value = serde_json::from_str(&text).expect("a history is JSON");
        let host = TestHost::new().await;
        let run = restore(&host, &history).await;
        assert_eq!(summary(&host, &run).await, history["expect"], "{path:?}");
        folded += 1;
    }
    assert!(folded >= 9, "only {folded} histories");
}

#[test(start_paused = true)]
async fn recorded_model_calls_are_still_replayed() {
    for name in ["models.json", "mocks.json"] {
        let text = fs::read_to_string(folder().join(name)).expect("it is checked in");
        let history: Value = serde_json::from_str(&text).expect("a history is JSON");
        let later = TestHostBuilder {
            incarnation: 2,
            ..TestHostBuilder::default()
        };
        let host = later.build().await;
        let run = restore(&host, &history).await;
        let fork = host.fork(&run, ForkMode::Replay, Seq(0)).await;
        let fork = fork.expect("keys of recorded requests do not change");
        assert_eq!(summary(&host, &fork).await, history["expect"], "{name}");
    }
}

async fn record(name: &str, host: &TestHost, flow: WorkflowBuilder, run: &RunId) {
    let slice = host
        .store
        .events(&StreamId::of_run(run), None, usize::MAX)
        .await;
    let events: Vec<Value> = slice
        .expect("the store answers")
        .events
        .iter()
        .map(|event| {
            let body: Value = serde_json::from_str(&event.body).expect("an event is JSON");
            json!({"at": event.at, "body": body})
        })
        .collect();
    let history = json!({
        "run": run,
        "document": flow.document(),
        "events": events,
        "expect": summary(host, run).await,
    });
    let text = serde_json::to_string_pretty(&history).expect("plain JSON");
    fs::create_dir_all(folder()).expect("a place for histories");
    fs::write(folder().join(format!("{name}.json")), text + "\n").expect("written");
}

/// Runs a workflow to its end and records its log.
async fn recorded(name: &str, plan: TestHostBuilder, flow: fn() -> WorkflowBuilder, inputs: Value) {
    let host = plan.build().await;
    host.register(
        wf("child")
            .variable("result", json!("good"))
            .delay("nap", 50),
    )
    .await;
    host.register(flow()).await;
    let run = host.create(name, inputs).await;
    host.ended(&run).await;
    record(name, &host, flow(), &run).await;
}

fn all_calls_fail_retryably() -> TestHostBuilder {
    TestHostBuilder {
        call_faults: CallFaults {
            retryable_percent: 100,
            permanent_percent: 0,
            max_latency_ms: 20,
        },
        ..TestHostBuilder::default()
    }
}

#[test(start_paused = true)]
#[ignore = "writes tests/histories"]
async fn record_histories() {
    recorded(
        "chain",
        TestHostBuilder::default(),
        chain,
        json!({"name": "Ada"}),
    )
    .await;
    recorded(
        "error-route",
        all_calls_fail_retryably(),
        error_route,
        json!({}),
    )
    .await;
    recorded(
        "nested-loops",
        TestHostBuilder::default(),
        nested_loops,
        json!({}),
    )
    .await;
    recorded(
        "family",
        TestHostBuilder::default(),
        parent_and_child,
        json!({}),
    )
    .await;
    recorded("channels", TestHostBuilder::default(), channels, json!({})).await;
    let host = TestHost::new().await;
    host.register(interrupted()).await;
    let run = host.create("interrupted", json!({})).await;
    host.elapse(10).await;
    host.pause(&run).await.expect("running");
    host.resume(&run).await.expect("paused");
    host.elapse(10).await;
    host.cancel(&run).await.expect("running");
    record("interrupted", &host, interrupted(), &run).await;
}

#[test(start_paused = true)]
#[ignore = "writes tests/histories"]
async fn record_models() {
    let host = TestHost::new().await;
    host.register(models()).await;
    let program = json!([
        {"content": "I would say so."},
        {"content": "{\"ok\": tr", "stopReason": "max_tokens"},
        {"content": "```json\n{\"ok\": true}\n```"},
    ]);
    let program = serde_json::from_value(program).expect("a program");
    let programmed = host
        .runtime
        .program_mock(&NodeId::new("ask"), MockProgram::new(program))
        .await;
    programmed.expect("the store answers");
    let run = host.create("conformance-models", json!({})).await;
    host.ended(&run).await;
    record("models", &host, models(), &run).await;
}

#[test(start_paused = true)]
#[ignore = "writes tests/histories"]
async fn record_mocks() {
    let host = TestHost::new().await;
    host.register(mocks()).await;
    let config = json!({"tokens": ["{\"ok\":", " true}"], "delayMsPerToken": 10});
    let mock = json!({"mockProvider": {"id": "stream-text", "config": config}});
    let mut new = new_run("mocks", json!({}));
    new.request.options.configurable = mock.as_object().cloned();
    let run = host.runtime.create_run(new, None).await;
    let run = run.expect("the run may start");
    host.elapse(5).await;
    host.pause(&run).await.expect("running");
    host.resume(&run).await.expect("paused");
    host.ended(&run).await;
    record("mocks", &host, mocks(), &run).await;
}

fn mocks() -> WorkflowBuilder {
    let config =
        json!({"provider": "acme", "outputSchema": {"type": "object", "required": ["ok"]}});
    let asked = json!([{"role": "user", "content": "Is it fine?"}]);
    wf("mocks")
        .node("ask", "core.ai.structuredOutput", config)
        .port("messages", json!({"type": "static", "value": asked}))
}

#[test(start_paused = true)]
#[ignore = "writes tests/histories"]
async fn record_tools() {
    recorded("tools", TestHostBuilder::default(), tools, json!({})).await;
}

fn tools() -> WorkflowBuilder {
    let call = json!({"serverId": "docs", "toolName": "echo", "arguments": {"text": "hi"}});
    let expression = "nodes.look.outputs.result.content[0].text";
    wf("tools")
        .variable("note", json!(""))
        .node("look", "core.mcp.toolCall", call)
        .node("keep", "core.setVariable", json!({"name": "note"}))
        .port(
            "value",
            json!({"type": "expression", "expression": expression}),
        )
        .path("look keep")
}

fn models() -> WorkflowBuilder {
    let schema = json!({"type": "object", "required": ["ok"]});
    let config = json!({"provider": "mock", "model": "mini", "maxTokens": 50,
                        "temperature": 0.5, "outputSchema": schema});
    let asked = json!([{"role": "user", "content": "Is it fine?"}]);
    wf("conformance-models")
        .node("ask", "core.ai.structuredOutput", config)
        .port("messages", json!({"type": "static", "value": asked}))
        .noop("after")
        .path("ask after")
}

fn chain() -> WorkflowBuilder {
    wf("chain")
        .variable("name", json!("world"))
        .node("greet", "core.identity", json!({}))
        .port("who", json!({"type": "variable", "variableName": "name"}))
        .node(
            "keep",
            "core.setVariable",
            json!({"name": "greeted", "value": true}),
        )
        .http("tell", 2)
        .path("greet keep tell")
}

fn error_route() -> WorkflowBuilder {
    wf("error-route")
        .http("call", 3)
        .with("settings", json!({"timeoutMs": 5_000}))
        .noop("rescue")
        .noop("after")
        .edge_with("call", "rescue", json!({"triggerRule": "any_failed"}))
        .edge("call", "after")
}

fn nested_loops() -> WorkflowBuilder {
    wf("nested-loops")
        .node("outer", "core.loop", json!({"itemVariable": "item"}))
        .port("items", json!({"type": "static", "value": ["a", "b"]}))
        .node("inner", "core.loop", json!({"times": 2}))
        .delay("leaf", 5)
        .noop("tail")
        .noop("after")
        .path("outer inner leaf inner tail outer after")
}

fn parent_and_child() -> WorkflowBuilder {
    let mapping = json!({"outputMapping": {"answer": "result"}});
    wf("family")
        .call("call", "child", mapping)
        .noop("after")
        .path("call after")
}

fn channels() -> WorkflowBuilder {
    let write = |value: &str| json!({"channelName": "log", "value": value});
    wf("channels")
        .channel(
            "log",
            json!({"reducer": "append", "ttlMs": 1_000, "maxSize": 2}),
        )
        .node("first", "core.channelWrite", write("one"))
        .delay("nap", 1_500)
        .node("second", "core.channelWrite", write("two"))
        .noop("react")
        .path("first nap second")
        .on_write("log", "react", 100)
}

fn interrupted() -> WorkflowBuilder {
    wf("interrupted")
        .delay("nap", 60_000)
        .http("call", 1)
        .path("nap call")
}
