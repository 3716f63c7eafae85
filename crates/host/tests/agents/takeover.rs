//! Live takeover with the real binary: from the terminal, and over a restart.

use super::server::Server;
use super::{chat, code, err, out};
use serde_json::{Value, json};

const HOST: &str = "/v1/host/tandem";

/// Whoever has the scope may take over.
const AGENT: &str = r"
export default {
  prompt: 'x',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'model speaks' } } },
  adminAuth: { builtin: 'keys' },
};";

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

/// Z-88 (half: from the terminal), Z-92 (half: from the terminal), Z-149 (half: the scope `conversations:takeover`)
#[test]
fn conversation_is_taken_over_and_handed_back_from_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let desk = folder.path().join("desk");
    std::fs::create_dir(&desk).unwrap();
    std::fs::write(desk.join("agent.js"), AGENT).unwrap();
    let server = Server::with_agents(folder.path());
    chat(&server, "desk", "ada", &["hi"]);
    let sessions = body(&server.get(&format!("{HOST}/sessions")));
    let session = sessions["sessions"][0]["id"]
        .as_str()
        .expect("a session")
        .to_owned();
    let run = |args: &[&str]| server.run(&[&["inbox"], args].concat());
    let early = run(&["write", &session, "--text", "hello"]);
    assert_eq!(code(&early), 1);
    assert!(
        err(&early).contains("tandem inbox takeover"),
        "{}",
        err(&early)
    );
    let taken = run(&["takeover", &session]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert!(
        out(&taken).contains("the agent is silent"),
        "{}",
        out(&taken)
    );
    let message = json!({"messageId": "m-2", "from": "ada", "body": "are you there?"}).to_string();
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    let sent = body(&server.post(&path, &[], &message));
    assert_eq!(sent["outbound"], json!([]));
    let write = [
        "write",
        &session,
        "--text",
        "Ana here.",
        "--message-id",
        "h-1",
    ];
    assert!(out(&run(&write)).ends_with(": sent\n"));
    assert!(out(&run(&write)).ends_with("was sent before\n"));
    let back = run(&["handback", &session, "--note", "calm", "--json"]);
    let back: Value = serde_json::from_str(&out(&back)).unwrap();
    assert_eq!(back["mode"], Value::Null, "{back}");
    let messages = body(&server.get(&format!("{HOST}/sessions/{session}/messages")));
    let messages = messages["messages"].as_array().expect("messages").iter();
    let texts: Vec<_> = messages
        .map(|m| m["text"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(texts, ["hi", "model speaks", "are you there?", "Ana here."]);
    let unknown = run(&["takeover", "ses-none"]);
    assert_eq!(code(&unknown), 1);
    assert!(err(&unknown).contains("not_found"), "{}", err(&unknown));
}
