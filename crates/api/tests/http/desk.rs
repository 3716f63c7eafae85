//! The desk of the console: conversations, their transcripts, and their questions in the inbox.

use crate::chat_agents::HOSTILE;
use crate::inbox::{InboxForm, page, sign_in_as};
use crate::test_server::{Stream, TestServer};
use crate::web_chat::{Client, server};
use serde_json::Value;
use std::net::SocketAddr;
use tandem_access::Scope;

/// A visitor whose refund waits for a decision; also the session and the question.
pub(crate) async fn escalated(
    server: &TestServer,
    address: SocketAddr,
    agent: &str,
) -> (Client, String, String) {
    let mut client = Client::connect(address, agent).await;
    client.say("m1", HOSTILE).await;
    client.until_text(&format!("You said: {HOSTILE}")).await;
    client.say("m2", "refund").await;
    let frames = client.until_text("A colleague looks at it.").await;
    assert!(
        !format!("{frames:?}").contains("amount"),
        "a visitor sees nothing of the escalation"
    );
    let interrupts = server.get("/v1/host/tandem/interrupts").await.ok(200);
    let question = interrupts["interrupts"].as_array().unwrap().iter();
    let question = question.max_by_key(|q| q["createdAt"].as_str()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        client,
        text(&question["sessionId"]),
        text(&question["interruptId"]),
    )
}

/// Hostile text is escaped in every page that shows it.
#[track_caller]
fn assert_escaped(html: &str) {
    assert!(!html.contains("<img"), "{html}");
    assert!(html.contains("&lt;img src=x"), "{html}");
}

#[tokio::test]
async fn desk_lists_conversations_and_shows_one() {
    let server = server().await;
    let address = server.listen().await;
    let (_client, session, question) = escalated(&server, address, "open").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let list = page(&server, &cookie, "/console/conversations").await.text;
    for part in [
        "Waits for a decision",
        "flow refund",
        "data-live-rows",
        &session,
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let path = format!("/console/conversations/{session}");
    let one = page(&server, &cookie, &path).await.text;
    assert_escaped(&one);
    for part in [
        "Paused on <code>admin_resolution</code>",
        "Decide in the inbox",
        &format!("/console/inbox/{}", question.replace(':', "%3A")),
        "A colleague looks at it.",
        "You said: ",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let filtered = page(&server, &cookie, "/console/conversations?agent=closed")
        .await
        .text;
    assert!(!filtered.contains(&session));
    let stranger = server.call_as("", "GET", &path, &[], "").await;
    assert_eq!(stranger.header("location"), "/console/login");
    let other = server.new_key("tenant2", Scope::all()).await;
    let other = sign_in_as(&server, &other).await;
    assert_eq!(page(&server, &other, &path).await.status.as_u16(), 404);
}

/// The console resolves an escalation like the routes of conversations do, by the same rights.
/// Z-203 (half: the console)
#[tokio::test]
async fn escalation_is_resolved_in_the_inbox_and_the_visitor_goes_on() {
    let server = server().await;
    let address = server.listen().await;
    let (mut client, session, question) = escalated(&server, address, "open").await;
    let form = InboxForm::at(&server, &question).await;
    let path = format!("/console/inbox/{question}");
    let card = page(&server, &form.cookie, &path).await.text;
    assert_escaped(&card);
    for part in ["Last messages", "Approve", "700", &session] {
        assert!(card.contains(part), "{part}: {card}");
    }
    let decided = form
        .send(&[("action", "accept"), ("comment", "fine")])
        .await;
    assert_eq!(decided.status.as_u16(), 303, "{decided:?}");
    client.until_text("Your refund is decided.").await;
    let card = page(&server, &form.cookie, &path).await.text;
    assert!(
        card.contains("Approved") && card.contains("See the conversation"),
        "{card}"
    );
    let again = form.send(&[("action", "reject")]).await;
    assert_eq!(again.status.as_u16(), 409);
    let events = format!("/v1/host/tandem/sessions/{session}/events?after=-1");
    let events = server.get(&events).await.ok(200).to_string();
    assert!(events.contains("admin.authz.granted") && events.contains("hitl.escalation.resolved"));
}

/// An agent whose rules do not know the caller denies the decision also in the console.
/// Z-145 (half: the console), Z-146 (half: the console)
#[tokio::test]
async fn decision_without_the_right_is_refused_and_recorded() {
    let server = server().await;
    let address = server.listen().await;
    let (_client, session, question) = escalated(&server, address, "strict").await;
    let form = InboxForm::at(&server, &question).await;
    for token in ["", "guess"] {
        let refused = form
            .send(&[("action", "accept"), ("adminToken", token)])
            .await;
        assert!(matches!(refused.status.as_u16(), 401 | 403), "{refused:?}");
        assert!(refused.text.contains("role=\"alert\""), "{}", refused.text);
        assert!(
            !refused.text.contains("guess"),
            "the token is not shown again"
        );
    }
    let events = format!("/v1/host/tandem/sessions/{session}/events?after=-1");
    let events = server.get(&events).await.ok(200).to_string();
    assert!(events.contains("admin.authz.denied"), "{events}");
    assert!(!events.contains("hitl.escalation.resolved"));
}

#[tokio::test]
async fn conversation_page_follows_the_conversation() {
    let server = server().await;
    let address = server.listen().await;
    let (mut client, session, _) = escalated(&server, address, "open").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}/live");
    let mut stream = Stream::open(address, &path, &[("cookie", &cookie)]).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first.event, "state");
    let html = first.data["html"].as_str().unwrap().to_owned();
    assert_escaped(&html);
    for part in ["header", "questions", "flow", "transcript"] {
        assert!(html.contains(&format!("data-part=\"{part}\"")), "{part}");
    }
    client.say("m3", "are you there?").await;
    loop {
        let frame = stream.next().await.unwrap();
        let html = frame.data["html"].as_str().unwrap_or_default();
        if html.contains("are you there?") {
            assert!(!html.contains("data-part=\"flow\""), "only what changed");
            break;
        }
    }
    let csrf = page(
        &server,
        &cookie,
        &format!("/console/conversations/{session}"),
    )
    .await;
    let (_, csrf) = csrf.text.split_once("name=\"csrf\" value=\"").unwrap();
    let body = format!("csrf={}", csrf.split('"').next().unwrap());
    let end = format!("/console/conversations/{session}/end");
    let headers = [("cookie", &*cookie), ("host", "t")];
    let ended = server.call_as("", "POST", &end, &headers, body).await;
    assert_eq!(ended.status.as_u16(), 303, "{ended:?}");
    client.until(|frame| frame["type"] == "SESSION_ENDED").await;
    let frames = stream.rest().await;
    assert!(
        frames.iter().any(|frame| frame.event == "end"),
        "{frames:?}"
    );
}
