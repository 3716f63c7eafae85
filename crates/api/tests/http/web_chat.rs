//! The web chat and its UI channel, as a browser uses them.

use crate::chat_agents::{ChatAgents, HOSTILE, Switches};
use crate::test_server::{HostOptions, TestServer};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

pub(crate) async fn server() -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    })
    .await
}

pub(crate) async fn switched_server(switches: &Arc<Switches>) -> TestServer {
    TestServer::with_options(HostOptions {
        conversations: Some(ChatAgents::switched_by(Arc::clone(switches))),
        ..HostOptions::default()
    })
    .await
}

/// A client of the UI channel.
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    pub(crate) token: String,
}

/// Opens the channel without a first frame.
async fn open(
    address: SocketAddr,
    agent: &str,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<TcpStream>, u16> {
    let url = format!("ws://test/v1/host/tandem/agents/{agent}/ui");
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let socket = TcpStream::connect(address).await.unwrap();
    match client_async(request, socket).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, agent: &str) -> Self {
        Self::connect_with(address, agent, json!({})).await
    }

    /// Connects with the fields of a CONNECT frame.
    pub(crate) async fn connect_with(address: SocketAddr, agent: &str, fields: Value) -> Self {
        let socket = open(address, agent, &[]).await.unwrap();
        let mut client = Self {
            socket,
            token: String::new(),
        };
        let mut frame = fields;
        frame["type"] = json!("CONNECT");
        client.send(frame).await;
        let connected = client.next().await;
        assert_eq!(connected["type"], "CONNECTED", "{connected}");
        client.token = connected["clientId"].as_str().unwrap().to_owned();
        client
    }

    pub(crate) async fn again(&self, address: SocketAddr, agent: &str) -> Self {
        Self::connect_with(address, agent, json!({"clientId": self.token})).await
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        let message = Message::text(frame.to_string());
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn say(&mut self, id: &str, body: &str) {
        let frame = json!({"type": "INBOUND_MESSAGE", "messageId": id, "body": body});
        self.send(frame).await;
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Value {
        self.next_or_close().await.unwrap_or_else(|code| {
            panic!("the connection was closed with {code:?}");
        })
    }

    /// The next frame, or the code with which the host closes the connection.
    async fn next_or_close(&mut self) -> Result<Value, Option<u16>> {
        loop {
            let received = self.socket.next();
            let received = tokio::time::timeout(Duration::from_secs(20), received).await;
            match received.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map(|f| f.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// Frames up to the one that fits, which is the last.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            let is_last = fits(&frame);
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }

    /// Frames up to a text of the agent.
    pub(crate) async fn until_text(&mut self, text: &str) -> Vec<Value> {
        self.until(|frame| frame["type"] == "MESSAGE" && frame["text"] == text)
            .await
    }

    pub(crate) async fn until_type(&mut self, kind: &str) -> Value {
        let frames = self.until(|frame| frame["type"] == kind).await;
        frames.into_iter().next_back().unwrap()
    }
}

fn texts(frames: &[Value]) -> Vec<(&str, &str)> {
    let messages = frames.iter().filter(|frame| frame["type"] == "MESSAGE");
    messages
        .map(|m| (m["from"].as_str().unwrap(), m["text"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn only_an_agent_that_says_so_is_on_the_web() {
    let server = server().await;
    let address = server.listen().await;
    for agent in ["closed", "unknown"] {
        assert_eq!(open(address, agent, &[]).await.err(), Some(404), "{agent}");
        let page = server
            .call_as("", "GET", &format!("/chat/{agent}"), &[], "")
            .await;
        assert_eq!(page.status.as_u16(), 404);
        assert!(page.text.contains("There is no chat here"));
    }
    let plain = server
        .call_as("", "GET", "/v1/host/tandem/agents/open/ui", &[], "")
        .await;
    plain.refused(400, "validation_error");
}

/// Z-41 (half: messages of the UI channel, tokens as they are written, and the answer)
#[tokio::test]
async fn visitor_talks_to_the_agent() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "hello").await;
    let frames = client.until_text("You said: hello").await;
    assert_eq!(
        texts(&frames),
        [("visitor", "hello"), ("agent", "You said: hello")]
    );
    let ack = frames.iter().find(|f| f["type"] == "ACK").unwrap();
    assert_eq!(
        (&ack["messageId"], &ack["status"]),
        (&json!("m1"), &json!("accepted"))
    );
    let own = frames.iter().find(|f| f["from"] == "visitor").unwrap();
    assert_eq!(own["id"], "m1", "the id the client gave");
    let types: Vec<&str> = frames.iter().map(|f| f["type"].as_str().unwrap()).collect();
    assert!(
        types.contains(&"SESSION") && types.contains(&"TURN"),
        "{types:?}"
    );
    let sessions = server.get("/v1/host/tandem/sessions").await.ok(200);
    let user = sessions["sessions"][0]["userExternalId"].as_str().unwrap();
    assert!(user.starts_with("web-") && !client.token.contains(user));
}

/// No reader puts a key together from the tokens it gets.
#[tokio::test]
async fn streamed_answer_does_not_contain_an_api_key() {
    let switches = Arc::new(Switches::default());
    let server = switched_server(&switches).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "leak").await;
    let mut read = String::new();
    while !read.ends_with("now") {
        let piece = client.until_type("TOKEN_CHUNK").await;
        read.push_str(piece["content"].as_str().unwrap());
    }
    assert_eq!(read, "You said: it is [REDACTED] now");
    switches.answers.notify_one();
    client.until_text(&read).await;
}

/// Z-41 (half: a client reconnects with the same `clientId`)
#[tokio::test]
async fn conversation_goes_on_after_a_reload_and_after_a_lost_connection() {
    let server = server().await;
    let address = server.listen().await;
    let mut first = Client::connect(address, "open").await;
    first.say("m1", "hello").await;
    let seen = first.until_text("You said: hello").await;
    let session = seen.iter().find(|f| f["type"] == "SESSION").unwrap()["sessionId"].clone();
    let after = seen.last().unwrap()["sequence"].clone();

    let mut reloaded = first.again(address, "open").await;
    assert_eq!(reloaded.token, first.token);
    let frames = reloaded.until_text("You said: hello").await;
    assert_eq!(
        texts(&frames),
        [("visitor", "hello"), ("agent", "You said: hello")]
    );

    let resume = json!({"clientId": first.token, "sessionId": session, "after": after});
    let mut resumed = Client::connect_with(address, "open", resume).await;
    let frame = resumed.next().await;
    assert_eq!(
        (&frame["type"], &frame["resumed"]),
        (&json!("SESSION"), &json!(true))
    );
    // Sent again after the connection was lost: taken once.
    resumed.say("m1", "hello").await;
    let frames = resumed.until(|f| f["type"] == "ACK").await;
    assert_eq!(frames.last().unwrap()["status"], "duplicate");
    resumed.say("m2", "more").await;
    let frames = resumed.until_text("You said: more").await;
    assert_eq!(
        texts(&frames),
        [("visitor", "more"), ("agent", "You said: more")]
    );
    // The other windows of the visitor show it too.
    first.until_text("You said: more").await;
}

#[tokio::test]
async fn visitor_reaches_no_conversation_but_their_own() {
    let server = server().await;
    let address = server.listen().await;
    let mut ana = Client::connect(address, "open").await;
    ana.say("m1", "my secret").await;
    ana.until_text("You said: my secret").await;
    let sessions = server.get("/v1/host/tandem/sessions").await.ok(200);
    let session = &sessions["sessions"][0];

    // A forged token, the name of the user, and a token for another agent name nobody: a new visitor begins.
    let forged = format!("{}x", ana.token);
    let name = session["userExternalId"].as_str().unwrap().to_owned();
    let foreign = Client::connect(address, "strict").await.token;
    for token in [forged, name, foreign] {
        let cursor = json!({"clientId": token, "sessionId": session["id"], "after": 0});
        let mut other = Client::connect_with(address, "open", cursor).await;
        assert_ne!(other.token, ana.token);
        // The same message id is another message.
        other.say("m1", "mine").await;
        let frames = other.until_text("You said: mine").await;
        assert_eq!(
            texts(&frames),
            [("visitor", "mine"), ("agent", "You said: mine")]
        );
        assert!(
            frames.iter().all(|f| f["status"] != "duplicate"),
            "{frames:?}"
        );
        assert!(frames.iter().all(|f| f["sessionId"] != session["id"]));
    }
    // The token is no key.
    let read = server
        .call_as(&ana.token, "GET", "/v1/host/tandem/sessions", &[], "")
        .await;
    assert_eq!(read.status.as_u16(), 401);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_unless_they_are_listed() {
    let server = server().await;
    let address = server.listen().await;
    for (origin, expected) in [
        ("https://evil.example", Some(403)),
        ("https://shop.example.evil.example", Some(403)),
        ("null", Some(403)),
        ("https://shop.example", None),
        ("http://test", None),
    ] {
        let opened = open(address, "open", &[("origin", origin)]).await;
        assert_eq!(opened.err(), expected, "{origin}");
    }
    let embedded = [("origin", "null"), ("sec-fetch-site", "cross-site")];
    assert_eq!(open(address, "open", &embedded).await.err(), Some(403));
}

/// Z-41 (half: changed keys of the session, without reserved ones)
#[tokio::test]
async fn changed_keys_are_shown_as_far_as_the_agent_allows() {
    let server = server().await;
    let address = server.listen().await;
    for (agent, expected) in [
        ("open", json!([{"shown": 1}, {"other": 2}])),
        ("strict", json!([{"shown": 1}])),
    ] {
        let mut client = Client::connect(address, agent).await;
        client.say("m1", "keys").await;
        let frames = client.until_text("You said: keys").await;
        let deltas = frames.iter().filter(|f| f["type"] == "STATE_DELTA");
        let deltas: Vec<&Value> = deltas.map(|f| &f["delta"]).collect();
        assert_eq!(json!(deltas), expected, "{agent}");
    }
}

#[tokio::test]
async fn confirmation_offers_its_words_until_it_is_answered() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "book").await;
    let question = client.until_type("QUESTION").await;
    assert_eq!(question["options"], json!(["sure", "no"]));
    client.until_text("Monday?").await;
    // A reload shows the open question again.
    let mut reloaded = client.again(address, "open").await;
    let again = reloaded.until_type("QUESTION").await;
    assert_eq!(again, question);
    reloaded.say("m2", "sure").await;
    let closed = client.until_type("QUESTION_CLOSED").await;
    assert_eq!(
        (&closed["id"], &closed["timedOut"]),
        (&question["id"], &json!(false))
    );
    client.until_text("Booked.").await;
}

#[tokio::test]
async fn connections_and_frames_are_bounded() {
    let server = server().await;
    let address = server.listen().await;
    // The agent allows two connections.
    let one = Client::connect(address, "strict").await;
    let two = Client::connect(address, "strict").await;
    let third = open(address, "strict", &[]).await.err();
    assert!(matches!(third, Some(429 | 503)), "{third:?}");
    drop((one, two));

    // A visitor has a few windows.
    let first = Client::connect(address, "open").await;
    let mut windows = Vec::new();
    for _ in 0..7 {
        windows.push(first.again(address, "open").await);
    }
    let mut socket = open(address, "open", &[]).await.unwrap();
    let hello = json!({"type": "CONNECT", "clientId": first.token});
    socket.send(Message::text(hello.to_string())).await.unwrap();
    let closed = socket.next().await;
    let Some(Ok(Message::Close(Some(frame)))) = closed else {
        panic!("not closed: {closed:?}");
    };
    assert_eq!(u16::from(frame.code), 1008);

    // Somebody who sends without end is disconnected.
    let mut noisy = Client::connect(address, "open").await;
    let mut sent = 0;
    let code = loop {
        sent += 1;
        assert!(sent < 2_000, "still connected");
        let frame = Message::text("{}");
        if noisy.socket.send(frame).await.is_err() {
            break None;
        }
        if let Err(code) = noisy.next_or_close().await {
            break code;
        }
    };
    assert!(matches!(code, None | Some(1008)), "{code:?}");

    // So is somebody who begins with something else, or with too much.
    for frame in [json!({"type": "HELLO"}).to_string(), "x".repeat(70_000)] {
        let mut socket = open(address, "open", &[]).await.unwrap();
        let _ = socket.send(Message::text(frame)).await;
        let answer = socket.next().await;
        assert!(!matches!(answer, Some(Ok(Message::Text(_)))), "{answer:?}");
    }
}

#[tokio::test]
async fn message_that_cannot_be_taken_is_refused_with_its_id() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    for (id, body) in [("m1", "   "), ("m2", &*"x".repeat(8_001)), ("a:b", "hello")] {
        client.say(id, body).await;
        let ack = client.next().await;
        assert_eq!(
            (&ack["type"], &ack["messageId"]),
            (&json!("ACK"), &json!(id))
        );
        assert_eq!(ack["status"], "refused");
        assert!(!ack["message"].as_str().unwrap().is_empty());
    }
    client.send(json!({"type": "STEAL"})).await;
    assert_eq!(client.next().await["type"], "ERROR");
    // Z-11 (half: visitors are limited as users of the API are)
    let mut refused = None;
    for number in 0..40 {
        client.say(&format!("r{number}"), "hi").await;
        let frames = client.until(|f| f["type"] == "ACK").await;
        let ack = frames.last().unwrap();
        if ack["status"] != "accepted" {
            refused = Some(ack["status"].clone());
            break;
        }
    }
    assert_eq!(refused, Some(json!("ratelimited")));
}

#[tokio::test]
async fn page_has_a_strict_policy_and_escapes_its_title() {
    let server = server().await;
    let page = server.call_as("", "GET", "/chat/open", &[], "").await;
    assert_eq!(page.status.as_u16(), 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    assert!(
        policy.ends_with("frame-ancestors 'self' https://shop.example"),
        "{policy}"
    );
    assert!(!page.text.contains(HOSTILE) && !page.text.contains("<img"));
    let own = server.call_as("", "GET", "/chat/strict", &[], "").await;
    assert!(
        own.header("content-security-policy")
            .ends_with("frame-ancestors 'self'")
    );
    for (path, kind) in [
        ("/chat/embed.js", "text/javascript; charset=utf-8"),
        ("/chat/assets/chat.js", "text/javascript; charset=utf-8"),
        ("/chat/assets/chat.css", "text/css; charset=utf-8"),
    ] {
        let file = server.call_as("", "GET", path, &[], "").await;
        assert_eq!(
            (file.status.as_u16(), file.header("content-type")),
            (200, kind)
        );
    }
    let console = server
        .call_as("", "GET", "/chat/assets/console.js", &[], "")
        .await;
    assert_eq!(console.status.as_u16(), 404, "only the files of the chat");
}

#[tokio::test]
async fn host_that_stops_tells_its_visitors() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    server.stopping.send_replace(true);
    assert_eq!(client.next_or_close().await.err(), Some(Some(1001)));
}

#[tokio::test]
async fn closing_the_chat_ends_its_connections() {
    let switches = Arc::new(Switches::default());
    let server = switched_server(&switches).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    switches.is_closed.store(true, Ordering::Relaxed);
    client.say("m1", "hello").await;
    assert_eq!(client.next_or_close().await.err(), Some(Some(1008)));
    assert_eq!(open(address, "open", &[]).await.err(), Some(404));
    let sessions = server.get("/v1/host/tandem/sessions").await.ok(200);
    assert_eq!(sessions["sessions"], json!([]));
}
