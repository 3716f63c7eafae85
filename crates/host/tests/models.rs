//! Models with the real binary: called with the operator's key and the effect's id, once, and not
//! again by a replay; retried with the same id when the process dies between call and commit.

mod server;

use serde_json::{Value, json};
use server::Server;
use server::outside::{ReceivedRequest, respond};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// A longer wait for a call fails the test.
const TIMEOUT: Duration = Duration::from_secs(60);
const KEY: &str = "operators-key-not-to-be-seen";

/// A model server on loopback with one answer.
struct Model {
    url: String,
    calls: Receiver<ReceivedRequest>,
    /// Releases the answer to one call.
    answers: Sender<()>,
}

fn model() -> Model {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, calls) = mpsc::channel();
    let (answers, leave) = mpsc::channel();
    std::thread::spawn(move || {
        // One connection at a time; the client has closed the previous one by then.
        for connection in listener.incoming().flatten() {
            answer(&connection, &sender, &leave);
        }
    });
    Model {
        url,
        calls,
        answers,
    }
}

fn answer(
    connection: &TcpStream,
    sender: &Sender<ReceivedRequest>,
    leave: &Receiver<()>,
) -> Option<()> {
    sender.send(ReceivedRequest::read(connection)?).ok()?;
    leave.recv_timeout(TIMEOUT).ok()?;
    let response = json!({
        "choices": [{"finish_reason": "stop", "message": {"content": "Forty euro."}}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2},
    });
    respond(connection, &response)
}

fn workflow() -> String {
    json!({
        "id": "price", "name": "price", "version": "1.0", "metadata": {},
        "settings": {"timeout": 0}, "variables": [], "edges": [],
        "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
        "nodes": [{
            "id": "ask", "typeId": "core.llm.chat", "name": "ask", "position": {"x": 0, "y": 0},
            "config": {"provider": "house", "userPrompt": "How much is it?"}, "inputs": {},
        }],
    })
    .to_string()
}

fn serving(url: &str, seams: bool) -> Server {
    let config = format!(
        "test_seams = {seams}\n[secrets]\nhouse = \"{KEY}\"\n[models.house]\nkind = \"openai\"\n\
         base_url = \"{url}\"\nkey = \"house\"\nmodel = \"small\"\nallow_private = true\n"
    );
    Server::configured(&config, &[("price.json", &workflow())])
}

fn shown(server: &Server, args: &[&str]) -> Value {
    let output = server.run(args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn model_is_called_once_and_its_address_is_not_disclosed() {
    let Model {
        url,
        calls,
        answers,
    } = model();
    answers.send(()).unwrap();
    let server = serving(&url, false);
    assert!(server.run(&["run", "price", "--follow"]).status.success());
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(call.header("authorization"), format!("Bearer {KEY}"));
    assert!(!call.header("idempotency-key").is_empty());
    assert!(call.header("traceparent").starts_with("00-"));
    assert_eq!(call.json()["model"], "small");

    let run = server.only_run("price", "completed");
    let snapshot = shown(&server, &["runs", "show", &run, "--json"]);
    let forked = server.run(&["runs", "fork", &run]);
    assert!(forked.status.success(), "{forked:?}");
    assert!(calls.try_recv().is_err(), "a replay calls nobody");

    let events = server.run(&["runs", "events", &run, "--json"]);
    let discovery = server.get("/.well-known/openwop");
    assert!(discovery.contains("\"house\""), "{discovery}");
    let everything = format!(
        "{snapshot} {} {discovery} {}",
        String::from_utf8_lossy(&events.stdout),
        server.log()
    );
    assert!(everything.contains("Forty euro."), "{everything}");
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    for hidden in [KEY, address] {
        assert!(!everything.contains(hidden), "{hidden} is in {everything}");
    }
}

#[test]
fn call_is_retried_with_the_same_id_after_a_crash() {
    let Model {
        url,
        calls,
        answers,
    } = model();
    let mut server = serving(&url, true);
    server.post("/v1/runs", &[], r#"{"workflowId": "price"}"#);
    let before = calls.recv_timeout(TIMEOUT).unwrap();
    // The call was received and not answered: the next commit would store the answer.
    let armed = r#"{"point": "commit.before"}"#;
    server.try_post("/v1/host/tandem/test/crash", armed);
    answers.send(()).unwrap();
    server.wait_for_crash();
    answers.send(()).unwrap();
    server.start_again();
    let after = calls.recv_timeout(TIMEOUT).unwrap();
    let key = before.header("idempotency-key");
    assert!(!key.is_empty());
    assert_eq!(key, after.header("idempotency-key"));
    assert_eq!(before.body, after.body);
    server.only_run("price", "completed");
}
