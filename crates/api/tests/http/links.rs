//! Signed links: a credential that works once, for one interrupt, and is not disclosed elsewhere.

use crate::test_server::TestServer;
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

fn gate() -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": {"timeoutMs": 60_000}})
}

fn accept() -> Value {
    json!({"resumeValue": {"action": "accept"}})
}

/// A waiting run, and the path of the link to its interrupt.
async fn waiting(server: &TestServer) -> (String, String) {
    let run = server.start("gated", &[gate()]).await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let path = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
    (run, path.to_owned())
}

async fn follow(
    server: &TestServer,
    path: &str,
    body: Value,
    headers: &[(&str, &str)],
) -> crate::test_server::Reply {
    server
        .call_as("", "POST", path, headers, body.to_string())
        .await
}

#[tokio::test]
async fn debug_bundle_contains_no_link() {
    let server = TestServer::new().await;
    let (run, path) = waiting(&server).await;
    let token = path.rsplit('/').next().unwrap();
    let bundle = server.get(&format!("/v1/runs/{run}/debug-bundle")).await;
    assert_eq!(bundle.ok(200)["run"]["interrupt"]["nodeId"], "gate");
    assert!(!bundle.text.contains(token));
    assert!(!bundle.text.contains("interruptToken"));
    assert!(!bundle.text.contains("/v1/interrupts/"));
}

#[tokio::test]
async fn debug_bundle_masks_inputs_of_every_type() {
    let server = TestServer::new().await;
    let noop = json!({"id": "a", "typeId": "core.noop", "config": {}});
    let mut document = crate::test_server::chain("echo", &[noop]);
    let names = ["n", "b", "s"];
    for name in names {
        document["nodes"][0]["inputs"][name] = json!({"type": "variable", "variableName": name});
    }
    let put = server.put("/v1/host/tandem/workflows/echo", document).await;
    assert!(put.status.is_success(), "{put:?}");
    let inputs = json!({"n": 4711, "b": true, "s": "abc"});
    let body = json!({"workflowId": "echo", "inputs": inputs});
    let made = server.post("/v1/runs", body).await.ok(201);
    let path = format!("/v1/runs/{}/debug-bundle", made["runId"].as_str().unwrap());
    let bundle = server.get(&path).await;
    let events = bundle.ok(200)["events"].clone();
    let of_node = events.as_array().unwrap().iter();
    let outputs = of_node
        .filter(|event| event["type"] == "node.completed")
        .map(|event| event["payload"]["outputs"].clone())
        .next()
        .unwrap();
    for name in names {
        assert_eq!(outputs[name], "[REDACTED]", "{outputs}");
    }
    assert!(!bundle.text.contains("4711"));
}

#[tokio::test]
async fn resolve_by_link_is_replayed_under_its_idempotency_key() {
    let server = TestServer::new().await;
    let (_, path) = waiting(&server).await;
    let key = [("idempotency-key", "one-answer")];
    let first = follow(&server, &path, accept(), &key).await;
    first.ok(200);
    let again = follow(&server, &path, accept(), &key).await;
    assert_eq!(again.ok(200), first.json());
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    let other = json!({"resumeValue": {"action": "reject"}});
    let mismatch = follow(&server, &path, other, &key).await;
    mismatch.refused(409, "idempotency_key_mismatch");
    let without = follow(&server, &path, accept(), &[]).await;
    let details = without.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], "link");
}

#[tokio::test]
async fn link_of_cancelled_run_gets_409() {
    let server = TestServer::new().await;
    let (run, path) = waiting(&server).await;
    server
        .post(&format!("/v1/runs/{run}/cancel"), json!({}))
        .await
        .ok(200);
    let dead = follow(&server, &path, accept(), &[]).await;
    let details = dead.refused(409, "interrupt_already_resolved");
    assert_eq!(details["outcome"], "cancelled");
    assert_eq!(details["decidedBy"], Value::Null);
    let looked = server.call_as("", "GET", &path, &[], "").await;
    looked.refused(409, "interrupt_already_resolved");
    let by_node = server
        .post(&format!("/v1/runs/{run}/interrupts/gate"), accept())
        .await;
    by_node.refused(410, "interrupt_gone");
}

#[tokio::test]
async fn timeout_resolution_has_no_decider() {
    let server = TestServer::new().await;
    let (run, path) = waiting(&server).await;
    server.advance(120).await;
    let late = follow(&server, &path, accept(), &[]).await;
    let details = late.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], Value::Null);
    let by_node = server
        .post(&format!("/v1/runs/{run}/interrupts/gate"), accept())
        .await;
    let details = by_node.refused(409, "interrupt_already_resolved");
    assert_eq!(details["decidedBy"], Value::Null);
}

#[tokio::test]
async fn link_ends_with_the_keys_of_whom_it_was_issued_to() {
    let server = TestServer::new().await;
    let run = server.start("gated", &[gate()]).await;
    let link_of = async |key: &str| {
        let path = format!("/v1/runs/{run}");
        let snapshot = server.call_as(key, "GET", &path, &[], "").await.ok(200);
        let path = snapshot["interrupt"]["callbackUrl"].as_str().unwrap();
        path.to_owned()
    };
    let new_key = async |scopes: &[Scope]| {
        let mut new = NewKey::new("ana", "default".into(), scopes.iter().copied());
        new.principal = Some("ana".into());
        server.mint(new).await
    };
    let scopes = [Scope::RunsRead, Scope::ApprovalsRespond];
    let first = new_key(&scopes).await;
    let path = link_of(&first).await;
    server.call_as("", "GET", &path, &[], "").await.ok(200);
    let reader = new_key(&[Scope::RunsRead]).await;
    server.revoke(&first).await;
    let refused = follow(&server, &path, accept(), &[]).await;
    refused.refused(403, "forbidden");
    server.call_as("", "GET", &path, &[], "").await.ok(200);
    server.revoke(&reader).await;
    let looked = server.call_as("", "GET", &path, &[], "").await;
    looked.refused(403, "forbidden");
    // A rotated key is the same principal, so its links go on.
    new_key(&scopes).await;
    follow(&server, &path, accept(), &[]).await.ok(200);
}
