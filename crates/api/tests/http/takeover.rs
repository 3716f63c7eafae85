//! Live takeover over the API, in the console and from the chat of a desk.

use crate::chat_agents::{ChatAgents, Switches};
use crate::inbox::{page, sign_in_as};
use crate::test_server::{HostOptions, Reply, TestServer};
use crate::web_chat::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tandem_access::Scope;

const BASE: &str = "/v1/host/tandem";
const ANA: &str = "ana-token";
const BEN: &str = "ben-token";
/// May look and not take over.
const EVA: &str = "eva-token";

async fn server_with(switches: Arc<Switches>) -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::switched_by(switches)),
        ..HostOptions::default()
    })
    .await
}

async fn server() -> TestServer {
    server_with(Arc::default()).await
}

/// Delivers a message; gives the whole answer.
async fn send(server: &TestServer, agent: &str, from: &str, text: &str) -> Value {
    let path = format!("{BASE}/agents/{agent}/inbound?wait=true");
    let id = uuid::Uuid::new_v4().to_string();
    let message = json!({"messageId": id, "from": from, "body": text});
    server.post(&path, message).await.ok(200)
}

async fn session_of(server: &TestServer, agent: &str, from: &str) -> String {
    let sent = send(server, agent, from, "hi").await;
    sent["sessionId"].as_str().expect("a session").to_owned()
}

async fn call(server: &TestServer, path: &str, token: &str, body: Value) -> Reply {
    let path = format!("{BASE}/sessions/{path}");
    let headers = [("x-admin-token", token)];
    server
        .call_as(&server.key, "POST", &path, &headers, body.to_string())
        .await
}

async fn take_over(server: &TestServer, session: &str, token: &str) -> Reply {
    call(server, &format!("{session}/takeover"), token, json!({})).await
}

async fn write(server: &TestServer, session: &str, token: &str, id: &str, text: &str) -> Reply {
    let body = json!({"messageId": id, "text": text});
    call(server, &format!("{session}/takeover/messages"), token, body).await
}

async fn hand_back(server: &TestServer, session: &str, token: &str) -> Reply {
    call(
        server,
        &format!("{session}/handback"),
        token,
        json!({"note": "calm"}),
    )
    .await
}

async fn events(server: &TestServer, session: &str, name: &str) -> Vec<Value> {
    let path = format!("{BASE}/sessions/{session}/events?after=-1");
    let page = server.get(&path).await.ok(200);
    let events = page["events"].as_array().expect("events").iter();
    events
        .filter(|event| event["type"] == name)
        .cloned()
        .collect()
}

async fn mode(server: &TestServer, session: &str) -> Value {
    let path = format!("{BASE}/sessions/{session}");
    server.get(&path).await.ok(200)["hitl"]["mode"].clone()
}

/// Texts of the outbox with their origin and status, oldest first.
async fn outbox(server: &TestServer, session: &str) -> Vec<(String, String, String)> {
    let path = format!("{BASE}/sessions/{session}/outbox");
    let page = server.get(&path).await.ok(200);
    let intents = page["outbox"].as_array().expect("intents").iter();
    let text = |intent: &Value, key: &str| intent[key].as_str().unwrap_or_default().to_owned();
    intents
        .map(|intent| {
            (
                text(intent, "text"),
                text(intent, "origin"),
                text(intent, "status"),
            )
        })
        .collect()
}

/// Z-88 (half: the route; the answer, idempotence, the other admin), Z-92 (half: the route; an id is taken once),
/// Z-93 (half: the route), Z-254 (half: `resolveEscalation` gives 409)
#[tokio::test]
async fn admin_takes_over_writes_and_hands_back() {
    let server = server().await;
    let session = session_of(&server, "staffed", "ada").await;
    server.advance(0).await;
    let early = write(&server, &session, ANA, "h-0", "too early").await;
    early.refused(409, "takeover_not_active");
    hand_back(&server, &session, ANA)
        .await
        .refused(409, "takeover_not_active");
    let taken = take_over(&server, &session, ANA).await.ok(200);
    assert_eq!(taken["mode"], "live_takeover");
    let escalation = taken["escalationId"].as_str().expect("an id").to_owned();
    assert_eq!(take_over(&server, &session, ANA).await.ok(200), taken);
    let held = take_over(&server, &session, BEN).await;
    assert_eq!(
        held.refused(409, "takeover_active"),
        json!({"holder": "ana"})
    );
    let resolve = json!({"approved": true});
    let path = format!("{session}/resolve");
    let refused = call(&server, &path, ANA, resolve).await;
    refused.refused(409, "takeover_active");
    assert!(
        send(&server, "staffed", "ada", "hello?").await["outbound"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    for expected in ["accepted", "duplicate"] {
        let written = write(&server, &session, ANA, "h-1", "Ana here.")
            .await
            .ok(200);
        assert_eq!(written["status"], expected);
    }
    let back = hand_back(&server, &session, BEN).await.ok(200);
    assert_eq!(back, json!({"escalationId": escalation, "mode": null}));
    // The id stays taken, and nobody has the floor any more.
    let again = write(&server, &session, ANA, "h-1", "Ana here.")
        .await
        .ok(200);
    assert_eq!(again["status"], "duplicate");
    server.advance(0).await;
    let sent = outbox(&server, &session).await;
    let by_people: Vec<_> = sent
        .iter()
        .filter(|(_, origin, _)| origin == "human")
        .collect();
    assert_eq!(
        by_people,
        [&(
            "Ana here.".to_owned(),
            "human".to_owned(),
            "sent".to_owned()
        )]
    );
    let path = format!("{BASE}/sessions/{session}/messages");
    let messages = server.get(&path).await.ok(200);
    let mut messages = messages["messages"].as_array().expect("messages").iter();
    let written = messages
        .find(|message| message["text"] == "Ana here.")
        .expect("stored");
    assert_eq!(
        written["author"],
        json!({"kind": "human", "actorId": "ana"})
    );
    assert_eq!(written["role"], "assistant");
    let started = events(&server, &session, "hitl.live_takeover.started").await;
    assert_eq!(
        started[0]["payload"],
        json!({"escalationId": escalation, "by": "api"})
    );
    assert_eq!(started[0]["actor"]["id"], "ana");
    let ended = events(&server, &session, "hitl.live_takeover.ended").await;
    assert_eq!(ended[0]["payload"]["reason"], "handback");
    assert_eq!(ended[0]["actor"]["id"], "ben");
    assert_eq!(ended[0]["payload"]["note"], "calm");
    assert_eq!(
        events(&server, &session, "hitl.live_takeover.message")
            .await
            .len(),
        2
    );
    let path = format!("{BASE}/escalations/{escalation}");
    let headers = [("x-admin-token", ANA)];
    let record = server
        .call_as(&server.key, "GET", &path, &headers, "")
        .await
        .ok(200);
    assert_eq!(
        (&record["mode"], &record["status"]),
        (&json!("live_takeover"), &json!("resolved"))
    );
    assert_eq!(record["resolution"]["resolvedBy"], "ben");
    // It was never a question of the inbox.
    let inbox = server
        .get(&format!("{BASE}/interrupts?sessionId={session}"))
        .await
        .ok(200);
    assert_eq!(inbox["interrupts"], json!([]));
}

/// Z-145 (half: takeovers), Z-147 (half: takeovers), Z-154 (half: denied here as in a chat)
#[tokio::test]
async fn takeover_needs_its_rights_and_its_scope() {
    let server = server().await;
    let session = session_of(&server, "staffed", "ada").await;
    take_over(&server, &session, EVA)
        .await
        .refused(403, "forbidden");
    take_over(&server, &session, "guess")
        .await
        .refused(401, "unauthenticated");
    assert_eq!(mode(&server, &session).await, Value::Null);
    take_over(&server, &session, ANA).await.ok(200);
    write(&server, &session, EVA, "h-1", "boo")
        .await
        .refused(403, "forbidden");
    hand_back(&server, &session, EVA)
        .await
        .refused(403, "forbidden");
    let denied = events(&server, &session, "admin.authz.denied").await;
    let denied: Vec<_> = denied
        .iter()
        .map(|event| event["payload"]["action"].as_str().unwrap())
        .collect();
    let start = "hitl.takeover.start";
    assert_eq!(
        denied,
        [start, start, "hitl.takeover.message", "hitl.takeover.end"]
    );
    let narrow = server
        .new_key("default", &[Scope::ApprovalsRespond, Scope::RunsRead])
        .await;
    let headers = [("x-admin-token", ANA)];
    for (action, body) in [
        ("takeover", "{}"),
        ("handback", "{}"),
        ("takeover/messages", r#"{"messageId":"h","text":"x"}"#),
    ] {
        let path = format!("{BASE}/sessions/{session}/{action}");
        let reply = server.call_as(&narrow, "POST", &path, &headers, body).await;
        let details = reply.refused(403, "forbidden");
        assert_eq!(details["scopeRequired"], "conversations:takeover");
    }
    // An agent without rules for admins, and a session that has ended.
    let ended = session_of(&server, "staffed", "eve").await;
    server
        .post(&format!("{BASE}/sessions/{ended}/end"), json!({}))
        .await
        .ok(200);
    take_over(&server, &ended, ANA)
        .await
        .refused(410, "interrupt_gone");
}

#[tokio::test]
async fn texts_and_notes_are_bounded() {
    let server = server().await;
    let session = session_of(&server, "staffed", "ada").await;
    take_over(&server, &session, ANA).await.ok(200);
    for body in [
        json!({}),
        json!({"messageId": "", "text": "x"}),
        json!({"messageId": "x".repeat(257), "text": "x"}),
        json!({"messageId": "h", "text": " "}),
        json!({"messageId": "h", "text": "x".repeat(65 * 1024)}),
        json!({"messageId": "h", "text": "x", "more": 1}),
    ] {
        let refused = call(
            &server,
            &format!("{session}/takeover/messages"),
            ANA,
            body.clone(),
        )
        .await;
        assert_eq!(refused.status.as_u16(), 400, "{refused:?}");
    }
    let note = json!({"note": "x".repeat(17 * 1024)});
    let refused = call(&server, &format!("{session}/handback"), ANA, note).await;
    refused.refused(400, "validation_error");
}

/// Z-90 (half: committed while the model works, and before its answer),
/// Z-91 (half: what was streamed of the answer is taken back, and the rest is not shown)
#[tokio::test]
async fn takeover_silences_an_answer_that_is_being_written() {
    let switches = Arc::<Switches>::default();
    let server = server_with(Arc::clone(&switches)).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "wait").await;
    let chunk = client.until(|frame| frame["type"] == "TOKEN_CHUNK").await;
    let turn = chunk.last().expect("a frame")["id"].clone();
    let sessions = server.get(&format!("{BASE}/sessions")).await.ok(200);
    let session = sessions["sessions"][0]["id"]
        .as_str()
        .expect("a session")
        .to_owned();
    // Rules by key: its scope is the right.
    let taken = take_over(&server, &session, "").await.ok(200);
    assert_eq!(taken["mode"], "live_takeover");
    let frames = client.until(|frame| frame["type"] == "SUPPRESSED").await;
    assert_eq!(frames.last().expect("a frame")["turnId"], turn);
    switches.answers.notify_one();
    client
        .until(|frame| frame["type"] == "TURN" && frame["state"] == "ended")
        .await;
    write(&server, &session, "", "h-1", "Ana here.")
        .await
        .ok(200);
    let frames = client.until_text("Ana here.").await;
    assert!(
        frames.iter().all(|frame| frame["type"] != "TOKEN_CHUNK"),
        "{frames:?}"
    );
    assert_eq!(frames.last().expect("a frame")["from"], "colleague");
    server.advance(0).await;
    let sent = outbox(&server, &session).await;
    assert_eq!(sent.len(), 1, "{sent:?}");
    let reasons = events(&server, &session, "response:suppressed").await;
    assert_eq!(reasons[0]["payload"]["reason"], "live_takeover");
}

/// Z-91 (half: the outbox says so)
#[tokio::test]
async fn text_that_could_not_be_sent_before_is_suppressed() {
    let switches = Arc::<Switches>::default();
    let server = server_with(Arc::clone(&switches)).await;
    switches.refuses_texts.store(true, Ordering::Relaxed);
    let session = session_of(&server, "staffed", "ada").await;
    take_over(&server, &session, ANA).await.ok(200);
    switches.refuses_texts.store(false, Ordering::Relaxed);
    server.advance(60).await;
    server.advance(0).await;
    let sent = outbox(&server, &session).await;
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].2, "suppressed");
}

/// Z-87 (half: a desk with a chat of its own), Z-92 (half: from that chat, by its own rights)
#[tokio::test]
async fn desk_talks_to_the_user_from_its_own_chat() {
    let server = server().await;
    let session = session_of(&server, "relayed", "ada").await;
    server.advance(0).await;
    take_over(&server, &session, BEN).await.ok(200);
    send(&server, "relayed", "ada", "are you there?").await;
    let forwarded = outbox(&server, &session).await.pop().expect("a text");
    assert!(forwarded.0.ends_with("] are you there?"), "{forwarded:?}");
    assert_eq!(forwarded.1, "forward");
    let name = forwarded.0.split_once('#').expect("its name").1;
    let name = name.split(']').next().expect("its name").to_owned();
    // The only conversation needs no name.
    let answered = send(&server, "relayed", "desk", "Ana here.").await;
    assert_eq!(answered["sessionId"], Value::Null, "the desk is no user");
    let other = session_of(&server, "relayed", "eve").await;
    take_over(&server, &other, BEN).await.ok(200);
    send(&server, "relayed", "desk", "to whom?").await;
    send(
        &server,
        "relayed",
        "desk",
        &format!("#{name} It is settled."),
    )
    .await;
    send(&server, "relayed", "desk", "#nobody hello").await;
    server.advance(0).await;
    let people = |sent: Vec<(String, String, String)>| {
        let texts = sent.into_iter().filter(|(_, origin, _)| origin == "human");
        texts.map(|(text, _, _)| text).collect::<Vec<_>>()
    };
    assert_eq!(
        people(outbox(&server, &session).await),
        ["Ana here.", "It is settled."]
    );
    assert!(people(outbox(&server, &other).await).is_empty());
    let written = events(&server, &session, "admin.authz.granted").await;
    let written = written
        .iter()
        .filter(|event| event["payload"]["action"] == "hitl.takeover.message");
    assert_eq!(written.count(), 2);
    // Its commands are those of an admin.
    send(&server, "relayed", "desk", "/handback ada thanks").await;
    assert_eq!(mode(&server, &session).await, Value::Null);
}

/// Z-235 (half: delivered by a network, recorded once, and the start of a takeover; own texts are known by their ids)
#[tokio::test]
async fn answer_from_the_agents_own_account_starts_a_takeover() {
    let server = server().await;
    let session = session_of(&server, "relayed", "ada").await;
    server.advance(0).await;
    let path = format!("{BASE}/agents/relayed/transports/own");
    // The network reports what the host sent itself.
    let shown = server
        .get(&format!("{BASE}/sessions/{session}/outbox"))
        .await
        .ok(200);
    let own = shown["outbox"].as_array().expect("texts");
    assert!(!own.is_empty());
    for text in own {
        let echo = json!({"id": text["providerMessageId"], "to": "ada", "text": text["text"]});
        let sent = server
            .call_as("", "POST", &path, &[], echo.to_string())
            .await;
        assert_eq!(sent.status.as_u16(), 200, "{sent:?}");
    }
    assert!(
        events(&server, &session, "hitl.external_reply")
            .await
            .is_empty()
    );
    assert_eq!(mode(&server, &session).await, Value::Null);
    let path_own = path.clone();
    let reply = json!({"id": "w-1", "to": "ada", "text": "I call you."}).to_string();
    for _ in 0..2 {
        let sent = server.call_as("", "POST", &path, &[], reply.clone()).await;
        assert_eq!(sent.status.as_u16(), 200, "{sent:?}");
    }
    assert_eq!(mode(&server, &session).await, "live_takeover");
    let recorded = events(&server, &session, "hitl.external_reply").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let started = events(&server, &session, "hitl.live_takeover.started").await;
    assert_eq!(started[0]["payload"]["by"], "external_reply");
    let path = format!("{BASE}/sessions/{session}/messages");
    let messages = server.get(&path).await.ok(200);
    let mut messages = messages["messages"].as_array().expect("messages").iter();
    let last = messages
        .find(|message| message["text"] == "I call you.")
        .expect("recorded");
    assert_eq!(
        last["author"],
        json!({"kind": "human", "actorId": "external"})
    );
    // The desk is no user.
    let to_desk = json!({"id": "w-3", "to": "colleague", "text": "Hello"}).to_string();
    let sent = server.call_as("", "POST", &path_own, &[], to_desk).await;
    assert_eq!(sent.status.as_u16(), 200, "{sent:?}");
    // Somebody without a conversation: it begins with this.
    let stray = json!({"id": "w-2", "to": "nobody", "text": "Hello?"}).to_string();
    let path = format!("{BASE}/agents/relayed/transports/own");
    let sent = server.call_as("", "POST", &path, &[], stray).await;
    assert_eq!(sent.status.as_u16(), 200, "{sent:?}");
    let sessions = server.get(&format!("{BASE}/sessions")).await.ok(200);
    let sessions = sessions["sessions"].as_array().expect("a list").clone();
    let of = |user: &str| {
        let mut found = sessions.iter();
        found.find(|session| session["userExternalId"] == user)
    };
    assert!(of("colleague").is_none(), "{sessions:?}");
    let begun = of("nobody").expect("a session")["id"]
        .as_str()
        .expect("an id");
    let recorded = events(&server, begun, "hitl.external_reply").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(mode(&server, begun).await, "live_takeover");
}

/// Z-110 (half: a bridge and a takeover of one chat), Z-101 (half: a mark alone is no input)
#[tokio::test]
async fn text_that_may_be_for_a_bridge_or_a_takeover_goes_nowhere() {
    let server = server().await;
    let taken = session_of(&server, "relayed", "ada").await;
    let bridged = session_of(&server, "relayed", "eve").await;
    send(&server, "relayed", "eve", "bridge").await;
    take_over(&server, &taken, BEN).await.ok(200);
    send(&server, "relayed", "desk", "Your new pin is 1234").await;
    server.advance(0).await;
    for session in [&taken, &bridged] {
        let sent = outbox(&server, session).await;
        assert!(
            sent.iter().all(|(text, ..)| !text.contains("1234")),
            "{sent:?}"
        );
    }
    let started = events(&server, &bridged, "hitl.proxy.started").await;
    let proxy = started[0]["payload"]["proxyId"].as_str().expect("an id");
    let mark = &proxy["pxy-".len()..][..6];
    send(&server, "relayed", "desk", &format!("#{mark}")).await;
    assert!(
        events(&server, &bridged, "hitl.proxy.input_received")
            .await
            .is_empty()
    );
    send(&server, "relayed", "desk", &format!("#{mark} for eve")).await;
    server.advance(0).await;
    let sent = outbox(&server, &bridged).await;
    assert!(
        sent.iter().any(|(text, ..)| text.ends_with("for eve")),
        "{sent:?}"
    );
}

/// Z-8 (half: a command about the session of somebody else), Z-190 (half: a repeated command)
#[tokio::test]
async fn repeated_command_about_another_session_is_a_duplicate() {
    let server = server().await;
    let session = session_of(&server, "relayed", "ada").await;
    let path = format!("{BASE}/agents/relayed/inbound?wait=true");
    let own = json!({"messageId": "o-1", "from": "desk", "body": "hello"});
    server.post(&path, own).await.ok(200);
    let command = json!({"messageId": "c-1", "from": "desk", "body": "/takeover ada"});
    for status in ["processed", "duplicate", "duplicate"] {
        let answered = server.post(&path, command.clone()).await.ok(200);
        assert_eq!(answered["status"], status);
    }
    assert_eq!(mode(&server, &session).await, "live_takeover");
}

fn field<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, rest) = html
        .split_once(&format!("name=\"{name}\" value=\""))
        .expect("a field");
    rest.split('"').next().expect("a value")
}

async fn post(server: &TestServer, cookie: &str, path: &str, form: &[(&str, &str)]) -> Reply {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let headers = [("cookie", cookie), ("host", "t")];
    server.call_as("", "POST", path, &headers, body).await
}

/// Z-88 (half: from the console), Z-92 (half: from the console), Z-93 (half: from the console)
/// Z-237 (half: refused while a flow is active too, and when the agent has no good version)
#[tokio::test]
async fn handback_to_an_agent_that_could_not_answer_is_refused() {
    let switches: Arc<Switches> = Arc::default();
    let server = server_with(switches.clone()).await;
    let silent = session_of(&server, "silent", "ada").await;
    send(&server, "silent", "ada", "book").await;
    let shown = server.get(&format!("{BASE}/sessions/{silent}")).await;
    assert_eq!(shown.ok(200)["flow"]["flowId"], "book", "a flow is active");
    take_over(&server, &silent, ANA).await.ok(200);
    let refused = hand_back(&server, &silent, ANA).await.ok(409);
    assert_eq!(refused["error"], "agent_unavailable");
    assert_eq!(mode(&server, &silent).await, "live_takeover");

    let staffed = session_of(&server, "staffed", "ada").await;
    take_over(&server, &staffed, ANA).await.ok(200);
    switches.has_no_good_version.store(true, Ordering::Relaxed);
    let refused = hand_back(&server, &staffed, ANA).await.ok(409);
    assert_eq!(refused["error"], "agent_unavailable");
    switches.has_no_good_version.store(false, Ordering::Relaxed);
    assert_eq!(mode(&server, &staffed).await, "live_takeover");
    hand_back(&server, &staffed, ANA).await.ok(200);
}

#[tokio::test]
async fn console_takes_over_writes_and_hands_back() {
    let server = server().await;
    let session = session_of(&server, "staffed", "ada").await;
    let cookie = sign_in_as(&server, &server.key).await;
    let path = format!("/console/conversations/{session}");
    let shown = page(&server, &cookie, &path).await.text;
    assert!(
        shown.contains("Take over") && !shown.contains("Your text to the user"),
        "{shown}"
    );
    let csrf = field(&shown, "csrf").to_owned();
    let token = ("adminToken", ANA);
    let csrf = ("csrf", csrf.as_str());
    let start = format!("{path}/takeover");
    assert_eq!(
        post(&server, &cookie, &start, &[csrf])
            .await
            .status
            .as_u16(),
        401
    );
    assert_eq!(
        post(&server, &cookie, &start, &[token])
            .await
            .status
            .as_u16(),
        403,
        "no form token"
    );
    let done = post(&server, &cookie, &start, &[csrf, token]).await;
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, &*path)
    );
    let shown = page(&server, &cookie, &path).await.text;
    for part in [
        "<strong>ana</strong> has the conversation",
        "Your text to the user",
        "Hand back",
        "With a colleague",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Take over<"), "{shown}");
    let id = ("messageId", field(&shown, "messageId"));
    let write = format!("{path}/takeover/messages");
    // A second click sends nothing.
    for _ in 0..2 {
        let done = post(
            &server,
            &cookie,
            &write,
            &[csrf, token, id, ("text", "Ana here.\r\nHello!")],
        )
        .await;
        assert_eq!(done.status.as_u16(), 303, "{done:?}");
    }
    server.advance(0).await;
    let shown = page(&server, &cookie, &path).await.text;
    assert_eq!(shown.matches("Ana here.\nHello!").count(), 1, "{shown}");
    assert_ne!(
        field(&shown, "messageId"),
        id.1,
        "the next text is another one"
    );
    let end = format!("{path}/handback");
    let done = post(&server, &cookie, &end, &[csrf, token, ("note", "calm")]).await;
    assert_eq!(done.status.as_u16(), 303, "{done:?}");
    assert_eq!(mode(&server, &session).await, Value::Null);
    let ended = events(&server, &session, "hitl.live_takeover.ended").await;
    assert_eq!(ended[0]["payload"]["note"], "calm");
    // A reader who may only look is offered nothing.
    let reader = server.new_key("default", &[Scope::RunsRead]).await;
    let reader = sign_in_as(&server, &reader).await;
    let shown = page(&server, &reader, &path).await.text;
    assert!(!shown.contains("action-takeover"), "{shown}");
}
