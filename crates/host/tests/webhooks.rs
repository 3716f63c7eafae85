//! Webhooks of the real binary: signed, repeated under the same id when it dies between a delivery
//! and its record, and signed anew after a rotation.

mod server;

use server::Server;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tandem_access::signature;

/// A test that waits longer for a delivery has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Delivery {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Delivery {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn is_signed_with(&self, secret: &str) -> bool {
        let expected = signature(secret, self.header("x-openwop-timestamp"), &self.body);
        self.header("x-openwop-signature") == expected
            && self.header("openwop-signature") == expected
    }
}

/// A target on loopback that takes everything.
fn target() -> (String, Receiver<Delivery>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || take(connection, &sender));
        }
    });
    (url, receiver)
}

fn take(connection: TcpStream, sender: &Sender<Delivery>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(": ") {
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
    let mut delivery = Delivery {
        headers,
        body: Vec::new(),
    };
    let length = delivery.header("content-length").parse().ok()?;
    delivery.body.resize(length, 0);
    reader.read_exact(&mut delivery.body).ok()?;
    sender.send(delivery).ok()?;
    let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    (&connection).write_all(answer).ok()
}

fn json(answer: &str) -> serde_json::Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("a JSON body")
}

#[test]
fn deliveries_are_signed_and_survive_a_death() {
    let (url, deliveries) = target();
    let mut server = Server::with_seams();
    let wanted = format!(r#"{{"url": "{url}", "events": ["run.completed"]}}"#);
    let made = json(&server.post("/v1/webhooks", &[], &wanted));
    let secret = made["secret"].as_str().unwrap().to_owned();

    assert!(server.run(&["run", "hello"]).status.success());
    let first = deliveries.recv_timeout(PATIENCE).unwrap();
    assert!(first.is_signed_with(&secret));
    assert_eq!(first.header("x-openwop-webhook-id"), made["webhookId"]);
    assert_eq!(first.header("x-openwop-event-type"), "run.completed");
    let body: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(body["type"], "run.completed");
    assert_eq!(body["workspaceId"], "default");
    assert_eq!(body["runId"], body["event"]["runId"]);
    let log = server.log();
    assert!(!log.contains(&secret), "a secret is in the log");

    let armed = r#"{"point": "effect.after"}"#;
    server.post("/v1/host/tandem/test/crash", &[], armed);
    // The answer may be lost with the process.
    server.try_post("/v1/runs", r#"{"workflowId": "hello"}"#);
    let before = deliveries.recv_timeout(PATIENCE).unwrap();
    server.died();
    server.start_again();
    let after = deliveries.recv_timeout(PATIENCE).unwrap();
    assert!(after.is_signed_with(&secret), "the secret outlives a death");
    let key = before.header("idempotency-key");
    assert!(!key.is_empty());
    assert_eq!(key, after.header("idempotency-key"));
    assert_eq!(before.body, after.body);
}

#[test]
fn a_rotated_secret_signs_beside_the_old_one_and_then_alone() {
    let (url, deliveries) = target();
    let server = Server::with_seams();
    let wanted = format!(r#"{{"url": "{url}", "events": ["run.completed"]}}"#);
    let made = json(&server.post("/v1/webhooks", &[], &wanted));
    let old = made["secret"].as_str().unwrap();
    let path = made["webhookId"].as_str().unwrap();
    let path = format!("/v1/host/tandem/webhooks/{path}:rotate");
    let rotated = json(&server.post(&path, &[], r#"{"overlapSeconds": 3600}"#));
    let new = rotated["secret"].as_str().unwrap();

    assert!(server.run(&["run", "hello"]).status.success());
    let during = deliveries.recv_timeout(PATIENCE).unwrap();
    assert!(during.is_signed_with(old));
    let next = signature(new, during.header("x-openwop-timestamp"), &during.body);
    assert_eq!(during.header("openwop-signature-next"), next);

    let hours = r#"{"advanceSeconds": 3601}"#;
    server.post("/v1/host/tandem/test/clock", &[], hours);
    assert!(server.run(&["run", "hello"]).status.success());
    let after = deliveries.recv_timeout(PATIENCE).unwrap();
    assert!(after.is_signed_with(new));
    assert_eq!(after.header("openwop-signature-next"), "");
}
