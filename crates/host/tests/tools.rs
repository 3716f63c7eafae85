//! Tools with the real binary: called with the operator's key and the effect's id, once, and not
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
const KEY: &str = "tool-servers-key-not-to-be-seen";

/// A tool server on loopback whose `echo` returns its text.
struct Tools {
    url: String,
    /// Tool calls; other requests of a session are not included.
    calls: Receiver<ReceivedRequest>,
    /// Releases the answer to one call.
    answers: Sender<()>,
}

fn tools() -> Tools {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (sender, calls) = mpsc::channel();
    let (answers, leave) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            answer(&connection, &sender, &leave);
        }
    });
    Tools {
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
    let received = ReceivedRequest::read(connection)?;
    let body = received.json();
    let result = match body["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }),
        "tools/call" => {
            let text = body["params"]["arguments"]["text"].clone();
            sender.send(received).ok()?;
            leave.recv_timeout(TIMEOUT).ok()?;
            json!({"content": [{"type": "text", "text": text}], "isError": false})
        }
        _ => Value::Null,
    };
    let response = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    respond(connection, &response)
}

fn workflow(id: &str, type_id: &str, config: Value) -> String {
    json!({
        "id": id, "name": id, "version": "1.0", "metadata": {},
        "settings": {"timeout": 0}, "variables": [], "edges": [],
        "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
        "nodes": [{
            "id": "call", "typeId": type_id, "name": "call", "position": {"x": 0, "y": 0},
            "config": config, "inputs": {},
        }],
    })
    .to_string()
}

fn serving(url: &str) -> Server {
    let config =
        format!("test_seams = true\n[mcp_servers.docs]\nurl = \"{url}\"\nkey = \"{KEY}\"\n");
    let call = json!({
        "serverId": "docs", "toolName": "echo", "arguments": {"text": "a private word"},
        "agentId": "house.librarian",
    });
    let prompt = json!({"mcp": {"tool": "echo", "arguments": {"text": "roundtrip-probe"}}});
    let probe = "conformance-mcp-tool-roundtrip";
    Server::configured(
        &config,
        &[
            ("echo.json", &workflow("echo", "core.mcp.toolCall", call)),
            ("probe.json", &workflow(probe, "core.ai.callPrompt", prompt)),
        ],
    )
}

fn shown(server: &Server, args: &[&str]) -> Value {
    let output = server.run(args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// R-0040-4: the call carries the run's trace.
#[test]
fn tool_is_called_once_and_its_address_is_not_disclosed() {
    let Tools {
        url,
        calls,
        answers,
    } = tools();
    answers.send(()).unwrap();
    let server = serving(&url);
    assert!(server.run(&["run", "echo", "--follow"]).status.success());
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(call.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(call.header("mcp-protocol-version"), "2025-06-18");
    assert!(!call.header("idempotency-key").is_empty());
    assert_eq!(call.json()["params"]["name"], "echo");

    let run = server.only_run("echo", "completed");
    let bundle = server.get(&format!("/v1/runs/{run}/debug-bundle"));
    let bundle = bundle.split_once("\r\n\r\n").unwrap().1;
    let bundle: Value = serde_json::from_str(bundle).unwrap();
    let trace = bundle["spans"][0]["traceId"].as_str().unwrap();
    let sent = call.header("traceparent");
    assert!(
        sent.starts_with(&format!("00-{trace}-")),
        "{sent}, not {trace}"
    );
    let events = server.run(&["runs", "events", &run, "--json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    let tool_events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let find = |kind: &str| tool_events.iter().find(|e| e["type"] == kind).unwrap();
    let (called, returned) = (find("agent.toolCalled"), find("agent.toolReturned"));
    assert_eq!(called["payload"]["agentId"], "house.librarian");
    assert_eq!(called["payload"]["transport"], "mcp");
    assert_eq!(called["payload"]["argsHash"].as_str().unwrap().len(), 64);
    assert_eq!(called["payload"].get("inputs"), None);
    assert_eq!(returned["causationId"], called["eventId"]);
    assert_eq!(returned["payload"]["callId"], called["payload"]["callId"]);
    assert_eq!(returned["payload"]["status"], "ok");
    assert_eq!(returned["payload"]["contentTrust"], "untrusted");
    assert!(!returned.to_string().contains("a private word"));
    let completed = &find("node.completed")["payload"];
    assert_eq!(completed["contentTrust"], "untrusted");
    assert_eq!(completed["outputs"]["contentTrust"], "untrusted");
    let content = &completed["outputs"]["result"]["content"][0];
    assert_eq!(content["text"], "a private word");

    let forked = server.run(&["runs", "fork", &run]);
    assert!(forked.status.success(), "{forked:?}");
    assert!(calls.try_recv().is_err(), "a replay calls nobody");

    let snapshot = shown(&server, &["runs", "show", &run, "--json"]);
    let discovery = server.get("/.well-known/openwop");
    assert!(
        discovery.contains("\"mcp\":{\"supported\":true}"),
        "{discovery}"
    );
    assert!(discovery.contains("\"core.mcp.toolCall\""), "{discovery}");
    assert!(
        discovery.contains("\"conformance-mcp-tool-roundtrip\""),
        "{discovery}"
    );
    assert!(!discovery.contains("core.ai.callPrompt"), "{discovery}");
    let everything = format!("{snapshot} {events} {discovery} {}", server.log());
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    for hidden in [KEY, address] {
        assert!(!everything.contains(hidden), "{hidden} is in {everything}");
    }
}

#[test]
fn call_is_retried_with_the_same_id_after_a_crash() {
    let Tools {
        url,
        calls,
        answers,
    } = tools();
    let mut server = serving(&url);
    server.post("/v1/runs", &[], r#"{"workflowId": "echo"}"#);
    let before = calls.recv_timeout(TIMEOUT).unwrap();
    // The call was received and not answered: the next commit would store the result.
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
    let run = server.only_run("echo", "completed");
    let events = server.run(&["runs", "events", &run, "--json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert_eq!(events.matches("agent.toolCalled").count(), 1, "{events}");
}

#[test]
fn tool_server_may_be_chosen_by_the_host() {
    let Tools {
        url,
        calls,
        answers,
    } = tools();
    answers.send(()).unwrap();
    let server = serving(&url);
    let probe = "conformance-mcp-tool-roundtrip";
    assert!(server.run(&["run", probe, "--follow"]).status.success());
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(
        call.json()["params"]["arguments"]["text"],
        "roundtrip-probe"
    );
}
