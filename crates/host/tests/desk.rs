//! What people at a desk do in conversations, with the real binary: held texts, commands about other sessions,
//! answers for the user, workflows of flows, reminders and bursts.

mod server;

use serde_json::{Value, json};
use server::{KEY, Server};

const HOST: &str = "/v1/host/tandem";
const BOSS: (&str, &str) = ("X-Admin-Token", "boss-token");

const AGENT: &str = r"
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You run a desk.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'model speaks' } } },
  rateLimitPerUserPerMinute: 1000,
  inbound: { debounceMs: 0 },
  adminAuth: {
    tokens: [{ hash: 'sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458', actorId: 'ana', role: 'boss' }],
    chat: [{ transport: 'loopback', address: 'ana-phone', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve', 'flow.manage', 'command.vip', 'command.answer_for_user'] },
  },
  hitl: { humanKeyword: 'human', humanMode: 'async_resolution' },
  tools: [{ name: 'pay', kind: 'record', returns: { ok: true }, idempotent: false }],
  commands: {
    vip: { description: 'Marks a user', access: 'admin', handler: async (ctx, args) => {
      await ctx.session.kv.set('vip', ctx.actor.id);
      await ctx.resources.transport.sendText(ctx.inbound.from, 'Marked: ' + args);
    } },
  },
  beforeLLM: (input) => {
    const m = /^start (\w+)$/.exec(input.text);
    if (m) return { action: 'route_flow', flowId: m[1] };
  },
  flows: {
    asks: async function* () {
      const name = yield { type: 'ask', key: 'name', text: 'Name?', reminders: [{ afterSeconds: 60, text: 'Still there?' }] };
      yield { type: 'say', text: 'Hello ' + name };
    },
    once: async function* () {
      try {
        yield { type: 'tool', name: 'pay', args: {} };
        yield { type: 'say', text: 'paid' };
      } catch (e) {
        yield { type: 'say', text: e.code };
      }
    },
    works: async function* () {
      const done = yield { type: 'workflow.run', workflowId: 'gate', input: {}, wait: true };
      yield { type: 'say', text: 'The workflow ' + done.status };
    },
  },
});
";

const GATE: &str = r#"{
  "id": "gate", "name": "gate", "version": "1.0.0",
  "nodes": [{"id": "g", "typeId": "core.approvalGate", "name": "g", "position": {"x": 0, "y": 0},
             "config": {"title": "Go on?"}, "inputs": {}}],
  "edges": [], "triggers": [{"id": "t", "type": "manual"}], "variables": [], "metadata": {}, "settings": {}
}"#;

fn desk() -> Server {
    Server::with_agent_and_seams("desk", "agent.ts", AGENT)
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

fn send(server: &Server, from: &str, text: &str) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"messageId": id, "from": from, "body": text});
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    ok(&server.post(&path, &[], &body.to_string()))
}

fn texts(answer: &Value) -> Vec<&str> {
    let outbound = answer["outbound"].as_array().expect("outbound").iter();
    outbound.filter_map(|sent| sent["text"].as_str()).collect()
}

fn open_questions(server: &Server) -> Vec<Value> {
    let listed = ok(&server.get(&format!("{HOST}/interrupts?status=open")));
    listed["interrupts"].as_array().expect("a list").clone()
}

fn resolve(server: &Server, question: &Value, value: &Value) -> (u16, Value) {
    let id = question["interruptId"].as_str().expect("an id");
    let body = json!({"resumeValue": value}).to_string();
    let path = format!("{HOST}/interrupts/{id}:resolve");
    read(&server.post(&path, &[BOSS], &body))
}

fn delivered(server: &Server, to: &str) -> Vec<String> {
    advance(server, 0);
    let sent = ok(&server.get(&format!("{HOST}/test/outbound?to={to}")));
    let sent = sent["messages"].as_array().expect("a list").iter();
    let texts = sent.filter_map(|message| message["text"].as_str());
    texts.map(str::to_owned).collect()
}

fn advance(server: &Server, seconds: u64) {
    let body = json!({"advanceSeconds": seconds}).to_string();
    let moved = ok(&server.post(&format!("{HOST}/test/clock"), &[], &body));
    assert_eq!(moved["settled"], true, "{moved}");
}

/// Z-241 (half: an edited draft)
#[test]
fn text_of_the_agent_waits_for_a_person_who_may_change_it() {
    let server = desk();
    let session = send(&server, "u1", "hi")["sessionId"].clone();
    let mode = format!("{HOST}/sessions/{}/mode", session.as_str().expect("an id"));
    let held = json!({"agentMode": "draft_only"}).to_string();
    assert_eq!(read(&server.post(&mode, &[], &held)).0, 401, "nobody");
    ok(&server.post(&mode, &[BOSS], &held));
    assert_eq!(texts(&send(&server, "u1", "more")), [""; 0]);
    let [question] = &open_questions(&server)[..] else {
        panic!("one text is held");
    };
    assert_eq!(question["sessionId"], session);
    let of_session = session.as_str().expect("an id");
    let listed = server.get(&format!(
        "{HOST}/interrupts?status=open&sessionId={of_session}"
    ));
    assert_eq!(
        ok(&listed)["interrupts"][0]["interruptId"],
        question["interruptId"]
    );
    assert_eq!(question["data"]["artifactData"]["text"], "model speaks");
    let edit = json!({"action": "edit-accept", "editedArtifactData": {"text": "Ana writes"}});
    assert_eq!(resolve(&server, question, &edit).0, 200);
    let (status, late) = resolve(&server, question, &json!({"action": "accept"}));
    assert_eq!(
        (status, &late["details"]["decidedBy"]),
        (409, &json!("ana"))
    );
    assert_eq!(delivered(&server, "u1"), ["model speaks", "Ana writes"]);
    let messages = format!(
        "{HOST}/sessions/{}/messages",
        session.as_str().expect("an id")
    );
    let messages = ok(&server.get(&messages));
    let last = messages["messages"].as_array().and_then(|m| m.last());
    let author = &last.expect("a message")["author"];
    assert_eq!(*author, json!({"kind": "human", "actorId": "ana"}));
}

/// An admin command with a target runs in that session and is recorded there.
/// Z-27 (half: a user as target), Z-256 (half: the log of the target session)
#[test]
fn admin_command_acts_on_the_session_it_names() {
    let server = desk();
    let session = send(&server, "u1", "hi")["sessionId"].clone();
    let answer = send(&server, "ana-phone", "/vip u1 gold");
    assert_eq!(answer["sessionId"], Value::Null, "not the admin's session");
    assert_eq!(texts(&answer), ["Marked: gold"]);
    let session = session.as_str().expect("an id");
    let keys = ok(&server.get(&format!("{HOST}/sessions/{session}/kv")));
    assert_eq!(keys["vip"], "ana");
    let refused = send(&server, "u2", "/vip u1 gold");
    assert_eq!(texts(&refused), ["You cannot use this command."]);
    let events = ok(&server.get(&format!("{HOST}/sessions/{session}/events?after=-1")));
    let events = events["events"].as_array().expect("events").iter();
    let rights = events.filter_map(|event| event["type"].as_str());
    let rights: Vec<&str> = rights.filter(|t| t.starts_with("admin.authz")).collect();
    assert_eq!(rights, ["admin.authz.granted", "admin.authz.denied"]);
}

/// Z-203 (half: a question of the user is answered for them only by the right to do so)
#[test]
fn question_of_the_user_is_answered_by_somebody_with_the_right() {
    let server = desk();
    assert_eq!(texts(&send(&server, "u1", "start asks")), ["Name?"]);
    let [question] = &open_questions(&server)[..] else {
        panic!("one question is open");
    };
    let value = json!({"answers": {"name": "Bob"}});
    let id = question["interruptId"].as_str().expect("an id");
    let path = format!("{HOST}/interrupts/{id}:resolve");
    let body = json!({"resumeValue": value}).to_string();
    assert_eq!(read(&server.post(&path, &[], &body)).0, 401);
    assert_eq!(resolve(&server, question, &json!({"answers": {}})).0, 400);
    assert_eq!(resolve(&server, question, &value).0, 200);
    assert_eq!(delivered(&server, "u1"), ["Name?", "Hello Bob"]);
}

/// Z-242 (half: reminders)
#[test]
fn unanswered_question_is_repeated_until_it_is_answered() {
    let server = desk();
    send(&server, "u1", "start asks");
    advance(&server, 61);
    assert_eq!(delivered(&server, "u1"), ["Name?", "Still there?"]);
    assert_eq!(texts(&send(&server, "u1", "Eve")), ["Hello Eve"]);
    send(&server, "u2", "start asks");
    send(&server, "u2", "Ada");
    advance(&server, 61);
    assert_eq!(delivered(&server, "u2"), ["Name?", "Hello Ada"]);
}

/// §10.8: a flow starts a workflow once, also over a crash, and goes on when it ends.
#[test]
fn flow_waits_for_the_workflow_it_started() {
    let mut server = desk();
    ok(&server.request_as(KEY, "PUT", &format!("{HOST}/workflows/gate"), GATE));
    send(&server, "u1", "start works");
    let gates = |server: &Server| {
        let questions = open_questions(server).into_iter();
        let gates = questions.filter(|q| q["kind"] == "approval");
        gates.collect::<Vec<Value>>()
    };
    assert_eq!(gates(&server).len(), 1);
    let crash = json!({"point": "after_commit"}).to_string();
    advance(&server, 0);
    ok(&server.post(&format!("{HOST}/test/crash"), &[], &crash));
    let message = json!({"messageId": "m-crash", "from": "u2", "body": "start works"});
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    server.try_post(&path, &message.to_string());
    server.wait_for_crash();
    server.start_again();
    advance(&server, 0);
    let open = gates(&server);
    assert_eq!(open.len(), 2, "one workflow for each conversation");
    for gate in &open {
        assert_eq!(resolve(&server, gate, &json!({"action": "accept"})).0, 200);
    }
    for user in ["u1", "u2"] {
        assert_eq!(delivered(&server, user), ["The workflow completed"]);
    }
}

/// Z-245 (half: the keyword)
#[test]
fn user_leaves_for_a_person_without_a_flow() {
    let server = desk();
    send(&server, "u1", "hi");
    send(&server, "u1", "human");
    let [question] = &open_questions(&server)[..] else {
        panic!("one escalation is open");
    };
    assert_eq!(question["data"]["artifactType"], "escalation");
    assert_eq!(
        resolve(&server, question, &json!({"action": "accept"})).0,
        200
    );
    assert_eq!(open_questions(&server).len(), 0);
}

/// An ended conversation is gone when its retention is over; another begins anew.
#[test]
fn ended_conversation_is_purged_after_its_retention() {
    let server = desk();
    let session = send(&server, "u1", "hi")["sessionId"].clone();
    let path = format!("{HOST}/sessions/{}", session.as_str().expect("an id"));
    ok(&server.post(&format!("{path}/end"), &[], "{}"));
    advance(&server, 1_800);
    assert!(ok(&server.get(&path))["endedAt"].is_string());
    advance(&server, 3_600);
    for read in ["", "/messages", "/events?after=-1", "/kv"] {
        assert_eq!(
            read_status(&server, &format!("{path}{read}")),
            404,
            "{read}"
        );
    }
    server.eventually("the session is purged", || {
        let listed = ok(&server.get(&format!("{HOST}/sessions")));
        listed["sessions"].as_array().is_some_and(Vec::is_empty)
    });
    let again = send(&server, "u1", "hi again");
    assert_ne!(again["sessionId"], session);
}

fn read_status(server: &Server, path: &str) -> u16 {
    read(&server.get(path)).0
}

/// §10.1: a flow run is cancelled like any run, by the right to manage flows. It cannot be paused or resumed, and
/// nothing but its conversation changes it.
#[test]
fn flow_run_is_cancelled_through_its_conversation() {
    let server = desk();
    let session = send(&server, "u1", "start asks")["sessionId"].clone();
    let session = format!("{HOST}/sessions/{}", session.as_str().expect("an id"));
    let flow = ok(&server.get(&session))["flow"].clone();
    let run = flow["flowRunId"].as_str().expect("a run").to_owned();
    for refused in [":pause", ":resume"] {
        let path = format!("/v1/runs/{run}{refused}");
        let (status, problem) = read(&server.post(&path, &[BOSS], "{}"));
        assert_eq!(
            (status, &problem["error"]),
            (409, &json!("conflict")),
            "{refused}"
        );
    }
    let cancel = format!("/v1/runs/{run}/cancel");
    assert_eq!(read(&server.post(&cancel, &[], "{}")).0, 401, "nobody");
    let cancelled = ok(&server.post(&cancel, &[BOSS], "{}"));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(ok(&server.get(&session))["flow"], Value::Null);
    assert_eq!(
        ok(&server.get(&format!("/v1/runs/{run}")))["status"],
        "cancelled"
    );
    assert_eq!(texts(&send(&server, "u1", "hello")), ["model speaks"]);
    let again = ok(&server.post(&cancel, &[BOSS], "{}"));
    assert_eq!(again["alreadyTerminal"], true);
}

/// Z-59 (half: a call that must not be repeated is not repeated after a crash; the flow is told)
#[test]
fn interrupted_call_of_a_tool_that_must_not_be_repeated_has_an_unknown_outcome() {
    let mut server = desk();
    let crash = json!({"point": "after_tool_call"}).to_string();
    ok(&server.post(&format!("{HOST}/test/crash"), &[], &crash));
    let message = json!({"messageId": "m-1", "from": "u1", "body": "start once"});
    let path = format!("{HOST}/agents/desk/inbound?wait=true");
    server.try_post(&path, &message.to_string());
    server.wait_for_crash();
    server.start_again();
    assert_eq!(delivered(&server, "u1"), ["outcome_unknown"]);
    let calls = ok(&server.get(&format!("{HOST}/test/tools/desk")));
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(1));
}

/// Z-203 (half: links of conversations show, and do not decide. A decided question says so by the route of runs too)
#[test]
fn question_of_a_flow_is_not_decided_by_a_link() {
    let server = desk();
    send(&server, "u1", "start asks");
    let [question] = &open_questions(&server)[..] else {
        panic!("one question is open");
    };
    let run = question["runId"].as_str().expect("a run").to_owned();
    let snapshot = ok(&server.get(&format!("/v1/runs/{run}")));
    let token = snapshot["interrupt"]["interruptToken"]
        .as_str()
        .expect("a token");
    let value = json!({"resumeValue": {"answers": {"name": "Eve"}}}).to_string();
    let (status, problem) = read(&server.post(&format!("/v1/interrupts/{token}"), &[], &value));
    assert_eq!(
        (status, &problem["error"]),
        (403, &json!("auth_elevation_required"))
    );
    let wrong = json!({"answers": {"name": 5}});
    assert_eq!(resolve(&server, question, &wrong).0, 400, "not a text");
    assert_eq!(texts(&send(&server, "u1", "Ada")), ["Hello Ada"]);
    let node = question["nodeId"].as_str().expect("a node");
    let path = format!("/v1/runs/{run}/interrupts/{node}");
    let (status, problem) = read(&server.post(&path, &[BOSS], &value));
    assert_eq!(
        (status, &problem["error"]),
        (409, &json!("interrupt_already_resolved"))
    );
}
