//! The work of a desk with the real binary: `tandem inbox claim|release|assign`, hours and queues of an agent's file.

use super::server::Server;
use super::{chat, code, err, only_question, out};
use serde_json::{Value, json};

const HOST: &str = "/v1/host/tandem";

/// Open on Wednesdays from nine to five in Berlin. The hashes are those of `ana-token` and `ben-token`.
const AGENT: &str = r"
export default {
  prompt: 'x',
  hours: { timezone: 'Europe/Berlin', week: { wed: [['09:00', '17:00']] }, holidays: ['2031-01-01'] },
  adminAuth: {
    tokens: [
      { hash: 'sha256:fdb19af2cd8f3f7de8c00cbdd4c4838366cbe4fa2e7ae38ba7f5847e75ad4bb5', actorId: 'ana', role: 'boss' },
      { hash: 'sha256:096835dcf70a20417cf2111f4634cbb41be9a56a0e9be1a68a597d92e460e3c0', actorId: 'ben', role: 'boss' },
    ],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve'] },
  },
  hitl: { escalationDefaults: {
    queue: 'front', timeoutSeconds: 9 * 3600, claimStopsTimeout: true, countOpenHoursOnly: true,
    autoAckText: 'One moment.', outsideHoursText: 'We are back on Wednesday.',
  } },
  beforeLLM: () => ({ action: 'route_flow', flowId: 'check' }),
  flows: {
    check: async function* (ctx) {
      yield* ctx.escalate({ mode: 'async_resolution', reason: 'Look at it' });
      const decision = yield* ctx.wait({ waitFor: 'admin_resolution' });
      yield* ctx.say(decision.outcome);
    },
  },
};";

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

/// Z-238 (half: the command line)
#[test]
fn escalation_is_claimed_released_and_assigned_from_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let desk = folder.path().join("desk");
    std::fs::create_dir(&desk).unwrap();
    std::fs::write(desk.join("agent.js"), AGENT).unwrap();
    let server = Server::with_agents(folder.path());
    chat(&server, "desk", "ada", &["hi"]);
    let question = only_question(&server);
    let run = |args: &[&str]| server.run(&[&["inbox"], args].concat());
    let denied = run(&["claim", &question]);
    assert_eq!(code(&denied), 1);
    assert!(err(&denied).contains("--admin-token"), "{}", err(&denied));
    let claimed = run(&["claim", &question, "--admin-token", "ana-token"]);
    assert_eq!(code(&claimed), 0, "{}", err(&claimed));
    assert!(
        out(&claimed).ends_with("claimed by ana\n"),
        "{}",
        out(&claimed)
    );
    let late = run(&["claim", &question, "--admin-token", "ben-token"]);
    assert_eq!(code(&late), 1);
    let why = err(&late);
    assert!(
        why.contains("escalation_claimed") && why.contains("Ask ana"),
        "{why}"
    );
    let given = run(&[
        "assign",
        &question,
        "--to",
        "ben",
        "--admin-token",
        "ana-token",
        "--json",
    ]);
    let given: Value = serde_json::from_str(&out(&given)).unwrap();
    assert_eq!(
        (&given["assignee"], &given["queue"]),
        (&json!("ben"), &json!("front"))
    );
    // The id of the escalation itself is taken too.
    let escalation = given["id"].as_str().unwrap();
    let released = run(&["release", escalation, "--admin-token", "ben-token"]);
    assert!(out(&released).ends_with("released\n"), "{}", err(&released));
    let unknown = run(&["claim", "esc-none", "--admin-token", "ana-token"]);
    assert_eq!(code(&unknown), 1);
    assert!(err(&unknown).contains("not_found"), "{}", err(&unknown));
}

/// Z-239 (half: from the agent's file to the user and the deadline)
#[test]
fn hours_of_an_agents_file_change_the_text_and_the_deadline() {
    let server = Server::with_agent_and_seams("desk", "agent.js", AGENT);
    let escalates_at = |instant: &str, from: &str| {
        let set = json!({"set": instant}).to_string();
        server.post(&format!("{HOST}/test/clock"), &[], &set);
        let message = json!({"messageId": from, "from": from, "body": "hi"}).to_string();
        let path = format!("{HOST}/agents/desk/inbound?wait=true");
        let sent = body(&server.post(&path, &[], &message));
        let session = sent["sessionId"].as_str().expect("a session");
        let view = body(&server.get(&format!("{HOST}/sessions/{session}")));
        let text = sent["outbound"][0]["text"].as_str().expect("a text");
        (
            text.to_owned(),
            view["flow"]["deadline"]
                .as_str()
                .expect("a deadline")
                .to_owned(),
        )
    };
    // Tuesday; Wednesday at ten in winter and in summer; the holiday, a Wednesday.
    for (instant, from, text, deadline) in [
        (
            "2030-01-01T12:00:00Z",
            "u1",
            "We are back on Wednesday.",
            "2030-01-09T09:00:00",
        ),
        (
            "2030-01-02T09:00:00Z",
            "u2",
            "One moment.",
            "2030-01-09T10:00:00",
        ),
        (
            "2030-07-03T08:00:00Z",
            "u3",
            "One moment.",
            "2030-07-10T09:00:00",
        ),
        (
            "2031-01-01T09:00:00Z",
            "u4",
            "We are back on Wednesday.",
            "2031-01-15T09:00:00",
        ),
    ] {
        let (told, due) = escalates_at(instant, from);
        assert_eq!(told, text, "{instant}");
        assert!(due.starts_with(deadline), "{instant}: {due}");
    }
}
