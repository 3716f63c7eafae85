//! Conversations with the real binary and an agent from a folder.

mod server;

use serde_json::{Value, json};
use server::{KEY, Server};

const AGENT: &str = r#"{
  "prompt": "You run a desk.",
  "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
  "adminAuth": {"builtin": "keys", "roles": {"auditor": ["audit.view"]}}
}"#;

/// The body of a successful answer.
fn ok(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(body).expect("a JSON body")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("an HTTP response")
}

fn key_of_workspace(server: &Server, workspace: &str) -> String {
    let body = json!({"name": workspace, "workspace": workspace, "roles": ["auditor"],
        "scopes": ["runs:read", "runs:create", "audit:read"]});
    let made = server.post("/v1/host/tandem/keys", &[], &body.to_string());
    ok(&made)["secret"].as_str().expect("a secret").to_owned()
}

fn deliver(server: &Server, key: &str) -> Value {
    let body = json!({"messageId": "m1", "from": "ann", "body": "Good morning"}).to_string();
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    ok(&server.request_as(key, "POST", path, &body))
}

/// One address is another user in another workspace: with its own messages, session and profile.
#[test]
fn conversations_of_workspaces_are_separate() {
    let server = Server::with_agent("desk", AGENT);
    let keys = ["red", "blue"].map(|workspace| key_of_workspace(&server, workspace));
    let [red, blue] = &keys;
    let [of_red, of_blue] = [red, blue].map(|key| deliver(&server, key));
    assert_eq!(of_red["status"], "processed");
    assert_eq!(of_red["outbound"][0]["text"], "Hello.");
    assert_eq!(
        of_blue["status"], "processed",
        "not a duplicate of the other"
    );
    assert_ne!(of_red["sessionId"], of_blue["sessionId"]);
    let of_tenant = deliver(&server, KEY);
    assert_eq!(of_tenant["status"], "processed");
    assert_eq!(deliver(&server, red)["status"], "duplicate");

    let users = |key: &str| {
        let listed = server.request_as(key, "GET", "/v1/host/tandem/agents/desk/users", "");
        ok(&listed)["users"].as_array().expect("users").clone()
    };
    assert_eq!([red, blue].map(|key| users(key).len()), [1, 1]);
    assert_eq!(users(KEY).len(), 3, "the tenant sees all of them");

    let user = format!(
        "/v1/host/tandem/users/{}",
        users(red)[0]["id"].as_str().expect("an id")
    );
    let renamed = r#"{"displayName": "Mallory"}"#;
    assert_eq!(
        status(&server.request_as(blue, "PATCH", &user, renamed)),
        "404"
    );
    assert_eq!(users(red)[0]["displayName"], "ann");
    let renamed = r#"{"displayName": "Ann"}"#;
    assert_eq!(
        status(&server.request_as(red, "PATCH", &user, renamed)),
        "200"
    );
    assert_eq!(users(red)[0]["displayName"], "Ann");

    // Reading the trail of a session is itself recorded in it.
    let trail = |key: &str, of: &str| {
        let read = server.request_as(key, "GET", &format!("/v1/host/tandem/audit?{of}"), "");
        ok(&read)["entries"].as_array().expect("entries").len()
    };
    let session = of_red["sessionId"].as_str().expect("an id");
    trail(red, &format!("sessionId={session}"));
    assert_ne!(trail(red, "agentId=desk"), 0);
    assert_eq!(trail(blue, "agentId=desk"), 0);
}

/// The name of a sender is stored with the user, so a secret in it is masked before.
#[test]
fn secret_in_the_name_of_a_sender_is_not_stored() {
    let server = Server::with_agent("desk", AGENT);
    let message = json!({"messageId": "m1", "from": "ann", "body": "Good morning",
        "senderProfile": {"displayName": format!("Ann {KEY}")}});
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    let delivered = ok(&server.post(path, &[], &message.to_string()));
    let session = delivered["sessionId"].as_str().expect("an id");
    for read in [
        "agents/desk/users".to_owned(),
        "agents/desk/events".to_owned(),
        format!("sessions/{session}"),
        format!("sessions/{session}/events"),
    ] {
        let shown = server.get(&format!("/v1/host/tandem/{read}"));
        ok(&shown);
        assert!(!shown.contains(KEY), "{read}: {shown}");
    }
}
