//! Awaited functions of `ctx` that are not effects.

use super::fixtures::*;
use crate::{ErrorData, FlowStep, HostCall};
use serde_json::json;

fn calls(step: FlowStep) -> Vec<HostCall> {
    match step {
        FlowStep::HostCalls(calls) => calls,
        other => panic!("no host calls: {other:?}"),
    }
}

/// Z-211 (half: concurrent calls are listed in program order and answered one by one, in any recorded order)
#[test]
fn concurrent_calls_are_answered_one_by_one() {
    let mut flow = flow(
        "const order = [];
         const get = (k) => ctx.session.kv.get(k).then((v) => { order.push(k); return v; });
         const [a, b] = await Promise.all([get('a'), get('b')]);
         yield ctx.say(`${a}${b} ${order}`);",
    );
    let waiting = calls(flow.next(None));
    let seen: Vec<_> = waiting
        .iter()
        .map(|c| (c.index, c.name.as_str(), c.args.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (0, "session.kv.get", vec![json!("a")]),
            (1, "session.kv.get", vec![json!("b")])
        ]
    );
    assert_eq!(
        calls(flow.answer(1, Ok(&json!(2)))).len(),
        1,
        "the other still waits"
    );
    assert_eq!(say_text(flow.answer(0, Ok(&json!(1)))), "12 b,a");
}

/// Z-195 (half: what is not JSON is refused where it is written)
#[test]
fn values_of_keys_are_json() {
    let refused = [
        "() => 1",
        "new Date()",
        "new Map()",
        "undefined",
        "{ a: undefined }",
        "[1, , 3]",
        "NaN",
        "1n",
        "Symbol('s')",
        "new (class A {})()",
        "{ [Symbol('s')]: 1 }",
    ];
    for value in refused {
        let mut flow = flow(&format!(
            "try {{ await ctx.session.kv.set('k', {value}); yield ctx.say('taken'); }}
             catch (e) {{ yield ctx.say(e.name); }}"
        ));
        assert_eq!(say_text(flow.next(None)), "TypeError", "{value}");
    }
    for value in [
        "null",
        "'a'",
        "1.5",
        "true",
        "[1, { b: [null] }]",
        "Object.create(null)",
    ] {
        let mut flow = flow(&format!("await ctx.session.kv.set('k', {value});"));
        assert_eq!(calls(flow.next(None))[0].name, "session.kv.set", "{value}");
    }
}

/// §2.3: every host call of a flow's `ctx`.
#[test]
fn host_calls_have_names_and_arguments() {
    let cases = [
        (
            "session.kv.set('k', { v: 1 })",
            "session.kv.set",
            json!(["k", {"v": 1}]),
        ),
        ("session.kv.delete('k')", "session.kv.delete", json!(["k"])),
        ("session.kv.all()", "session.kv.all", json!([])),
        ("agentState.get('k')", "session.kv.get", json!(["k"])),
        (
            "session.agentState.get('k')",
            "session.kv.get",
            json!(["k"]),
        ),
        (
            "resources.transport.sendText('u', 't')",
            "resources.transport.sendText",
            json!(["u", "t"]),
        ),
        (
            "resources.transport.sendMessage({ to: 'u' })",
            "resources.transport.sendMessage",
            json!([{"to": "u"}]),
        ),
        (
            "resources.domainStore.getUser('u')",
            "resources.domainStore.getUser",
            json!(["u"]),
        ),
        ("endSession()", "endSession", json!([])),
        ("getActiveFlowState()", "getActiveFlowState", json!([])),
        ("consumeQueued(['m1'])", "consumeQueued", json!([["m1"]])),
    ];
    for (call, name, args) in cases {
        let waiting = calls(flow(&format!("await ctx.{call};")).next(None));
        assert_eq!(waiting[0].name, name);
        assert_eq!(json!(waiting[0].args), args, "{name}");
    }
}

/// Z-211 (half: an effect that follows calls nobody awaited is reported after their answers)
#[test]
fn effect_waits_for_calls_made_before_it() {
    let mut flow = flow("ctx.session.kv.set('a', 1); yield ctx.say('done');");
    assert_eq!(calls(flow.next(None))[0].name, "session.kv.set");
    assert_eq!(say_text(flow.answer(0, Ok(&json!(null)))), "done");
    assert_eq!(flow.next(None), FlowStep::Ended(json!(null)));
}

/// A refused call rejects with an error object.
#[test]
fn refused_call_can_be_caught() {
    let mut flow =
        flow("try { await ctx.session.kv.get('__zupa.x'); } catch (e) { yield ctx.say(e.code); }");
    flow.next(None);
    let refusal = ErrorData::new("HostError", "reserved_key", "reserved");
    assert_eq!(say_text(flow.answer(0, Err(&refusal))), "reserved_key");
}

/// Arguments are taken when the call is made, not when it is reported.
#[test]
fn arguments_are_copied_at_the_call() {
    let mut flow =
        flow("const v = { n: 1 }; const p = ctx.session.kv.set('k', v); v.n = 2; await p;");
    assert_eq!(calls(flow.next(None))[0].args[1], json!({"n": 1}));
}

/// An argument that is no data is refused inside the code.
#[test]
fn arguments_must_be_data() {
    let mut flow = flow(
        "const v = {}; v.self = v;
         try { await ctx.session.kv.set('k', v); } catch (e) { yield ctx.say(e.message); }",
    );
    assert!(say_text(flow.next(None)).contains("contains itself"));
}

/// Z-210 (half: waiting for something that is neither an effect nor a call fails at once)
#[test]
fn foreign_await_fails_at_once() {
    assert_eq!(
        failure(flow("await new Promise(() => {});").next(None)).0,
        "foreign_await"
    );
    let mut later = flow("await ctx.session.kv.get('a'); await new Promise(() => {});");
    later.next(None);
    assert_eq!(failure(later.answer(0, Ok(&json!(1)))).0, "foreign_await");
}
