//! A server inside this program, with agents, flows, tools and nodes in Rust.

use serde_json::{Value, json};
use tandem::{
    ErrorInfo, FlowContext, FlowResult, FlowReturn, InputDecision, NodeCall, Object, ProxyStart,
    ProxyWait, RustAgent, RustFlow, RustNode, RustTool, Tandem, TandemBuilder, TandemServer,
    ToolContext,
};
use tempfile::TempDir;

const KEY: &str = "a-key-for-tests-0123456789";

/// A home directory, and a server in it that is not started yet.
fn builder() -> (TempDir, TandemBuilder) {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("tandem.db");
    let builder = Tandem::builder()
        .store(format!("sqlite:{}", store.display()))
        .listen("127.0.0.1:0")
        .key(KEY);
    // What is set here wins over the environment.
    let builder = match std::env::var_os("TANDEM_TEST_COLD").is_some() {
        true => builder.environment(),
        false => builder,
    };
    (home, builder)
}

async fn request(server: &TandemServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let url = format!("{}{path}", server.url());
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = reqwest::Client::new().request(method, url).bearer_auth(KEY);
    // Events are a stream otherwise.
    let request = request.header("accept", "application/json");
    let request = request.header("x-admin-token", "boss-token");
    let request = match body {
        Value::Null => request,
        body => request.json(&body),
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

/// Sends a message of the user `ada` to the agent `desk`; gives the session and the texts of the turn.
async fn send(server: &TandemServer, id: &str, body: &str) -> (String, Vec<String>) {
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    let message = json!({ "messageId": id, "from": "ada", "body": body });
    let (status, answer) = request(server, "POST", path, message).await;
    assert_eq!(status, 200, "{answer}");
    let outbound = answer["outbound"].as_array().unwrap().iter();
    let texts = outbound.map(|message| message["text"].as_str().unwrap().to_owned());
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    (session, texts.collect())
}

/// The payload of the only event of a type.
async fn event(server: &TandemServer, session: &str, kind: &str) -> Value {
    let path = format!("/v1/host/tandem/sessions/{session}/events?after=-1");
    let (_, page) = request(server, "GET", &path, Value::Null).await;
    let events = page["events"].as_array().unwrap().iter();
    let mut found = events.filter(|event| event["type"] == kind);
    let event = found.next().unwrap_or_else(|| panic!("no {kind}: {page}"));
    assert!(found.next().is_none(), "{kind} twice");
    event["payload"].clone()
}

/// An agent whose router starts the flow that the user names.
fn desk(flows: &[&str]) -> RustAgent {
    let choose = |flow: &&str| {
        json!({
            "when": { "purpose": "router", "contains": flow },
            "structured": { "flow": flow, "confidence": 1 },
            "times": 0,
        })
    };
    let answers: Vec<Value> = flows.iter().map(choose).collect();
    let script = json!({ "answers": answers, "otherwise": { "text": "Yes?" } });
    RustAgent::new("desk", "You are the desk.")
        .set("model", json!({ "provider": "scripted", "script": script }))
        .set(
            "flowRouter",
            json!({ "mode": "detector", "prompt": "Which flow?" }),
        )
        .set("fallbackReply", json!("Sorry."))
}

async fn panics(ctx: FlowContext, (): ()) -> FlowResult {
    ctx.say("Let me see.").await?;
    let seats: Vec<u32> = Vec::new();
    let seat = seats.first().expect("no seat is free");
    ctx.say(seat.to_string()).await?;
    Ok(FlowReturn::done())
}

async fn sleeps(ctx: FlowContext, (): ()) -> FlowResult {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    ctx.say("Awake.").await?;
    Ok(FlowReturn::done())
}

/// A panic and a foreign await fail the run; the session and the server go on.
/// Z-65 (half: a panic of a flow in Rust), Z-210 (half: a flow in Rust, through the server),
/// Z-212 (half: a foreign await, through the server)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_that_misbehave_fail_their_run_only() {
    let (_home, builder) = builder();
    let agent = desk(&["panics", "sleeps"])
        .flow(RustFlow::new("panics", 1, panics))
        .flow(RustFlow::new("sleeps", 1, sleeps));
    let server = builder.agent(agent).serve().await.unwrap();

    let (session, texts) = send(&server, "m1", "panics").await;
    assert_eq!(texts, ["Let me see.", "Sorry."]);
    let failed = event(&server, &session, "flow.failed").await;
    assert_eq!(failed["error"]["code"], "exception");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("no seat is free"), "{message}");

    let (again, texts) = send(&server, "m2", "Are you there?").await;
    assert_eq!(
        (&again, texts.as_slice()),
        (&session, &["Yes?".to_owned()][..])
    );

    let path = format!("/v1/host/tandem/sessions/{session}/end");
    let (status, _) = request(&server, "POST", &path, json!({})).await;
    assert_eq!(status, 200);
    let (session, texts) = send(&server, "m3", "sleeps").await;
    assert_eq!(texts, ["Sorry."]);
    let failed = event(&server, &session, "flow.failed").await;
    assert_eq!(failed["error"]["code"], "foreign_await");
    server.shutdown().await;
}

async fn asks_the_day(ctx: FlowContext, (): ()) -> FlowResult {
    let day = ctx.ask("day", "Which day?").await?;
    ctx.say(format!("On {day}.")).await?;
    Ok(FlowReturn::done())
}

/// The same flow after a change that the runs under way do not know.
async fn asks_the_name(ctx: FlowContext, (): ()) -> FlowResult {
    let name = ctx.ask("name", "Which name?").await?;
    ctx.say(format!("For {name}.")).await?;
    Ok(FlowReturn::done())
}

/// Z-216 (half: through the server, and what an operator may do), Z-261 (half: through the server)
/// Z-215 (half: a run whose version is gone is compared with the newest, through the server)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_diverges_is_parked_and_settled_by_an_operator() {
    let (home, builder) = builder();
    let store = format!("sqlite:{}", home.path().join("tandem.db").display());
    let boss = json!({ "actorId": "ana", "role": "boss",
        "hash": "sha256:673e0b86626e1976dc1d5d4723c64674b0057b4f5b0f65f51758814a3d82c458" });
    let rules = json!({ "tokens": [boss], "roles": { "boss": ["flow.manage"] } });
    let agent = || desk(&["visit"]).set("adminAuth", rules.clone());
    let server = builder
        .agent(agent().flow(RustFlow::new("visit", 1, asks_the_day)))
        .serve();
    let server = server.await.unwrap();
    let (session, texts) = send(&server, "m1", "visit").await;
    assert_eq!(texts, ["Which day?"]);
    let path = format!("/v1/host/tandem/sessions/{session}");
    let (_, shown) = request(&server, "GET", &path, Value::Null).await;
    let run = shown["flow"]["flowRunId"].as_str().unwrap().to_owned();
    server.shutdown().await;

    let changed = agent().flow(RustFlow::new("visit", 2, asks_the_name));
    let server = Tandem::builder()
        .store(store)
        .listen("127.0.0.1:0")
        .key(KEY)
        .agent(changed)
        .serve();
    let server = server.await.unwrap();
    assert_eq!(send(&server, "m2", "Monday").await.1, ["Sorry."]);
    let diverged = event(&server, &session, "flow.diverged").await;
    assert_eq!(diverged["step"], 0);
    for field in ["expected", "actual", "codeHash"] {
        assert!(!diverged[field].is_null(), "{field}: {diverged}");
    }
    let (_, shown) = request(&server, "GET", &path, Value::Null).await;
    assert_eq!(shown["flow"], Value::Null);
    let of_run = format!("/v1/runs/{run}");
    let (_, parked) = request(&server, "GET", &of_run, Value::Null).await;
    assert_eq!(parked["status"], "paused");
    let events = format!("{of_run}/events?streamMode=debug");
    let (_, page) = request(&server, "GET", &events, Value::Null).await;
    let events = page["events"].as_array().unwrap();
    assert!(events.iter().any(|e| e["type"] == "replay.diverged"));
    assert_eq!(send(&server, "m3", "Hello?").await.1, ["Yes?"]);

    let settle = format!("/v1/host/tandem/runs/{run}/divergence");
    let restart = json!({ "action": "restart" });
    let (status, answer) = request(&server, "POST", &settle, restart).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(send(&server, "m4", "Ada").await.1, ["For Ada."]);
    server.shutdown().await;
}

async fn price(ctx: FlowContext, (): ()) -> FlowResult {
    let price = ctx.tool("price", json!({})).await?;
    let own = ctx.tool("own", json!({})).await?;
    ctx.say(format!("{price} {own}")).await?;
    Ok(FlowReturn::done())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flow_and_tool_are_added_to_an_agent_of_a_folder() {
    let (home, builder) = builder();
    let folder = home.path().join("agents").join("desk");
    std::fs::create_dir_all(&folder).unwrap();
    let source = "import { createAgent } from 'tandem';
        export default createAgent({
          prompt: 'You are the desk.',
          tools: [{ name: 'own', handler: async () => 'from TypeScript' }],
          beforeLLM: async () => ({ action: 'route_flow', flowId: 'price' }),
        });";
    std::fs::write(folder.join("agent.ts"), source).unwrap();
    let tool = RustTool::new("price", async |_: Value, _: ToolContext| {
        Ok::<_, String>(40)
    });
    let server = builder
        .agents_dir(home.path().join("agents"))
        .flow("desk", RustFlow::new("price", 1, price))
        .tool("desk", tool)
        .serve()
        .await
        .unwrap();
    let (_, texts) = send(&server, "m1", "How much?").await;
    assert_eq!(texts, ["40 \"from TypeScript\""]);
    server.shutdown().await;
}

fn double() -> RustNode {
    let node = RustNode::new("vendor.clinic.double", async |call: NodeCall| {
        let factor = call.request.config["factor"].as_i64().unwrap_or(1);
        match call.request.inputs.get("n").and_then(Value::as_i64) {
            Some(n) => Ok(Object::from_iter([(
                "result".to_owned(),
                json!(n * factor),
            )])),
            None => Err(ErrorInfo::new("no_number", "The port n has no number.")),
        }
    });
    node.config_schema(json!({
        "type": "object",
        "properties": { "factor": { "type": "integer" } },
        "required": ["factor"],
    }))
}

fn document(config: &Value) -> Value {
    json!({
        "id": "doubled",
        "name": "Doubled",
        "version": "1.0.0",
        "nodes": [{
            "id": "double", "typeId": "vendor.clinic.double", "name": "Double",
            "position": { "x": 0, "y": 0 }, "config": config,
            "inputs": { "n": { "type": "variable", "variableName": "n" } },
        }],
        "edges": [],
        "triggers": [{ "id": "manual", "type": "manual", "enabled": true }],
        "variables": [{ "name": "n", "type": "number" }],
        "metadata": { "tags": [] },
        "settings": { "timeout": 60000, "maxRetries": 0 },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_uses_a_node_in_rust() {
    let (_home, builder) = builder();
    let server = builder.node(double()).serve().await.unwrap();
    let path = "/v1/host/tandem/workflows/doubled";
    let (status, refused) = request(&server, "PUT", path, document(&json!({}))).await;
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("factor"), "{refused}");
    let config = json!({ "factor": 2 });
    let (status, put) = request(&server, "PUT", path, document(&config)).await;
    assert_eq!(status, 201, "{put}");
    let create = json!({ "workflowId": "doubled", "inputs": { "n": 21 } });
    let (status, run) = request(&server, "POST", "/v1/runs", create).await;
    assert_eq!(status, 201, "{run}");
    let run = run["runId"].as_str().unwrap();
    let result = loop {
        let path = format!("/v1/runs/{run}/events/poll");
        let (_, page) = request(&server, "GET", &path, Value::Null).await;
        if page["isComplete"] == true {
            break page;
        }
    };
    let events = result.to_string();
    assert!(events.contains("\"result\":42"), "{events}");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_used_stops_the_start() {
    let reserved = RustNode::new("core.double", async |_: NodeCall| Ok(Object::new()));
    let no_schema = double().config_schema(json!({ "type": 5 }));
    let table: [(TandemBuilder, &str); 6] = [
        (builder().1.node(reserved), "is reserved"),
        (
            builder().1.node(double()).node(double()),
            "registered twice",
        ),
        (builder().1.node(no_schema), "the schema of the node type"),
        (
            builder().1.agent(RustAgent::new("desk", "")),
            "the agent \"desk\" cannot be used",
        ),
        (
            builder().1.flow("nobody", RustFlow::new("price", 1, price)),
            "the agent \"nobody\" cannot be used",
        ),
        (builder().1.listen("nowhere"), "not an address"),
    ];
    for (builder, expected) in table {
        let refused = builder.serve().await.err().expect("no server");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

/// A store is free again after a shutdown, and while a server is dropped it is closed in the background.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_is_started_inside_a_task_and_stopped() {
    let (home, builder) = builder();
    let server = tokio::spawn(builder.serve()).await.unwrap().unwrap();
    assert_ne!(server.address().port(), 0);
    let (status, _) = request(&server, "GET", "/readyz", Value::Null).await;
    assert_eq!(status, 200);
    server.shutdown().await;
    let store = format!("sqlite:{}", home.path().join("tandem.db").display());
    let again = Tandem::builder().store(store).listen("127.0.0.1:0");
    again.serve().await.unwrap().shutdown().await;
}

/// Says something else each time its code runs.
async fn counts_itself(ctx: FlowContext, (): ()) -> FlowResult {
    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    ctx.ask("x", format!("This is run {run}.")).await?;
    Ok(FlowReturn::done())
}

/// Z-212 (half: strict mode finds the rest), Z-217
#[tokio::test(flavor = "multi_thread")]
async fn strict_mode_reports_a_flow_that_is_not_deterministic() {
    let (_home, builder) = builder();
    let agent = desk(&["counting"])
        .set("strict", json!(true))
        .flow(RustFlow::new("counting", 1, counts_itself));
    let server = builder.agent(agent).serve().await.unwrap();
    let (session, _) = send(&server, "m1", "counting").await;
    let found = loop {
        let path = format!("/v1/host/tandem/sessions/{session}/events?after=-1");
        let (_, page) = request(&server, "GET", &path, Value::Null).await;
        let events = page["events"].as_array().unwrap().iter();
        let mut found = events.filter(|event| event["type"] == "flow.nondeterministic");
        if let Some(found) = found.next() {
            break found["payload"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(found["expected"]["text"], "This is run 0.");
    assert_eq!(found["actual"]["text"], "This is run 1.");
}

async fn shows_settings(ctx: FlowContext, (): ()) -> FlowResult {
    let config = ctx.config().await?;
    ctx.say(config["fallbackReply"].as_str().unwrap_or_default())
        .await?;
    Ok(FlowReturn::done())
}

/// Flows in both languages see the settings of their agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_see_the_settings_of_their_agent() {
    let (home, builder) = builder();
    let folder = home.path().join("agents").join("desk");
    std::fs::create_dir_all(&folder).unwrap();
    let source = "import { createAgent } from 'tandem';
        export default createAgent({
          prompt: 'You are the desk.',
          fallbackReply: 'Pardon?',
          beforeLLM: async (input) => ({ action: 'route_flow', flowId: input.text }),
          flows: {
            script: async function* (ctx) {
              let answer = ctx.config.fallbackReply;
              try { ctx.config.fallbackReply = 'x'; } catch { answer += ' read-only'; }
              yield* ctx.say(answer);
            },
          },
        });";
    std::fs::write(folder.join("agent.ts"), source).unwrap();
    let server = builder
        .agents_dir(home.path().join("agents"))
        .flow("desk", RustFlow::new("rust", 1, shows_settings))
        .serve()
        .await
        .unwrap();
    assert_eq!(send(&server, "m1", "rust").await.1, ["Pardon?"]);
    assert_eq!(send(&server, "m2", "script").await.1, ["Pardon? read-only"]);
    server.shutdown().await;
}

async fn reviews(ctx: FlowContext, (): ()) -> FlowResult {
    ctx.kv().set("name", json!("Ada")).await?;
    ctx.proxy_to_admin(ProxyStart::shadow("finance")).await?;
    let wait = ctx
        .proxy_wait(ProxyWait::new())
        .before_forward(|input, context| async move {
            let name = context.key("name");
            Ok(match input.text.contains("APPROVE") {
                true => InputDecision::forward().text(format!("Approved for {name}.")),
                false => InputDecision::unchanged(),
            })
        });
    let got = wait.await?;
    let stopped = ctx.stop_proxy("done").await?;
    let text = got.forwarded_text.unwrap_or_default();
    ctx.say(format!("{} {} {text}", got.outcome, stopped.stopped))
        .await?;
    Ok(FlowReturn::done())
}

/// A bridge in Rust: after a restart the filter is there again, and decides. Z-102 (half: in Rust, through the server),
/// Z-218 (half: in Rust, the decision is in the journal), Z-115 (half: bridges in Rust, through the server)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filter_in_rust_decides_also_after_a_restart() {
    let (home, builder) = builder();
    let agent = || {
        desk(&["reviews"])
            .flow(RustFlow::new("reviews", 1, reviews))
            .set(
                "hitl",
                json!({ "targets": { "finance": { "transport": "loopback", "address": "fin" } } }),
            )
            .set(
                "adminAuth",
                json!({
                    "tokens": [],
                    "chat": [{ "transport": "loopback", "address": "fin", "actorId": "fin", "role": "boss" }],
                    "roles": { "boss": ["hitl.proxy.input"] },
                }),
            )
    };
    let server = builder.agent(agent()).serve().await.unwrap();
    let (session, texts) = send(&server, "m1", "reviews").await;
    assert_eq!(texts, Vec::<String>::new());
    server.shutdown().await;

    let store = home.path().join("tandem.db");
    let again = Tandem::builder()
        .store(format!("sqlite:{}", store.display()))
        .listen("127.0.0.1:0")
        .key(KEY)
        .agent(agent());
    let server = again.serve().await.unwrap();
    let path = "/v1/host/tandem/agents/desk/inbound?wait=true";
    let message = json!({ "messageId": "f1", "from": "fin", "body": "APPROVE" });
    let (status, answer) = request(&server, "POST", path, message).await;
    assert_eq!((status, &answer["status"]), (200, &json!("processed")));
    let path = format!("/v1/host/tandem/sessions/{session}/messages");
    let (_, page) = request(&server, "GET", &path, Value::Null).await;
    let said = page["messages"].as_array().unwrap().iter();
    let said: Vec<&str> = said
        .filter_map(|message| message["text"].as_str())
        .collect();
    let wanted = [
        "reviews",
        "Approved for \"Ada\".",
        "admin_input true Approved for \"Ada\".",
    ];
    assert_eq!(said, wanted);
    let decided = event(&server, &session, "flow.hook").await;
    assert_eq!(decided["stage"], "processBeforeForward");
    server.shutdown().await;
}
