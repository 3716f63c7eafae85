//! What readers of a session are shown while a model writes, recordings over the UI channel, and bounds of session
//! streams.

use crate::chat_agents::{ChatAgents, Switches};
use crate::test_server::{HostOptions, Stream, TestServer};
use crate::web_chat::{Client, server, switched_server};
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::Scope;
use tandem_api::HttpSettings;
use tandem_app::ShareLimits;

/// Z-41 (half: tokens reach the client before the answer is in the log)
#[tokio::test]
async fn tokens_are_streamed_while_the_model_writes() {
    let switches = Arc::new(Switches::default());
    let server = switched_server(&switches).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "hello").await;
    client.until_text("You said: hello").await;
    client.say("m2", "wait").await;
    // Pieces that are there at once may come as one.
    let (mut content, mut turn) = (String::new(), Value::Null);
    while content != "You said: wait" {
        let piece = client.until_type("TOKEN_CHUNK").await;
        content.push_str(piece["content"].as_str().unwrap());
        turn = piece["id"].clone();
    }
    switches.answers.notify_one();
    let frames = client.until_text("You said: wait").await;
    assert_eq!(frames.last().unwrap()["turnId"], turn);
}

/// What was streamed in the turn of the last frame, a message of the agent.
fn streamed(frames: &[Value]) -> String {
    let turn = &frames.last().unwrap()["turnId"];
    let pieces = frames.iter().filter(|f| f["type"] == "TOKEN_CHUNK");
    let pieces = pieces.filter(|piece| piece["id"] == *turn);
    pieces.map(|p| p["content"].as_str().unwrap()).collect()
}

/// Z-41 (half: a fast answer is streamed like a slow one)
/// Whole, in order and before its message, the first of a
/// conversation too.
#[tokio::test]
async fn every_token_of_a_fast_answer_comes_before_the_answer() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    for n in 0..20 {
        client.say(&format!("m{n}"), &format!("word {n}")).await;
        let answer = format!("You said: word {n}");
        let frames = client.until_text(&answer).await;
        assert_eq!(streamed(&frames), answer, "{frames:?}");
        let at = |kind: &str| frames.iter().position(|f| f["type"] == kind);
        assert!(at("TURN") < at("TOKEN_CHUNK"), "the turn is known before");
    }
    // A history has messages only.
    let mut reloaded = client.again(address, "open").await;
    let frames = reloaded.until_text("You said: word 19").await;
    assert!(
        frames.iter().all(|f| f["type"] != "TOKEN_CHUNK"),
        "{frames:?}"
    );
}

/// Z-41 (half: a client that comes back while an answer is written gets what was written so far, and the rest)
#[tokio::test]
async fn answer_under_way_is_streamed_from_its_beginning_to_a_client_that_comes_back() {
    let switches = Arc::new(Switches::default());
    let server = switched_server(&switches).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "wait").await;
    client.until_type("TOKEN_CHUNK").await;
    let mut again = client.again(address, "open").await;
    drop(client);
    let first = again.until_type("TOKEN_CHUNK").await;
    switches.answers.notify_one();
    let rest = again.until_text("You said: wait").await;
    let frames: Vec<Value> = [first].into_iter().chain(rest).collect();
    assert_eq!(streamed(&frames), "You said: wait");
}

async fn session_stream(server: &TestServer, key: &str, session: &str) -> Stream {
    let address = server.listen().await;
    let bearer = format!("Bearer {key}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("accept", "text/event-stream"),
    ];
    let path = format!("/v1/host/tandem/sessions/{session}/events");
    Stream::open(address, &path, &headers).await
}

async fn only_session(server: &TestServer) -> String {
    let listed = server.get("/v1/host/tandem/sessions").await.ok(200);
    listed["sessions"][0]["id"].as_str().unwrap().to_owned()
}

/// A reader of the session's events gets the pieces after the call began and before it ended.
#[tokio::test]
async fn stream_of_a_session_has_the_pieces_in_their_place() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "hello").await;
    client.until_text("You said: hello").await;
    let session = only_session(&server).await;
    let mut stream = session_stream(&server, &server.key, &session).await;
    let (mut names, mut content) = (Vec::new(), String::new());
    loop {
        let frame = stream.next().await.unwrap();
        if frame.event == "TOKEN_CHUNK" {
            content.push_str(frame.data["content"].as_str().unwrap());
        }
        let is_last = frame.event == "response:sent";
        names.push(frame.event);
        if is_last {
            break;
        }
    }
    assert_eq!(content, "You said: hello");
    let piece = names.iter().position(|name| name == "TOKEN_CHUNK").unwrap();
    let queued = names.iter().position(|name| name == "response:prepared");
    assert!(piece < queued.unwrap(), "{names:?}");
}

/// Streams of sessions take places among the streams of their key, like those of runs.
#[tokio::test]
async fn session_streams_are_limited_per_key() {
    let settings = HttpSettings {
        streams: ShareLimits {
            total: 100,
            max_per_tenant: 100,
            max_per_key: 2,
        },
        ..HttpSettings::default()
    };
    let options = HostOptions {
        conversations: Some(ChatAgents::conversations()),
        ..HostOptions::default()
    };
    let server = TestServer::build(settings, options).await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    client.say("m1", "hello").await;
    client.until_text("You said: hello").await;
    let session = only_session(&server).await;
    let key = server.new_key("default", &[Scope::RunsRead]).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = session_stream(&server, &key, &session).await;
        stream.next().await.unwrap();
        open.push(stream);
    }
    let path = format!("/v1/host/tandem/sessions/{session}/events");
    let accept = [("accept", "text/event-stream")];
    let refused = server.call_as(&key, "GET", &path, &accept, "").await;
    refused.refused(429, "rate_limited");
    // The two places of visitors of the agent: one is taken.
    let _second = Client::connect(address, "open").await;
}

/// Z-19 (half: a recording over the UI channel), Z-40 (half: a recording is answered by speech)
/// A recording over the UI channel is understood and answered by speech, which only its visitor and
/// readers of the session get.
#[tokio::test]
async fn recording_of_a_visitor_is_understood_and_answered_by_speech() {
    let server = server().await;
    let address = server.listen().await;
    let mut client = Client::connect(address, "open").await;
    // `aGVsbG8=` says hello.
    let media = json!({"contentType": "audio/webm", "data": "aGVsbG8="});
    let frame = json!({"type": "INBOUND_MESSAGE", "messageId": "m1", "body": "", "media": media});
    client.send(frame).await;
    let frames = client.until_text("You said: hello").await;
    let speech = frames.last().unwrap()["speech"].clone();
    assert_eq!(speech["contentType"], "audio/mpeg");
    let ask = json!({"type": "GET_MEDIA", "id": speech["id"]});
    client.send(ask.clone()).await;
    let media = client.until_type("MEDIA").await;
    // "You said: hello"
    assert_eq!(media["data"], "WW91IHNhaWQ6IGhlbGxv");

    let mut other = Client::connect(address, "open").await;
    other.say("m1", "mine").await;
    other.until_text("You said: mine").await;
    other.send(ask).await;
    assert_eq!(other.until_type("ERROR").await["code"], "not_found");

    let sessions = server.get("/v1/host/tandem/sessions").await.ok(200);
    let session = sessions["sessions"][1]["id"].as_str().unwrap();
    let id = speech["id"].as_str().unwrap();
    let path = format!("/v1/host/tandem/sessions/{session}/media/{id}");
    let read = server.get(&path).await;
    assert_eq!(read.text, "You said: hello");
    assert_eq!(read.header("content-type"), "audio/mpeg");
    let stranger = server.new_key("tenant2", &[Scope::RunsRead]).await;
    let foreign = server.call_as(&stranger, "GET", &path, &[], "").await;
    foreign.refused(404, "not_found");
    let unscoped = server.new_key("default", &[Scope::RunsCreate]).await;
    let refused = server.call_as(&unscoped, "GET", &path, &[], "").await;
    assert_eq!(refused.status.as_u16(), 403);
}

#[tokio::test]
async fn recordings_that_cannot_be_kept_are_refused() {
    let server = server().await;
    let path = "/v1/host/tandem/agents/open/inbound";
    for media in [
        json!({"contentType": "audio/ogg", "data": "not base64!"}),
        json!({"contentType": "audio/ogg", "data": ""}),
        json!({"data": "aGVsbG8="}),
        json!({"contentType": "audio/ogg\r\nx: y", "data": "aGVsbG8="}),
        json!({"contentType": "audio/ogg", "data": 7}),
    ] {
        let message = json!({"from": "u1", "body": "", "media": media});
        let refused = server.post(path, message).await;
        refused.refused(400, "validation_error");
    }
}
