//! A server inside this program, with agents, flows, tools and nodes in Rust.

use serde_json::{Value, json};
use tandem::{
    ErrorInfo, FlowContext, FlowResult, FlowReturn, NodeCall, Object, RustAgent, RustFlow,
    RustNode, RustTool, Tandem, TandemBuilder, TandemServer, ToolContext,
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
    (home, builder)
}

async fn request(server: &TandemServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let url = format!("{}{path}", server.url());
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = reqwest::Client::new().request(method, url).bearer_auth(KEY);
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

/// Z-65, Z-210, Z-212: a panic and a foreign await fail the run; the session and the server go on.
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
