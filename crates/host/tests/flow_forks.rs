//! Forks of flow runs, receipts of decisions in conversations, and what a run's stream shows of them, with the real
//! binary.

mod server;

use serde_json::{Value, json};
use server::outside::{ReceivedRequest, respond};
use server::{KEY, Server};
use std::net::TcpListener;

const HOST: &str = "/v1/host/tandem";
/// Nobody listens here.
const NOWHERE: &str = "http://127.0.0.1:1/";
const BOSS: (&str, &str) = ("X-Admin-Token", "boss-token");

const AGENT: &str = r"
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You run a desk.',
  model: { provider: 'scripted', script: { answers: [
    { when: { contains: 'sell' }, toolCalls: [{ name: 'sell', args: { n: 3 } }] },
  ], otherwise: { text: 'model speaks' } } },
  redaction: REDACTION,
  rateLimitPerUserPerMinute: 1000,
  adminAuth: {
    tokens: [{ hash: 'sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve', 'flow.manage', 'command.answer_for_user'] },
  },
  tools: [
    { name: 'pay', kind: 'record', returns: { ok: true } },
    { name: 'remote', kind: 'http', url: 'REMOTE_URL' },
    { name: 'sell', kind: 'record', returns: { ok: true }, approval: 'user' },
  ],
  beforeLLM: (input) => {
    const m = /^start (\w+)$/.exec(input.text);
    if (m) return { action: 'route_flow', flowId: m[1] };
  },
  flows: {
    pays: async function* (ctx) {
      const who = yield { type: 'ask', key: 'who', text: 'WHO_TEXT' };
      const lucky = Math.random();
      yield { type: 'tool', name: 'pay', args: { who, lucky, at: Date.now() } };
      yield { type: 'say', text: 'Paid ' + who };
      return { reason: 'paid' };
    },
    refund: async function* () {
      yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'Refund of 700', metadata: { amount: 700 } };
      const done = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
      yield { type: 'say', text: done.approved ? 'Refunded' : 'Not refunded' };
    },
    traced: async function* () {
      yield { type: 'tool', name: 'remote', args: {} };
      yield { type: 'workflow.run', workflowId: 'calls', input: {}, wait: true };
      yield { type: 'say', text: 'done' };
    },
    twice: async function* () {
      yield { type: 'interrupt.confirm', question: 'Sure?' };
      const again = yield { type: 'interrupt.wait', waitFor: 'confirm_response' };
      yield { type: 'say', text: again.outcome };
    },
  },
});
";

struct Desk {
    server: Server,
}

impl Desk {
    fn new() -> Self {
        Self::redacting("full")
    }

    fn redacting(redaction: &str) -> Self {
        Self::calling(redaction, NOWHERE)
    }

    fn calling(redaction: &str, remote: &str) -> Self {
        let code = agent(redaction, "Who?", remote);
        let server = Server::with_agent_and_seams("desk", "agent.ts", &code);
        Self { server }
    }

    fn say(&self, from: &str, text: &str) -> Value {
        let id = uuid::Uuid::new_v4().to_string();
        let body = json!({"messageId": id, "from": from, "body": text}).to_string();
        let path = format!("{HOST}/agents/desk/inbound?wait=true");
        ok(&self.server.post(&path, &[], &body))
    }

    fn flow_run(&self, session: &Value) -> String {
        let session = session.as_str().expect("a session");
        let session = ok(&self.server.get(&format!("{HOST}/sessions/{session}")));
        let run = session["flow"]["flowRunId"].as_str();
        run.unwrap_or_else(|| panic!("no flow in {session}"))
            .to_owned()
    }

    fn fork(&self, run: &str, mode: &str) -> Value {
        let body = json!({"mode": mode, "fromSeq": 0}).to_string();
        let fork = ok(&self
            .server
            .post(&format!("/v1/runs/{run}:fork"), &[], &body));
        let fork = fork["runId"].as_str().expect("a run").to_owned();
        ok(&self.server.get(&format!("/v1/runs/{fork}")))
    }

    fn events(&self, run: &Value) -> Vec<Value> {
        let run = run.as_str().expect("a run");
        let events = ok(&self.server.get(&format!("/v1/runs/{run}/events/poll")));
        events["events"].as_array().expect("events").clone()
    }

    fn open_question(&self) -> Value {
        let listed = ok(&self.server.get(&format!("{HOST}/interrupts?status=open")));
        match listed["interrupts"].as_array().expect("a list").as_slice() {
            [one] => one.clone(),
            others => panic!("{others:?}"),
        }
    }

    fn settle(&self) {
        let body = json!({"advanceSeconds": 0}).to_string();
        ok(&self.server.post(&format!("{HOST}/test/clock"), &[], &body));
    }

    fn tool_calls(&self) -> usize {
        let calls = ok(&self.server.get(&format!("{HOST}/test/tools/desk")));
        calls["calls"].as_array().map_or(0, Vec::len)
    }

    fn sent(&self, to: &str) -> usize {
        self.settle();
        let sent = ok(&self.server.get(&format!("{HOST}/test/outbound?to={to}")));
        sent["messages"].as_array().map_or(0, Vec::len)
    }

    fn receipt(&self, id: &Value) -> (u16, Value) {
        let id = id.as_str().expect("an id");
        read(&self.server.get(&format!("{HOST}/receipts/{id}")))
    }

    /// Checks a receipt with the command that users have.
    fn verifies(&self, receipt: &Value) -> bool {
        let path = self.server.home().join("receipt.json");
        std::fs::write(&path, receipt.to_string()).expect("a file");
        let path = path.to_str().expect("a path");
        let output = self.server.run(&["audit", "verify", "--receipt", path]);
        output.status.success()
    }

    fn resolve(&self, question: &Value, value: &Value) -> u16 {
        let id = question["interruptId"].as_str().expect("an id");
        let body = json!({"resumeValue": value}).to_string();
        let path = format!("{HOST}/interrupts/{id}:resolve");
        read(&self.server.post(&path, &[BOSS], &body)).0
    }
}

fn agent(redaction: &str, question: &str, remote: &str) -> String {
    let redaction = format!("'{redaction}'");
    let code = AGENT.replace("REDACTION", &redaction);
    let code = code.replace("REMOTE_URL", remote);
    code.replace("WHO_TEXT", question)
}

fn read(answer: &str) -> (u16, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    (status.expect("a status"), body)
}

fn ok(answer: &str) -> Value {
    let (status, body) = read(answer);
    assert!((200..300).contains(&status), "{answer}");
    body
}

/// Z-221: a fork is detached; nothing is sent or called, and the session does not know it.
#[test]
fn replay_of_a_flow_run_repeats_it_without_session_and_calls() {
    let desk = Desk::new();
    let session = desk.say("u1", "start pays")["sessionId"].clone();
    let run = desk.flow_run(&session);
    desk.say("u1", "Ada");
    let (calls, sent) = (desk.tool_calls(), desk.sent("u1"));
    assert_eq!((calls, sent), (1, 2));
    for mode in ["replay", "branch"] {
        let fork = desk.fork(&run, mode);
        assert_eq!(fork["status"], "completed", "{fork}");
        let of = |run: &Value| -> Vec<Value> {
            let events = desk.events(run).into_iter();
            events.map(|event| event["type"].clone()).collect()
        };
        assert_eq!(of(&fork["runId"]), of(&json!(run)), "{mode}");
        let fork_id = fork["runId"].as_str().expect("a run");
        let diff = ok(&desk
            .server
            .get(&format!("/v1/runs/{run}:diff?against={fork_id}")));
        assert!(diff.is_object(), "{diff}");
        let again = desk.fork(fork_id, "replay");
        assert_eq!(again["status"], "completed", "{again}");
    }
    assert_eq!((desk.tool_calls(), desk.sent("u1")), (calls, sent));
    let shown = ok(&desk.server.get(&format!(
        "{HOST}/sessions/{}",
        session.as_str().expect("an id")
    )));
    assert_eq!(shown["flow"], Value::Null);
    let by_command = desk.server.run(&["runs", "fork", &run]);
    assert!(by_command.status.success(), "{by_command:?}");
}

/// Z-221: what has no recorded result is not asked of anybody.
#[test]
fn replay_of_a_waiting_flow_ends_where_its_source_waits() {
    let desk = Desk::new();
    let session = desk.say("u1", "start pays")["sessionId"].clone();
    let run = desk.flow_run(&session);
    let fork = desk.fork(&run, "replay");
    assert_eq!(
        (&fork["status"], &fork["error"]["code"]),
        (&json!("failed"), &json!("replay_source_missing"))
    );
    assert_eq!(
        desk.open_question()["runId"],
        json!(run),
        "the fork asks nobody"
    );
    desk.say("u1", "Ada");
    assert_eq!(desk.sent("u1"), 2);
}

/// Z-221: a branch runs the code the agent has now, and shows where it differs.
#[test]
fn branch_of_a_flow_run_shows_what_newer_code_would_do() {
    let desk = Desk::new();
    let session = desk.say("u1", "start pays")["sessionId"].clone();
    let run = desk.flow_run(&session);
    desk.say("u1", "Ada");
    let file = desk.server.home().join("agents/desk/agent.ts");
    let before = ok(&desk.server.get(&format!("{HOST}/agents/desk")))["flows"].clone();
    std::fs::write(file, agent("full", "Who are you?", NOWHERE)).expect("a file");
    desk.server.eventually("the new code is loaded", || {
        ok(&desk.server.get(&format!("{HOST}/agents/desk")))["flows"] != before
    });
    assert_eq!(
        desk.fork(&run, "replay")["status"],
        "completed",
        "the pinned code"
    );
    let branch = desk.fork(&run, "branch");
    assert_eq!(branch["error"]["code"], "replay_diverged", "{branch}");
    let events = desk.events(&branch["runId"]);
    assert!(
        events
            .iter()
            .any(|event| event["type"] == "tandem.flow.diverged")
    );
}

/// Z-203 (half: receipts)
/// A decision has a receipt, whichever route it came by, and the receipt proves it.
#[test]
fn decisions_of_conversations_have_receipts() {
    let desk = Desk::new();
    let mut proofs = Vec::new();
    for (user, by_escalation) in [("u1", false), ("u2", true)] {
        desk.say(user, "start refund");
        desk.settle();
        let question = desk.open_question();
        assert_eq!(desk.receipt(&question["interruptId"]).0, 404, "not decided");
        let escalation = question["data"]["artifactId"].clone();
        let status = match by_escalation {
            true => {
                let id = escalation.as_str().expect("an id");
                let path = format!("{HOST}/escalations/{id}/resolve");
                let body = json!({"approved": true}).to_string();
                read(&desk.server.post(&path, &[BOSS], &body)).0
            }
            false => desk.resolve(&question, &json!({"action": "accept"})),
        };
        assert_eq!(status, 200);
        let (status, receipt) = desk.receipt(&question["interruptId"]);
        assert_eq!(status, 200, "{receipt}");
        assert_eq!(
            desk.receipt(&escalation).1,
            receipt,
            "by the escalation too"
        );
        assert!(desk.verifies(&receipt));
        let decision = receipt["decision"].clone();
        assert_eq!(decision["digest"], question["digest"], "what was shown");
        assert_eq!(decision["by"]["actor"]["id"], "ana");
        proofs.push(
            json!({"outcome": decision["outcome"], "by": decision["by"], "kind": decision["kind"]}),
        );
    }
    assert_eq!(proofs[0], proofs[1]);
    assert_eq!(proofs[0]["outcome"], "accepted");
}

/// Z-203 (half: consent for the user), Z-230 (half: the user's consent, in the inbox)
/// Somebody with the right may consent for the user.
#[test]
fn consent_of_the_user_is_a_question_of_the_inbox_with_a_receipt() {
    let desk = Desk::new();
    desk.say("u1", "sell");
    let question = desk.open_question();
    assert_eq!(question["kind"], "clarification");
    assert_eq!(question["data"]["questions"][0]["id"], "confirm");
    assert_eq!(
        desk.resolve(&question, &json!({"answers": {"confirm": "yes"}})),
        400
    );
    assert_eq!(
        desk.resolve(&question, &json!({"answers": {"confirm": true}})),
        200
    );
    desk.settle();
    assert_eq!(desk.tool_calls(), 1);
    let (status, receipt) = desk.receipt(&question["interruptId"]);
    assert_eq!(
        (status, &receipt["decision"]["outcome"]),
        (200, &json!("answered"))
    );
    assert_eq!(receipt["decision"]["digest"], question["digest"]);
    assert_eq!(
        desk.resolve(&question, &json!({"answers": {"confirm": true}})),
        409
    );
}

/// §10.1, Z-203 (half: waits for a confirmation, by the routes of runs)
/// A wait for the answer to a confirmation is answered on the run surface as the question was.
#[test]
fn wait_for_a_confirmation_is_answered_by_the_routes_of_runs() {
    let desk = Desk::new();
    desk.say("u1", "start twice");
    desk.say("u1", "no");
    let question = desk.open_question();
    assert_eq!(question["kind"], "clarification");
    let again = desk.say("u1", "perhaps");
    assert_eq!(again["outbound"][0]["text"], "Sure?", "Z-72");
    assert_eq!(
        desk.resolve(&question, &json!({"answers": {"confirm": "aye"}})),
        400
    );
    assert_eq!(
        desk.resolve(&question, &json!({"answers": {"confirm": true}})),
        200
    );
    assert_eq!(desk.sent("u1"), 3);
}

/// Z-202 (half: the stream of the run)
/// The stream of a run shows texts as its agent says.
#[test]
fn run_stream_obeys_the_redaction_of_its_agent() {
    for (redaction, shows) in [("full", true), ("hashed", false), ("omitted", false)] {
        let desk = Desk::redacting(redaction);
        let session = desk.say("u1", "start pays")["sessionId"].clone();
        let run = desk.flow_run(&session);
        desk.say("u1", "Ada");
        let text = json!(desk.events(&json!(run))).to_string();
        for said in ["Who?", "Ada"] {
            assert_eq!(text.contains(said), shows, "{redaction}: {said}: {text}");
        }
        assert_eq!(text.contains("sha256:"), redaction == "hashed");
    }
}

/// Z-222: a call of a tool, and a call of a workflow that the flow started, continue the trace of the conversation.
#[test]
fn trace_of_a_conversation_reaches_tools_and_workflows() {
    let remote = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", remote.local_addr().expect("an address"));
    let desk = Desk::calling("full", &url);
    let document = json!({
        "id": "calls", "name": "calls", "version": "1.0.0",
        "nodes": [{"id": "call", "typeId": "vendor.tandem.http", "name": "call",
            "position": {"x": 0, "y": 0}, "inputs": {}, "config": {"method": "POST", "url": url, "body": {}}}],
        "edges": [], "triggers": [{"id": "t", "type": "manual"}], "variables": [],
        "metadata": {}, "settings": {},
    });
    let path = format!("{HOST}/workflows/calls");
    ok(&desk
        .server
        .request_as(KEY, "PUT", &path, &document.to_string()));
    let calls = std::thread::spawn(move || {
        let mut traces = Vec::new();
        while traces.len() < 2 {
            let (connection, _) = remote.accept().expect("a call");
            if let Some(request) = ReceivedRequest::read(&connection) {
                traces.push(request.header("traceparent").to_owned());
                respond(&connection, &json!({"ok": true}));
            }
        }
        traces
    });
    desk.say("u1", "start traced");
    let traces = calls.join().expect("two calls");
    let id = |trace: &str| trace.split('-').nth(1).map(str::to_owned);
    assert_eq!(id(&traces[0]), id(&traces[1]), "{traces:?}");
    assert!(
        id(&traces[0]).is_some_and(|id| id.len() == 32),
        "{traces:?}"
    );
    desk.say("u2", "hi");
    assert_eq!(desk.sent("u1"), 1);
}
