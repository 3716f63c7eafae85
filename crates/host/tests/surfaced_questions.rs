//! Questions of workflows that a conversation shows, with the real binary: `workflow.run` with `surfaceInterrupts`.

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
  adminAuth: {
    tokens: [{ hash: 'sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve'] },
  },
  beforeLLM: (input) => {
    const m = /^start (\w+)$/.exec(input.text);
    if (m) return { action: 'route_flow', flowId: 'run', input: m[1] };
  },
  flows: {
    run: async function* (ctx) {
      const done = yield { type: 'workflow.run', workflowId: ctx.input, surfaceInterrupts: true };
      yield { type: 'say', text: done.status + ' ' + JSON.stringify(done.output ?? null) };
    },
  },
});
";

fn ok(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response");
    assert!(head.starts_with("HTTP/1.1 20"), "{answer}");
    serde_json::from_str(body).expect("a JSON body")
}

struct Desk {
    server: Server,
}

impl Desk {
    fn new() -> Self {
        let server = Server::with_agent_and_seams("desk", "agent.ts", AGENT);
        let desk = Self { server };
        let integer = json!({"type": "integer", "minimum": 1});
        let questions = json!([
            {"id": "size", "question": "How many?", "schema": integer},
            {"id": "name", "question": "For whom?"},
        ]);
        desk.register(
            "order",
            "core.clarificationGate",
            &json!({ "questions": questions }),
        );
        desk.register("ship", "core.approvalGate", &json!({"title": "Ship it?"}));
        desk
    }

    /// A workflow with one node that asks something.
    fn register(&self, id: &str, type_id: &str, config: &Value) {
        let document = json!({
            "id": id, "name": id, "version": "1.0.0",
            "nodes": [{"id": "ask", "typeId": type_id, "name": "ask",
                "position": {"x": 0, "y": 0}, "config": config, "inputs": {}}],
            "edges": [], "triggers": [{"id": "t", "type": "manual"}], "variables": [],
            "metadata": {}, "settings": {},
        });
        let path = format!("{HOST}/workflows/{id}");
        ok(&self
            .server
            .request_as(KEY, "PUT", &path, &document.to_string()));
    }

    fn say(&self, text: &str) -> Value {
        let id = uuid::Uuid::new_v4().to_string();
        let body = json!({"messageId": id, "from": "ann", "body": text}).to_string();
        let path = format!("{HOST}/agents/desk/inbound?wait=true");
        let told = ok(&self.server.post(&path, &[], &body));
        self.settle();
        told
    }

    fn settle(&self) {
        let body = json!({"advanceSeconds": 2}).to_string();
        let moved = ok(&self.server.post(&format!("{HOST}/test/clock"), &[], &body));
        assert_eq!(moved["settled"], true, "{moved}");
    }

    fn get(&self, path: &str) -> Value {
        ok(&self.server.get(path))
    }

    fn sent(&self) -> Vec<String> {
        let sent = self.get(&format!("{HOST}/test/outbound?to=ann"));
        let sent = sent["messages"].as_array().expect("a list").iter();
        let texts = sent.filter_map(|message| message["text"].as_str());
        texts.map(str::to_owned).collect()
    }

    /// The workflow that asks.
    fn run(&self, workflow: &str) -> String {
        let runs = self.get("/v1/host/tandem/runs");
        let runs = runs["runs"].as_array().expect("runs").iter();
        let mut of = runs.filter(|run| run["workflowId"] == workflow);
        let run = of.next().expect("it was started");
        run["runId"].as_str().expect("an id").to_owned()
    }

    /// The only escalation of the session.
    fn escalation(&self, session: &str) -> Value {
        let path = format!("{HOST}/escalations?sessionId={session}");
        let found = ok(&self.server.get_with(&path, &[BOSS]));
        let found = found["escalations"].as_array().expect("a list").clone();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }
}

/// Z-220 (half: a clarification is put to the user, part by part, and the user's answers are the workflow's)
#[test]
fn clarification_of_a_workflow_is_a_question_to_the_user() {
    let desk = Desk::new();
    desk.say("start order");
    assert_eq!(desk.sent(), ["How many?"]);
    desk.say("many");
    assert_eq!(desk.sent().len(), 2, "asked again: {:?}", desk.sent());
    desk.say("12");
    desk.say("Ben");
    let sent = desk.sent();
    assert_eq!(sent[1..3], ["How many?", "For whom?"]);
    assert_eq!(
        sent[3..],
        [r#"completed {"answers":{"name":"Ben","size":12}}"#]
    );
}

/// Z-220 (half: an answer in the inbox closes the question to the user too)
#[test]
fn clarification_that_is_answered_in_the_inbox_is_closed_in_the_conversation() {
    let desk = Desk::new();
    desk.say("start order");
    let path = format!("/v1/runs/{}/interrupts/ask", desk.run("order"));
    let body = json!({"resumeValue": {"answers": {"size": 3, "name": "Eve"}}}).to_string();
    ok(&desk.server.post(&path, &[], &body));
    desk.settle();
    let sent = desk.sent();
    assert_eq!(
        sent[1..],
        [r#"completed {"answers":{"name":"Eve","size":3}}"#]
    );
    desk.say("12");
    assert_eq!(desk.sent().last().map(String::as_str), Some("model speaks"));
}

/// Z-220 (half: an approval is an escalation of the session, and its decision is the workflow's)
#[test]
fn approval_of_a_workflow_is_an_escalation() {
    let desk = Desk::new();
    for (approved, status) in [(true, "accepted"), (false, "rejected")] {
        let told = desk.say("start ship");
        let session = told["sessionId"].as_str().expect("a session").to_owned();
        let listed = desk.escalation(&session);
        assert_eq!(listed["reason"], "Ship it?");
        let id = listed["id"].as_str().expect("an id");
        let path = format!("{HOST}/escalations/{id}/resolve");
        let body = json!({ "approved": approved, "message": "seen" }).to_string();
        ok(&desk.server.post(&path, &[BOSS], &body));
        desk.settle();
        let run = desk.run("ship");
        let events = desk.get(&format!("/v1/runs/{run}/events/poll"));
        let events = events["events"].as_array().expect("events").clone();
        let resolved = events
            .iter()
            .find(|event| event["type"] == "interrupt.resolved")
            .unwrap_or_else(|| panic!("{status}: {events:?}"));
        assert_eq!(resolved["payload"]["outcome"], status, "{resolved}");
        let path = format!("{HOST}/sessions/{session}/end");
        ok(&desk.server.post(&path, &[], ""));
        desk.settle();
    }
}

/// Z-220 (half: a decision in the inbox resolves the escalation)
#[test]
fn approval_that_is_decided_in_the_inbox_resolves_the_escalation() {
    let desk = Desk::new();
    let told = desk.say("start ship");
    let session = told["sessionId"].as_str().expect("a session").to_owned();
    let path = format!("/v1/runs/{}/interrupts/ask", desk.run("ship"));
    let body = json!({"resumeValue": {"action": "accept"}}).to_string();
    ok(&desk.server.post(&path, &[], &body));
    desk.settle();
    let closed = desk.escalation(&session);
    assert_eq!(closed["status"], "resolved", "{closed}");
    assert_eq!(closed["resolution"]["approved"], true);
    assert_eq!(closed["resolution"]["channel"], "workflow");
    assert!(desk.sent().last().expect("a text").starts_with("completed"));
}
