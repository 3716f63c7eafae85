//! Agents, flows and tools in Rust, through the same surface as those of folders.

use super::fixtures::*;
use crate::{RustAgent, RustAgents, RustTool, ToolContext};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::flow::fingerprint;
use tandem_engine::session::{ProgramStep, Resume};
use tandem_flow::{FlowContext, FlowResult, FlowReturn, RustFlow};
use tandem_record::conversation::{AgentStatus, FlowRecord, FlowRunStart};
use tandem_record::{Object, Recorded, Seq};
use tandem_runtime::conversation::{AgentHost, RebuildError};

async fn greet(ctx: FlowContext, _: Value) -> FlowResult {
    let name = ctx.ask("name", "Name?").await?;
    let seen = ctx.kv().get("seen").await?;
    ctx.say(format!("Hello {name}, {seen}, {}.", ctx.random()))
        .await?;
    Ok(FlowReturn::done())
}

async fn greet_politely(ctx: FlowContext, _: Value) -> FlowResult {
    let name = ctx.ask("name", "May I ask your name?").await?;
    ctx.say(format!("Good day, {name}.")).await?;
    Ok(FlowReturn::done())
}

fn demo_agent() -> RustAgent {
    RustAgent::new("demo", "You are the desk.")
}

fn defined(agent: RustAgent) -> Desk {
    let mut rust = RustAgents::default();
    rust.define(agent);
    desk_with_rust(&[], rust).expect("a desk")
}

/// A journal of the flow `greet` up to its second effect, and that effect.
fn journal(desk: &Desk, start: FlowRunStart) -> (Vec<Recorded<FlowRecord>>, ProgramStep) {
    let (mut program, first) = desk.agents.start_program(&start, NOW).expect("a start");
    let ask = json!({ "type": "ask", "key": "name", "text": "Name?" });
    assert_eq!(first, ProgramStep::Yielded(ask.clone()));
    let context = Object::new();
    let call = program.resume(Resume::Value(Some(json!("Ann"))), &context, NOW);
    let expected = ProgramStep::HostCall {
        name: "session.kv.get".to_owned(),
        args: vec![json!("seen")],
    };
    assert_eq!(call, expected);
    let said = program.resume(Resume::Host(Ok(Some(json!(3)))), &context, NOW);
    let ProgramStep::Yielded(effect) = &said else {
        panic!("no effect: {said:?}");
    };
    let events = [
        FlowRecord::Started(Box::new(start)),
        FlowRecord::Effect {
            step: 0,
            fingerprint: fingerprint(&ask),
            effect: ask,
        },
        FlowRecord::Result {
            step: 0,
            value: Some(json!("Ann")),
            error: None,
        },
        FlowRecord::Host {
            index: 0,
            name: "session.kv.get".to_owned(),
            fingerprint: fingerprint(&json!(["session.kv.get", ["seen"]])),
            value: Some(json!(3)),
            error: None,
        },
        FlowRecord::Effect {
            step: 1,
            fingerprint: fingerprint(effect),
            effect: effect.clone(),
        },
    ];
    let records = events.into_iter().enumerate().map(|(seq, event)| Recorded {
        seq: Seq(seq as u64),
        at: NOW,
        cause: None,
        event,
    });
    (records.collect(), said)
}

/// Z-212 (half: a flow in Rust is rebuilt from its journal as one in TypeScript is)
#[test]
fn flow_is_rebuilt_from_its_journal() {
    let desk = defined(demo_agent().flow(RustFlow::new("greet", 1, greet)));
    let start = desk.flow_start("greet");
    assert_eq!(desk.agents.flow_source(&demo_id(), &start.version), None);
    let (journal, said) = journal(&desk, start);

    let before = desk.agents.rebuild_program(None, &journal[..2]);
    let mut before = before.expect("a program at its first effect");
    before.resume(Resume::Value(Some(json!("Ann"))), &Object::new(), NOW);
    let again = before.resume(Resume::Host(Ok(Some(json!(3)))), &Object::new(), NOW);
    assert_eq!(again, said);

    let rebuilt = desk.agents.rebuild_program(None, &journal);
    let mut rebuilt = rebuilt.expect("a program at its second effect");
    let end = rebuilt.resume(Resume::Value(None), &Object::new(), NOW);
    assert_eq!(end, ProgramStep::Returned(Value::Null));
}

/// A run goes on with its own version as long as it is registered.
/// Z-215 (half: a run goes on with its own version as long as it is registered)
#[test]
fn runs_keep_their_version_and_new_ones_take_the_last() {
    let both = demo_agent()
        .flow(RustFlow::new("greet", 1, greet))
        .flow(RustFlow::new("greet", 2, greet_politely));
    let desk = defined(both);
    assert_eq!(desk.version_of("greet").as_deref(), Some("rust:2"));
    let old = FlowRunStart {
        version: "rust:1".to_owned(),
        ..desk.flow_start("greet")
    };
    let (journal, _) = journal(&desk, old);
    assert!(desk.agents.rebuild_program(None, &journal).is_ok());
}

/// Without its version a run is compared with the newest, and diverges where that differs.
/// Z-215 (half: without its version it is compared with the newest), Z-216 (half: a flow in Rust that differs)
#[test]
fn run_without_its_version_diverges_from_other_code() {
    let first = defined(demo_agent().flow(RustFlow::new("greet", 1, greet)));
    let (journal, _) = journal(&first, first.flow_start("greet"));
    let second = defined(demo_agent().flow(RustFlow::new("greet", 2, greet_politely)));
    let diverged = second.agents.rebuild_program(None, &journal).err();
    let expected = RebuildError::Diverged {
        step: 0,
        expected: json!({ "type": "ask", "key": "name", "text": "Name?" }),
        actual: json!({ "type": "ask", "key": "name", "text": "May I ask your name?" }),
    };
    assert_eq!(diverged, Some(expected));
    // The same code under another version goes on.
    let renamed = defined(demo_agent().flow(RustFlow::new("greet", 3, greet)));
    assert!(renamed.agents.rebuild_program(None, &journal).is_ok());
    let gone = defined(demo_agent());
    let failed = gone.agents.rebuild_program(None, &journal).err();
    assert!(
        matches!(failed, Some(RebuildError::Failed(_))),
        "{failed:?}"
    );
}

#[derive(Deserialize)]
struct Service {
    service: String,
}

fn price() -> RustTool {
    let tool = RustTool::new("price", async |args: Service, ctx: ToolContext| {
        if args.service == "nothing" {
            return Err("there is no such service".to_owned());
        }
        let user = ctx.data("user")["id"].clone();
        ctx.set("asked", json!(args.service))
            .map_err(|error| error.message)?;
        ctx.say("One moment.").map_err(|error| error.message)?;
        Ok(json!({ "eur": 40, "user": user, "key": ctx.idempotency_key() }))
    });
    tool.description("Price of a service").parameters(json!({
        "type": "object",
        "properties": { "service": { "type": "string" } },
        "required": ["service"],
    }))
}

/// Arguments are checked, and what a tool does is recorded with its result.
/// Z-57 (half: a tool in Rust), Z-58 (half: a tool in Rust)
#[tokio::test]
async fn tool_is_called_as_one_in_typescript() {
    let quick = demo_agent().set("maxIdempotentRetries", json!(0));
    let desk = defined(quick.tool(price()));
    let args = json!({ "service": "cleaning" });
    let done = desk.agents.call_tool("price", &args, &context()).await;
    let expected = json!({ "eur": 40, "user": "usr_1", "key": "s_1:7" });
    assert_eq!(value(&done), expected);
    assert_eq!(done.kv, [("asked".to_owned(), Some(json!("cleaning")))]);
    assert_eq!(done.side_messages[0].text, "One moment.");

    let refused = desk.agents.call_tool("price", &json!({}), &context()).await;
    assert_eq!(error(&refused).0, "invalid_args");
    let nothing = json!({ "service": "nothing" });
    let failed = desk.agents.call_tool("price", &nothing, &context()).await;
    assert_eq!(error(&failed), ("failed", "there is no such service"));
}

#[tokio::test(start_paused = true)]
async fn tool_that_fails_is_retried_within_its_timeout() {
    let attempts = Arc::new(Mutex::new(0));
    let count = attempts.clone();
    let flaky = RustTool::new("flaky", move |_: Value, _: ToolContext| {
        let count = count.clone();
        async move {
            *count.lock() += 1;
            let attempt = *count.lock();
            match attempt {
                1 => Err("not yet"),
                2 => panic!("a bug of the author"),
                _ => Ok(attempt),
            }
        }
    });
    let hangs = RustTool::new("hangs", async |_: Value, _: ToolContext| {
        std::future::pending::<Result<(), String>>().await
    });
    let desk = defined(demo_agent().tool(flaky).tool(hangs.not_idempotent()));
    let done = desk.agents.call_tool("flaky", &json!({}), &context()).await;
    assert_eq!(value(&done), json!(3));
    let late = desk.agents.call_tool("hangs", &json!({}), &context()).await;
    assert_eq!(error(&late).0, "timeout");
}

#[tokio::test]
async fn program_adds_to_an_agent_of_a_folder() {
    let mut rust = RustAgents::default();
    rust.add_flow("demo", RustFlow::new("greet", 1, greet));
    rust.add_tool("demo", price());
    let files = agent(
        "tools: [{ name: 'own', handler: async () => 1 }],
         flows: { hello: async function* () { yield { type: 'say', text: 'Hi' }; } },",
    );
    let desk = desk_with_rust(&[("demo/agent.ts", &files)], rust).expect("a desk");
    assert_eq!(desk.error_texts(), Vec::<String>::new());
    let flows: Vec<String> = desk
        .summary()
        .flows
        .into_iter()
        .map(|f| f.flow_id)
        .collect();
    assert_eq!(flows, ["greet", "hello"]);
    let (_, first) = desk
        .agents
        .start_program(&desk.flow_start("greet"), NOW)
        .expect("a start");
    assert!(matches!(first, ProgramStep::Yielded(effect) if effect["text"] == "Name?"));
    let args = json!({ "service": "cleaning" });
    let rust = desk.agents.call_tool("price", &args, &context()).await;
    assert_eq!(value(&rust)["eur"], 40);
    let own = desk.agents.call_tool("own", &json!({}), &context()).await;
    assert_eq!(value(&own), json!(1));

    // Changes of files keep what the program added.
    desk.write("demo/agent.ts", &agent("maxToolIterations: 2,"));
    desk.registry.reload();
    let flows: Vec<String> = desk
        .summary()
        .flows
        .into_iter()
        .map(|f| f.flow_id)
        .collect();
    assert_eq!(flows, ["greet"]);
}

#[test]
fn folder_cannot_replace_an_agent_in_rust() {
    let mut rust = RustAgents::default();
    rust.define(demo_agent().flow(RustFlow::new("greet", 1, greet)));
    let desk = desk_with_rust(&[("demo/agent.ts", &agent(""))], rust).expect("a desk");
    assert_eq!(desk.summary().status, AgentStatus::Ready);
    assert_eq!(desk.version_of("greet").as_deref(), Some("rust:1"));
    let errors = desk.error_texts();
    assert!(
        errors[0].contains("already defined by this program"),
        "{errors:?}"
    );
}

/// Z-4 (half: an agent in Rust), Z-5 (half: an agent in Rust): what is wrong with an agent in Rust stops the start.
#[test]
fn agent_in_rust_that_cannot_be_used_is_refused() {
    let flow = || RustFlow::new("greet", 1, greet);
    let two_tools = demo_agent().tool(price()).tool(price());
    let table = [
        (RustAgent::new("demo", " "), "/prompt"),
        (demo_agent().set("modle", json!({})), "modle"),
        (
            demo_agent().flow(flow()).flow(flow()),
            "given twice in version",
        ),
        (
            demo_agent().flow(RustFlow::new("greet", "", greet)),
            "needs a version",
        ),
        (
            demo_agent().flow(RustFlow::new("a b", 1, greet)),
            "/flows/a b",
        ),
        (two_tools, "another tool has this name"),
    ];
    for (agent, expected) in table {
        let mut rust = RustAgents::default();
        rust.define(agent);
        let refused = desk_with_rust(&[], rust).err().expect("no desk");
        assert!(refused.problem.contains(expected), "{refused}");
    }
    let mut twice = RustAgents::default();
    twice.define(demo_agent());
    twice.define(demo_agent());
    let refused = desk_with_rust(&[], twice).err().expect("no desk");
    assert_eq!(refused.problem, "it is defined twice");
    let mut nowhere = RustAgents::default();
    nowhere.add_flow("dmeo", flow());
    let refused = desk_with_rust(&[], nowhere).err().expect("no desk");
    assert_eq!(refused.agent, "dmeo");
}
