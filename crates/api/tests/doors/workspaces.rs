//! What is of one workspace is not seen, changed or learned of from another.

use crate::stage::{Reply, Stage, chain, hour, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const WORKFLOWS: &str = "/v1/host/tandem/workflows";
const HOOKS: &str = "/v1/webhooks";
/// In everything the red workspace says of its business.
pub(crate) const MARK: &str = "a-thing-only-red-knows";

pub(crate) async fn bound(stage: &Stage, workspace: &str) -> String {
    let mut new = NewKey::new("t", "default".into(), Scope::all().iter().copied());
    new.workspace = Some(workspace.into());
    stage.mint(new).await
}

pub(crate) async fn send(stage: &Stage, key: &str, method: &str, path: &str, body: Value) -> Reply {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    stage.call_as(key, method, path, &[], body).await
}

pub(crate) async fn register(stage: &Stage, key: &str, id: &str, nodes: &[Value]) -> Reply {
    let path = format!("{WORKFLOWS}/{id}");
    send(stage, key, "PUT", &path, chain(id, nodes)).await
}

pub(crate) async fn create(stage: &Stage, key: &str, workflow: &str) -> String {
    let body = json!({"workflowId": workflow, "inputs": {"about": MARK}});
    let made = send(stage, key, "POST", "/v1/runs", body).await.ok(201);
    made["runId"].as_str().unwrap().to_owned()
}

async fn status(stage: &Stage, run: &str) -> Value {
    stage.get(&format!("/v1/runs/{run}")).await.ok(200)["status"].clone()
}

pub(crate) fn gate() -> Value {
    json!({"id": "gate", "typeId": "core.approvalGate", "config": {"title": MARK}})
}

pub(crate) fn remember(value: &str) -> Value {
    json!({"id": "note", "typeId": "vendor.tandem.memory",
           "config": {"action": "put", "key": "k", "value": value}})
}

#[tokio::test]
async fn memory_is_seen_in_its_workspace_only() {
    let stage = Stage::new().await;
    let (red, blue) = (bound(&stage, "red").await, bound(&stage, "blue").await);
    stage.register("note", &[remember(MARK)]).await;
    stage.register("plain", &[noop("a")]).await;
    create(&stage, &red, "note").await;
    let remembered = async |key: &str, query: &str| {
        let run = create(&stage, key, "plain").await;
        let path = format!("/v1/host/tandem/runs/{run}/memory{query}");
        let told = send(&stage, key, "GET", &path, Value::Null).await.ok(200);
        told["entries"].as_array().unwrap().len()
    };
    assert_eq!(remembered(&red, "").await, 1);
    assert_eq!(remembered(&blue, "").await, 0);
    assert_eq!(
        remembered(&stage.key, "").await,
        0,
        "nor outside of workspaces"
    );
    // Scopes that callers name are a workspace's own as well.
    for key in [&red, &stage.key] {
        let body = json!({"workflowId": "note", "scopeId": "s"});
        send(&stage, key, "POST", "/v1/runs", body).await.ok(201);
    }
    assert_eq!(remembered(&red, "?scope=s").await, 1);
    for named in ["s", "tenant", "workspace:red", "../red", "red/scope:s"] {
        let seen = remembered(&blue, &format!("?scope={named}")).await;
        assert_eq!(seen, 0, "{named}");
    }
}

#[tokio::test]
async fn a_workspace_cannot_replace_the_workflow_that_others_run() {
    let stage = Stage::new().await;
    let (red, blue) = (bound(&stage, "red").await, bound(&stage, "blue").await);
    stage.register("pay", &[gate(), noop("paid")]).await;
    let calls =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "pay"}});
    stage.register("order", &[calls]).await;
    // Without the gate.
    let mine = register(&stage, &red, "pay", &[noop("paid")]).await;
    assert_eq!(mine.ok(201)["registration"], "created");
    for (key, expected) in [
        (&red, "completed"),
        (&blue, "waiting-approval"),
        (&stage.key, "waiting-approval"),
    ] {
        for flow in ["pay", "order"] {
            let run = create(&stage, key, flow).await;
            stage.advance(0).await;
            assert_eq!(status(&stage, &run).await, expected, "{flow}");
        }
    }
    let path = format!("{WORKFLOWS}/pay");
    let read = async |key: &str, query: &str| {
        let found = send(&stage, key, "GET", &format!("{path}{query}"), Value::Null).await;
        found.ok(200)["nodes"].as_array().unwrap().len()
    };
    assert_eq!(read(&red, "").await, 1);
    assert_eq!(read(&blue, "").await, 2);
    assert_eq!(read(&stage.key, "").await, 2);
    assert_eq!(read(&stage.key, "?workspace=red").await, 1);
    // A key of the whole tenant sees whose each is; a bound one only what it may run.
    let listed = async |key: &str| {
        let rows = send(&stage, key, "GET", WORKFLOWS, Value::Null)
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
    assert_eq!(listed(&stage.key).await, all);
    let theirs = [(order.clone(), none.clone()), (pay.clone(), none.clone())];
    assert_eq!(listed(&blue).await, theirs);
    assert_eq!(listed(&red).await, [(order, none), (pay, json!("red"))]);
    // Nor take it away: only its own, and then the tenant's is there again.
    let reply = send(&stage, &blue, "DELETE", &path, Value::Null).await;
    reply.refused(403, "forbidden");
    let gone = send(&stage, &red, "DELETE", &path, Value::Null).await;
    assert_eq!(gone.status.as_u16(), 204);
    assert_eq!(read(&red, "").await, 2);
}

#[tokio::test]
async fn answers_kept_under_a_key_are_a_workspaces_own() {
    let stage = Stage::new().await;
    let (red, blue) = (bound(&stage, "red").await, bound(&stage, "blue").await);
    let header = [("idempotency-key", "k1")];
    let body = json!({"url": "https://example.com/in", "events": ["run.completed"]}).to_string();
    let mut secrets = Vec::new();
    for key in [&red, &blue, &stage.key] {
        let made = stage
            .call_as(key, "POST", HOOKS, &header, body.clone())
            .await;
        assert_eq!(made.header("openwop-idempotent-replay"), "", "{made:?}");
        secrets.push(made.ok(201)["secret"].clone());
    }
    assert!(secrets[0] != secrets[1] && secrets[1] != secrets[2] && secrets[0] != secrets[2]);
    let again = stage.call_as(&red, "POST", HOOKS, &header, body).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.ok(201)["secret"], secrets[0]);
}

#[tokio::test]
async fn one_live_run_in_a_scope_is_one_in_each_workspace() {
    let stage = Stage::new().await;
    let (red, blue) = (bound(&stage, "red").await, bound(&stage, "blue").await);
    stage.register("w", &[hour("nap")]).await;
    let header = [("x-dedup", "enforce")];
    let body = json!({"workflowId": "w", "scopeId": "order-7"}).to_string();
    let start = async |key: &str| {
        stage
            .call_as(key, "POST", "/v1/runs", &header, body.clone())
            .await
    };
    let first = start(&red).await.ok(201)["runId"].clone();
    for key in [&blue, &stage.key] {
        let reply = start(key).await;
        assert_ne!(reply.ok(201)["runId"], first);
    }
    let reply = start(&red).await;
    let told = reply.refused(409, "run_already_active");
    assert!(told.to_string().contains(first.as_str().unwrap()), "{told}");
}
