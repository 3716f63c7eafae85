//! Functions that do not return, use too much, or throw odd things.

use super::fixtures::*;
use super::tools::server;
use serde_json::json;
use tandem_record::conversation::CodeCall;
use tandem_runtime::conversation::AgentHost;

#[tokio::test]
async fn functions_that_fail_leave_the_agent_usable() {
    let desk = demo(
        "beforeLLM: async (input) => {
           switch (input.how) {
             case 'spin': for (;;) {}
             case 'hang': await new Promise(() => {}); break;
             case 'hoard': { const all = []; for (;;) all.push(new Array(1e5).fill(0)); }
             case 'recurse': { const f = () => f() + 1; return f(); }
             case 'huge': return 'x'.repeat(1_000_000);
             case 'null': throw null;
             case 'proxy': throw new Proxy({}, { get() { throw 1; } });
             case 'cycle': { const a = {}; a.a = a; return a; }
             case 'bigint': return 1n;
             case 'function': return { f: () => 1 };
           }
           return 'fine';
         }",
    );
    let table = [
        ("spin", "failed", "flow_limit"),
        ("hang", "timeout", "foreign_await"),
        ("hoard", "failed", "flow_limit"),
        ("recurse", "failed", "stack"),
        ("huge", "failed", "flow_limit"),
        ("null", "failed", ""),
        ("proxy", "failed", ""),
        ("cycle", "failed", ""),
        ("bigint", "failed", "BigInt"),
    ];
    for (how, expected, message) in table {
        let outcome = desk.call("beforeLLM", vec![json!({ "how": how })]).await;
        let (code, text) = error(&outcome);
        assert_eq!(code, expected, "{how}");
        assert!(text.contains(message), "{how}: {text}");
        let after = desk.call("beforeLLM", vec![json!({})]).await;
        assert_eq!(value(&after), "fine", "after {how}");
    }
    let marked = desk
        .call("beforeLLM", vec![json!({"how": "function"})])
        .await;
    assert_eq!(value(&marked), json!({"f": {"$fn": true}}));
}

/// The call is given up at its deadline; the agent goes on, and nothing of the call is recorded.
#[tokio::test]
async fn call_that_takes_too_long_is_cancelled() {
    let silent = server(|_| None).await;
    let fields = format!(
        "http: {{ allow: ['{0}'] }},
         beforeLLM: async (input, ctx) => {{
           await ctx.session.kv.set('k', 1);
           if (input.wait) await ctx.http.fetch('{0}/x');
           return 'done';
         }}",
        silent.url
    );
    let desk = demo(&fields);
    let call = |wait: bool, timeout_ms: u64| CodeCall {
        path: "beforeLLM".to_owned(),
        args: vec![json!({ "wait": wait })],
        timeout_ms,
    };
    let outcome = desk.agents.call_code(&call(true, 50), &context()).await;
    assert_eq!(error(&outcome).0, "timeout");
    assert_eq!(outcome.kv, []);
    let slow = call(true, 5_000);
    let (context, other) = (context(), call(false, 5_000));
    tokio::select! {
        _ = desk.agents.call_code(&slow, &context) => panic!("nobody answers"),
        outcome = desk.agents.call_code(&other, &context) => assert_eq!(value(&outcome), "done"),
    }
}

/// A call under way when another one makes the realm unusable is finished all the same.
#[tokio::test]
async fn unusable_realm_finishes_its_calls() {
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let waits = server(move |_| {
        let gate = gate.lock().expect("one request");
        gate.recv().expect("the release");
        Some((200, "{\"ok\": true}".to_owned()))
    })
    .await;
    let fields = format!(
        "http: {{ allow: ['{0}'] }},
         beforeLLM: async (input, ctx) => {{
           if (input.spin) for (;;) {{}}
           return (await (await ctx.http.fetch('{0}/x')).json()).ok;
         }}",
        waits.url
    );
    let desk = demo(&fields);
    let context = context();
    let first = desk.call_with("beforeLLM", vec![json!({})], &context);
    let second = async {
        let outcome = desk.call("beforeLLM", vec![json!({"spin": true})]).await;
        release.send(()).expect("the server waits");
        outcome
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(error(&second).0, "failed");
    assert_eq!(value(&first), json!(true));
}

/// Code that loads once and fails later is reported with every call, and tried again.
#[tokio::test]
async fn code_that_cannot_be_evaluated_again_fails_its_calls() {
    let source = "if (Date.now() > 1_767_258_000_001) throw new Error('too late');\n".to_owned()
        + &agent("beforeLLM: () => 1");
    let desk = desk(&[("demo/agent.ts", &source)]);
    let late = tandem_runtime::conversation::CallContext {
        now: NOW.plus_ms(10),
        ..context()
    };
    for _ in 0..2 {
        let outcome = desk.call_with("beforeLLM", vec![json!({})], &late).await;
        assert_eq!(error(&outcome), ("failed", "too late"));
    }
    assert_eq!(
        value(&desk.call("beforeLLM", vec![json!({})]).await),
        json!(1)
    );
}
