//! Calls every operation of the API with the ids of one workspace and a key of another.

use crate::test_server::{TestServer, chain, noop};
use crate::workspaces::{MARK, bound, create, gate, memory_put, register, send};
use serde_json::{Value, json};

const KEYS: &str = "/v1/host/tandem/keys";
const HOOKS: &str = "/v1/webhooks";

/// The expected result when a key of another workspace requests a resource of this one.
enum Expected {
    /// 403 or 404. With `true` the owner gets 200, which proves that the resource exists.
    Refused(bool),
    /// The response covers only the caller's own workspace.
    OwnDataOnly,
    /// Not specific to a workspace, for the given reason.
    Shared(&'static str),
}
use Expected::{OwnDataOnly, Refused, Shared};

const HOST: &str = "the host's own";
const SEAM: &str = "test seams act on the whole host";
const PEOPLE: &str = "groups hold for the whole tenant";
const AGENTS: &str = "agents are the host's; their conversations are not";
const LINK: &str = "the token is the credential";

/// A new operation must be added here with its expected result.
const OPERATIONS: &[(&str, Expected)] = &[
    ("GET /.well-known/openwop", Shared(HOST)),
    ("GET /healthz", Shared(HOST)),
    ("GET /readyz", Shared(HOST)),
    ("GET /metrics", Shared(HOST)),
    ("GET /v1/openapi.json", Shared(HOST)),
    ("GET /v1/host/tandem/vendor-kinds", Shared(HOST)),
    ("GET /v1/audit/verify", Shared("hashes of the host's chain")),
    ("GET /v1/host/tandem/audit/export", Refused(false)),
    ("GET /v1/host/tandem/storage", Refused(false)),
    ("POST /v1/runs", Refused(false)),
    ("GET /v1/runs", OwnDataOnly),
    ("GET /v1/host/tandem/runs", OwnDataOnly),
    ("GET /v1/runs/{runId}", Refused(true)),
    ("GET /v1/runs/{runId}/events", Refused(false)),
    ("GET /v1/runs/{runId}/events/poll", Refused(true)),
    ("POST /v1/runs/{runId}/cancel", Refused(false)),
    ("POST /v1/runs:bulk-cancel", OwnDataOnly),
    ("POST /v1/runs/{runId}:pause", Refused(false)),
    ("POST /v1/runs/{runId}:resume", Refused(false)),
    ("POST /v1/runs/{runId}:fork", Refused(false)),
    ("GET /v1/runs/{runId}:diff", Refused(true)),
    (
        "GET /v1/runs/{runId}/artifacts/{artifactId}",
        Refused(false),
    ),
    ("GET /v1/runs/{runId}/debug-bundle", Refused(true)),
    ("GET /v1/runs/{runId}/ancestry", Refused(true)),
    ("GET /v1/host/tandem/runs/{runId}/memory", Refused(true)),
    ("POST /v1/host/tandem/runs/{runId}/events", Refused(false)),
    (
        "POST /v1/host/tandem/runs/{runId}/divergence",
        Refused(false),
    ),
    ("POST /v1/runs/{runId}/interrupts/{nodeId}", Refused(false)),
    ("GET /v1/interrupts/{token}", Shared(LINK)),
    ("POST /v1/interrupts/{token}", Shared(LINK)),
    ("GET /v1/host/tandem/agents", Shared(AGENTS)),
    ("GET /v1/host/tandem/agents/{agentId}", Shared(AGENTS)),
    ("GET /v1/host/tandem/agents/{agentId}/ui", Shared(LINK)),
    ("GET /v1/host/tandem/agents/{agentId}/users", Refused(false)),
    (
        "GET /v1/host/tandem/agents/{agentId}/events",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/agents/{agentId}/inbound",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/agents/{agentId}/transports/{name}",
        Shared(LINK),
    ),
    (
        "GET /v1/host/tandem/agents/{agentId}/transports/{name}",
        Shared(LINK),
    ),
    ("GET /v1/host/tandem/transports/{id}/auth", Shared(AGENTS)),
    ("PATCH /v1/host/tandem/users/{userId}", Refused(false)),
    ("GET /v1/host/tandem/sessions", OwnDataOnly),
    ("GET /v1/host/tandem/sessions/{sessionId}", Refused(false)),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/events",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/journal",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/rebuild",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/compare-answers",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/kv",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/media/{mediaId}",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/messages",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/sessions/{sessionId}/outbox",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/takeover",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/takeover/messages",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/handback",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/end",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/mode",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/flows",
        Refused(false),
    ),
    (
        "DELETE /v1/host/tandem/sessions/{sessionId}/flows/active",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/sessions/{sessionId}/resolve",
        Refused(false),
    ),
    ("GET /v1/host/tandem/escalations", OwnDataOnly),
    (
        "GET /v1/host/tandem/escalations/{escalationId}",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/escalations/{escalationId}/resolve",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/escalations/{escalationId}/claim",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/escalations/{escalationId}/release",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/escalations/{escalationId}/assign",
        Refused(false),
    ),
    ("GET /v1/host/tandem/proxies", OwnDataOnly),
    ("GET /v1/host/tandem/proxies/{proxyId}", Refused(false)),
    (
        "POST /v1/host/tandem/proxies/{proxyId}/input",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/proxies/{proxyId}/stop",
        Refused(false),
    ),
    ("GET /v1/host/tandem/schedules", OwnDataOnly),
    ("POST /v1/host/tandem/schedules", Refused(false)),
    ("GET /v1/host/tandem/schedules/{scheduleId}", Refused(false)),
    (
        "PATCH /v1/host/tandem/schedules/{scheduleId}",
        Refused(false),
    ),
    (
        "DELETE /v1/host/tandem/schedules/{scheduleId}",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/schedules/{scheduleId}/pause",
        Refused(false),
    ),
    (
        "POST /v1/host/tandem/schedules/{scheduleId}/resume",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/schedules/{scheduleId}/runs",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/schedule-runs/{scheduleRunId}/recipients",
        Refused(false),
    ),
    ("GET /v1/host/tandem/audit", Refused(false)),
    ("GET /v1/host/tandem/test/outbound", Shared(SEAM)),
    ("POST /v1/host/tandem/test/transport", Shared(SEAM)),
    ("GET /v1/host/tandem/test/model/{agentId}", Shared(SEAM)),
    ("PUT /v1/host/tandem/test/model/{agentId}", Shared(SEAM)),
    ("GET /v1/host/tandem/test/tools/{agentId}", Shared(SEAM)),
    ("GET /v1/host/tandem/interrupts", OwnDataOnly),
    (
        "GET /v1/host/tandem/interrupts/{interruptId}",
        Refused(true),
    ),
    (
        "POST /v1/host/tandem/interrupts/{interruptId}:resolve",
        Refused(false),
    ),
    ("GET /v1/host/tandem/receipts/{interruptId}", Refused(true)),
    ("GET /v1/workflows/{workflowId}", Refused(true)),
    ("GET /v1/host/tandem/workflows", OwnDataOnly),
    ("GET /v1/host/tandem/workflows/{workflowId}", Refused(true)),
    ("PUT /v1/host/tandem/workflows/{workflowId}", Refused(false)),
    (
        "DELETE /v1/host/tandem/workflows/{workflowId}",
        Refused(false),
    ),
    ("POST /v1/workflows", OwnDataOnly),
    ("GET /v1/host/tandem/groups", Shared(PEOPLE)),
    ("GET /v1/host/tandem/groups/{name}", Shared(PEOPLE)),
    ("PUT /v1/host/tandem/groups/{name}", Refused(false)),
    ("DELETE /v1/host/tandem/groups/{name}", Refused(false)),
    ("GET /v1/host/tandem/delegations", OwnDataOnly),
    ("POST /v1/host/tandem/delegations", Refused(false)),
    (
        "DELETE /v1/host/tandem/delegations/{delegationId}",
        Refused(false),
    ),
    ("GET /v1/host/tandem/keys", OwnDataOnly),
    ("POST /v1/host/tandem/keys", Refused(false)),
    ("GET /v1/host/tandem/keys/{keyId}", Refused(true)),
    ("DELETE /v1/host/tandem/keys/{keyId}", Refused(false)),
    ("POST /v1/host/tandem/keys/{keyId}:rotate", Refused(false)),
    ("POST /v1/webhooks", Refused(false)),
    ("DELETE /v1/webhooks/{webhookId}", Refused(false)),
    ("GET /v1/host/tandem/webhooks", OwnDataOnly),
    ("GET /v1/host/tandem/webhooks/{webhookId}", Refused(true)),
    (
        "POST /v1/host/tandem/webhooks/{webhookId}:rotate",
        Refused(false),
    ),
    (
        "GET /v1/host/tandem/webhooks/{webhookId}/deliveries",
        Refused(true),
    ),
    (
        "POST /v1/host/tandem/webhooks/{webhookId}/deliveries/{number}/redeliver",
        Refused(false),
    ),
    ("GET /v1/host/tandem/parked", Refused(false)),
    (
        "POST /v1/host/tandem/parked/{subject}/retry",
        Refused(false),
    ),
    ("POST /v1/host/tandem/test/clock", Shared(SEAM)),
    ("POST /v1/host/tandem/test/crash", Shared(SEAM)),
    ("GET /v1/host/sample/test/otel/spans", Refused(true)),
    ("POST /v1/host/sample/test/mock-ai/program", Shared(SEAM)),
];

/// The request of an operation for the red workspace's resources: method, path and body.
fn request_for<'a>(operation: &'a str, other: &OtherWorkspace) -> (&'a str, String, Value) {
    let (method, template) = operation.split_once(' ').unwrap();
    let question = match template.contains("/receipts/") {
        true => &other.decided,
        false => &other.question,
    };
    let path = template
        .replace("{runId}", &other.run)
        .replace("{subject}", &format!("run:{}", other.run))
        .replace("{interruptId}", question)
        .replace("{webhookId}", &other.webhook)
        .replace("{keyId}", &other.key)
        .replace("{delegationId}", &other.delegation)
        .replace("{token}", &other.token)
        .replace("{nodeId}", "gate")
        .replace("{artifactId}", "a")
        .replace("{number}", "1")
        .replace("{name}", "team")
        .replace("{workflowId}", "red-flow")
        .replace("{agentId}", "demo")
        .replace("{userId}", "usr-red")
        .replace("{sessionId}", "ses-red")
        .replace("{mediaId}", "in-1")
        .replace("{escalationId}", "esc-red")
        .replace("{proxyId}", "pxy-red")
        .replace("{scheduleId}", "sch-red")
        .replace("{scheduleRunId}", "srun-red");
    let query = match template {
        t if t.ends_with("/{workflowId}") => "?workspace=red".to_owned(),
        t if t.ends_with("/verify") => "?fromSeq=0&toSeq=1".to_owned(),
        t if t.ends_with("/poll") => "?timeout=1".to_owned(),
        t if t.ends_with(":diff") => format!("?against={}", other.run),
        t if t.ends_with("/spans") => format!("?runId={}", other.run),
        t if t.ends_with("/interrupts") => "?status=any".to_owned(),
        t if t.ends_with("/tandem/audit") => "?sessionId=ses-red".to_owned(),
        _ => String::new(),
    };
    (method, format!("{path}{query}"), body(operation, other))
}

fn body(operation: &str, other: &OtherWorkspace) -> Value {
    match operation {
        "POST /v1/runs" => json!({"workflowId": "red-flow"}),
        "POST /v1/runs:bulk-cancel" => json!({"runIds": [other.run]}),
        "POST /v1/runs/{runId}:fork" => json!({"mode": "replay"}),
        "POST /v1/runs/{runId}/interrupts/{nodeId}"
        | "POST /v1/host/tandem/interrupts/{interruptId}:resolve" => {
            json!({"resumeValue": {"action": "accept"}})
        }
        "POST /v1/host/tandem/runs/{runId}/divergence" => json!({"action": "abort"}),
        "POST /v1/host/tandem/sessions/{sessionId}/mode" => json!({"agentMode": "off"}),
        "POST /v1/host/tandem/runs/{runId}/events" => {
            json!({"eventId": "e", "eventType": "t", "payload": {}})
        }
        "POST /v1/workflows" | "PUT /v1/host/tandem/workflows/{workflowId}" => {
            chain("red-flow", &[noop("a")])
        }
        "PUT /v1/host/tandem/groups/{name}" => json!({"members": []}),
        "POST /v1/host/tandem/delegations" => {
            json!({"from": other.principal, "to": "eve", "endsAt": other.tomorrow})
        }
        "POST /v1/host/tandem/keys" => json!({"name": "x", "scopes": [], "workspace": "red"}),
        "POST /v1/webhooks" => {
            json!({"url": "https://example.com/", "events": ["run.started"], "tenantId": "red"})
        }
        "POST /v1/host/tandem/agents/{agentId}/inbound" => {
            json!({"messageId": "m", "from": "u", "body": "hello"})
        }
        "POST /v1/host/tandem/schedules" => json!({"agentId": "demo", "flowId": "f"}),
        "PATCH /v1/host/tandem/schedules/{scheduleId}" => json!({"version": 1}),
        "PATCH /v1/host/tandem/users/{userId}" => json!({"tags": []}),
        "POST /v1/host/tandem/sessions/{sessionId}/takeover/messages" => {
            json!({"messageId": "h-1", "text": "hello"})
        }
        "POST /v1/host/tandem/sessions/{sessionId}/flows" => json!({"flowId": "f"}),
        "POST /v1/host/tandem/sessions/{sessionId}/resolve"
        | "POST /v1/host/tandem/escalations/{escalationId}/resolve" => json!({"approved": true}),
        "POST /v1/host/tandem/escalations/{escalationId}/assign" => json!({"actorId": "ana"}),
        "POST /v1/host/tandem/proxies/{proxyId}/input" => {
            json!({"messageId": "m", "text": "hello"})
        }
        "POST /v1/host/tandem/test/clock" => json!({"advanceSeconds": 0}),
        // The others need no body, or must not be executed.
        _ => Value::Null,
    }
}

/// The resources of the red workspace, by id.
struct OtherWorkspace {
    secret: String,
    principal: String,
    run: String,
    question: String,
    /// A resolved interrupt.
    decided: String,
    webhook: String,
    key: String,
    delegation: String,
    token: String,
    tomorrow: String,
}

impl OtherWorkspace {
    async fn set_up(server: &TestServer) -> Self {
        let secret = bound(server, "red").await;
        let ask = async |method: &str, path: &str, body: Value| {
            send(server, &secret, method, path, body).await
        };
        let nodes = [memory_put(MARK), gate()];
        register(server, &secret, "red-flow", &nodes).await.ok(201);
        let hook = json!({"url": format!("https://example.com/{MARK}"), "events": ["run.started"]});
        let hook = ask("POST", HOOKS, hook).await.ok(201);
        let (run, second) = (
            create(server, &secret, "red-flow").await,
            create(server, &secret, "red-flow").await,
        );
        server.advance(0).await;
        let question = async |run: &str| {
            let path = format!("/v1/host/tandem/interrupts?runId={run}");
            let found = ask("GET", &path, Value::Null).await.ok(200);
            found["interrupts"][0]["interruptId"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let decided = question(&second).await;
        let accept = json!({"resumeValue": {"action": "accept"}});
        let path = format!("/v1/host/tandem/interrupts/{decided}:resolve");
        ask("POST", &path, accept).await.ok(200);
        let made = json!({"name": MARK, "scopes": ["runs:read"]});
        let made = ask("POST", KEYS, made).await.ok(201);
        let shown = ask("GET", &format!("/v1/runs/{run}"), Value::Null)
            .await
            .ok(200);
        let tomorrow = tandem_wire::v1::time::rfc3339(server.now().plus_ms(86_400_000));
        let lend = json!({"to": MARK, "endsAt": tomorrow});
        let lent = ask("POST", "/v1/host/tandem/delegations", lend)
            .await
            .ok(201);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            question: question(&run).await,
            decided,
            webhook: text(&hook["webhookId"]),
            key: text(&made["keyId"]),
            principal: text(&lent["from"]),
            delegation: text(&lent["delegationId"]),
            token: text(&shown["interrupt"]["interruptToken"]),
            secret,
            run,
            tomorrow,
        }
    }

    /// Texts that would disclose the red workspace's data.
    fn traces(&self) -> [&str; 8] {
        [
            MARK,
            &self.run,
            &self.question,
            &self.decided,
            &self.webhook,
            &self.key,
            &self.delegation,
            &self.token,
        ]
    }

    /// The state of its resources, as its owner sees it.
    async fn state(&self, server: &TestServer) -> Vec<String> {
        let mut state = Vec::new();
        for path in [
            format!("/v1/runs/{}/events/poll?timeout=1", self.run),
            "/v1/workflows/red-flow".to_owned(),
            format!("/v1/host/tandem/webhooks/{}", self.webhook),
            format!("/v1/host/tandem/webhooks/{}/deliveries", self.webhook),
            KEYS.to_owned(),
            "/v1/host/tandem/delegations".to_owned(),
            "/v1/host/tandem/groups".to_owned(),
            format!("/v1/host/tandem/interrupts/{}", self.question),
        ] {
            let reply = send(server, &self.secret, "GET", &path, Value::Null).await;
            assert_eq!(reply.status.as_u16(), 200, "{path}: {reply:?}");
            state.push(reply.text);
        }
        state
    }
}

/// `METHOD path` of every documented operation.
async fn operations(server: &TestServer) -> Vec<String> {
    let described = server.get("/v1/openapi.json").await.ok(200);
    let mut operations = Vec::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            if ["get", "put", "post", "delete", "patch"].contains(&method.as_str()) {
                operations.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    operations
}

#[tokio::test]
async fn no_operation_reads_or_changes_another_workspace() {
    let server = TestServer::new().await;
    let team = json!({"members": ["ana"]});
    server
        .put("/v1/host/tandem/groups/team", team)
        .await
        .ok(201);
    let other = OtherWorkspace::set_up(&server).await;
    let blue = bound(&server, "blue").await;
    let mut listed: Vec<&str> = OPERATIONS.iter().map(|row| row.0).collect();
    let mut served = operations(&server).await;
    listed.sort_unstable();
    served.sort();
    assert_eq!(
        listed, served,
        "every operation says what it means for workspaces"
    );

    let before = other.state(&server).await;
    for (operation, expected) in OPERATIONS {
        let (method, path, body) = request_for(operation, &other);
        let reply = send(&server, &blue, method, &path, body.clone()).await;
        let why = format!("{operation}: {reply:?}");
        match expected {
            Refused(owner_sees) => {
                assert!([403, 404].contains(&reply.status.as_u16()), "{why}");
                let owners = [&other.secret, &server.key];
                for key in owners.into_iter().filter(|_| *owner_sees) {
                    let seen = send(&server, key, method, &path, body.clone()).await;
                    assert_eq!(seen.status.as_u16(), 200, "{operation}: {seen:?}");
                }
            }
            OwnDataOnly => assert!(reply.status.is_success(), "{why}"),
            Shared(reason) => assert!(!reply.status.is_server_error(), "{reason}: {why}"),
        }
        // A link shows its interrupt to its holder; ids from the request may be repeated.
        let is_new = |trace: &&str| !path.contains(*trace) && !body.to_string().contains(*trace);
        if !path.contains(&other.token) {
            for trace in other.traces().iter().filter(|trace| is_new(trace)) {
                assert!(!reply.text.contains(*trace), "{trace} in {why}");
            }
        }
    }
    assert_eq!(other.state(&server).await, before, "nothing was changed");
}
