//! Tools: arguments, hooks, kinds, timeout, retries.

use super::fixtures::*;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::EffectId;
use tandem_record::conversation::CodeOutcome;
use tandem_runtime::conversation::{AgentHost, CallContext};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const QUICK: &str = "retryBaseDelayMs: 0, retryJitterMs: 0,";

/// A server on loopback that answers every request with a function's result, or never.
pub(super) struct TestServer {
    pub(super) url: String,
    /// Head and body of every request.
    pub(super) requests: Arc<Mutex<Vec<(String, Value)>>>,
}

pub(super) async fn server(
    answer: impl Fn(usize) -> Option<(u16, String)> + Send + Sync + 'static,
) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (noted, answer) = (requests.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (noted, answer) = (noted.clone(), answer.clone());
            tokio::spawn(async move { serve(stream, &noted, answer).await });
        }
    });
    TestServer { url, requests }
}

async fn serve(
    mut stream: TcpStream,
    noted: &Mutex<Vec<(String, Value)>>,
    answer: Arc<impl Fn(usize) -> Option<(u16, String)> + Send + Sync + 'static>,
) {
    let mut read = Vec::new();
    let (head, body) = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap_or(0);
        read.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "a request");
            continue;
        };
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let number = {
        let mut noted = noted.lock();
        noted.push((head, serde_json::from_str(&body).unwrap_or_default()));
        noted.len()
    };
    let answered = tokio::task::spawn_blocking(move || answer(number)).await;
    let Some((status, text)) = answered.expect("an answer") else {
        return std::future::pending().await;
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all((head + &text).as_bytes()).await;
}

async fn call(desk: &Desk, name: &str, args: Value) -> CodeOutcome {
    desk.agents.call_tool(name, &args, &context()).await
}

fn keyed(key: &str) -> CallContext {
    CallContext {
        key: EffectId::from(key),
        ..context()
    }
}

#[tokio::test]
async fn handler_gets_arguments_and_context() {
    let desk = demo(
        "tools: [{ name: 'price', parameters: { type: 'object', properties: { service: { type: 'string' } }, required: ['service'] },
           handler: async (args, ctx) => { await ctx.session.kv.set('asked', args.service); return { eur: 40, key: ctx.idempotencyKey }; } }]",
    );
    let outcome = call(&desk, "price", json!({"service": "cleaning"})).await;
    assert_eq!(value(&outcome), json!({"eur": 40, "key": "s_1:7"}));
    assert_eq!(outcome.kv, [("asked".to_owned(), Some(json!("cleaning")))]);
}

/// Z-58 (half: codes of tools that give no result)
#[tokio::test]
async fn failures_have_the_codes_of_tool_errors() {
    let fields = format!(
        "{QUICK} maxIdempotentRetries: 0,
         tools: [{{ name: 'typed', parameters: {{ type: 'object', required: ['a'] }}, handler: () => 1 }},
           {{ name: 'standard', parameters: {{ '~standard': {{ version: 1, vendor: 'x', validate: (v) => v.a === 1 ? {{ value: {{ a: 2 }} }}
             : {{ issues: [{{ message: 'must be one', path: ['a', {{ key: 0 }}] }}] }} }} }}, handler: (args) => args.a }},
           {{ name: 'throws', handler: () => {{ throw new Error('no'); }} }},
           {{ name: 'unreachable', kind: 'http', url: 'http://127.0.0.1:1/x' }}]"
    );
    let desk = demo(&fields);
    assert_eq!(desk.summary().errors, []);
    let table = [
        ("none", json!({}), "not_found", "there is no tool"),
        ("typed", json!({}), "invalid_args", "required"),
        ("standard", json!({}), "invalid_args", "a/0: must be one"),
        ("throws", json!({}), "failed", "no"),
        ("unreachable", json!({}), "failed", "could not be reached"),
    ];
    for (name, args, code, message) in table {
        let outcome = call(&desk, name, args).await;
        let (found, text) = error(&outcome);
        assert_eq!(found, code, "{name}");
        assert!(text.contains(message), "{name}: {text}");
    }
    let read = call(&desk, "standard", json!({"a": 1})).await;
    assert_eq!(
        value(&read),
        json!(2),
        "the tool gets what the schema made of it"
    );
}

/// Code that still runs at its deadline does not hold up the next call.
#[tokio::test]
async fn handler_that_spins_times_out() {
    let fields = "toolTimeoutMs: 50, maxIdempotentRetries: 0,
        tools: [{ name: 'spins', handler: () => { for (;;) {} } }], beforeLLM: () => 'fine'";
    let desk = demo(fields);
    let outcome = call(&desk, "spins", json!({})).await;
    let (code, message) = error(&outcome);
    assert_eq!(code, "timeout", "{message}");
    assert_eq!(
        value(&desk.call("beforeLLM", vec![json!({})]).await),
        "fine"
    );
}

/// Z-57 (half: `before`, then the tool, then `after`; one session for all three)
#[tokio::test]
async fn hooks_run_around_every_kind_of_tool() {
    let hooks = "before: async (args, ctx) => { await ctx.session.kv.set('seen', args.n); return args.n > 1 ? { n: 1, by: 'before' } : undefined; },
        after: async (result, ctx) => { await ctx.say('after ' + await ctx.session.kv.get('seen')); return result.keep ? undefined : { changed: true }; }";
    let fields = format!(
        "tools: [{{ name: 'h', handler: (args) => ({{ ...args, keep: true }}), {hooks} }},
           {{ name: 'r', kind: 'record', returns: {{ ok: 1 }}, {hooks} }}]"
    );
    let desk = demo(&fields);
    let outcome = call(&desk, "h", json!({"n": 5})).await;
    assert_eq!(
        value(&outcome),
        json!({"n": 1, "by": "before", "keep": true})
    );
    assert_eq!(outcome.side_messages[0].text, "after 5");
    assert_eq!(
        value(&call(&desk, "r", json!({"n": 1})).await),
        json!({"changed": true})
    );
    assert_eq!(
        desk.recorder.tool_calls(&demo_id())[0].args,
        json!({"n": 1})
    );
}

#[tokio::test]
async fn failing_before_keeps_the_tool_from_being_called() {
    let fields = format!(
        "{QUICK} tools: [{{ name: 'r', kind: 'record', before: () => {{ throw new Error('not now'); }} }},
           {{ name: 'a', kind: 'record', after: () => {{ throw new Error('late'); }} }}]"
    );
    let desk = demo(&fields);
    assert_eq!(
        error(&call(&desk, "r", json!({})).await),
        ("failed", "not now")
    );
    assert_eq!(desk.recorder.tool_calls(&demo_id()), []);
    assert_eq!(
        error(&call(&desk, "a", json!({})).await),
        ("failed", "late")
    );
    assert_eq!(
        desk.recorder.tool_calls(&demo_id()).len(),
        1,
        "it is not repeated"
    );
}

/// Z-227 (half: a `record` tool notes its calls and answers a fixed value; `failTimes` makes the first ones fail)
#[tokio::test]
async fn record_tool_notes_its_calls() {
    let fields = format!(
        "{QUICK} tools: [{{ name: 'plain', kind: 'record' }}, {{ name: 'flaky', kind: 'record', returns: 7, failTimes: 2 }},
           {{ name: 'once', kind: 'record', failTimes: 1, idempotent: false }}]"
    );
    let desk = demo(&fields);
    for _ in 0..2 {
        assert_eq!(
            value(&call(&desk, "plain", json!({"a": 1})).await),
            Value::Null
        );
    }
    let calls = desk.recorder.tool_calls(&demo_id());
    assert_eq!(calls.len(), 1, "the same key is listed once");
    let shown = serde_json::to_value(&calls[0]).expect("JSON");
    let expected = json!({"name": "plain", "args": {"a": 1}, "idempotencyKey": "s_1:7", "sessionId": "s_1", "at": NOW.0});
    assert_eq!(shown, expected);
    let flaky = desk
        .agents
        .call_tool("flaky", &json!({}), &keyed("k2"))
        .await;
    assert_eq!(value(&flaky), json!(7), "the default are two retries");
    let once = desk
        .agents
        .call_tool("once", &json!({}), &keyed("k3"))
        .await;
    assert_eq!(error(&once), ("failed", "the tool was told to fail"));
    let names: Vec<String> = desk
        .recorder
        .tool_calls(&demo_id())
        .into_iter()
        .map(|c| c.name)
        .collect();
    assert_eq!(names, ["plain", "flaky", "flaky", "flaky", "once"]);
}

#[tokio::test]
async fn retries_are_bounded_and_only_the_last_attempt_counts() {
    let fields = format!(
        "{QUICK} maxIdempotentRetries: 3, tools: [
           {{ name: 'flaky', handler: async (args, ctx) => {{ n += 1; await ctx.session.kv.set('n', n); if (n < 3) throw new Error('not yet'); return n; }} }},
           {{ name: 'never', handler: async (args, ctx) => {{ n += 1; await ctx.session.kv.set('n', n); throw new Error('never'); }} }},
           {{ name: 'once', idempotent: false, handler: () => {{ n += 1; throw new Error('once'); }} }}],
         beforeLLM: () => {{ const was = n; n = 0; return was; }}"
    );
    let desk = desk(&[(
        "demo/agent.ts",
        &("let n = 0;\n".to_owned() + &agent(&fields)),
    )]);
    let outcome = call(&desk, "flaky", json!({})).await;
    assert_eq!(value(&outcome), json!(3));
    assert_eq!(outcome.kv, [("n".to_owned(), Some(json!(3)))]);
    desk.call("beforeLLM", vec![json!({})]).await;
    for (name, attempts) in [("never", 4), ("once", 1)] {
        assert_eq!(error(&call(&desk, name, json!({})).await), ("failed", name));
        assert_eq!(
            value(&desk.call("beforeLLM", vec![json!({})]).await),
            json!(attempts),
            "{name}"
        );
    }
}

/// Z-59 (half: one POST with the effect's id as key; the same key at every attempt)
#[tokio::test]
async fn http_tool_posts_with_its_key() {
    let server = server(|number| {
        Some(match number {
            1 => (503, "{}".to_owned()),
            2 => (200, "{\"ok\": true}".to_owned()),
            _ => (400, "{\"why\": \"bad\"}".to_owned()),
        })
    })
    .await;
    let fields = format!(
        "{QUICK} tools: [{{ name: 'pay', kind: 'http', url: '{}/refund' }}]",
        server.url
    );
    let desk = demo(&fields);
    assert_eq!(
        value(&call(&desk, "pay", json!({"eur": 5})).await),
        json!({"ok": true})
    );
    let (code, message) = {
        let outcome = call(&desk, "pay", json!({})).await;
        let (code, message) = error(&outcome);
        (code.to_owned(), message.to_owned())
    };
    assert_eq!(code, "failed");
    assert!(message.contains("400"), "{message}");
    let requests = server.requests.lock();
    assert_eq!(requests.len(), 3, "a lasting failure is not repeated");
    for (head, _) in requests.iter() {
        assert!(
            head.starts_with("post /refund ") && head.contains("idempotency-key: s_1:7"),
            "{head}"
        );
    }
    let body = json!({"name": "pay", "args": {"eur": 5}, "sessionid": "s_1"});
    assert_eq!(requests[0].1, body, "compared in lower case");
}

#[tokio::test]
async fn http_tool_that_does_not_answer_times_out() {
    let silent = server(|_| None).await;
    let fields = format!(
        "toolTimeoutMs: 50, maxIdempotentRetries: 0, tools: [{{ name: 'pay', kind: 'http', url: '{}/x' }}]",
        silent.url
    );
    assert_eq!(
        error(&call(&demo(&fields), "pay", json!({})).await).0,
        "timeout"
    );
}

/// §10.4: functions call only the origins their configuration lists.
#[tokio::test]
async fn fetch_answers_with_status_and_body() {
    let server = server(|number| {
        Some(match number {
            1 => (200, "{\"n\": 1}".to_owned()),
            _ => (404, "gone".to_owned()),
        })
    })
    .await;
    let fields = format!(
        "http: {{ allow: ['{0}'] }}, tools: [{{ name: 'f', handler: async (args, ctx) => {{
           const r = await ctx.http.fetch('{0}/x', {{ method: 'post', headers: {{ 'x-a': 'b' }}, body: {{ q: 1 }} }});
           return {{ status: r.status, ok: r.ok, n: r.ok ? (await r.json()).n : await r.text() }}; }} }}]",
        server.url
    );
    let desk = demo(&fields);
    assert_eq!(
        value(&call(&desk, "f", json!({})).await),
        json!({"status": 200, "ok": true, "n": 1})
    );
    assert_eq!(
        value(&call(&desk, "f", json!({})).await),
        json!({"status": 404, "ok": false, "n": "gone"})
    );
    let requests = server.requests.lock();
    assert!(
        requests[0].0.starts_with("post /x ") && requests[0].0.contains("x-a: b"),
        "{:?}",
        requests[0]
    );
    assert_eq!(requests[0].1, json!({"q": 1}));
}
