//! Data of one workspace cannot be seen, changed or inferred from another.

use crate::test_server::{Reply, TestServer, chain, hour, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const WORKFLOWS: &str = "/v1/host/tandem/workflows";
const HOOKS: &str = "/v1/webhooks";
/// Contained in all data of the red workspace.
pub(crate) const MARK: &str = "a-thing-only-red-knows";

pub(crate) async fn bound(server: &TestServer, workspace: &str) -> String {
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    new.workspace = Some(workspace.into());
    server.mint(new).await
}

pub(crate) async fn send(
    server: &TestServer,
    key: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Reply {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    server.call_as(key, method, path, &[], body).await
}

pub(crate) async fn register(server: &TestServer, key: &str, id: &str, nodes: &[Value]) -> Reply {
    let path = format!("{WORKFLOWS}/{id}");
    send(server, key, "PUT", &path, chain(id, nodes)).await
}

pub(crate) async fn create(server: &TestServer, key: &str, workflow: &str) -> String {
    let body = json!({"workflowId": workflow, "inputs": {"about": MARK}});
    let made = send(server, key, "POST", "/v1/runs", body).await.ok(201);
    made["runId"].as_str().unwrap().to_owned()
}

async fn status(server: &TestServer, run: &str) -> Value {
    server.get(&format!("/v1/runs/{run}")).await.ok(200)["status"].clone()
}

pub(crate) fn gate() -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": {"title": MARK}})
}

pub(crate) fn memory_put(value: &str) -> Value {
    json!({"id": "note", "typeId": "vendor.tandem.memory",
           "config": {"action": "put", "key": "k", "value": value}})
}

#[tokio::test]
async fn memory_is_visible_only_in_its_workspace() {
    let server = TestServer::new().await;
    let (red, blue) = (bound(&server, "red").await, bound(&server, "blue").await);
    server.register("note", &[memory_put(MARK)]).await;
    server.register("plain", &[noop("a")]).await;
    create(&server, &red, "note").await;
    let read_memory = async |key: &str, query: &str| {
        let run = create(&server, key, "plain").await;
        let path = format!("/v1/host/tandem/runs/{run}/memory{query}");
        let response = send(&server, key, "GET", &path, Value::Null).await.ok(200);
        response["entries"].as_array().unwrap().len()
    };
    assert_eq!(read_memory(&red, "").await, 1);
    assert_eq!(read_memory(&blue, "").await, 0);
    assert_eq!(
        read_memory(&server.key, "").await,
        0,
        "nor outside of workspaces"
    );
    // Exclusive scopes named by callers are separate per workspace as well.
    for key in [&red, &server.key] {
        let body = json!({"workflowId": "note", "scopeId": "s"});
        send(&server, key, "POST", "/v1/runs", body).await.ok(201);
    }
    assert_eq!(read_memory(&red, "?scope=s").await, 1);
    for named in ["s", "tenant", "workspace:red", "../red", "red/scope:s"] {
        let seen = read_memory(&blue, &format!("?scope={named}")).await;
        assert_eq!(seen, 0, "{named}");
    }
}

#[tokio::test]
async fn a_workspace_cannot_replace_the_workflow_that_others_run() {
    let server = TestServer::new().await;
    let (red, blue) = (bound(&server, "red").await, bound(&server, "blue").await);
    server.register("pay", &[gate(), noop("paid")]).await;
    let calls =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "pay"}});
    server.register("order", &[calls]).await;
    // The same workflow without the approval gate.
    let mine = register(&server, &red, "pay", &[noop("paid")]).await;
    assert_eq!(mine.ok(201)["registration"], "created");
    for (key, expected) in [
        (&red, "completed"),
        (&blue, "waiting-approval"),
        (&server.key, "waiting-approval"),
    ] {
        for flow in ["pay", "order"] {
            let run = create(&server, key, flow).await;
            server.advance(0).await;
            assert_eq!(status(&server, &run).await, expected, "{flow}");
        }
    }
    let path = format!("{WORKFLOWS}/pay");
    let read = async |key: &str, query: &str| {
        let found = send(&server, key, "GET", &format!("{path}{query}"), Value::Null).await;
        found.ok(200)["nodes"].as_array().unwrap().len()
    };
    assert_eq!(read(&red, "").await, 1);
    assert_eq!(read(&blue, "").await, 2);
    assert_eq!(read(&server.key, "").await, 2);
    assert_eq!(read(&server.key, "?workspace=red").await, 1);
    // An unbound key sees the owner of each document; a bound key sees only what it may run.
    let listed = async |key: &str| {
        let rows = send(&server, key, "GET", WORKFLOWS, Value::Null)
            .await
            .ok(200);
        let rows = rows["workflows"].as_array().unwrap().clone();
        let of = |row: &Value| (row["workflowId"].clone(), row["workspace"].clone());
        rows.iter().map(of).collect::<Vec<_>>()
    };
    let (order, pay) = (json!("order"), json!("pay"));
    let none = Value::Null;
    let all = [
        (order.clone(), none.clone()),
        (pay.clone(), none.clone()),
        (pay.clone(), json!("red")),
    ];
    assert_eq!(listed(&server.key).await, all);
    let theirs = [(order.clone(), none.clone()), (pay.clone(), none.clone())];
    assert_eq!(listed(&blue).await, theirs);
    assert_eq!(listed(&red).await, [(order, none), (pay, json!("red"))]);
    // Nor delete it: a workspace deletes only its own document, and then the tenant's applies
    // again.
    let reply = send(&server, &blue, "DELETE", &path, Value::Null).await;
    reply.refused(403, "forbidden");
    let gone = send(&server, &red, "DELETE", &path, Value::Null).await;
    assert_eq!(gone.status.as_u16(), 204);
    assert_eq!(read(&red, "").await, 2);
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_workspace() {
    let server = TestServer::new().await;
    let (red, blue) = (bound(&server, "red").await, bound(&server, "blue").await);
    let header = [("idempotency-key", "k1")];
    let body = json!({"url": "https://example.com/in", "events": ["run.completed"]}).to_string();
    let mut secrets = Vec::new();
    for key in [&red, &blue, &server.key] {
        let made = server
            .call_as(key, "POST", HOOKS, &header, body.clone())
            .await;
        assert_eq!(made.header("openwop-idempotent-replay"), "", "{made:?}");
        secrets.push(made.ok(201)["secret"].clone());
    }
    assert!(secrets[0] != secrets[1] && secrets[1] != secrets[2] && secrets[0] != secrets[2]);
    let again = server.call_as(&red, "POST", HOOKS, &header, body).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.ok(201)["secret"], secrets[0]);
}

#[tokio::test]
async fn exclusive_scope_is_separate_per_workspace() {
    let server = TestServer::new().await;
    let (red, blue) = (bound(&server, "red").await, bound(&server, "blue").await);
    server.register("w", &[hour("nap")]).await;
    let header = [("x-dedup", "enforce")];
    let body = json!({"workflowId": "w", "scopeId": "order-7"}).to_string();
    let start = async |key: &str| {
        server
            .call_as(key, "POST", "/v1/runs", &header, body.clone())
            .await
    };
    let first = start(&red).await.ok(201)["runId"].clone();
    for key in [&blue, &server.key] {
        let reply = start(key).await;
        assert_ne!(reply.ok(201)["runId"], first);
    }
    let reply = start(&red).await;
    let response = reply.refused(409, "run_already_active");
    assert!(
        response.to_string().contains(first.as_str().unwrap()),
        "{response}"
    );
}
