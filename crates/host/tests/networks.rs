//! Networks with the real binary: decisions from Slack, long texts, and what is too late to be sent.

mod server;

use serde_json::{Value, json};
use server::Server;
use server::outside::{ReceivedRequest, respond};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const HOST: &str = "/v1/host/tandem";
const SLACK_SECRET: &str = "slack-secret-of-tests";
const TELEGRAM_SECRET: &str = "telegram-secret-of-tests";

/// Networks that take everything.
struct Outside {
    url: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Outside {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let Some(received) = ReceivedRequest::read(&connection) else {
                    continue;
                };
                let path = received.path().to_owned();
                let number = noted.lock().unwrap().len() + 1;
                let _ = respond(
                    &connection,
                    &json!({"ok": true, "channel": "C9", "ts": "18.1", "result": {"message_id": number}}),
                );
                noted.lock().unwrap().push((path, received.json()));
            }
        });
        Self { url, requests }
    }

    /// Bodies that were posted to paths with this end.
    fn posted(&self, path: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let posted = requests.iter().filter(|(of, _)| of.ends_with(path));
        posted.map(|(_, body)| body.clone()).collect()
    }
}

fn ok(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(body).expect("a JSON body")
}

fn settle(server: &Server, seconds: u64) {
    let advance = json!({"advanceSeconds": seconds}).to_string();
    let settled = server.post(&format!("{HOST}/test/clock"), &[], &advance);
    assert_eq!(ok(&settled)["settled"], true);
}

fn events(server: &Server, of_type: &str) -> Vec<Value> {
    let sessions = ok(&server.get(&format!("{HOST}/sessions")));
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    let events = ok(&server.get(&format!("{HOST}/sessions/{session}/events?after=-1")));
    let events = events["events"].as_array().unwrap().clone();
    let found = events.into_iter().filter(|event| event["type"] == of_type);
    found.collect()
}

fn hmac_hex(secret: &str, body: &[u8]) -> String {
    tandem_access::hmac_hex(secret, &[body])
}

/// Somebody presses a button of a notice.
fn press(server: &Server, user: &str, action: &Value, escalation: &Value) -> String {
    let payload = json!({
        "type": "block_actions", "user": {"id": user},
        "actions": [{"action_id": action, "value": escalation}],
        "container": {"channel_id": "C9", "message_ts": "18.1"},
    });
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish();
    let now = std::time::SystemTime::now();
    let time = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .to_string();
    let signed = hmac_hex(SLACK_SECRET, format!("v0:{time}:{form}").as_bytes());
    let signature = format!("v0={signed}");
    let headers = [
        ("x-slack-request-timestamp", time.as_str()),
        ("x-slack-signature", signature.as_str()),
    ];
    let path = format!("{HOST}/agents/desk/transports/team");
    server.request_signed(&path, &headers, &form)
}

/// Z-154 (half: a decision from Slack has the rights, events and refusals of the other ways)
#[test]
fn an_escalation_is_decided_from_slack_by_whoever_may() {
    let outside = Outside::start();
    let agent = json!({
        "prompt": "You run a desk.",
        "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
        "hitl": {"humanKeyword": "human", "humanMode": "async_resolution",
            "notify": [{"transport": "team", "address": "C9"}, {"transport": "loopback", "address": "desk"}]},
        "adminAuth": {
            "chat": [{"transport": "team", "address": "U7", "actorId": "ana", "role": "boss"},
                {"transport": "team", "address": "U8", "actorId": "bob", "role": "guest"}],
            "roles": {"boss": ["hitl.escalation.resolve"], "guest": []},
        },
        "transports": {"team": {"kind": "slack", "apiUrl": outside.url,
            "token": {"env": "SLACK_TOKEN"}, "signingSecret": {"env": "SLACK_SECRET"}}},
    });
    let server = Server::with_agent_and_secrets(
        "desk",
        &agent.to_string(),
        &[
            ("TANDEM_PUBLIC_URL", "https://desk.example"),
            ("SLACK_TOKEN", "xoxb-slack-token-of-tests"),
            ("SLACK_SECRET", SLACK_SECRET),
        ],
    );
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    let message = json!({"messageId": "m1", "from": "u1", "body": "human"}).to_string();
    ok(&server.post(&path, &[], &message));
    server.eventually("the notice", || {
        !outside.posted("/chat.postMessage").is_empty()
    });
    settle(&server, 0);
    let notices = outside.posted("/chat.postMessage");
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(notice["channel"], "C9");
    let told = ok(&server.get(&format!("{HOST}/test/outbound?to=desk")));
    assert!(told.to_string().contains("needs a decision"), "{told}");
    // The link of the notice in words shows the question, and decides nothing.
    let told = told.to_string();
    let link = told.split("https://desk.example").nth(1).expect("a link");
    let link = link.split("\\n").next().unwrap();
    let shown = ok(&server.request_as("", "GET", link, ""));
    assert_eq!(shown["kind"], "approval");
    let answer = json!({"resumeValue": {"action": "accept"}}).to_string();
    let denied = server.request_signed(link, &[], &answer);
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    let buttons = notice["blocks"][1]["elements"].clone();
    let (approve, reject) = (&buttons[0]["action_id"], &buttons[1]["action_id"]);
    let escalation = &buttons[0]["value"];

    // Unknown, and known without the right: denied, recorded, and told.
    for (user, count) in [("U9", 1), ("U8", 2)] {
        let denied = press(&server, user, approve, escalation);
        assert!(denied.starts_with("HTTP/1.1 200"), "{denied}");
        server.eventually("the denial", || {
            outside.posted("/chat.postEphemeral").len() == count
        });
        let shown = outside.posted("/chat.postEphemeral").pop().unwrap();
        assert_eq!(
            (&shown["user"], &shown["text"]),
            (&json!(user), &json!("You may not decide this."))
        );
    }
    let denials = events(&server, "admin.authz.denied");
    assert_eq!(denials.len(), 2, "{denials:?}");
    assert_eq!(denials[0]["payload"]["adapter"], "chat:team");
    assert_eq!(denials[0]["payload"]["action"], "hitl.escalation.resolve");
    assert!(events(&server, "hitl.escalation.resolved").is_empty());

    press(&server, "U7", reject, escalation);
    server.eventually("the decision", || outside.posted("/chat.update").len() == 1);
    let shown = outside.posted("/chat.update").pop().unwrap();
    assert_eq!(
        (&shown["ts"], &shown["text"]),
        (&json!("18.1"), &json!("Rejected by ana."))
    );
    let resolved = events(&server, "hitl.escalation.resolved");
    assert_eq!(resolved.len(), 1, "{resolved:?}");
    assert_eq!(resolved[0]["actor"]["id"], "ana");
    assert_eq!(resolved[0]["actor"]["channel"], "chat:team");
    assert_eq!(events(&server, "admin.authz.granted").len(), 1);

    // A repeated click changes nothing; another decision is refused.
    for (button, text) in [
        (reject, "Rejected by ana."),
        (approve, "Already rejected by ana."),
    ] {
        let before = outside.posted("/chat.update").len();
        press(&server, "U7", button, escalation);
        server.eventually("an answer", || {
            outside.posted("/chat.update").len() > before
        });
        assert_eq!(outside.posted("/chat.update").pop().unwrap()["text"], text);
    }
    assert_eq!(events(&server, "hitl.escalation.resolved").len(), 1);

    let over = server.request_as("", "GET", link, "");
    assert!(!over.starts_with("HTTP/1.1 2"), "{over}");
    let forged = server.request_signed(
        &format!("{HOST}/agents/desk/transports/team"),
        &[
            ("x-slack-signature", "v0=00"),
            ("x-slack-request-timestamp", "1"),
        ],
        "payload=%7B%7D",
    );
    assert!(forged.starts_with("HTTP/1.1 403"), "{forged}");
}

/// Z-10 (half: an update that is repeated is one message), Z-197 (half: the parts of a text are sent in order)
#[test]
fn a_long_answer_is_several_messages_in_order() {
    let outside = Outside::start();
    let words: String = (0..1_300).map(|n| format!("word{n} ")).collect();
    let agent = json!({
        "prompt": "You run a desk.",
        "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": words}}},
        "transports": {"tg": {"kind": "telegram", "apiUrl": outside.url,
            "token": {"env": "TG_TOKEN"}, "secret": {"env": "TG_SECRET"}}},
    });
    let secrets = [
        ("TG_TOKEN", "123456:bot-token-of-tests"),
        ("TG_SECRET", TELEGRAM_SECRET),
    ];
    let server = Server::with_agent_and_secrets("desk", &agent.to_string(), &secrets);
    let update = json!({"update_id": 1, "message": {"message_id": 5, "date": 1, "text": "hi",
        "chat": {"id": 42, "type": "private"}, "from": {"id": 42, "first_name": "Ada"}}})
    .to_string();
    let path = format!("{HOST}/agents/desk/transports/tg");
    let headers = [("x-telegram-bot-api-secret-token", TELEGRAM_SECRET)];
    for status in ["accepted", "duplicate"] {
        let answer = ok(&server.request_signed(&path, &headers, &update));
        assert_eq!(answer["messages"][0]["status"], status);
    }
    let sent = |outside: &Outside| outside.posted("/sendMessage");
    server.eventually("all parts", || {
        let texts = sent(&outside)
            .into_iter()
            .map(|body| body["text"].as_str().unwrap().to_owned());
        texts.collect::<String>().trim() == words.trim()
    });
    settle(&server, 0);
    assert_eq!(sent(&outside).len(), 3, "nothing was sent twice");
    let reported = events(&server, "response:sent");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(
        reported[0]["payload"]["providerMessageId"], "42:1",
        "that of the first part"
    );
    let unsigned = server.request_signed(&path, &[], &update);
    assert!(unsigned.starts_with("HTTP/1.1 403"), "{unsigned}");
    let ready = ok(&server.get(&format!("{HOST}/transports/desk.tg/auth")));
    assert_eq!(
        (&ready["status"], &ready["pairing"]),
        (&json!("ready"), &json!("none"))
    );
    let unknown = server.get(&format!("{HOST}/transports/desk.pigeon/auth"));
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
}

/// Z-240: what comes after the reply window is not sent, or is sent as a template, and both are recorded.
#[test]
fn a_text_that_is_too_late_is_not_sent() {
    for (templates, status, text) in [
        (json!({}), "window_closed", None),
        (json!({"any": {"name": "news"}}), "sent", Some("news")),
    ] {
        let agent = json!({
            "prompt": "You run a desk.",
            "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
            "transports": {"loopback": {"replyWindowSeconds": 60, "templates": templates}},
        });
        let server = Server::with_agent_and_secrets("desk", &agent.to_string(), &[]);
        let paused = json!({"paused": true}).to_string();
        let faults = format!("{HOST}/test/transport");
        ok(&server.post(&faults, &[], &paused));
        let path = format!("{HOST}/agents/desk/inbound?wait=true");
        let message = json!({"messageId": "m1", "from": "u1", "body": "hi"}).to_string();
        ok(&server.post(&path, &[], &message));
        settle(&server, 120);
        ok(&server.post(&faults, &[], &json!({"paused": false}).to_string()));
        settle(&server, 1);
        let sessions = ok(&server.get(&format!("{HOST}/sessions")));
        let session = sessions["sessions"][0]["id"].as_str().unwrap();
        let outbox = ok(&server.get(&format!("{HOST}/sessions/{session}/outbox")));
        assert!(
            outbox
                .to_string()
                .contains(&format!("\"status\":\"{status}\"")),
            "{outbox}"
        );
        let told = ok(&server.get(&format!("{HOST}/test/outbound?to=u1")));
        match text {
            Some(text) => {
                assert!(told.to_string().contains(text), "{told}");
                assert_eq!(
                    events(&server, "response:sent")[0]["payload"]["template"],
                    text
                );
            }
            None => {
                assert!(!told.to_string().contains("Hello"), "{told}");
                let failed = events(&server, "response:failed");
                assert_eq!(failed[0]["payload"]["reason"], "window_closed");
            }
        }
    }
}

const REFUND: &str = r#"{
  "id": "refund", "name": "Refund", "version": "1",
  "nodes": [
    {"id": "ask", "typeId": "core.clarificationGate", "name": "Ask", "position": {"x": 0, "y": 0},
     "config": {"questions": [{"id": "colour", "question": "Which colour?"}]}, "inputs": {}},
    {"id": "gate", "typeId": "core.approvalGate", "name": "Gate", "position": {"x": 0, "y": 0},
     "config": {"title": "Refund 50 EUR", "artifactData": {"amount": 50}, "approverGroupRefs": ["finance"]},
     "inputs": {}}],
  "edges": [{"id": "e1", "sourceNodeId": "ask", "targetNodeId": "gate"}],
  "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

const NOTICES: &str = r#"
public_url = "https://desk.example"

[groups]
finance = ["ana"]

[[notices]]
transport = "desk.team"
address = "C9"
kinds = ["approval"]
groups = ["finance"]

[[notices]]
transport = "desk.loopback"
address = "lead"

[[notices]]
transport = "desk.loopback"
address = "nobody"
groups = ["board"]

[[notice_people]]
transport = "desk.team"
address = "U7"
principal = "ana"

[[notice_people]]
transport = "desk.team"
address = "U8"
principal = "ben"
"#;

fn desk_in_slack(outside: &Outside, more: &Value) -> String {
    let mut agent = json!({
        "prompt": "You run a desk.",
        "model": {"provider": "scripted", "script": {"answers": [], "otherwise": {"text": "Hello."}}},
        "transports": {
            "loopback": {},
            "team": {"kind": "slack", "apiUrl": outside.url,
                "token": {"env": "SLACK_TOKEN"}, "signingSecret": {"env": "SLACK_SECRET"}}},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        agent[key] = value.clone();
    }
    agent.to_string()
}

const SLACK_SECRETS: [(&str, &str); 2] = [
    ("SLACK_TOKEN", "xoxb-slack-token-of-tests"),
    ("SLACK_SECRET", SLACK_SECRET),
];

/// The text that a press of a button was answered with.
fn pressed(
    server: &Server,
    outside: &Outside,
    (user, button): (&str, &Value),
    path: &str,
) -> String {
    let before = outside.posted(path).len();
    let answer = press(server, user, &button["action_id"], &button["value"]);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.eventually("an answer", || outside.posted(path).len() > before);
    let shown = outside.posted(path).pop().unwrap();
    shown["text"].as_str().unwrap().to_owned()
}

/// Questions of workflow runs are told by the operator's rules, and decided in Slack with the rights of the principal
/// that is named for whoever presses.
#[test]
fn a_workflow_is_decided_from_slack_by_whoever_may() {
    let outside = Outside::start();
    let agent = desk_in_slack(&outside, &json!({}));
    let documents = [("refund.json", REFUND)];
    let server =
        Server::with_agent_and_settings(("desk", &agent), NOTICES, &documents, &SLACK_SECRETS);
    for person in ["ana", "ben"] {
        let key = json!({"name": person, "principal": person, "scopes": ["approvals:respond"]});
        ok(&server.post(&format!("{HOST}/keys"), &[], &key.to_string()));
    }
    let run = ok(&server.post(
        "/v1/runs",
        &[],
        &json!({"workflowId": "refund"}).to_string(),
    ));
    let run = run["runId"].as_str().unwrap().to_owned();

    // The clarification is told in words, with a link that only shows it.
    let told = || ok(&server.get(&format!("{HOST}/test/outbound?to=lead"))).to_string();
    server.eventually("the clarification", || told().contains("Which colour?"));
    assert!(
        outside.posted("/chat.postMessage").is_empty(),
        "no approval"
    );
    let link = told();
    let link = link.split("https://desk.example").nth(1).expect("a link");
    let link = link.split("\\n").next().unwrap();
    let shown = ok(&server.request_as("", "GET", link, ""));
    assert_eq!(shown["kind"], "clarification");
    let answer = json!({"resumeValue": {"answers": {"colour": "blue"}}}).to_string();
    let denied = server.request_signed(link, &[], &answer);
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    ok(&server.post(&format!("/v1/runs/{run}/interrupts/ask"), &[], &answer));

    server.eventually("the notice", || {
        !outside.posted("/chat.postMessage").is_empty()
    });
    settle(&server, 0);
    let notices = outside.posted("/chat.postMessage");
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(notice["channel"], "C9");
    let text = notice["blocks"][0]["text"]["text"].as_str().unwrap();
    for part in ["Refund 50 EUR", "{\"amount\":50}", "Digest: ", &run] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(told().contains("Refund 50 EUR"));
    let others = ok(&server.get(&format!("{HOST}/test/outbound?to=nobody")));
    assert!(!others.to_string().contains("Refund"), "{others}");
    let buttons = notice["blocks"][1]["elements"].clone();
    let (approve, reject) = (&buttons[0], &buttons[1]);

    // Unknown, and known but not eligible: refused, told, and audited.
    for user in ["U9", "U8"] {
        let told = pressed(&server, &outside, (user, approve), "/chat.postEphemeral");
        assert_eq!(told, "You may not decide this.");
    }
    let audit = server.get(&format!("{HOST}/audit/export"));
    assert!(audit.contains("no_principal"), "{audit}");
    // Something else was shown than what is to be decided now.
    let mut stale = approve.clone();
    let value: Value = serde_json::from_str(approve["value"].as_str().unwrap()).unwrap();
    stale["value"] = json!(json!({"question": value["question"], "digest": "0"}).to_string());
    let told = pressed(&server, &outside, ("U7", &stale), "/chat.postEphemeral");
    assert!(told.contains("has changed"), "{told}");

    let told = pressed(&server, &outside, ("U7", approve), "/chat.update");
    assert_eq!(told, "Approved by ana.");
    let told = pressed(&server, &outside, ("U7", reject), "/chat.update");
    assert_eq!(told, "Already accepted by ana.");
    let events = server.get(&format!("/v1/runs/{run}/events/poll"));
    let received = events.split("approval.received").nth(1).expect("decided");
    assert!(received.contains("\"decidedBy\":\"ana\""), "{events}");
    assert!(events.contains("tandem.decision.denied"), "{events}");
}

/// Z-241 (half: a held text is told of and decided from Slack), Z-203 (half: what is shown is what is decided)
#[test]
fn a_held_text_is_decided_from_slack() {
    let outside = Outside::start();
    let more = json!({
        "agentMode": "draft_only",
        "hitl": {"notify": [{"transport": "team", "address": "C9"}]},
        "adminAuth": {
            "chat": [{"transport": "team", "address": "U7", "actorId": "ana", "role": "boss"}],
            "roles": {"boss": ["hitl.escalation.resolve"]},
        },
    });
    let agent = desk_in_slack(&outside, &more);
    let server = Server::with_agent_and_secrets("desk", &agent, &SLACK_SECRETS);
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    let say = |id: &str| {
        let message = json!({"messageId": id, "from": "u1", "body": "hi"}).to_string();
        ok(&server.post(&path, &[], &message));
    };
    let sent = || ok(&server.get(&format!("{HOST}/test/outbound?to=u1"))).to_string();
    for (round, (button, told)) in [(1, "Rejected by ana."), (0, "Approved by ana.")]
        .into_iter()
        .enumerate()
    {
        say(&format!("m{round}"));
        server.eventually("the notice", || {
            outside.posted("/chat.postMessage").len() > round
        });
        let notice = outside.posted("/chat.postMessage").pop().unwrap();
        let text = notice["blocks"][0]["text"]["text"].as_str().unwrap();
        assert!(
            text.contains("Hello.") && text.contains("Digest: "),
            "{text}"
        );
        let button = notice["blocks"][1]["elements"][button].clone();
        let denied = pressed(&server, &outside, ("U9", &button), "/chat.postEphemeral");
        assert_eq!(denied, "You may not decide this.");
        assert!(!sent().contains("Hello."));
        let shown = pressed(&server, &outside, ("U7", &button), "/chat.update");
        assert_eq!(shown, told);
    }
    settle(&server, 0);
    assert_eq!(sent().matches("Hello.").count(), 1, "{}", sent());
    assert_eq!(events(&server, "admin.authz.denied").len(), 2);
}

#[test]
fn notices_that_could_not_be_given_stop_the_start() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("agents").join("desk");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = json!({"prompt": "You run a desk.", "transports": {"loopback": {}, "web": {}}});
    std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    let rule = |transport: &str| {
        format!(
            "agents = [\"agents\"]\n[[notices]]\ntransport = \"{transport}\"\naddress = \"a\"\n"
        )
    };
    let person =
        "[[notice_people]]\ntransport = \"desk.loopback\"\naddress = \"a\"\nprincipal = \"ana\"\n";
    for (settings, problem) in [
        (rule("desk.pigeon"), "has no transport \"pigeon\""),
        (rule("nobody.team"), "there is no good agent nobody"),
        (rule("desk.web"), "the web chat gives no notices"),
        (rule("desk.loopback") + person, "nothing can be decided"),
    ] {
        std::fs::write(home.path().join("tandem.toml"), settings).unwrap();
        let mut command = server::tandem(home.path());
        let ended = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && said.contains(problem), "{said}");
    }
}
