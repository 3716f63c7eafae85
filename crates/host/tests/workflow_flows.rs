//! Workflows that hold conversations, with the real binary: a node starts a flow and waits for its end.

mod server;

use serde_json::{Value, json};
use server::{KEY, Server};

const HOST: &str = "/v1/host/tandem";
const KEY_OF_TENANT2: &str = "a-key-of-tenant2-0123456789";

const AGENT: &str = r"
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You run a desk.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'model speaks' } } },
  rateLimitPerUserPerMinute: 1000,
  adminAuth: {
    tokens: [{ hash: 'sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve', 'flow.manage', 'command.answer_for_user'] },
  },
  tools: [{ name: 'pay', kind: 'record', returns: { ok: true } }],
  beforeLLM: (input) => {
    const m = /^start (\w+)$/.exec(input.text);
    if (m) return { action: 'route_flow', flowId: m[1] };
  },
  flows: {
    survey: {
      inputSchema: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] },
      run: async function* (ctx) {
        const score = yield { type: 'ask', key: 'score', text: 'How was ' + ctx.input.topic + '?' };
        yield { type: 'say', text: 'Thanks' };
        return { reason: 'asked', score };
      },
    },
    sure: async function* () {
      const yes = yield { type: 'interrupt.confirm', question: 'Sure?' };
      yield { type: 'say', text: yes ? 'Good' : 'Pity' };
    },
    breaks: async function* () { throw new Error('no luck'); },
    again: async function* () {
      try {
        yield { type: 'workflow.run', workflowId: 'again', wait: false };
      } catch (error) {
        yield { type: 'say', text: 'refused: ' + error.code };
      }
    },
  },
});
";

/// A workflow with one node that talks to somebody.
fn talking(id: &str, config: &Value) -> String {
    let document = json!({
        "id": id, "name": id, "version": "1.0.0",
        "nodes": [{"id": "talk", "typeId": "vendor.tandem.flow", "name": "talk",
            "position": {"x": 0, "y": 0}, "config": config, "inputs": {}}],
        "edges": [], "triggers": [{"id": "t", "type": "manual"}], "variables": [],
        "metadata": {}, "settings": {},
    });
    document.to_string()
}

fn survey(target: &Value) -> Value {
    json!({"agentId": "desk", "flowId": "survey", "target": target, "input": {"topic": "lunch"}})
}

fn with(mut config: Value, key: &str, value: Value) -> Value {
    config[key] = value;
    config
}

struct Desk {
    server: Server,
}

impl Desk {
    fn new() -> Self {
        Self {
            server: Server::with_agent_for_two_tenants("desk", AGENT, KEY_OF_TENANT2),
        }
    }

    fn say(&self, from: &str, text: &str) -> Value {
        let id = uuid::Uuid::new_v4().to_string();
        let body = json!({"messageId": id, "from": from, "body": text}).to_string();
        let path = format!("{HOST}/agents/desk/inbound?wait=true");
        ok(&self.server.post(&path, &[], &body))
    }

    /// Registers and starts a workflow, and returns its run.
    fn start(&self, key: &str, id: &str, config: &Value) -> String {
        let path = format!("{HOST}/workflows/{id}");
        ok(&self
            .server
            .request_as(key, "PUT", &path, &talking(id, config)));
        let body = json!({"workflowId": id}).to_string();
        let run = ok(&self.server.request_as(key, "POST", "/v1/runs", &body));
        self.settle();
        run["runId"].as_str().expect("a run").to_owned()
    }

    fn settle(&self) {
        self.advance(0);
    }

    fn advance(&self, seconds: u64) {
        let body = json!({"advanceSeconds": seconds}).to_string();
        let moved = ok(&self.server.post(&format!("{HOST}/test/clock"), &[], &body));
        assert_eq!(moved["settled"], true, "{moved}");
    }

    fn run(&self, run: &str) -> Value {
        ok(&self.server.get(&format!("/v1/runs/{run}")))
    }

    /// The code with which a run failed.
    fn failure(&self, key: &str, run: &str) -> Value {
        let path = format!("/v1/runs/{run}");
        let run = ok(&self.server.request_as(key, "GET", &path, ""));
        assert_eq!(run["status"], "failed", "{run}");
        run["error"]["code"].clone()
    }

    /// What the node gave.
    fn outputs(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}/events/poll");
        let events = ok(&self.server.get(&path))["events"].clone();
        let events = events.as_array().expect("events").iter();
        let mut done = events.filter(|event| event["type"] == "node.completed");
        let done = done
            .next()
            .unwrap_or_else(|| panic!("no node of {run} completed"));
        done["payload"]["outputs"].clone()
    }

    fn session(&self, id: &Value) -> Value {
        let id = id.as_str().expect("a session");
        ok(&self.server.get(&format!("{HOST}/sessions/{id}")))
    }

    fn sent(&self, to: &str) -> Vec<String> {
        self.settle();
        let sent = ok(&self.server.get(&format!("{HOST}/test/outbound?to={to}")));
        let sent = sent["messages"].as_array().expect("a list").iter();
        let texts = sent.filter_map(|message| message["text"].as_str());
        texts.map(str::to_owned).collect()
    }
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

/// §10.8, Z-44 (half: the start by a node): the node waits for the flow, which is its child, and only the flow ends
/// the wait.
#[test]
fn workflow_asks_a_user_and_goes_on_with_the_answer() {
    let desk = Desk::new();
    let session = desk.say("u1", "hi")["sessionId"].clone();
    let run = desk.start(KEY, "ask", &survey(&json!({"userExternalId": "u1"})));
    let waiting = desk.run(&run);
    assert_eq!(waiting["status"], "waiting-external", "{waiting}");
    let flow = desk.session(&session)["flow"].clone();
    let flow_run = flow["flowRunId"].as_str().expect("a flow run").to_owned();
    assert_eq!(
        (&flow["flowId"], &flow["pausedOn"]),
        (&json!("survey"), &json!("ask"))
    );
    let interrupt = &waiting["interrupt"];
    assert_eq!(interrupt["kind"], "external-event", "{waiting}");
    assert_eq!(
        interrupt["data"]["correlation"],
        json!({"flowRunId": flow_run})
    );

    let path = format!("/v1/runs/{run}/interrupts/talk");
    let answer = json!({"resumeValue": {"status": "completed"}}).to_string();
    let (status, problem) = read(&desk.server.post(&path, &[], &answer));
    assert_eq!(
        (status, &problem["error"]),
        (409, &json!("conflict")),
        "{problem}"
    );

    let parent = ok(&desk.server.get(&format!("/v1/runs/{flow_run}/ancestry")))["parent"].clone();
    assert_eq!(parent["runId"], json!(run));
    let children = ok(&desk.server.get(&format!("/v1/runs?parentRunId={run}")));
    assert_eq!(children["runs"][0]["runId"], json!(flow_run));

    desk.say("u1", "7");
    desk.settle();
    assert_eq!(desk.run(&run)["status"], "completed");
    assert_eq!(
        desk.outputs(&run),
        json!({"flowRunId": flow_run, "status": "completed", "reason": "asked",
            "result": {"reason": "asked", "score": "7"}, "answers": {"score": "7"}})
    );
    assert_eq!(
        desk.sent("u1"),
        ["model speaks", "How was lunch?", "Thanks"]
    );
}

/// §10.8: how a flow ends is the result of the node.
#[test]
fn failed_flow_and_a_timeout_are_results() {
    let desk = Desk::new();
    desk.say("u1", "hi");
    let target = json!({"userExternalId": "u1"});
    let breaks = json!({"agentId": "desk", "flowId": "breaks", "target": target});
    let run = desk.start(KEY, "breaks", &breaks);
    let outputs = desk.outputs(&run);
    assert_eq!(
        (&outputs["status"], &outputs["reason"]),
        (&json!("failed"), &json!("exception"))
    );
    let timed = with(survey(&target), "timeoutSeconds", json!(60));
    let run = desk.start(KEY, "timed", &timed);
    desk.advance(61);
    let outputs = desk.outputs(&run);
    assert_eq!(outputs["status"], "timed_out");
    let path = format!("/v1/runs/{}", outputs["flowRunId"].as_str().expect("a run"));
    assert_eq!(
        ok(&desk.server.get(&path))["status"],
        "cancelled",
        "nobody waits for it"
    );
}

/// §10.8
#[test]
fn cancelled_workflow_cancels_its_flow_even_if_it_only_waits_for_its_place() {
    let desk = Desk::new();
    let session = desk.say("u1", "hi")["sessionId"].clone();
    let target = json!({"userExternalId": "u1"});
    let first = desk.start(KEY, "first", &survey(&target));
    let second = desk.start(KEY, "second", &survey(&target));
    let flow_run = desk.session(&session)["flow"]["flowRunId"].clone();
    for run in [&second, &first] {
        let path = format!("/v1/runs/{run}/cancel");
        assert_eq!(
            ok(&desk.server.post(&path, &[], "{}"))["status"],
            "cancelled"
        );
        desk.settle();
    }
    assert_eq!(desk.session(&session)["flow"], Value::Null);
    let path = format!("/v1/runs/{}", flow_run.as_str().expect("a run"));
    assert_eq!(ok(&desk.server.get(&path))["status"], "cancelled");
    assert_eq!(
        desk.sent("u1"),
        ["model speaks", "How was lunch?"],
        "the second never began"
    );
}

/// §10.8: the rules are those of schedules: an open question is never cut off.
#[test]
fn active_flow_makes_the_workflow_wait_fail_or_preempt() {
    let desk = Desk::new();
    let session = desk.say("u1", "start sure")["sessionId"].clone();
    let base = survey(&json!({"sessionId": session}));
    let refused = ["fail", "preempt"].map(|policy| {
        let config = with(base.clone(), "onActiveFlow", json!(policy));
        desk.start(KEY, policy, &config)
    });
    for run in &refused {
        assert_eq!(desk.failure(KEY, run), "flow_active");
    }
    let waits = desk.start(KEY, "waits", &base);
    assert_eq!(desk.session(&session)["flow"]["flowId"], "sure");
    desk.say("u1", "yes");
    desk.settle();
    assert_eq!(desk.session(&session)["flow"]["flowId"], "survey");
    assert_eq!(desk.run(&waits)["status"], "waiting-external");
    let preempts = with(base, "onActiveFlow", json!("preempt"));
    let preempts = desk.start(KEY, "preempts", &preempts);
    assert_eq!(
        desk.outputs(&waits)["reason"],
        "preempted",
        "it merely asked"
    );
    desk.say("u1", "8");
    desk.settle();
    assert_eq!(desk.outputs(&preempts)["answers"]["score"], "8");
}

/// §10.8: what is wrong is said with a code of its own.
#[test]
fn flow_that_cannot_begin_fails_its_node_with_the_reason() {
    let desk = Desk::new();
    desk.say("u1", "hi");
    let base = survey(&json!({"userExternalId": "u1"}));
    let cases = [
        ("agentId", json!("nobody"), "agent_not_found"),
        ("flowId", json!("nothing"), "flow_not_found"),
        ("input", json!({"topic": 5}), "invalid_input"),
        (
            "target",
            json!({"userExternalId": "u2"}),
            "bootstrap_disabled",
        ),
        (
            "target",
            json!({"sessionId": "ses-none"}),
            "session_not_found",
        ),
    ];
    for (at, (key, value, code)) in cases.into_iter().enumerate() {
        let run = desk.start(KEY, &format!("wrong{at}"), &with(base.clone(), key, value));
        assert_eq!(desk.failure(KEY, &run), code);
    }
    assert_eq!(desk.sent("u1"), ["model speaks"]);
    let wrong = talking("wrong", &with(base, "onActiveFlow", json!("defer")));
    let path = format!("{HOST}/workflows/wrong");
    let (status, problem) = read(&desk.server.request_as(KEY, "PUT", &path, &wrong));
    assert_eq!(status, 400);
    assert_eq!(
        problem["details"]["errors"][0]["path"],
        "/nodes/0/config/onActiveFlow"
    );
}

/// §10.8, Z-168 (half: of workflows): a user without a session is addressed only if the node may begin one.
#[test]
fn workflow_may_address_a_user_first() {
    let desk = Desk::new();
    let config = survey(&json!({"userExternalId": "new"}));
    let config = with(config, "allowSessionBootstrap", json!(true));
    let run = desk.start(KEY, "first", &config);
    assert_eq!(desk.sent("new"), ["How was lunch?"]);
    desk.say("new", "9");
    desk.settle();
    assert_eq!(desk.outputs(&run)["answers"]["score"], "9");
}

/// A workflow reaches conversations of its own tenant only.
#[test]
fn workflow_of_another_tenant_reaches_no_session() {
    let desk = Desk::new();
    let session = desk.say("u1", "hi")["sessionId"].clone();
    let by_session = survey(&json!({"sessionId": session}));
    let run = desk.start(KEY_OF_TENANT2, "by-session", &by_session);
    assert_eq!(desk.failure(KEY_OF_TENANT2, &run), "session_not_found");
    let by_user = survey(&json!({"userExternalId": "u1"}));
    let run = desk.start(KEY_OF_TENANT2, "by-user", &by_user);
    assert_eq!(desk.failure(KEY_OF_TENANT2, &run), "bootstrap_disabled");
    assert_eq!(desk.session(&session)["flow"], Value::Null);
}

/// §10.8: replays and forks use the recorded result, and the user hears nothing again.
#[test]
fn forks_of_the_workflow_talk_to_nobody() {
    let desk = Desk::new();
    desk.say("u1", "hi");
    let run = desk.start(KEY, "ask", &survey(&json!({"userExternalId": "u1"})));
    desk.say("u1", "7");
    desk.settle();
    let recorded = desk.outputs(&run);
    for mode in ["replay", "branch"] {
        let body = json!({"mode": mode, "fromSeq": 0}).to_string();
        let fork = ok(&desk
            .server
            .post(&format!("/v1/runs/{run}:fork"), &[], &body));
        desk.settle();
        let fork = fork["runId"].as_str().expect("a run").to_owned();
        assert_eq!(desk.run(&fork)["status"], "completed", "{mode}");
        assert_eq!(desk.outputs(&fork), recorded, "{mode}");
    }
    assert_eq!(
        desk.sent("u1"),
        ["model speaks", "How was lunch?", "Thanks"]
    );
}

/// §10.8, Z-190 (half: the start of a flow by a node): a crash neither loses nor repeats it.
#[test]
fn crash_while_a_flow_begins_or_ends_loses_and_repeats_nothing() {
    let mut desk = Desk::new();
    desk.say("u1", "hi");
    let arm = |desk: &Desk, point: &str| {
        desk.settle();
        let body = json!({"point": point}).to_string();
        ok(&desk.server.post(&format!("{HOST}/test/crash"), &[], &body));
    };
    let config = survey(&json!({"userExternalId": "u1"}));
    let path = format!("{HOST}/workflows/ask");
    ok(&desk
        .server
        .request_as(KEY, "PUT", &path, &talking("ask", &config)));
    arm(&desk, "after_commit");
    desk.server
        .try_post("/v1/runs", &json!({"workflowId": "ask"}).to_string());
    desk.server.wait_for_crash();
    desk.server.start_again();
    desk.settle();
    let run = desk.server.only_run("ask", "waiting-external");
    arm(&desk, "before_commit");
    let message = json!({"messageId": "m-1", "from": "u1", "body": "7"}).to_string();
    desk.server
        .try_post(&format!("{HOST}/agents/desk/inbound?wait=true"), &message);
    desk.server.wait_for_crash();
    desk.server.start_again();
    desk.settle();
    assert_eq!(desk.outputs(&run)["answers"]["score"], "7");
    assert_eq!(
        desk.sent("u1"),
        ["model speaks", "How was lunch?", "Thanks"]
    );
}

/// Without a limit, a workflow and a flow that start each other would go on for ever.
#[test]
fn workflows_and_flows_start_each_other_to_a_limited_depth() {
    let desk = Desk::new();
    desk.say("u1", "hi");
    let target = json!({"userExternalId": "u1"});
    let again = json!({"agentId": "desk", "flowId": "again", "target": target});
    desk.start(KEY, "again", &again);
    assert_eq!(
        desk.sent("u1"),
        ["model speaks", "refused: subworkflow_depth_exceeded"]
    );
    let runs = ok(&desk.server.get("/v1/runs?workflowId=again&limit=100"));
    assert_eq!(runs["runs"].as_array().expect("a list").len(), 32);
}
