//! Webhooks with the real binary: signed, retried with the same id after a crash between a delivery
//! and its commit, and signed with a new secret after a rotation. Callbacks of runs are sent after
//! a crash too.

mod server;

use server::Server;
use server::outside::ReceivedRequest;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tandem_access::signature;

/// A longer wait for a delivery fails the test.
const TIMEOUT: Duration = Duration::from_secs(60);

fn is_signed_with(delivery: &ReceivedRequest, secret: &str) -> bool {
    let at = delivery.header("x-openwop-timestamp");
    let expected = signature(secret, at, &delivery.body);
    delivery.header("x-openwop-signature") == expected
        && delivery.header("openwop-signature") == expected
}

/// A target on loopback that accepts everything.
fn target() -> (String, Receiver<ReceivedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || take(&connection, &sender));
        }
    });
    (url, receiver)
}

fn take(mut connection: &TcpStream, sender: &Sender<ReceivedRequest>) -> Option<()> {
    sender.send(ReceivedRequest::read(connection)?).ok()?;
    let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    connection.write_all(answer).ok()
}

fn json(answer: &str) -> serde_json::Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("a JSON body")
}

#[test]
fn deliveries_are_signed_and_survive_a_crash() {
    let (url, deliveries) = target();
    let mut server = Server::with_seams();
    let wanted = format!(r#"{{"url": "{url}", "events": ["run.completed"]}}"#);
    let made = json(&server.post("/v1/webhooks", &[], &wanted));
    let secret = made["secret"].as_str().unwrap().to_owned();

    assert!(server.run(&["run", "hello"]).status.success());
    let first = deliveries.recv_timeout(TIMEOUT).unwrap();
    assert!(is_signed_with(&first, &secret));
    assert_eq!(first.header("x-openwop-webhook-id"), made["webhookId"]);
    assert_eq!(first.header("x-openwop-event-type"), "run.completed");
    let body = first.json();
    assert_eq!(body["type"], "run.completed");
    assert_eq!(body["workspaceId"], "default");
    assert_eq!(body["runId"], body["event"]["runId"]);
    let log = server.log();
    assert!(!log.contains(&secret), "a secret is in the log");

    // The result of the first delivery is recorded: only the second one can reach the point.
    let settled = server.post(
        "/v1/host/tandem/test/clock",
        &[],
        r#"{"advanceSeconds": 0}"#,
    );
    assert_eq!(json(&settled)["settled"], true);
    let armed = r#"{"point": "effect.after"}"#;
    server.post("/v1/host/tandem/test/crash", &[], armed);
    // The response may be lost with the process.
    server.try_post("/v1/runs", r#"{"workflowId": "hello"}"#);
    let before = deliveries.recv_timeout(TIMEOUT).unwrap();
    server.wait_for_crash();
    server.start_again();
    let after = deliveries.recv_timeout(TIMEOUT).unwrap();
    assert!(
        is_signed_with(&after, &secret),
        "the secret outlives a death"
    );
    let key = before.header("idempotency-key");
    assert!(!key.is_empty());
    assert_eq!(key, after.header("idempotency-key"));
    assert_eq!(before.body, after.body);
}

#[test]
fn rotated_secret_signs_with_the_old_one_during_overlap_then_alone() {
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
    let during = deliveries.recv_timeout(TIMEOUT).unwrap();
    assert!(is_signed_with(&during, old));
    let next = signature(new, during.header("x-openwop-timestamp"), &during.body);
    assert_eq!(during.header("openwop-signature-next"), next);

    let hours = r#"{"advanceSeconds": 3601}"#;
    server.post("/v1/host/tandem/test/clock", &[], hours);
    assert!(server.run(&["run", "hello"]).status.success());
    let after = deliveries.recv_timeout(TIMEOUT).unwrap();
    assert!(is_signed_with(&after, new));
    assert_eq!(after.header("openwop-signature-next"), "");
}

#[test]
fn every_secret_signs_until_its_own_overlap_ends() {
    let (url, deliveries) = target();
    let server = Server::with_seams();
    let wanted = format!(r#"{{"url": "{url}", "events": ["run.completed"]}}"#);
    let made = json(&server.post("/v1/webhooks", &[], &wanted));
    let path = made["webhookId"].as_str().unwrap();
    let path = format!("/v1/host/tandem/webhooks/{path}:rotate");
    let rotate = |seconds: u32| {
        let body = format!(r#"{{"overlapSeconds": {seconds}}}"#);
        json(&server.post(&path, &[], &body))
    };
    let advance = |seconds: u32| {
        let body = format!(r#"{{"advanceSeconds": {seconds}}}"#);
        server.post("/v1/host/tandem/test/clock", &[], &body);
    };
    let received = || {
        assert!(server.run(&["run", "hello"]).status.success());
        deliveries.recv_timeout(TIMEOUT).unwrap()
    };
    let second = rotate(3600);
    advance(600);
    let third = rotate(3600);
    let [first, second, third] =
        [&made, &second, &third].map(|answer| answer["secret"].as_str().unwrap());

    let delivery = received();
    assert!(
        is_signed_with(&delivery, first),
        "its overlap has not ended"
    );
    let next = |secret| {
        signature(
            secret,
            delivery.header("x-openwop-timestamp"),
            &delivery.body,
        )
    };
    let both = format!("{}, {}", next(second), next(third));
    assert_eq!(delivery.header("openwop-signature-next"), both);
    advance(3001);
    assert!(is_signed_with(&received(), second));
    advance(600);
    let delivery = received();
    assert!(is_signed_with(&delivery, third));
    assert_eq!(delivery.header("openwop-signature-next"), "");
}

const GATED: &str = r#"{
    "id": "gated", "name": "gated", "version": "1.0",
    "nodes": [{"id": "gate", "typeId": "core.approvalGate", "name": "gate",
        "position": {"x": 0, "y": 0}, "config": {"title": "Refund"}, "inputs": {}}],
    "edges": [], "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
    "variables": [], "metadata": {}, "settings": {"timeout": 0}
}"#;

#[test]
fn callback_is_sent_after_a_crash_and_its_link_resolves_the_interrupt() {
    const PUBLIC: &str = "https://tandem.example.com";
    let (url, announcements) = target();
    let mut server = Server::reached_at(PUBLIC, &[("gated.json", GATED)]);
    let armed = r#"{"point": "effect.before"}"#;
    server.post("/v1/host/tandem/test/crash", &[], armed);
    let wanted = format!(r#"{{"workflowId": "gated", "callbackUrl": "{url}"}}"#);
    // The response may be lost with the process.
    server.try_post("/v1/runs", &wanted);
    server.wait_for_crash();
    assert!(announcements.try_recv().is_err());
    server.start_again();

    let received = announcements.recv_timeout(TIMEOUT).unwrap();
    let notification = received.json();
    assert_eq!(notification["type"], "interrupt.requested");
    assert_eq!(notification["workflowId"], "gated");
    assert_eq!(notification["interrupt"]["data"]["title"], "Refund");
    assert_eq!(
        received.header("x-openwop-event-type"),
        "interrupt.requested"
    );
    assert_eq!(received.header("openwop-event-type"), "interrupt.requested");
    assert!(!received.header("x-openwop-timestamp").is_empty());
    let id = notification["interrupt"]["interruptId"].as_str().unwrap();
    assert_eq!(received.header("idempotency-key"), format!("announce:{id}"));
    let token = notification["interrupt"]["interruptToken"]
        .as_str()
        .unwrap();
    let link = notification["interrupt"]["callbackUrl"].as_str().unwrap();
    assert_eq!(link, format!("{PUBLIC}/v1/interrupts/{token}"));

    let answer = r#"{"resumeValue": {"action": "accept"}}"#;
    let path = link.strip_prefix(PUBLIC).unwrap();
    let decided = server.post(path, &[], answer);
    assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
    server.only_run("gated", "completed");
    assert!(!server.log().contains(token), "a link is in the log");
    assert!(announcements.try_recv().is_err(), "it is sent once");
}
