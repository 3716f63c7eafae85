//! Functions of the configuration, in the agent's realm (§10.4).

use super::fixtures::*;
use crate::{
    AgentRealm, Argument, CallEvent, CallEventKind, CallId, ErrorData, HostCall, ScriptFailure,
};
use serde_json::{Map, Value, json};

fn data(value: Value) -> Argument {
    Argument::Data(value)
}

fn call(realm: &mut AgentRealm, path: &str, args: &[Argument]) -> (CallId, Vec<CallEvent>) {
    let context =
        object(json!({"user": {"id": "u1"}, "replyTarget": "u1", "actor": {"id": "ana"}}));
    realm.call(path, args, &context, NOON_MS)
}

/// The only event of a call that ends.
fn outcome((_, events): (CallId, Vec<CallEvent>)) -> Result<Value, ScriptFailure> {
    match events.as_slice() {
        [
            CallEvent {
                kind: CallEventKind::Finished(outcome),
                ..
            },
        ] => outcome.clone(),
        other => panic!("not an outcome: {other:?}"),
    }
}

fn host_call(events: &[CallEvent]) -> HostCall {
    match events {
        [
            CallEvent {
                kind: CallEventKind::HostCall(call),
                ..
            },
        ] => call.clone(),
        other => panic!("not a host call: {other:?}"),
    }
}

/// §2.1, §7.1: every kind of function, sync or async, with `ctx` at its place and `this` as written.
#[test]
fn functions_are_called_by_path() {
    let mut realm = realm(
        "{ prompt: (ctx) => `You talk to ${ctx.user.id}`,
           tools: [{ name: 'price', before: async (args) => ({ ...args, b: 1 }), handler: async (args, ctx) => ({ eur: args.n * 2, user: ctx.user.id }) }],
           commands: { vip: { handler: async (ctx, args) => ctx.actor.id + args.text } },
           beforeLLM: async (input, ctx) => input.text === 'go' ? { action: 'end' } : undefined,
           adminAuth: { role: 'boss', can(action, actor, session) { return actor.role === this.role; } } }",
    );
    assert_eq!(
        outcome(call(&mut realm, "/prompt", &[Argument::Context])),
        Ok(json!("You talk to u1"))
    );
    let args = [data(json!({"n": 20})), Argument::Context];
    assert_eq!(
        outcome(call(&mut realm, "/tools/0/handler", &args)),
        Ok(json!({"eur": 40, "user": "u1"}))
    );
    assert_eq!(
        outcome(call(&mut realm, "/tools/0/before", &args[..1])),
        Ok(json!({"n": 20, "b": 1}))
    );
    let args = [Argument::Context, data(json!({"text": "!"}))];
    assert_eq!(
        outcome(call(&mut realm, "/commands/vip/handler", &args)),
        Ok(json!("ana!"))
    );
    let hook = |realm: &mut AgentRealm, text: &str| {
        outcome(call(
            realm,
            "/beforeLLM",
            &[data(json!({"text": text})), Argument::Context],
        ))
    };
    assert_eq!(hook(&mut realm, "go"), Ok(json!({"action": "end"})));
    assert_eq!(hook(&mut realm, "hi"), Ok(Value::Null));
    let args = [
        data(json!("x")),
        data(json!({"role": "boss"})),
        data(json!({})),
    ];
    assert_eq!(
        outcome(call(&mut realm, "/adminAuth/can", &args)),
        Ok(json!(true))
    );
    assert!(
        outcome(call(&mut realm, "/onResponse", &[])).is_err(),
        "there is none"
    );
}

/// §2.3, §10.4: `ctx` of the agent's functions offers host calls, among them an HTTP client.
#[test]
fn agent_context_makes_host_calls() {
    let mut realm = realm(
        "{ prompt: 'p', commands: { note: { handler: async (ctx, args) => {
             await ctx.session.kv.set('note', args.text);
             await ctx.resources.transport.sendText(ctx.replyTarget, 'Noted.');
             await ctx.say('side');
             const answer = await ctx.http.fetch('https://example.org/x', { method: 'POST', body: 'b' });
             return [answer.ok, (await answer.json()).n, typeof ctx.confirm, typeof ctx.input]; } } } }",
    );
    let args = [Argument::Context, data(json!({"text": "milk"}))];
    let (_, mut events) = call(&mut realm, "/commands/note/handler", &args);
    let expected = [
        ("session.kv.set", json!(["note", "milk"]), Value::Null),
        (
            "resources.transport.sendText",
            json!(["u1", "Noted."]),
            Value::Null,
        ),
        ("say", json!(["side"]), Value::Null),
        (
            "http.fetch",
            json!(["https://example.org/x", {"method": "POST", "body": "b"}]),
            json!({"status": 201, "headers": {}, "body": "{\"n\":7}"}),
        ),
    ];
    for (name, args, answer) in expected {
        let waiting = host_call(&events);
        assert_eq!((waiting.name.as_str(), json!(waiting.args)), (name, args));
        events = realm.answer(waiting.index, Ok(&answer), NOON_MS);
    }
    assert_eq!(
        outcome((CallId(0), events)),
        Ok(json!([true, 7, "undefined", "undefined"]))
    );
}

/// Calls interleave: one that waits for the host does not hold up another.
#[test]
fn calls_do_not_wait_for_each_other() {
    let mut realm = realm(
        "{ prompt: 'p', slow: async (ctx) => await ctx.session.kv.get('a'), quick: () => 'quick' }",
    );
    let (slow, events) = call(&mut realm, "/slow", &[Argument::Context]);
    let waiting = host_call(&events);
    assert_eq!(outcome(call(&mut realm, "/quick", &[])), Ok(json!("quick")));
    let events = realm.answer(waiting.index, Ok(&json!("late")), NOON_MS);
    assert_eq!(
        events,
        [CallEvent {
            call: slow,
            kind: CallEventKind::Finished(Ok(json!("late")))
        }]
    );
}

/// Z-126 (half: a call whose deadline passed is given up; its late answer changes nothing)
#[test]
fn cancelled_call_is_forgotten() {
    let mut realm = realm(
        "{ prompt: 'p', slow: async (ctx) => { await ctx.session.kv.get('a'); await ctx.session.kv.set('b', 1); } }",
    );
    let (slow, events) = call(&mut realm, "/slow", &[Argument::Context]);
    let waiting = host_call(&events);
    realm.cancel(slow);
    assert_eq!(realm.answer(waiting.index, Ok(&json!(1)), NOON_MS), []);
    assert!(realm.is_usable());
}

/// Z-126 (half: a function that throws, or that nobody can wake, is finished at once)
#[test]
fn failing_functions_are_reported() {
    let mut realm = realm(
        "{ prompt: 'p', a: async () => { throw new Error('policy down'); }, b: () => new Promise(() => {}), c: () => 1n }",
    );
    let failure = outcome(call(&mut realm, "/a", &[])).expect_err("it throws");
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("exception", "policy down")
    );
    assert_eq!(failure.position.expect("a position").file, "agent.ts");
    assert_eq!(
        outcome(call(&mut realm, "/b", &[]))
            .expect_err("stuck")
            .code
            .as_str(),
        "foreign_await"
    );
    assert!(
        outcome(call(&mut realm, "/c", &[])).is_err(),
        "a BigInt is no JSON"
    );
    assert!(realm.is_usable());
}

/// A call that waits for another call of the realm is woken by it.
#[test]
fn calls_may_wait_for_each_other() {
    let mut realm = realm(
        "(() => { let open; const gate = new Promise((r) => { open = r; });
           return { prompt: 'p', wait: () => gate, hold: async (ctx) => { open(await ctx.session.kv.get('a')); return 'held'; } }; })()",
    );
    let (hold, events) = call(&mut realm, "/hold", &[Argument::Context]);
    let index = host_call(&events).index;
    let (wait, events) = call(&mut realm, "/wait", &[]);
    assert_eq!(events, []);
    let events = realm.answer(index, Ok(&json!("v")), NOON_MS);
    let finished: Vec<_> = events.iter().map(|event| event.call).collect();
    assert_eq!(finished, [hold, wait]);
}

/// Z-209 (half: limits hold here too; afterwards the caller makes another realm)
#[test]
fn limits_hold_in_the_agents_realm() {
    for body in [
        "() => { for (;;) {} }",
        "async () => { const a = []; for (;;) a.push(new Array(1e5).fill(1)); }",
        "() => { const f = () => f() + 1; return f(); }",
    ] {
        let mut realm = realm(&format!("{{ prompt: 'p', bad: {body} }}"));
        let failure = outcome(call(&mut realm, "/bad", &[])).expect_err("a limit");
        assert_eq!(failure.code.as_str(), "flow_limit", "{body}");
        assert!(!realm.is_usable());
    }
}

/// Module state lives as long as the realm; time is that of the call; refusals can be caught.
#[test]
fn realm_keeps_its_state_and_follows_the_clock() {
    let mut realm = realm(
        "(() => { let n = 0; return { prompt: 'p', count: () => [n += 1, Date.now()], kv: async (ctx) => { try { await ctx.session.kv.get('x'); } catch (e) { return e.code; } } }; })()",
    );
    let none = Map::new();
    assert_eq!(
        outcome(realm.call("/count", &[], &none, 5)),
        Ok(json!([1, 5]))
    );
    assert_eq!(
        outcome(realm.call("/count", &[], &none, 9)),
        Ok(json!([2, 9]))
    );
    let (_, events) = realm.call("/kv", &[Argument::Context], &none, 9);
    let refusal = ErrorData::new("HostError", "denied", "no");
    let events = realm.answer(host_call(&events).index, Err(&refusal), 9);
    assert_eq!(outcome((CallId(0), events)), Ok(json!("denied")));
}

/// §2.1: `withReply` adds its fields to shapes, JSON Schemas and Standard Schemas.
#[test]
fn with_reply_adds_its_fields() {
    let own = "{ '~standard': { version: 1, vendor: 'own', validate: (v) => v === undefined ? { issues: [{ message: 'required' }] } : { value: v } } }";
    let mut realm = realm(&format!(
        "{{ prompt: 'p', shape: t.withReply({{ mood: {{ type: 'string' }} }}), object: t.withReply({{ type: 'object', properties: {{ a: {{}} }}, required: ['a'] }}),
           none: t.withReply(), mixed: t.withReply({{ mood: {own} }}) }}"
    ));
    let config = realm.config().clone();
    let reply = json!({"reply": {"type": "string"}, "modality": {"enum": ["text", "voice", null]}, "sessionEnded": {"type": "boolean"}});
    assert_eq!(
        config["none"],
        json!({"type": "object", "properties": reply, "required": ["reply"]})
    );
    assert_eq!(config["shape"]["required"], json!(["reply", "mood"]));
    assert_eq!(config["object"]["required"], json!(["reply", "a"]));
    assert_eq!(
        config["mixed"]["jsonSchema"]["required"],
        json!(["reply", "mood"])
    );
    let mut check =
        |value: Value| outcome(realm.validate("/mixed", &value, NOON_MS)).expect("a result");
    assert_eq!(
        check(json!({"reply": "r", "mood": 1}))["value"],
        json!({"mood": 1, "reply": "r", "modality": null, "sessionEnded": false})
    );
    let issues = check(json!({"modality": "song"}))["issues"].clone();
    let paths: Vec<_> = issues
        .as_array()
        .expect("a list")
        .iter()
        .map(|issue| issue["path"][0].clone())
        .collect();
    assert_eq!(paths, ["reply", "modality", "mood"]);
}
