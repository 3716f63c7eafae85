//! What passed over bridges: over the API and on the page of the conversation.

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

/// Delivers a message; gives the session.
async fn send(server: &TestServer, agent: &str, from: &str, text: &str) -> String {
    let path = format!("{BASE}/agents/{agent}/inbound?wait=true");
    let id = uuid::Uuid::new_v4().to_string();
    let message = json!({"messageId": id, "from": from, "body": text});
    let sent = server.post(&path, message).await.ok(200);
    sent["sessionId"].as_str().unwrap_or_default().to_owned()
}

async fn write(server: &TestServer, proxy: &str, id: &str, text: &str) {
    let path = format!("{BASE}/proxies/{proxy}/input");
    let input = json!({"messageId": id, "text": text});
    server.post(&path, input).await.ok(200);
}

async fn read(server: &TestServer, proxy: &str) -> Value {
    let path = format!("{BASE}/proxies/{proxy}");
    server.get(&path).await.ok(200)
}

/// Begins a bridge with a flow; gives the session and the bridge.
async fn begin(server: &TestServer, agent: &str, flow: &str) -> (String, String) {
    let session = send(server, agent, "ada", flow).await;
    let path = format!("{BASE}/sessions/{session}");
    let shown = server.get(&path).await.ok(200);
    let proxy = shown["hitl"]["proxyId"].as_str().expect("a bridge");
    (session, proxy.to_owned())
}

/// Who wrote, what became of it, and the text.
fn passed(shown: &Value) -> Vec<String> {
    let messages = shown["messages"].as_array().expect("messages").iter();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    messages
        .map(|m| [&m["from"], &m["outcome"], &m["text"]].map(text).join("|"))
        .collect()
}

async fn post(server: &TestServer, cookie: &str, path: &str, body: &str) -> Reply {
    let headers = [("cookie", cookie), ("host", "t")];
    server
        .call_as("", "POST", path, &headers, body.to_owned())
        .await
}

fn csrf_of(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"csrf\" value=\"").expect("a form");
    rest.split('"').next().expect("a value").to_owned()
}

#[tokio::test]
async fn api_returns_what_passed_over_a_bridge() {
    let server = server().await;
    let (_, proxy) = begin(&server, "bridged", "relay").await;
    send(&server, "bridged", "ada", "please hurry").await;
    // Nobody knows who writes at the desk: the keys of requests are not theirs.
    send(&server, "bridged", "finance", "let me in").await;
    write(&server, &proxy, "i-1", "secret").await;
    write(&server, &proxy, "i-2", "APPROVE").await;
    write(&server, &proxy, "i-3", "Good bye.").await;
    let shown = read(&server, &proxy).await;
    assert_eq!(shown["status"], "stopped", "the flow is over");
    let number = &proxy.split('-').nth(1).expect("a number")[..6];
    let wanted = [
        format!("user|forwarded|[ada #{number}] please hurry"),
        "desk|denied|let me in".to_owned(),
        format!("host|forwarded|[#{number}] Not delivered: you may not write here."),
        "desk|dropped|secret".to_owned(),
        format!("host|forwarded|[#{number}] Not delivered: the message was not accepted."),
        "desk|forwarded|APPROVE".to_owned(),
        "desk|forwarded|Good bye.".to_owned(),
    ];
    assert_eq!(passed(&shown), wanted);
    let [_, denied, _, dropped, _, changed, plain] = &shown["messages"].as_array().unwrap()[..]
    else {
        panic!("{shown}");
    };
    assert_eq!(denied["reason"], "no_actor");
    assert_eq!(dropped["reason"], "not for users");
    let by = server.identity().await.principal.to_string();
    for input in [dropped, changed, plain] {
        assert_eq!(input["actor"]["id"], json!(by), "{input}");
        assert!(input["decidedAt"].is_string(), "{input}");
    }
    assert_eq!(
        (&changed["modified"], &changed["reason"]),
        (&json!(true), &json!("decided"))
    );
    let sent = "[Finance] Your refund is approved.";
    assert_eq!(changed["forwardedText"], sent);
    assert_eq!(plain["forwardedText"], "[Finance] Good bye.");
    assert_eq!(plain["modified"], Value::Null);
    assert_eq!(plain["delivery"], "sent");

    // In pages it is the same.
    let mut paged = Vec::new();
    let mut path = format!("{BASE}/proxies/{proxy}?limit=1");
    loop {
        let shown = server.get(&path).await.ok(200);
        paged.extend(shown["messages"].as_array().expect("messages").clone());
        let Some(next) = shown["nextCursor"].as_str() else {
            break;
        };
        path = format!("{BASE}/proxies/{proxy}?limit=1&cursor={next}");
    }
    assert_eq!(json!(paged), shown["messages"]);
}

/// Input of a shadowing desk is kept until the flow waits for it; what is left at the end reaches nobody.
#[tokio::test]
async fn kept_input_is_shown_with_what_became_of_it() {
    let server = server().await;
    let (_, proxy) = begin(&server, "bridged", "advise").await;
    write(&server, &proxy, "i-1", "offer a voucher").await;
    write(&server, &proxy, "i-2", "be polite").await;
    let shown = passed(&read(&server, &proxy).await);
    assert_eq!(shown, ["desk|kept|offer a voucher", "desk|kept|be polite"]);
    send(&server, "bridged", "ada", "A-17").await;
    let path = format!("{BASE}/proxies/{proxy}?limit=1");
    let first = server.get(&path).await.ok(200);
    assert!(first["nextCursor"].is_string(), "{first}");
    let shown = passed(&first);
    assert_eq!(
        shown[0], "desk|not_forwarded|offer a voucher",
        "read ahead of the page"
    );
    let stop = format!("{BASE}/proxies/{proxy}/stop");
    server.post(&stop, json!({})).await.ok(200);
    let shown = read(&server, &proxy).await;
    assert_eq!(passed(&shown)[1], "desk|dropped|be polite", "{shown}");
}

#[tokio::test]
async fn texts_are_masked_and_only_for_those_with_the_right() {
    let server = server().await;
    let (session, proxy) = begin(&server, "masked", "relay").await;
    write(&server, &proxy, "i-1", "APPROVE").await;
    let shown = read(&server, &proxy).await;
    let message = &shown["messages"][0];
    for key in ["text", "forwardedText", "reason"] {
        let shown = message[key].as_str().expect("a text");
        assert!(shown.starts_with("sha256:"), "{message}");
    }
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}");
    let html = page(&server, &cookie, &path).await.text;
    let (_, columns) = html
        .split_once("data-part=\"bridge-messages\"")
        .expect("a part");
    assert!(columns.contains("Forwarded, changed"), "{columns}");
    assert!(columns.contains("sha256:") && !columns.contains("APPROVE"));

    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let proxy_path = format!("{BASE}/proxies/{proxy}");
    let refused = server
        .call_as(&reader, "GET", &proxy_path, &[], String::new())
        .await;
    assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
    let cookie = sign_in_as(&server, &reader).await;
    let html = page(&server, &cookie, &path).await.text;
    assert!(!html.contains("Forwarded, changed"), "{html}");
    assert!(!html.contains("action-bridge-input"), "{html}");
    let unknown = format!("{BASE}/proxies/{proxy}?cursor=abc");
    assert_eq!(server.get(&unknown).await.status.as_u16(), 400);
    let none = format!("{BASE}/proxies/pxy-none");
    assert_eq!(server.get(&none).await.status.as_u16(), 404);
}

#[tokio::test]
async fn page_shows_both_columns_and_writes_as_the_desk() {
    let server = server().await;
    let cookie = sign_in_as(&server, &server.key).await;
    let plain = send(&server, "bridged", "bob", "hi").await;
    let html = page(&server, &cookie, &format!("/console/conversations/{plain}"))
        .await
        .text;
    assert!(
        !html.contains("class=\"side-by-side\""),
        "no bridge: {html}"
    );
    let (session, proxy) = begin(&server, "bridged", "relay").await;
    send(&server, "bridged", "ada", HOSTILE).await;
    let path = format!("/console/conversations/{session}");
    let html = page(&server, &cookie, &path).await.text;
    for part in [
        "class=\"side-by-side\"",
        " to Finance began, mode mirror",
        "] &lt;img",
        "action-bridge-input",
        "Write as Finance",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<img"), "{html}");
    let csrf = csrf_of(&html);
    let (_, rest) = html
        .split_once("name=\"messageId\" value=\"")
        .expect("a form");
    let (_, rest) = rest
        .split_once("id=\"bridge-input\"")
        .map_or(("", rest), |_| ("", rest));
    let id = rest.split('"').next().expect("an id");
    let body = format!("csrf={csrf}&messageId={id}&text=APPROVE");
    let input = format!("/console/proxies/{proxy}/input");
    for _ in 0..2 {
        let sent = post(&server, &cookie, &input, &body).await;
        assert_eq!(sent.status.as_u16(), 303, "{sent:?}");
    }
    let html = page(&server, &cookie, &path).await.text;
    assert_eq!(html.matches("Forwarded, changed").count(), 1, "sent twice");
    assert!(
        html.contains("[Finance] Your refund is approved."),
        "{html}"
    );
    let forged = post(&server, &cookie, &input, "csrf=x&messageId=m&text=t").await;
    assert_eq!(forged.status.as_u16(), 403);
    // After its end it is still shown, without the form.
    let stop = format!("{BASE}/proxies/{proxy}/stop");
    server
        .post(&stop, json!({"reason": "enough"}))
        .await
        .ok(200);
    let html = page(&server, &cookie, &path).await.text;
    assert!(html.contains("ended: enough"), "{html}");
    assert!(html.contains("Forwarded, changed") && !html.contains("action-bridge-input"));
    let foreign = server.new_key("tenant2", Scope::all()).await;
    let foreign = sign_in_as(&server, &foreign).await;
    let csrf = csrf_of(&page(&server, &foreign, "/console/runs").await.text);
    let refused = post(
        &server,
        &foreign,
        &input,
        &format!("csrf={csrf}&messageId=m&text=t"),
    )
    .await;
    assert_eq!(refused.status.as_u16(), 404);
}

/// Rules that are data know admins by a token: the page asks for it, and shows the texts to those with the right.
#[tokio::test]
async fn token_shows_what_passed_over_a_bridge() {
    let server = server().await;
    let (session, proxy) = begin(&server, "guarded", "relay").await;
    send(&server, "guarded", "ada", "please hurry").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}");
    let html = page(&server, &cookie, &path).await.text;
    assert!(html.contains("action-bridge-messages"), "{html}");
    assert!(!html.contains("] please hurry"), "{html}");
    let csrf = csrf_of(&html);
    let show = format!("/console/proxies/{proxy}/messages");
    let of = |token: &str| format!("csrf={csrf}&adminToken={token}");
    let shown = post(&server, &cookie, &show, &of("ana-token")).await;
    assert_eq!(shown.status.as_u16(), 200, "{shown:?}");
    assert!(shown.text.contains("] please hurry"), "{}", shown.text);
    let refused = post(&server, &cookie, &show, &of("eva-token")).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
    let events = format!("{BASE}/sessions/{session}/events?after=-1");
    let events = server.get(&events).await;
    let decided = events.text.matches("hitl.proxy.view").count();
    assert_eq!(decided, 2, "both answers are recorded: {events:?}");
}
