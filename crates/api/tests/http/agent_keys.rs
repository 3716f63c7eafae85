//! Keys that are good for one agent only: they read and write its conversations, and nothing else.

use crate::chat_agents::ChatAgents;
use crate::test_server::{HostOptions, Reply, TestServer};
use crate::workspaces::send;
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};

const BASE: &str = "/v1/host/tandem";
const SCOPES: [Scope; 5] = [
    Scope::RunsRead,
    Scope::RunsCreate,
    Scope::RunsCancel,
    Scope::ApprovalsRespond,
    Scope::AuditRead,
];

async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    })
    .await
}

async fn bound(server: &TestServer, agent: &str) -> String {
    let mut new = NewKey::new("t", "default".into(), SCOPES);
    new.agent = Some(agent.into());
    server.mint(new).await
}

/// A session with an open escalation; its id and that of the escalation.
async fn refund(server: &TestServer, key: &str, agent: &str) -> [String; 2] {
    let path = format!("{BASE}/agents/{agent}/inbound?wait=true");
    let message = json!({"messageId": format!("m-{agent}"), "from": "ada", "body": "refund"});
    let told = send(server, key, "POST", &path, message).await.ok(200);
    assert_eq!(told["status"], "processed");
    let session = told["sessionId"].as_str().unwrap().to_owned();
    let path = format!("{BASE}/escalations?sessionId={session}");
    let listed = server.get(&path).await.ok(200);
    let escalation = listed["escalations"][0]["id"].as_str().unwrap();
    [session, escalation.to_owned()]
}

fn ids<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let ids = list.as_array().unwrap().iter();
    ids.map(|entry| entry[name].as_str().unwrap()).collect()
}

/// Z-155 (half: a key for one agent reads and writes no other agent's conversations)
#[tokio::test]
async fn key_of_one_agent_does_not_reach_conversations_of_another() {
    let server = server().await;
    let key = bound(&server, "open").await;
    let [own, own_escalation] = refund(&server, &key, "open").await;
    let [other, other_escalation] = refund(&server, &server.key, "closed").await;
    let user = async |session: &str| {
        let view = server
            .get(&format!("{BASE}/sessions/{session}"))
            .await
            .ok(200);
        view["userId"].as_str().unwrap().to_owned()
    };
    let [own_user, other_user] = [user(&own).await, user(&other).await];
    let call = async |method: &str, path: String, body: Value| -> Reply {
        send(&server, &key, method, &format!("{BASE}{path}"), body).await
    };
    for of in [
        "",
        "/events?after=-1",
        "/messages",
        "/outbox",
        "/journal",
        "/kv",
    ] {
        let own = call("GET", format!("/sessions/{own}{of}"), Value::Null).await;
        own.ok(200);
        let hidden = call("GET", format!("/sessions/{other}{of}"), Value::Null).await;
        hidden.refused(404, "not_found");
    }
    for path in [
        "/agents/closed",
        "/agents/closed/users",
        "/agents/closed/events",
    ] {
        let hidden = call("GET", path.to_owned(), Value::Null).await;
        hidden.refused(404, "not_found");
    }
    let media = format!("/sessions/{other}/media/x");
    call("GET", media, Value::Null)
        .await
        .refused(404, "not_found");
    let trail = format!("/audit?sessionId={other}");
    call("GET", trail, Value::Null)
        .await
        .refused(404, "not_found");
    let escalation = |id: &str| format!("/escalations/{id}");
    call("GET", escalation(&own_escalation), Value::Null)
        .await
        .ok(200);
    let hidden = call("GET", escalation(&other_escalation), Value::Null).await;
    hidden.refused(404, "not_found");

    let changes = [
        (
            "POST",
            "/agents/closed/inbound".to_owned(),
            json!({"messageId": "x", "from": "eve", "body": "hi"}),
        ),
        (
            "PATCH",
            format!("/users/{other_user}"),
            json!({"displayName": "Mallory"}),
        ),
        ("POST", format!("/sessions/{other}/end"), Value::Null),
        (
            "POST",
            format!("/sessions/{other}/mode"),
            json!({"agentMode": "off"}),
        ),
        (
            "POST",
            format!("/sessions/{other}/flows"),
            json!({"flowId": "book"}),
        ),
        (
            "DELETE",
            format!("/sessions/{other}/flows/active"),
            Value::Null,
        ),
        (
            "POST",
            format!("/escalations/{other_escalation}/resolve"),
            json!({"approved": true}),
        ),
        (
            "POST",
            format!("/sessions/{other}/resolve"),
            json!({"approved": true}),
        ),
    ];
    for (method, path, body) in changes {
        let refused = call(method, path.clone(), body).await;
        assert_eq!(
            refused.status.as_u16(),
            404,
            "{method} {path}: {}",
            refused.text
        );
    }
    let untouched = server
        .get(&format!("{BASE}/sessions/{other}"))
        .await
        .ok(200);
    assert!(untouched["endedAt"].is_null(), "{untouched}");

    let read = async |path: &str| call("GET", path.to_owned(), Value::Null).await.ok(200);
    assert_eq!(
        ids(&read("/sessions").await["sessions"], "id"),
        [own.as_str()]
    );
    assert!(ids(&read("/sessions?agentId=closed").await["sessions"], "id").is_empty());
    let listed = read("/escalations").await;
    assert_eq!(ids(&listed["escalations"], "id"), [own_escalation.as_str()]);
    let agents = read("/agents").await;
    assert_eq!(ids(&agents["agents"], "id"), ["open"]);
    let users = read("/agents/open/users").await;
    assert_eq!(ids(&users["users"], "id"), [own_user.as_str()]);
    let decided = json!({"approved": true});
    let resolved = call(
        "POST",
        format!("/escalations/{own_escalation}/resolve"),
        decided,
    )
    .await;
    assert_eq!(resolved.ok(200)["status"], "resolved");
}

/// Z-155 (half: such a key reaches nothing but conversations, and makes no wider keys)
#[tokio::test]
async fn key_of_one_agent_reaches_nothing_else() {
    let server = server().await;
    let key = bound(&server, "open").await;
    let [session, _] = refund(&server, &key, "open").await;
    let view = server
        .get(&format!("{BASE}/sessions/{session}"))
        .await
        .ok(200);
    let run = view["flow"]["flowRunId"].as_str().unwrap();
    for (method, path) in [
        ("GET", "/v1/runs".to_owned()),
        ("GET", format!("/v1/runs/{run}")),
        ("GET", format!("/v1/runs/{run}/events")),
        ("GET", format!("{BASE}/interrupts")),
        ("POST", "/v1/runs".to_owned()),
        ("POST", format!("/v1/runs/{run}/cancel")),
    ] {
        let refused = send(&server, &key, method, &path, Value::Null).await;
        assert_eq!(
            refused.status.as_u16(),
            403,
            "{method} {path}: {}",
            refused.text
        );
    }
    let mut wide = NewKey::new("t", "default".into(), [Scope::RunsRead, Scope::Keys]);
    wide.agent = Some("open".into());
    let maker = server.mint(wide).await;
    let body = json!({"name": "wider", "scopes": ["runs:read"]});
    let refused = send(&server, &maker, "POST", &format!("{BASE}/keys"), body).await;
    assert_eq!(refused.status.as_u16(), 403, "{}", refused.text);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let signed_in = server
        .call_as("", "POST", "/console/login", &form, format!("key={key}"))
        .await;
    assert!(
        signed_in.header("set-cookie").is_empty(),
        "{}",
        signed_in.text
    );
}

#[tokio::test]
async fn key_of_one_agent_is_made_listed_and_rotated() {
    let server = server().await;
    let keys = format!("{BASE}/keys");
    let body = json!({"name": "bridge", "scopes": ["runs:read"], "agent": "open"});
    let made = server.post(&keys, body).await.ok(201);
    assert_eq!(made["agent"], "open");
    let id = made["keyId"].as_str().unwrap();
    let listed = server.get(&format!("{keys}/{id}")).await.ok(200);
    assert_eq!(listed["agent"], "open");
    let rotated = server
        .post(&format!("{keys}/{id}:rotate"), json!({}))
        .await
        .ok(201);
    assert_eq!(rotated["agent"], "open", "a second key reaches no more");
    let idle = json!({"name": "idle", "scopes": ["runs:read", "tandem:keys"], "agent": "open"});
    let refused = server.post(&keys, idle).await;
    refused.refused(400, "validation_error");
}
