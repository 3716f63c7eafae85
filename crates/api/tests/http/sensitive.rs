//! Values marked as sensitive are masked in every response.

use crate::console::{page, sign_in};
use crate::test_server::{TestServer, chain};
use serde_json::{Value, json};

pub(crate) const SECRET: &str = "the patient's own words";

pub(crate) fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
        "config": config, "inputs": {}})
}

#[tokio::test]
async fn sensitive_variable_is_masked_in_downstream_outputs() {
    let server = TestServer::new().await;
    let gets = |id: &str| node(id, "core.getVariable", json!({"name": "note"}));
    let sets = node("sets", "core.setVariable", json!({"name": "note"}));
    // Returned flat by a single last node, and under their names by two.
    for (workflow, nodes, edges) in [
        ("one", vec![gets("gets"), sets.clone()], true),
        ("two", vec![gets("left"), gets("right")], false),
    ] {
        let mut document = chain(workflow, &nodes);
        document["variables"] = json!([{"name": "note", "type": "string", "sensitive": true}]);
        if !edges {
            document["edges"] = json!([]);
        }
        let path = format!("/v1/host/tandem/workflows/{workflow}");
        server.put(&path, document).await.ok(201);
        let request = json!({"workflowId": workflow, "inputs": {"note": SECRET}});
        let run = server.post("/v1/runs", request).await.ok(201);
        let run = run["runId"].as_str().expect("an id").to_owned();
        let log = server.log(&run).await.to_string();
        assert!(log.contains("run.completed"), "{log}");
        assert!(log.contains("[REDACTED]"), "{log}");
        assert!(!log.contains(SECRET), "{log}");
        let shown = server.get(&format!("/v1/runs/{run}")).await.text;
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

/// A workflow with the secret as input and the given nodes.
fn workflow_with_secret(id: &str, nodes: Value, edges: Value) -> Value {
    let mut document = chain(id, &[]);
    document["nodes"] = nodes;
    document["edges"] = edges;
    document["variables"] = json!([{"name": "s", "type": "string", "sensitive": true}]);
    document
}

fn bound(mut node: Value, port: &str, binding: Value) -> Value {
    node["inputs"][port] = binding;
    node
}

/// Every response about a run.
pub(crate) async fn shown(server: &TestServer, run: &str) -> Vec<String> {
    let mut shown = vec![server.log(run).await.to_string()];
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events?streamMode=values"),
        format!("/v1/runs/{run}/events?streamMode=updates"),
        format!("/v1/runs/{run}/events/poll?lastSequence=1&timeout=1"),
        format!("/v1/runs/{run}/debug-bundle"),
    ] {
        // A stream of a run that waits does not end.
        let page = [("accept", "application/json")];
        let reply = server.call_as(&server.key, "GET", &path, &page, "").await;
        assert!(reply.status.is_success(), "{path}: {reply:?}");
        shown.push(reply.text);
    }
    shown
}

async fn run_of(server: &TestServer, document: Value) -> String {
    let id = document["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/host/tandem/workflows/{id}");
    server.put(&path, document).await.ok(201);
    let request = json!({"workflowId": id, "inputs": {"s": SECRET}});
    let run = server.post("/v1/runs", request).await.ok(201);
    run["runId"].as_str().expect("an id").to_owned()
}

fn edge(id: &str, from: &str, to: &str, ports: (&str, &str)) -> Value {
    json!({"id": id, "sourceNodeId": from, "targetNodeId": to,
        "sourceOutput": ports.0, "targetInput": ports.1})
}

#[tokio::test]
async fn sensitive_values_are_masked_in_every_destination() {
    let server = TestServer::new().await;
    let plain = |id: &str| node(id, "core.noop", json!({}));
    let reads = json!({"type": "expression", "expression": "variables.s"});
    let takes = json!({"type": "connection", "nodeId": "a", "outputKey": "s"});
    let keeps = node("keeps", "core.setVariable", json!({"name": "copy"}));
    let cases = [
        ("root", json!([plain("a")]), json!([])),
        // A node with the same name as its port.
        ("named", json!([plain("s")]), json!([])),
        (
            "start",
            json!([node("a", "core.start", json!({}))]),
            json!([]),
        ),
        (
            "edge",
            json!([plain("a"), plain("b")]),
            json!([edge("e", "a", "b", ("s", "x"))]),
        ),
        (
            "hop",
            json!([plain("a"), bound(plain("b"), "x", takes)]),
            json!([edge("e", "a", "b", ("none", "none"))]),
        ),
        ("reads", json!([bound(plain("a"), "x", reads)]), json!([])),
        (
            "keeps",
            json!([plain("a"), keeps]),
            json!([edge("e", "a", "keeps", ("s", "value"))]),
        ),
        ("two", json!([plain("a"), plain("b")]), json!([])),
    ];
    for (id, nodes, edges) in cases {
        for mode in ["mask", "hash", "omit"] {
            let mut document =
                workflow_with_secret(&format!("{id}-{mode}"), nodes.clone(), edges.clone());
            document["metadata"] = json!({"complianceConfig": {"maskingMode": mode}});
            let run = run_of(&server, document).await;
            let shown = shown(&server, &run).await;
            assert!(shown[0].contains("run.completed"), "{id}: {}", shown[0]);
            for text in shown {
                assert!(!text.contains(SECRET), "{id}, {mode}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn values_without_sensitive_input_are_shown() {
    let server = TestServer::new().await;
    let public = json!({"type": "static", "value": "for everyone"});
    let nodes = json!([
        node("gets", "core.getVariable", json!({"name": "s"})),
        bound(
            node("puts", "core.setVariable", json!({"name": "p"})),
            "value",
            public
        ),
    ]);
    let edges = json!([edge("e", "gets", "puts", ("none", "none"))]);
    let run = run_of(&server, workflow_with_secret("public", nodes, edges)).await;
    let seen = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(seen["outputs"], json!({"value": "for everyone"}));
    assert_eq!(
        seen["variables"],
        json!({"s": "[REDACTED]", "p": "for everyone"})
    );
}

#[tokio::test]
async fn child_run_and_its_fork_mask_inherited_sensitive_values() {
    let server = TestServer::new().await;
    let mut child = chain("child", &[]);
    child["nodes"] = json!([node("n", "core.noop", json!({}))]);
    child["variables"] = json!([{"name": "given", "type": "string"}]);
    server
        .put("/v1/host/tandem/workflows/child", child)
        .await
        .ok(201);
    let mapping = json!({"workflowId": "child", "inputMapping": {"given": "s"},
        "outputMapping": {"back": "given"}});
    let reads = json!({"type": "variable", "variableName": "back"});
    let nodes = json!([
        node("calls", "core.subWorkflow", mapping),
        bound(node("after", "core.noop", json!({})), "x", reads),
    ]);
    let edges = json!([edge("e", "calls", "after", ("none", "none"))]);
    let parent = run_of(&server, workflow_with_secret("parent", nodes, edges)).await;
    server.advance(1).await;
    let seen = server.get(&format!("/v1/runs/{parent}")).await.ok(200);
    assert_eq!(seen["status"], "completed", "{seen}");
    assert_eq!(seen["outputs"], json!({"x": "[REDACTED]"}));
    let child = seen["childRuns"][0]["runId"].as_str().expect("a child");
    let again = json!({"mode": "branch", "fromSeq": 1});
    let fork = server.post(&format!("/v1/runs/{child}:fork"), again).await;
    let fork = fork.ok(201)["runId"].as_str().expect("an id").to_owned();
    for run in [parent.as_str(), child, &fork] {
        for text in shown(&server, run).await {
            assert!(text.contains("[REDACTED]") || run == parent, "{text}");
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}

#[tokio::test]
async fn errors_of_nodes_given_sensitive_values_do_not_show_them() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    let secret = || json!({"type": "variable", "variableName": "s"});
    let delay = || bound(node("n", "core.delay", json!({})), "delayMs", secret());
    let mut going_on = delay();
    going_on["settings"] = json!({"onError": "continue"});
    let mut child = chain("fails", &[]);
    child["nodes"] = json!([bound(
        node("n", "core.delay", json!({})),
        "delayMs",
        json!({"type": "variable", "variableName": "given"})
    )]);
    child["variables"] = json!([{"name": "given", "type": "string"}]);
    let path = "/v1/host/tandem/workflows/fails";
    server.put(path, child).await.ok(201);
    let mapping = json!({"workflowId": "fails", "inputMapping": {"given": "s"}});
    let unreachable = node("n", "vendor.tandem.http", json!({"body": "x"}));
    let write = node("n", "core.channelWrite", json!({"channelName": "c"}));
    for (id, nodes, code) in [
        ("delay", delay(), "validation_error"),
        ("going-on", going_on, ""),
        ("write", bound(write, "value", secret()), "validation_error"),
        ("url", bound(unreachable, "url", secret()), ""),
        (
            "calls",
            node("n", "core.subWorkflow", mapping),
            "child_failed",
        ),
    ] {
        let mut document = workflow_with_secret(id, json!([nodes]), json!([]));
        document["channels"] = json!({"c": {"reducer": "merge"}});
        let run = run_of(&server, document).await;
        server.advance(1).await;
        let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
        if !code.is_empty() {
            assert_eq!(snapshot["status"], "failed", "{snapshot}");
            assert_eq!(snapshot["error"]["code"], code, "{snapshot}");
        }
        let mut texts = shown(&server, &run).await;
        for path in [
            format!("/console/runs/{run}"),
            format!("/console/runs/{run}/at/3"),
        ] {
            texts.push(page(&server, &cookie, &path).await.text);
        }
        for text in texts {
            // Pages write the apostrophe in another way.
            assert!(!text.contains("own words"), "{id}: {text}");
        }
    }
}

#[tokio::test]
async fn memory_written_from_sensitive_values_is_masked_for_readers() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    let put = |id: &str, config: Value| {
        let mut whole = json!({"action": "put", "key": id});
        whole
            .as_object_mut()
            .unwrap()
            .extend(config.as_object().unwrap().clone());
        node(id, "vendor.tandem.memory", whole)
    };
    let reads = node(
        "reads",
        "vendor.tandem.memory",
        json!({"action": "get", "key": "hidden", "output": "s"}),
    );
    let nodes = json!([
        put("hidden", json!({"valueFrom": "s"})),
        put("open", json!({"value": "for everyone"})),
        reads,
    ]);
    let none = ("none", "none");
    let edges = json!([
        edge("e", "hidden", "open", none),
        edge("f", "open", "reads", none)
    ]);
    let run = run_of(&server, workflow_with_secret("remembers", nodes, edges)).await;
    let path = format!("/v1/host/tandem/runs/{run}/memory");
    let memory = server.get(&path).await.ok(200);
    let value_of = |key: &str| {
        let mut entries = memory["entries"].as_array().unwrap().iter();
        entries.find(|e| e["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value_of("hidden"), "[REDACTED]");
    assert_eq!(value_of("open"), "for everyone");
    let page = page(&server, &cookie, &format!("/console/runs/{run}/at/9")).await;
    assert!(page.text.contains("for everyone"), "{}", page.text);
    assert!(!page.text.contains("own words"), "{}", page.text);
}

/// A gate that is given the secret in one of the ways there are.
fn gates() -> Vec<(&'static str, Value, Value)> {
    let gate = || {
        let config = json!({"title": "Send {{ variables.s }}?", "description": "{{ inputs.s }}",
            "actions": ["accept", "reject", "edit-accept"]});
        node("gate", "core.approvalGate", config)
    };
    let plain = || node("a", "core.noop", json!({}));
    let variable = json!({"type": "variable", "variableName": "s"});
    let expression = json!({"type": "expression", "expression": "variables.s"});
    let connection = json!({"type": "connection", "nodeId": "a", "outputKey": "s"});
    let hop = json!([edge("e", "a", "gate", ("none", "none"))]);
    vec![
        ("first", json!([gate()]), json!([])),
        (
            "variable",
            json!([bound(gate(), "artifact", variable)]),
            json!([]),
        ),
        (
            "expression",
            json!([bound(gate(), "x", expression)]),
            json!([]),
        ),
        (
            "connection",
            json!([plain(), bound(gate(), "x", connection)]),
            hop,
        ),
        (
            "edge",
            json!([plain(), gate()]),
            json!([edge("e", "a", "gate", ("s", "x"))]),
        ),
    ]
}

#[tokio::test]
async fn questions_show_no_sensitive_value_anywhere_and_the_run_keeps_it() {
    let server = TestServer::new().await;
    let cookie = sign_in(&server).await;
    for (id, nodes, edges) in gates() {
        for mode in ["mask", "hash", "omit"] {
            let workflow = format!("asks-{id}-{mode}");
            let mut document = workflow_with_secret(&workflow, nodes.clone(), edges.clone());
            document["metadata"] = json!({"complianceConfig": {"maskingMode": mode}});
            let path = format!("/v1/host/tandem/workflows/{workflow}");
            server.put(&path, document).await.ok(201);
            let request = json!({"workflowId": workflow, "inputs": {"s": SECRET},
                "callbackUrl": "https://example.com/asked"});
            let run = server.post("/v1/runs", request).await.ok(201)["runId"].clone();
            let run = run.as_str().expect("an id");
            let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
            let link = snapshot["interrupt"]["callbackUrl"]
                .as_str()
                .expect("a link");
            let listed = format!("/v1/host/tandem/interrupts?runId={run}");
            let open = server.get(&listed).await.ok(200);
            let asked = open["interrupts"][0]["interruptId"]
                .as_str()
                .expect("a question");
            let item = format!("/v1/host/tandem/interrupts/{asked}");
            let card = format!("/console/inbox/{asked}");
            let read = async || {
                let mut texts = shown(&server, run).await;
                for path in [&listed, &item, &format!("/v1/host/tandem/receipts/{asked}")] {
                    texts.push(server.get(path).await.text);
                }
                texts.push(server.call_as("", "GET", link, &[], "").await.text);
                for path in [&card, &format!("/console/runs/{run}")] {
                    texts.push(page(&server, &cookie, path).await.text);
                }
                texts
            };
            let mut texts = read().await;
            let accept = json!({"resumeValue": {"action": "accept"}});
            server
                .post(&format!("{item}:resolve"), accept)
                .await
                .ok(200);
            texts.extend(read().await);
            texts.extend(
                server
                    .webhook_sender
                    .announced
                    .lock()
                    .iter()
                    .map(|(_, body)| body.to_string()),
            );
            for text in texts {
                assert!(!text.contains("own words"), "{id}, {mode}: {text}");
            }
            let after = server.get(&format!("/v1/runs/{run}")).await.ok(200);
            assert_eq!(after["status"], "completed", "{id}, {mode}");
        }
    }
}
