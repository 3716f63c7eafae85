//! Pages about runs with large values: what they show is bounded, and they say where the rest is.

use crate::console::{csrf, page, sign_in};
use crate::test_server::{TestServer, chain};
use serde_json::{Value, json};

const KIB: usize = 1024;
/// A page with all the values it may show, and its markup.
const MAX_PAGE_BYTES: usize = 1_500 * KIB;

/// A run of these nodes, in a chain. Every one has the variable `v` of so many KiB under the name of its port.
async fn run_with_large_values(
    server: &TestServer,
    nodes: &[Value],
    port: Option<&str>,
    kib: usize,
) -> String {
    let mut document = chain("large", nodes);
    document["variables"] = json!([{"name": "v", "type": "string"}]);
    for node in document["nodes"].as_array_mut().unwrap() {
        if let Some(port) = port {
            node["inputs"][port] = json!({"type": "variable", "variableName": "v"});
        }
    }
    let put = server.put("/v1/host/tandem/workflows/large", document);
    assert!(put.await.status.is_success());
    let inputs = json!({"v": "x".repeat(kib * KIB)});
    let created = server.post("/v1/runs", json!({"workflowId": "large", "inputs": inputs}));
    let created = created.await.ok(201);
    // Decisions about large values are continued by another.
    server.advance(0).await;
    created["runId"].as_str().unwrap().to_owned()
}

fn numbered(count: usize, node: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(node).collect()
}

#[tokio::test]
async fn memory_is_read_in_pages() {
    let server = TestServer::new().await;
    let put = |n: usize| {
        let config = json!({"action": "put", "key": format!("k{n}"), "valueFrom": "v"});
        json!({"id": format!("w{n}"), "typeId": "vendor.tandem.memory", "config": config})
    };
    let run = run_with_large_values(&server, &numbered(40, put), None, 60).await;
    for at in ["", "&atSeq=1000"] {
        let last = server.log(&run).await["lastEventSeq"].as_u64().unwrap();
        let at = at.replace("1000", &last.to_string());
        let mut keys = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/host/tandem/runs/{run}/memory?{cursor}{at}");
            let reply = server.get(&path).await;
            assert!(reply.text.len() < 2_100 * KIB, "{}", reply.text.len());
            let shown = reply.ok(200);
            assert_eq!(shown["runId"], run);
            let entries = shown["entries"].as_array().unwrap();
            assert!(!entries.is_empty(), "a page brings the reader on");
            keys.extend(entries.iter().map(|entry| entry["key"].clone()));
            match shown["nextCursor"].as_str() {
                Some(next) => cursor = format!("cursor={next}"),
                None => break,
            }
        }
        let expected: Vec<String> = (0..40).rev().map(|n| format!("k{n}")).collect();
        assert_eq!(keys, expected);
    }
    let path = format!("/v1/host/tandem/runs/{run}/memory?cursor=nothing");
    server.get(&path).await.refused(400, "validation_error");
}

#[tokio::test]
async fn memory_page_continues_after_an_entry_that_expired() {
    let server = TestServer::new().await;
    // One page holds 34 of the 40 entries, so it ends with one that expires.
    let expires = 1..20;
    let put = |n: usize| {
        let mut config = json!({"action": "put", "key": format!("k{n}"), "valueFrom": "v"});
        if expires.contains(&n) {
            config["ttlSeconds"] = json!(60);
        }
        json!({"id": format!("w{n}"), "typeId": "vendor.tandem.memory", "config": config})
    };
    let run = run_with_large_values(&server, &numbered(40, put), None, 60).await;
    let path = format!("/v1/host/tandem/runs/{run}/memory");
    let numbers = |page: &Value| -> Vec<usize> {
        let entries = page["entries"].as_array().unwrap().iter();
        let keys = entries.map(|entry| entry["key"].as_str().unwrap()[1..].parse().unwrap());
        keys.collect()
    };
    let first = server.get(&path).await.ok(200);
    let shown = numbers(&first);
    assert!(expires.contains(shown.last().unwrap()), "{shown:?}");
    server.advance(61).await;
    let next = first["nextCursor"].as_str().unwrap();
    let second = server.get(&format!("{path}?cursor={next}")).await.ok(200);
    let rest = numbers(&second);
    assert_eq!(rest.last(), Some(&0), "what is left is not skipped");
    assert!(!rest.iter().any(|n| expires.contains(n)), "{rest:?}");
}

#[tokio::test]
async fn run_and_history_pages_show_the_beginning_of_large_values() {
    let server = TestServer::new().await;
    let noop = |n: usize| json!({"id": format!("n{n}"), "typeId": "core.noop", "config": {}});
    let run = run_with_large_values(&server, &numbered(12, noop), Some("in"), 900).await;
    let last = server.log(&run).await["lastEventSeq"].as_u64();
    let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(shown["status"], "completed");
    let cookie = sign_in(&server).await;
    let reply = page(&server, &cookie, &format!("/console/runs/{run}")).await;
    assert_eq!(reply.status.as_u16(), 200);
    let html = reply.text;
    assert!(html.len() < MAX_PAGE_BYTES, "{}", html.len());
    assert!(html.contains("run.completed"), "the newest event is shown");
    assert!(html.contains("earlier events are not shown"));
    assert!(html.contains("The API returns the whole value"));
    let all: Vec<u64> = (0..100).collect();
    let rows = all
        .iter()
        .filter(|seq| html.contains(&format!("data-seq=\"{seq}\"")));
    assert!(rows.count() > 1, "more than the newest event is shown");
    for seq in 0..=last.unwrap().min(8) {
        let reply = page(&server, &cookie, &format!("/console/runs/{run}/at/{seq}")).await;
        assert_eq!(reply.status.as_u16(), 200);
        assert!(reply.text.len() < MAX_PAGE_BYTES, "{}", reply.text.len());
        assert!(reply.text.contains(&format!("After event {seq}")));
    }
}

#[tokio::test]
async fn question_that_is_too_long_for_its_card_is_answered_elsewhere() {
    let server = TestServer::new().await;
    let config = json!({"title": "t".repeat(2 * KIB), "description": "d".repeat(300 * KIB)});
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": config});
    let run = run_with_large_values(&server, &[gate], Some("artifactData"), 900).await;
    let listed = server.get("/v1/host/tandem/interrupts").await.ok(200);
    let question = listed["interrupts"][0]["interruptId"].as_str().unwrap();
    let cookie = sign_in(&server).await;
    let path = format!("/console/inbox/{question}");
    for path in ["/console/inbox", &path] {
        let reply = page(&server, &cookie, path).await;
        assert_eq!(reply.status.as_u16(), 200);
        assert!(reply.text.len() < 100 * KIB, "{}", reply.text.len());
    }
    let card = page(&server, &cookie, &path).await.text;
    assert!(card.contains("too many for this page"), "it says why");
    assert!(
        !card.contains("name=\"action\""),
        "nothing to approve unseen"
    );
    let digest = listed["interrupts"][0]["digest"].as_str().unwrap();
    let form = format!("csrf={}&digest={digest}&action=accept", csrf(&card));
    let headers = [("cookie", cookie.as_str())];
    let answer = server
        .call_as("", "POST", &format!("{path}/answer"), &headers, form)
        .await;
    assert_eq!(answer.status.as_u16(), 400);
    let waiting = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(waiting["status"], "waiting-approval");
    // The API shows and decides it.
    let resolve = format!("/v1/host/tandem/interrupts/{question}:resolve");
    let body = json!({"resumeValue": {"action": "accept"}, "digest": digest});
    server.post(&resolve, body).await.ok(200);
}
