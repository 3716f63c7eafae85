//! Calls of an agent's functions: arguments, context, session, errors.

use super::fixtures::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::conversation::{AdminActor, CodeCall, SideMessage};
use tandem_runtime::conversation::{AgentHost, CallContext};
use tokio::task::JoinSet;

fn with_keys(keys: Value) -> CallContext {
    let keys = keys.as_object().cloned().expect("an object");
    CallContext {
        kv: keys.into_iter().collect(),
        ..context()
    }
}

fn admin(keys: Value) -> CallContext {
    CallContext {
        actor: Some(AdminActor {
            id: "ana".to_owned(),
            role: Some("boss".to_owned()),
            channel: "ui_api".to_owned(),
            metadata: None,
        }),
        ..with_keys(keys)
    }
}

/// §5, §7.1: every function gets `ctx` where its signature has it.
#[tokio::test]
async fn context_stands_where_each_function_expects_it() {
    let desk = demo(
        "beforeLLM: async (input, ctx) => [input.text, ctx.user.id],
         beforeResponse: (input, ctx) => [input.candidate, ctx.user.id],
         onResponse: async (structured, ctx, meta) => [structured.reply, ctx.user.id, meta.source],
         commands: { note: { handler: async (ctx, args) => [ctx.user.id, args] } },
         adminAuth: { resolveActor: async (signals) => signals.request.headers, can: (action, actor, session) => [action, actor, session] },
         context: async (ctx) => ({ who: ctx.user.displayName }),
         tools: [{ name: 'a.b', handler: async () => 1, approval: (args, ctx) => [args.x, ctx.user.id] }],",
    );
    let table = [
        (
            "beforeLLM",
            vec![json!({"text": "hi"})],
            json!(["hi", "usr_1"]),
        ),
        (
            "beforeResponse",
            vec![json!({"candidate": "c"})],
            json!(["c", "usr_1"]),
        ),
        (
            "onResponse",
            vec![json!({"reply": "r"}), json!({"source": "flow"})],
            json!(["r", "usr_1", "flow"]),
        ),
        (
            "commands.note.handler",
            vec![json!("text")],
            json!(["usr_1", "text"]),
        ),
        (
            "adminAuth.resolveActor",
            vec![json!({"request": {"headers": {"x": "1"}}})],
            json!({"x": "1"}),
        ),
        (
            "adminAuth.can",
            vec![json!("a"), json!({"id": "b"}), json!(null)],
            json!(["a", {"id": "b"}, null]),
        ),
        ("context", vec![], json!({"who": "Ann"})),
        (
            "tools.a.b.approval",
            vec![json!({"x": 1})],
            json!([1, "usr_1"]),
        ),
    ];
    for (path, args, expected) in table {
        assert_eq!(value(&desk.call(path, args).await), expected, "{path}");
    }
}

/// §2.3: the data members of `ctx`.
#[tokio::test]
async fn context_shows_the_session_and_the_agent() {
    let desk = demo(
        "language: 'de', welcomeMessage: 'Hi',
         beforeLLM: (input, ctx) => ({ agent: ctx.agentId, language: ctx.language, welcome: ctx.config.welcomeMessage,
           state: ctx.state, session: ctx.session.id, to: ctx.replyTarget, inbound: ctx.inbound.body, admin: typeof ctx.admin,
           actor: typeof ctx.actor, now: Date.now() }),",
    );
    let context = with_keys(json!({"a": 1, "__zupa.hitl.mode": "pending_confirm"}));
    let seen = value(&desk.call_with("beforeLLM", vec![json!({})], &context).await);
    let expected = json!({
        "agent": "demo", "language": "de", "welcome": "Hi", "state": {"a": 1}, "session": "s_1", "to": "u1",
        "inbound": "start", "admin": "undefined", "actor": "undefined", "now": NOW.0,
    });
    assert_eq!(seen, expected);
}

/// Keys are read as the call left them; all that was done comes back with the result, in order.
#[tokio::test]
async fn session_writes_and_texts_are_collected() {
    let desk = demo(
        "commands: { c: { handler: async (ctx, args) => {
           await ctx.session.kv.set('a', { n: 1 }); await ctx.agentState.set('b', 2); await ctx.session.kv.delete('old');
           await ctx.resources.transport.sendText(ctx.replyTarget, 'one');
           await ctx.say('two'); await ctx.resources.transport.sendMessage({ to: 'desk', text: 'three' });
           await ctx.endSession();
           return [await ctx.session.kv.get('a'), await ctx.session.kv.get('old'), await ctx.session.kv.all(),
             (await ctx.resources.domainStore.getUser()).id, await ctx.resources.domainStore.getUser('other')];
         } } }",
    );
    let context = with_keys(json!({"old": true}));
    let outcome = desk
        .call_with("commands.c.handler", vec![json!("")], &context)
        .await;
    assert_eq!(
        value(&outcome),
        json!([{"n": 1}, null, {"a": {"n": 1}, "b": 2}, "usr_1", null])
    );
    let written = [
        ("a", Some(json!({"n": 1}))),
        ("b", Some(json!(2))),
        ("old", None),
    ];
    assert_eq!(
        outcome.kv,
        written.map(|(key, value)| (key.to_owned(), value))
    );
    let sent = [("u1", "one"), ("u1", "two"), ("desk", "three")];
    let sent = sent.map(|(to, text)| SideMessage {
        to: to.to_owned(),
        text: text.to_owned(),
    });
    assert_eq!(outcome.side_messages, sent);
    assert!(outcome.end_session);
}

/// Z-129 (half: what a function did before it failed stays done)
#[tokio::test]
async fn failure_keeps_what_was_done_before() {
    let desk = demo(
        "onResponse: async (s, ctx) => { await ctx.session.kv.set('last', s.reply); throw new Error('late'); }",
    );
    let outcome = desk
        .call("onResponse", vec![json!({"reply": "r"}), json!({})])
        .await;
    assert_eq!(error(&outcome), ("failed", "late"));
    assert_eq!(outcome.kv, [("last".to_owned(), Some(json!("r")))]);
}

#[tokio::test]
async fn changes_of_the_profile_are_collected_into_one() {
    let desk = demo(
        "commands: { c: { handler: async (ctx) => {
           await ctx.resources.domainStore.updateUser({ displayName: 'Ada', preferences: { a: 1, b: 1 } });
           await ctx.resources.domainStore.updateUser({ tags: ['vip'], preferences: { b: 2 } });
         } } }",
    );
    let outcome = desk.call("commands.c.handler", Vec::new()).await;
    let change = outcome.profile.expect("a change");
    assert_eq!(change.display_name.as_deref(), Some("Ada"));
    assert!(change.name_is_chosen);
    assert_eq!(change.tags, Some(vec!["vip".to_owned()]));
    assert_eq!(change.preferences, Some(json!({"a": 1, "b": 2})));
}

/// Calls of the context that are refused, and the code of the refusal.
#[tokio::test]
async fn bad_context_calls_are_thrown_into_the_function() {
    let desk = demo(
        "commands: { c: { handler: async (ctx, code) => {
           const calls = {
             reserved: () => ctx.session.kv.set('__zupa.x', 1), mode: () => ctx.session.kv.set('__zupa.hitl.mode', 'live_takeover'),
             modeGone: () => ctx.session.kv.delete('__zupa.hitl.mode'), empty: () => ctx.session.kv.set('', 1),
             long: () => ctx.session.kv.set('k'.repeat(600), 1), huge: () => ctx.session.kv.set('k', 'x'.repeat(300000)),
             noKey: () => ctx.session.kv.get(), numberKey: () => ctx.session.kv.get(7),
             noText: () => ctx.resources.transport.sendText('u1'), noMessage: () => ctx.resources.transport.sendMessage(),
             many: async () => { for (let i = 0; i < 200; i++) await ctx.say('x'); },
             update: () => ctx.resources.domainStore.updateUser({ id: 'other' }), fetch: () => ctx.http.fetch('https://example.org/'),
             noUrl: () => ctx.http.fetch(), badUrl: () => ctx.http.fetch('/path'),
           };
           try { await calls[code](); return 'done'; } catch (e) { return e.code; }
         } } }",
    );
    let table = [
        ("reserved", "reserved_key"),
        ("mode", "reserved_key"),
        ("modeGone", "reserved_key"),
        ("empty", "bad_key"),
        ("long", "bad_key"),
        ("noKey", "bad_call"),
        ("numberKey", "bad_call"),
        ("noText", "bad_call"),
        ("noMessage", "bad_call"),
        ("many", "too_many_texts"),
        ("update", "bad_call"),
        ("fetch", "origin_not_allowed"),
        ("noUrl", "bad_call"),
        ("badUrl", "bad_call"),
    ];
    for (call, code) in table {
        let outcome = desk.call("commands.c.handler", vec![json!(call)]).await;
        assert_eq!(value(&outcome), json!(code), "{call}");
        assert_eq!(outcome.kv, [], "{call}");
    }
}

/// Z-194 (half: an authorized admin command starts and ends a takeover by writing the mode, and nothing else)
#[tokio::test]
async fn admin_command_may_write_the_takeover_mode_only() {
    let desk = demo(
        "commands: { c: { access: 'admin', handler: async (ctx, value) => {
           try { if (value === null) await ctx.session.kv.delete('__zupa.hitl.mode'); else await ctx.session.kv.set('__zupa.hitl.mode', value);
             return ctx.actor.id; } catch (e) { return e.code; } } } }",
    );
    let mode = "__zupa.hitl.mode".to_owned();
    let context = admin(json!({"__zupa.hitl.mode": "live_takeover"}));
    let path = "commands.c.handler";
    let started = desk
        .call_with(path, vec![json!("live_takeover")], &context)
        .await;
    assert_eq!(value(&started), json!("ana"));
    assert_eq!(started.kv, [(mode.clone(), Some(json!("live_takeover")))]);
    let ended = desk.call_with(path, vec![Value::Null], &context).await;
    assert_eq!(ended.kv, [(mode, None)]);
    let other = desk.call_with(path, vec![json!("proxy")], &context).await;
    assert_eq!((value(&other), other.kv), (json!("reserved_key"), vec![]));
}

#[tokio::test]
async fn active_flow_state_is_what_the_session_gives() {
    let desk = demo("beforeLLM: async (input, ctx) => await ctx.getActiveFlowState()");
    assert_eq!(
        value(&desk.call("beforeLLM", vec![json!({})]).await),
        Value::Null
    );
    let active = json!({"flowId": "booking", "flowRunId": "flow-1", "step": 2, "answers": {"date": "Monday"}});
    let mut context = context();
    context.data.insert("activeFlow".to_owned(), active.clone());
    let state = value(&desk.call_with("beforeLLM", vec![json!({})], &context).await);
    assert_eq!(state, active);
}

#[tokio::test]
async fn what_cannot_be_called_is_not_found() {
    let desk = demo("beforeLLM: 'no function', commands: { usage: false }");
    assert!(desk.summary().errors.len() == 1, "a hook is a function");
    let desk = demo("commands: { usage: false }");
    for path in [
        "",
        "onNothing",
        "commands.x.y",
        "commands",
        "tools.none.handler",
        "__proto__.x.handler",
        "adminAuth.x",
    ] {
        assert_eq!(
            error(&desk.call(path, vec![]).await).0,
            "not_found",
            "{path}"
        );
    }
    for path in ["beforeLLM", "commands.none.handler", "adminAuth.can"] {
        let outcome = desk.call(path, vec![]).await;
        assert!(
            error(&outcome).1.contains("there is no function"),
            "{path}: {outcome:?}"
        );
    }
    let nobody = CallContext {
        agent: "nobody".into(),
        ..context()
    };
    assert_eq!(
        error(&desk.call_with("beforeLLM", vec![], &nobody).await).0,
        "not_found"
    );
}

/// Calls of one agent run beside each other, each with its own session.
#[tokio::test]
async fn calls_do_not_see_each_others_sessions() {
    let desk = demo(
        "commands: { c: { handler: async (ctx, n) => { await ctx.session.kv.set('n', n); return [n, await ctx.session.kv.get('n')]; } } }",
    );
    let desk = Arc::new(desk);
    let mut calls = JoinSet::new();
    for n in 0..50 {
        let desk = desk.clone();
        calls.spawn(async move { (n, desk.call("commands.c.handler", vec![json!(n)]).await) });
    }
    for (n, outcome) in calls.join_all().await {
        assert_eq!(value(&outcome), json!([n, n]));
    }
}

/// A version in use is not changed by a later one.
#[tokio::test]
async fn changed_code_is_used_by_the_next_call() {
    let desk = demo("beforeLLM: () => 'old'");
    assert_eq!(value(&desk.call("beforeLLM", vec![json!({})]).await), "old");
    desk.write("demo/agent.ts", &agent("beforeLLM: () => 'new'"));
    desk.registry.reload();
    assert_eq!(value(&desk.call("beforeLLM", vec![json!({})]).await), "new");
}

/// §10.4: the realm is long-lived; a call outside a session works too.
#[tokio::test]
async fn realm_lives_on_between_calls() {
    let source = "let n = 0;\n".to_owned()
        + &agent("adminAuth: { resolveActor: () => { n += 1; return n; }, can: () => true }");
    let desk = desk(&[("demo/agent.ts", &source)]);
    let outside = CallContext {
        session: None,
        data: tandem_record::Object::new(),
        ..context()
    };
    for expected in 1..=3 {
        let outcome = desk
            .call_with("adminAuth.resolveActor", vec![json!({})], &outside)
            .await;
        assert_eq!(value(&outcome), json!(expected));
    }
    let call = CodeCall {
        path: "adminAuth.can".to_owned(),
        args: vec![],
        timeout_ms: 1_000,
    };
    assert_eq!(
        value(&desk.agents.call_code(&call, &outside).await),
        json!(true)
    );
}
