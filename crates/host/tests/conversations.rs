//! Conversations with the real binary and an agent from a folder.

mod server;

use serde_json::{Value, json};
use server::{KEY, Server};

const AGENT: &str = r#"{
  "prompt": "You run a desk.",
  "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
  "adminAuth": {"builtin": "keys", "roles": {"auditor": ["audit.view"]}}
}"#;

/// The body of a successful answer.
fn ok(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(body).expect("a JSON body")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).expect("an HTTP response")
}

fn key_of_workspace(server: &Server, workspace: &str) -> String {
    let body = json!({"name": workspace, "workspace": workspace, "roles": ["auditor"],
        "scopes": ["runs:read", "runs:create", "audit:read"]});
    let made = server.post("/v1/host/tandem/keys", &[], &body.to_string());
    ok(&made)["secret"].as_str().expect("a secret").to_owned()
}

fn deliver(server: &Server, key: &str) -> Value {
    let body = json!({"messageId": "m1", "from": "ann", "body": "Good morning"}).to_string();
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    ok(&server.request_as(key, "POST", path, &body))
}

/// An admin who writes is told of the escalations of their workspace only.
#[test]
fn escalations_listed_in_a_chat_are_of_its_workspace() {
    let agent = r#"{
      "prompt": "You run a desk.",
      "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
      "hitl": {"humanKeyword": "human"},
      "adminAuth": {"chat": [{"transport": "loopback", "address": "ana", "actorId": "ana", "role": "boss"}],
                    "roles": {"boss": ["hitl.escalation.view"]}}
    }"#;
    let server = Server::with_agent("desk", "agent.json", agent);
    let listed = |key: &str, from: &str, body: &str| {
        let id = format!("{from}-{body}");
        let message = json!({"messageId": id, "from": from, "body": body}).to_string();
        let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
        let answer = ok(&server.request_as(key, "POST", path, &message));
        answer["outbound"][0]["text"].to_string()
    };
    let [red, blue] = ["red", "blue"].map(|workspace| key_of_workspace(&server, workspace));
    listed(&red, "u1", "human");
    assert!(listed(&red, "ana", "/escalations").contains("u1"));
    assert!(!listed(&blue, "ana", "/escalations").contains("u1"));
    assert!(listed(KEY, "ana", "/escalations").contains("u1"));
}

/// One address is another user in another workspace: with its own messages, session and profile.
#[test]
fn conversations_of_workspaces_are_separate() {
    let server = Server::with_agent("desk", "agent.json", AGENT);
    let keys = ["red", "blue"].map(|workspace| key_of_workspace(&server, workspace));
    let [red, blue] = &keys;
    let [of_red, of_blue] = [red, blue].map(|key| deliver(&server, key));
    assert_eq!(of_red["status"], "processed");
    assert_eq!(of_red["outbound"][0]["text"], "Hello.");
    assert_eq!(
        of_blue["status"], "processed",
        "not a duplicate of the other"
    );
    assert_ne!(of_red["sessionId"], of_blue["sessionId"]);
    let of_tenant = deliver(&server, KEY);
    assert_eq!(of_tenant["status"], "processed");
    assert_eq!(deliver(&server, red)["status"], "duplicate");

    let users = |key: &str| {
        let listed = server.request_as(key, "GET", "/v1/host/tandem/agents/desk/users", "");
        ok(&listed)["users"].as_array().expect("users").clone()
    };
    assert_eq!([red, blue].map(|key| users(key).len()), [1, 1]);
    assert_eq!(users(KEY).len(), 3, "the tenant sees all of them");

    let user = format!(
        "/v1/host/tandem/users/{}",
        users(red)[0]["id"].as_str().expect("an id")
    );
    let renamed = r#"{"displayName": "Mallory"}"#;
    assert_eq!(
        status(&server.request_as(blue, "PATCH", &user, renamed)),
        "404"
    );
    assert_eq!(users(red)[0]["displayName"], "ann");
    let renamed = r#"{"displayName": "Ann"}"#;
    assert_eq!(
        status(&server.request_as(red, "PATCH", &user, renamed)),
        "200"
    );
    assert_eq!(users(red)[0]["displayName"], "Ann");
    let unknown_format = r#"{"preferences": {"preferredReplyFormat": "song"}}"#;
    assert_eq!(
        status(&server.request_as(red, "PATCH", &user, unknown_format)),
        "400"
    );
    let format = r#"{"preferences": {"preferredReplyFormat": "mirror"}}"#;
    assert_eq!(
        status(&server.request_as(red, "PATCH", &user, format)),
        "200"
    );

    // Reading a trail is itself recorded: that of a session in the session, that of an agent without one.
    let sessions_in_trail = |key: &str, of: &str| -> Vec<Value> {
        let read = server.request_as(key, "GET", &format!("/v1/host/tandem/audit?{of}"), "");
        let entries = ok(&read)["entries"].as_array().expect("entries").clone();
        entries
            .iter()
            .map(|entry| entry["sessionId"].clone())
            .collect()
    };
    let session = of_red["sessionId"].as_str().expect("an id");
    sessions_in_trail(red, &format!("sessionId={session}"));
    assert_eq!(
        sessions_in_trail(red, "agentId=desk"),
        [json!(session), Value::Null]
    );
    assert_eq!(
        sessions_in_trail(blue, "agentId=desk"),
        [Value::Null],
        "its own reading"
    );
}

/// The name of a sender is stored with the user, so a secret in it is masked before.
#[test]
fn secret_in_the_name_of_a_sender_is_not_stored() {
    let server = Server::with_agent("desk", "agent.json", AGENT);
    let message = json!({"messageId": "m1", "from": "ann", "body": "Good morning",
        "senderProfile": {"displayName": format!("Ann {KEY}")}});
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    let delivered = ok(&server.post(path, &[], &message.to_string()));
    let session = delivered["sessionId"].as_str().expect("an id");
    for read in [
        "agents/desk/users".to_owned(),
        "agents/desk/events".to_owned(),
        format!("sessions/{session}"),
        format!("sessions/{session}/events"),
    ] {
        let shown = server.get(&format!("/v1/host/tandem/{read}"));
        ok(&shown);
        assert!(!shown.contains(KEY), "{read}: {shown}");
    }
}

/// A flow may put a secret together that it was never given as one text. Nobody gets it.
#[test]
fn secret_in_a_text_of_a_flow_is_not_sent() {
    let (one, other) = KEY.split_at(9);
    let code = format!(
        "import {{ createAgent }} from 'tandem';
export default createAgent({{
  prompt: 'p',
  model: {{ provider: 'scripted', script: {{ answers: [], otherwise: {{ text: 'm' }} }} }},
  beforeLLM: () => ({{ action: 'route_flow', flowId: 'tells' }}),
  flows: {{ tells: async function* () {{
    const secret = '{one}' + '{other}';
    yield {{ type: 'say', text: 'It is ' + secret }};
    yield {{ type: 'ask', key: 'a', text: secret + '?' }};
  }} }},
}});
"
    );
    let server = Server::with_agent_and_seams("desk", "agent.ts", &code);
    let answer = say(&server, "ann", "hi");
    assert!(!answer.to_string().contains(KEY), "{answer}");
    let moved = server.post("/v1/host/tandem/test/clock", &[], "{\"advanceSeconds\": 0}");
    ok(&moved);
    let sent = server.get("/v1/host/tandem/test/outbound?to=ann");
    assert_eq!(ok(&sent)["messages"].as_array().map(Vec::len), Some(2));
    assert!(sent.contains("REDACTED") && !sent.contains(KEY), "{sent}");
}

fn say(server: &Server, from: &str, text: &str) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"messageId": id, "from": from, "body": text}).to_string();
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    let answer = server.post(path, &[], &body);
    let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    serde_json::from_str(body).expect("a JSON body")
}

/// Z-36 (half: sessions know the summaries of as many earlier ones as `maxEpisodicMemory` says)
#[test]
fn session_knows_what_the_earlier_ones_were_about() {
    const AGENT: &str = r"
import { createAgent } from 'tandem';
export default createAgent({
  prompt: 'Before: {% for s in session.earlier %}{{ s.summary }}{% endfor %}',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'Hello.' } } },
  maxEpisodicMemory: 2,
  commands: {
    close: { handler: async (ctx, text) => {
      if (text) await ctx.session.kv.set('summary', text);
      await ctx.endSession();
    } },
    recall: { handler: (ctx) => ctx.say(JSON.stringify([ctx.session.summary, ctx.session.earlier.map((s) => s.summary)])) },
  },
});
";
    let server = Server::with_agent("desk", "agent.ts", AGENT);
    let recalled = |from: &str| {
        let answer = say(&server, from, "/recall");
        let text = answer["outbound"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("no text: {answer}"));
        serde_json::from_str::<Value>(text).expect("JSON")
    };
    assert_eq!(recalled("ann"), json!([null, []]), "a stranger");
    for (close, known) in [
        ("/close a table", json!(["a table"])),
        ("/close a bill", json!(["a table", "a bill"])),
        ("/close", json!(["a bill"])),
    ] {
        say(&server, "ann", close);
        assert_eq!(recalled("ann"), json!([null, known]), "{close}");
    }
    assert_eq!(recalled("bob"), json!([null, []]), "only the user's own");
}

/// Z-12 (half: commands of admins are not limited, and leave the limit of their writer as it is)
#[test]
fn commands_of_admins_are_not_rate_limited() {
    const AGENT: &str = r#"{
  "prompt": "You run a desk.",
  "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
  "rateLimitPerUserPerMinute": 1,
  "adminAuth": {
    "chat": [{"transport": "loopback", "address": "ana", "actorId": "ana", "role": "boss"}],
    "roles": {"boss": ["hitl.escalation.view"]}
  }
}"#;
    let server = Server::with_agent("desk", "agent.json", AGENT);
    let status = |from: &str, text: &str| say(&server, from, text)["status"].clone();
    let table = [
        ("ana", "/escalations", "processed"),
        ("ana", "/escalations", "processed"),
        ("ana", "hello", "processed"),
        ("ana", "hello", "ratelimited"),
        ("ana", "/escalations", "processed"),
        ("ana", "/help", "ratelimited"),
        // Whoever is no admin has no other limit for writing like one.
        ("eve", "/escalations", "processed"),
        ("eve", "/escalations", "ratelimited"),
    ];
    for (from, text, expected) in table {
        assert_eq!(status(from, text), expected, "{from}: {text}");
    }
}

/// What an admin did without a session is an event of the agent. Many of them at once are all recorded.
#[test]
fn calls_of_admins_at_the_same_time_are_all_recorded() {
    let agent = r#"{
      "prompt": "You run a desk.",
      "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
      "adminAuth": {"builtin": "keys", "roles": {"planner": ["flow.manage"], "auditor": ["audit.view"]}}
    }"#;
    const THREADS: usize = 16;
    const CALLS: usize = 12;
    let server = Server::with_agent("desk", "agent.json", agent);
    let body = json!({"agentId": "desk", "flowId": "none", "trigger": {"type": "once", "runAt": "2100-01-01T00:00:00Z"},
        "target": {"kind": "user", "userExternalId": "u1"}})
    .to_string();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    let denied = server.post("/v1/host/tandem/schedules", &[], &body);
                    assert_eq!(status(&denied), "403", "{denied}");
                }
            });
        }
    });
    let path = "/v1/host/tandem/agents/desk/events?after=-1";
    let listed = ok(&server.request_as(KEY, "GET", path, ""));
    let denials = listed["events"].as_array().expect("events").iter();
    let denials = denials.filter(|event| event["payload"]["action"] == "schedule.manage");
    assert_eq!(denials.count(), THREADS * CALLS);
}
