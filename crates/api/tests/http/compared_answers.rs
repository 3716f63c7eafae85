//! What the agent would have said where a person answered, on its page in the console.

use crate::chat_agents::{ChatAgents, HOSTILE};
use crate::inbox::{page, sign_in_as};
use crate::test_server::{HostOptions, Reply, TestServer};
use serde_json::{Value, json};
use tandem_access::Scope;

const BASE: &str = "/v1/host/tandem";

async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    })
    .await
}

/// A message of Ada; gives her session.
async fn say(server: &TestServer, id: &str, text: &str) -> String {
    let path = format!("{BASE}/agents/staffed/inbound?wait=true");
    let message = json!({"messageId": id, "from": "ada", "body": text});
    let sent = server.post(&path, message).await.ok(200);
    sent["sessionId"].as_str().expect("a session").to_owned()
}

async fn as_ana(server: &TestServer, path: &str, body: Value) {
    let path = format!("{BASE}/sessions/{path}");
    let headers = [("x-admin-token", "ana-token")];
    let sent = server.call_as(&server.key, "POST", &path, &headers, body.to_string());
    sent.await.ok(200);
}

async fn compare(server: &TestServer, cookie: &str, session: &str, csrf: &str) -> Reply {
    let path = format!("/console/conversations/{session}/compare-answers");
    let headers = [("cookie", cookie), ("host", "t")];
    let body = format!("csrf={csrf}");
    server.call_as("", "POST", &path, &headers, body).await
}

fn csrf_of(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"csrf\" value=\"").expect("a form");
    rest.split('"').next().expect("a value").to_owned()
}

async fn pairs(server: &TestServer, session: &str) -> Vec<Value> {
    let path = format!("{BASE}/sessions/{session}/compare-answers");
    let compared = server.post(&path, json!({})).await.ok(200);
    compared["pairs"].as_array().expect("pairs").clone()
}

/// A flow that waits goes on in memory; what the agent would have said is what it remembers at the next message.
#[tokio::test]
async fn flow_goes_on_in_memory_with_the_messages_in_order() {
    let server = server().await;
    let session = say(&server, "m-1", "book").await;
    as_ana(&server, &format!("{session}/takeover"), json!({})).await;
    for (number, text) in ["sure", "thanks"].into_iter().enumerate() {
        say(&server, &format!("m-{}", number + 2), text).await;
        let text = json!({"messageId": format!("h-{number}"), "text": "Ana here."});
        as_ana(&server, &format!("{session}/takeover/messages"), text).await;
    }
    let events = format!("{BASE}/sessions/{session}/events?after=-1");
    let before = server.get(&events).await.text;
    let [first, second] = &pairs(&server, &session).await[..] else {
        panic!("two pairs");
    };
    let ended = json!({"texts": ["Booked."], "actions": ["the flow book ends"]});
    assert_eq!(first["agent"], ended, "the flow took the message");
    let said = json!({"texts": ["You said: thanks"], "actions": []});
    assert_eq!(second["agent"], said, "no flow is active any more");
    assert_eq!(server.get(&events).await.text, before, "nothing is stored");
    // The real flow still waits.
    as_ana(&server, &format!("{session}/handback"), json!({})).await;
    let path = format!("{BASE}/sessions/{session}");
    let shown = server.get(&path).await.ok(200);
    assert_eq!(shown["flow"]["pausedOn"], "confirm", "{shown}");
}

#[tokio::test]
async fn answers_of_both_are_shown_side_by_side() {
    let server = server().await;
    let session = say(&server, "m-1", "hi").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}");
    let before = page(&server, &cookie, &path).await.text;
    assert!(!before.contains("action-compare"), "{before}");
    as_ana(&server, &format!("{session}/takeover"), json!({})).await;
    say(&server, "m-2", &format!("{HOSTILE} please")).await;
    let text = json!({"messageId": "h-1", "text": "Ana here."});
    as_ana(&server, &format!("{session}/takeover/messages"), text).await;
    as_ana(&server, &format!("{session}/handback"), json!({})).await;
    let shown = page(&server, &cookie, &path).await.text;
    assert!(shown.contains("action-compare"), "{shown}");
    let events = format!("{BASE}/sessions/{session}/events?after=-1");
    let count = async || {
        let page = server.get(&events).await.ok(200);
        page["events"].as_array().expect("events").len()
    };
    let stored = count().await;
    let csrf = csrf_of(&shown);
    let compared = compare(&server, &cookie, &session, &csrf).await;
    assert_eq!(compared.status.as_u16(), 200, "{compared:?}");
    let html = &compared.text;
    for part in [
        "What would the agent have said?",
        "Ana here.",
        "<strong>ana</strong>",
        "You said: &lt;img",
        "id=\"save-lines\"",
        "&quot;human&quot;",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(count().await, stored, "nothing of it is stored");
    let forged = compare(&server, &cookie, &session, "").await;
    assert_eq!(forged.status.as_u16(), 403, "no form token");
    // Who may not make turns is neither offered nor shown the comparison.
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let reader = sign_in_as(&server, &reader).await;
    let shown = page(&server, &reader, &path).await.text;
    assert!(!shown.contains("action-compare"), "{shown}");
    let csrf = csrf_of(&shown);
    let refused = compare(&server, &reader, &session, &csrf).await;
    assert_eq!(refused.status.as_u16(), 403);
    let foreign = server.new_key("tenant2", Scope::all()).await;
    let foreign = sign_in_as(&server, &foreign).await;
    let csrf = csrf_of(&page(&server, &foreign, "/console/runs").await.text);
    let refused = compare(&server, &foreign, &session, &csrf).await;
    assert_eq!(refused.status.as_u16(), 404);
}
