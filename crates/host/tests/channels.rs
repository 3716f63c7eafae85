//! Speech and a webhook transport with the real binary, over crashes.

mod server;

use serde_json::{Value, json};
use server::Server;
use server::outside::{ReceivedRequest, respond};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const HOST: &str = "/v1/host/tandem";
const SECRET: &str = "a-secret-of-both-sides";

/// A network and a provider of speech in one: keeps every request with its path.
struct Outside {
    url: String,
    requests: Arc<Mutex<Vec<(String, ReceivedRequest)>>>,
}

impl Outside {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, ReceivedRequest)>>> = Arc::default();
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let Some(received) = ReceivedRequest::read(&connection) else {
                    continue;
                };
                let path = received.path().to_owned();
                // The last step: whoever sees the request knows that it was answered.
                let _ = match path.as_str() {
                    "/v1/audio/transcriptions" => respond(&connection, &json!({"text": "a chair"})),
                    "/v1/audio/speech" => server::outside::respond_audio(&connection, b"spoken"),
                    _ => respond(&connection, &json!({"messageId": "n-1"})),
                };
                noted.lock().unwrap().push((path, received));
            }
        });
        Self { url, requests }
    }

    fn count(&self, path: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|(of, _)| of == path).count()
    }

    /// Bodies that were posted to the network, of one type.
    fn posted(&self, kind: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let posted = requests.iter().filter(|(path, _)| path == "/network");
        let bodies = posted.map(|(_, received)| received.json());
        bodies.filter(|body| body["type"] == kind).collect()
    }
}

fn desk(outside: &Outside, modality: &str) -> Server {
    let agent = json!({
        "prompt": "You run a desk.",
        "modality": modality,
        "model": {"provider": "scripted", "script": {"answers": [
            {"when": {"contains": "a chair"}, "text": "Forty euro.", "times": 0}],
            "otherwise": {"text": "What?"}}},
        "speech": {"provider": "openai-compatible", "baseUrl": format!("{}/v1", outside.url)},
        "transports": {"crm": {"kind": "webhook", "url": format!("{}/network", outside.url),
            "secretEnv": "CRM_SECRET", "typing": true, "markRead": true}},
    });
    Server::with_agent_and_secrets("desk", &agent.to_string(), &[("CRM_SECRET", SECRET)])
}

fn ok(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(body).expect("a JSON body")
}

fn signature(time: &str, body: &str) -> String {
    tandem_access::signature(SECRET, time, body.as_bytes())
}

fn now() -> String {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_secs().to_string()
}

/// What the network delivers.
fn deliver(server: &Server, body: &Value, time: &str) -> String {
    let body = body.to_string();
    let signed = signature(time, &body);
    let headers = [
        ("x-tandem-timestamp", time),
        ("x-tandem-signature", signed.as_str()),
    ];
    let path = format!("{HOST}/agents/desk/transports/crm");
    server.request_signed(&path, &headers, &body)
}

fn settle(server: &Server) {
    let settled = server.post(
        &format!("{HOST}/test/clock"),
        &[],
        r#"{"advanceSeconds": 0}"#,
    );
    assert_eq!(ok(&settled)["settled"], true);
}

fn crash_at(server: &mut Server, point: &str, cause: impl Fn(&Server)) {
    let armed = json!({ "point": point }).to_string();
    ok(&server.post(&format!("{HOST}/test/crash"), &[], &armed));
    cause(server);
    server.wait_for_crash();
    server.start_again();
}

/// Z-9 (half: a copy of a signed request), Z-198, Z-244: a conversation over a webhook, once for each message.
#[test]
fn network_and_agent_talk_with_signed_requests() {
    let outside = Outside::start();
    let server = desk(&outside, "text");
    let (message, time) = (json!({"from": "u1", "body": "a chair"}), now());
    let first = ok(&deliver(&server, &message, &time));
    assert_eq!(first["messages"][0]["status"], "accepted");
    let copy = ok(&deliver(&server, &message, &time));
    assert_eq!(copy["messages"][0]["status"], "duplicate");
    assert_eq!(
        copy["messages"][0]["turnId"],
        first["messages"][0]["turnId"]
    );
    server.eventually("the answer", || !outside.posted("message").is_empty());
    settle(&server);
    let sent = outside.posted("message");
    let [sent] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(
        (&sent["to"], &sent["text"]),
        (&json!("u1"), &json!("Forty euro."))
    );
    server.eventually("the end of typing", || {
        outside
            .posted("typing")
            .iter()
            .any(|sign| sign["active"] == false)
    });
    let typing = outside.posted("typing");
    assert_eq!(typing[0]["active"], true);
    assert_eq!(outside.posted("read").len(), 1);
    for (_, request) in outside.requests.lock().unwrap().iter() {
        let body = String::from_utf8(request.body.clone()).unwrap();
        let expected = signature(request.header("x-tandem-timestamp"), &body);
        assert_eq!(request.header("x-tandem-signature"), expected);
        assert!(!request.header("idempotency-key").is_empty());
    }

    let old = (now().parse::<u64>().unwrap() - 3_600).to_string();
    let stale = deliver(&server, &json!({"from": "u2", "body": "hi"}), &old);
    assert!(stale.starts_with("HTTP/1.1 403"), "{stale}");
    let path = format!("{HOST}/agents/desk/transports/crm");
    let unsigned = server.request_signed(&path, &[], &message.to_string());
    assert!(unsigned.starts_with("HTTP/1.1 403"), "{unsigned}");
    let path = format!("{HOST}/agents/desk/transports/web");
    let elsewhere = server.request_signed(&path, &[], &message.to_string());
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
}

/// Z-19, Z-247: what was said is understood once, and the answer is spoken once, over crashes.
/// Z-40 (half: a spoken message is answered by speech)
#[test]
fn speech_is_understood_and_made_once_over_crashes() {
    let outside = Outside::start();
    let mut server = desk(&outside, "auto");
    let spoken = |id: &str| json!({"messageId": id, "from": "u1", "media": {"contentType": "audio/ogg", "data": "bm9pc2U="}});
    // The network has the answer, and nobody recorded that.
    crash_at(&mut server, "after_send", |server| {
        deliver(server, &spoken("m1"), &now());
    });
    server.eventually("the second attempt", || {
        outside.posted("message").len() == 2
    });
    settle(&server);
    assert_eq!(outside.count("/v1/audio/transcriptions"), 1);
    assert_eq!(outside.count("/v1/audio/speech"), 1);
    let sent = outside.posted("message");
    assert_eq!(sent.len(), 2, "sent again after the crash: {sent:?}");
    assert_eq!(sent[0], sent[1], "the same message with the same key");
    assert_eq!(sent[0]["text"], "Forty euro.");
    assert_eq!(sent[0]["speech"]["data"], "c3Bva2Vu");

    let sessions = ok(&server.get(&format!("{HOST}/sessions")));
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    let events = ok(&server.get(&format!("{HOST}/sessions/{session}/events?after=-1")));
    let events = events["events"].as_array().unwrap().clone();
    let of_type = |kind: &str| {
        let found = events.iter().filter(|event| event["type"] == kind);
        found
            .map(|event| event["payload"].clone())
            .collect::<Vec<Value>>()
    };
    let transcribed = of_type("transport:inbound:transcribed");
    assert_eq!(transcribed.len(), 1);
    assert_eq!(transcribed[0]["text"], "a chair");
    let media = of_type("response:sent")[0]["speech"].clone();
    assert_eq!(
        (&media["contentType"], &media["bytes"]),
        (&json!("audio/mpeg"), &json!(6))
    );
    let id = media["id"].as_str().unwrap();
    let bytes = server.get(&format!("{HOST}/sessions/{session}/media/{id}"));
    assert!(bytes.ends_with("\r\n\r\nspoken"), "{bytes}");
    assert!(bytes.contains("content-disposition: attachment"), "{bytes}");
    let path = format!("{HOST}/sessions/{session}/media/{id}");
    let foreign = server.request_as("another-key", "GET", &path, "");
    assert!(foreign.starts_with("HTTP/1.1 401"), "{foreign}");
}
