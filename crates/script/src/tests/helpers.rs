//! Helper constructors of `ctx` (§4.12).

use super::fixtures::*;
use crate::FlowStep;
use serde_json::json;

/// Z-114 (half: helpers yield the canonical effect objects)
#[test]
fn helpers_make_canonical_effects() {
    let cases = [
        (
            "confirm({ question: 'A?' })",
            json!({"type": "interrupt.confirm", "question": "A?"}),
        ),
        (
            "escalate({ mode: 'm', reason: 'r' })",
            json!({"type": "interrupt.escalate", "mode": "m", "reason": "r"}),
        ),
        (
            "wait({ waitFor: 'timeout' })",
            json!({"type": "interrupt.wait", "waitFor": "timeout"}),
        ),
        (
            "proxyToAdmin({ target: 't' })",
            json!({"type": "interrupt.proxy.start", "target": "t"}),
        ),
        (
            "proxyToAdmin({ stop: true, reason: 'r' })",
            json!({"type": "interrupt.proxy.stop", "reason": "r"}),
        ),
        (
            "waitForAdminInput({ timeoutSeconds: 5 })",
            json!({"type": "interrupt.proxy.wait", "timeoutSeconds": 5}),
        ),
        ("say('hi')", json!({"type": "say", "text": "hi"})),
        (
            "ask('k', 'K?')",
            json!({"type": "ask", "key": "k", "text": "K?"}),
        ),
        (
            "tool('t', { a: 1 })",
            json!({"type": "tool", "name": "t", "args": {"a": 1}}),
        ),
        (
            "handoff('f', 1)",
            json!({"type": "handoff", "to": "f", "input": 1}),
        ),
        ("startFlow('f')", json!({"type": "handoff", "to": "f"})),
        ("end('done')", json!({"type": "end", "reason": "done"})),
        (
            "runWorkflow('w', { x: 1 })",
            json!({"type": "workflow.run", "workflowId": "w", "input": {"x": 1}}),
        ),
    ];
    for (call, expected) in cases {
        assert_eq!(
            effect(flow(&format!("yield ctx.{call};")).next(None)),
            expected
        );
        assert_eq!(
            effect(flow(&format!("yield* ctx.{call};")).next(None)),
            expected,
            "yield*"
        );
    }
}

/// Z-115 (half: both forms give the result back)
#[test]
fn yield_and_yield_star_return_the_result() {
    let mut flow = flow(
        "const a = yield ctx.confirm({ question: 'A?' });
         const b = yield* ctx.confirm({ question: 'B?' });
         try { yield* ctx.tool('t'); } catch (e) { yield ctx.say(`${a}/${b}/${e.code}`); }",
    );
    assert_eq!(effect(flow.next(None))["question"], "A?");
    assert_eq!(effect(flow.next(Some(&json!(true))))["question"], "B?");
    assert_eq!(effect(flow.next(Some(&json!(false))))["type"], "tool");
    let error = crate::ErrorData::new("ToolError", "failed", "no");
    assert_eq!(say_text(flow.throw(&error)), "true/false/failed");
}

/// Z-116 (half: `await ctx.confirm` without yield fails the run before the next effect, naming the helper)
#[test]
fn helper_that_is_not_yielded_fails_the_run() {
    let mut flow = flow(
        "const ok = await ctx.confirm({ question: 'Sure?' });
         if (ok) yield { type: 'tool', name: 'pay', args: {} };",
    );
    let (code, message) = failure(flow.next(None));
    assert_eq!(code, "effect_not_yielded");
    assert!(message.contains("ctx.confirm()"), "{message}");
}

/// Z-116 (half: the end of the flow counts as well)
#[test]
fn helper_forgotten_before_the_end_fails_the_run() {
    let step = flow("ctx.escalate({ mode: 'm', reason: 'r' });").next(None);
    assert_eq!(failure(step).0, "effect_not_yielded");
}

/// Z-116 (half: an effect that was yielded does not count again)
#[test]
fn yielded_helpers_do_not_accumulate() {
    let mut flow = flow("for (let i = 0; i < 3; i++) yield ctx.say(String(i));");
    for text in ["0", "1", "2"] {
        assert_eq!(say_text(flow.next(None)), text);
    }
    assert_eq!(flow.next(None), FlowStep::Ended(json!(null)));
}

/// Z-6 (half: there is no `ctx.admin`, whatever the caller passes)
#[test]
fn context_shows_known_members_only() {
    let body = "yield ctx.say([typeof ctx.admin, ctx.user.id, ctx.input.x, ctx.session.id, typeof ctx.inbound].join());";
    let data = json!({"admin": {"id": "root"}, "user": {"id": "u"}, "input": {"x": 1}, "session": {"id": "s"}});
    let mut flow = flow_with(body, data, crate::ScriptLimits::default());
    assert_eq!(say_text(flow.next(None)), "undefined,u,1,s,undefined");
}

/// §10.2: another turn changes what `ctx` shows; the configuration cannot be changed by code.
#[test]
fn context_follows_the_turn() {
    let body = "yield ctx.ask('a', 'A?'); const held = ctx; 'use strict';
        let frozen = false; try { ctx.config.hitl.x = 1; } catch { frozen = true; }
        yield ctx.say(held.inbound.body + frozen);";
    let data = json!({"config": {"hitl": {}}});
    let mut flow = flow_with(body, data, crate::ScriptLimits::default());
    flow.next(None);
    let turn = object(json!({"inbound": {"body": "later"}}));
    flow.update_context(&turn).expect("sound data");
    assert_eq!(say_text(flow.next(Some(&json!("x")))), "latertrue");
}
