//! Effects, results, errors and ends.

use super::fixtures::*;
use crate::{ErrorData, FlowStep, ScriptLimits};
use serde_json::json;

/// §10.4, Z-46 (half: in the sandbox), Z-48 (half: in the sandbox)
#[test]
fn effects_come_one_at_a_time_and_get_their_results() {
    let mut flow = flow(
        "const a = yield { type: 'ask', key: 'date', text: 'When?' };
         const b = yield { type: 'tool', name: 'book', args: { date: a, seats: 1.5 } };
         return { reason: b.ok };",
    );
    let asked = effect(flow.next(None));
    assert_eq!(
        asked,
        json!({"type": "ask", "key": "date", "text": "When?"})
    );
    let called = effect(flow.next(Some(&json!("Monday"))));
    assert_eq!(called["args"], json!({"date": "Monday", "seats": 1.5}));
    let ended = flow.next(Some(&json!({"ok": "booked"})));
    assert_eq!(ended, FlowStep::Ended(json!({"reason": "booked"})));
    assert!(!flow.is_usable());
}

/// Z-54 (half: the answer to an ask is also in `ctx.answers`)
#[test]
fn answers_are_collected_by_key() {
    let mut flow = flow(
        "yield { type: 'ask', key: 'name', text: 'Name?' };
         yield { type: 'say', text: ctx.answers.name };",
    );
    flow.next(None);
    assert_eq!(say_text(flow.next(Some(&json!("Ana")))), "Ana");
}

/// A thrown error has name, code, message and the fields of its kind; the flow may catch it.
/// Z-47 (half: what is thrown), Z-58 (half: what is thrown)
#[test]
fn errors_are_thrown_in_as_error_objects() {
    let mut flow = flow(
        "try { yield { type: 'interrupt.proxy.start', target: 'a' }; } catch (e) {
           yield { type: 'say', text: [e instanceof Error, e.name, e.code, e.message, e.proxyId].join() };
         }",
    );
    flow.next(None);
    let mut error = ErrorData::new("FlowEffectError", "proxy_active", "there is a bridge");
    error.fields.insert("proxyId".to_owned(), json!("p1"));
    assert_eq!(
        say_text(flow.throw(&error)),
        "true,FlowEffectError,proxy_active,there is a bridge,p1"
    );
}

/// Z-65 (half: an error of the runtime that the flow does not catch fails it; the message begins with its code)
#[test]
fn uncaught_runtime_error_fails_with_its_code() {
    let mut flow = flow("yield { type: 'tool', name: 'x', args: {} };");
    flow.next(None);
    let step = flow.throw(&ErrorData::new("ToolError", "timeout", "no answer"));
    assert_eq!(
        failure(step),
        ("exception", "timeout: no answer".to_owned())
    );
    assert!(!flow.is_usable());
}

/// Z-65 (half: what the author throws fails the flow, with the position in the author's TypeScript)
#[test]
fn uncaught_exception_names_its_place_in_the_file() {
    let (set, _) = source_of(
        "interface Order {\n  id: string;\n  /** long gone at run time */\n  count: number;\n}\n\
         export async function* main(ctx: unknown) {\n  const order = { id: 'o' } as Order;\n  \
         throw new TypeError('bad ' + order.id);\n}",
    );
    let mut flow = start(set, "main", json!({}), ScriptLimits::default());
    let FlowStep::Failed(failure) = flow.next(None) else {
        panic!("it throws");
    };
    assert_eq!(failure.message, "TypeError: bad o");
    let position = failure.position.expect("a position");
    assert_eq!(
        (position.file.as_str(), position.line),
        ("flows/flows.ts", 8)
    );
}

/// Z-49 (half: a promise is awaited before it is yielded; what is not an object is told apart)
#[test]
fn only_objects_are_effects() {
    let mut flow = flow(
        "for (const bad of [7, 'text', null, undefined, [1], () => 1, Symbol('s')]) {
           try { yield bad; } catch (e) { yield { type: 'say', text: e.code }; }
         }
         yield Promise.resolve({ type: 'say', text: 'awaited' });",
    );
    let mut step = flow.next(None);
    for _ in 0..7 {
        assert!(matches!(step, FlowStep::NotAnEffect { .. }), "{step:?}");
        let error = ErrorData::new("FlowEffectError", "bad_effect", "not an effect");
        assert_eq!(say_text(flow.throw(&error)), "bad_effect");
        step = flow.next(None);
    }
    assert_eq!(say_text(step), "awaited");
}

/// Z-63 (half: closing runs `finally` blocks; what they yield is reported as ignored)
#[test]
fn closing_runs_finally_blocks_and_ignores_their_effects() {
    let mut flow = flow(
        "try { yield { type: 'ask', key: 'a', text: 'A?' }; }
         finally { yield { type: 'say', text: 'bye' }; await ctx.session.kv.delete('lock'); }",
    );
    flow.next(None);
    let FlowStep::HostCalls(calls) = flow.close() else {
        panic!("the finally block makes a call");
    };
    assert_eq!(calls[0].name, "session.kv.delete");
    let step = flow.answer(calls[0].index, Ok(&json!(null)));
    let ignored = vec![json!({"type": "say", "text": "bye"})];
    assert_eq!(
        step,
        FlowStep::Closed {
            ignored,
            failure: None
        }
    );
}

/// Z-63 (half: a flow that never began, and one that cannot be ended, are closed too)
#[test]
fn closing_always_ends() {
    let closed = FlowStep::Closed {
        ignored: vec![],
        failure: None,
    };
    assert_eq!(flow("yield { type: 'say', text: 'x' };").close(), closed);
    let mut endless =
        flow("for (;;) { try { yield { type: 'say', text: 'x' }; } finally { continue; } }");
    endless.next(None);
    let FlowStep::Closed { ignored, failure } = endless.close() else {
        panic!("it is closed");
    };
    assert_eq!(ignored.len(), 100);
    assert_eq!(failure.expect("a limit").code.as_str(), "flow_limit");
}

/// Z-208 (half: module variables start fresh in every run)
#[test]
fn every_run_has_its_own_realm() {
    let (set, _) = source_of(
        "let n = 0;\nexport const main = async function* (ctx) { n += 1; globalThis.seen = (globalThis.seen ?? 0) + 1;
           yield { type: 'say', text: `${n}/${globalThis.seen}` }; };",
    );
    for _ in 0..3 {
        let mut run = start(set.clone(), "main", json!({}), ScriptLimits::default());
        assert_eq!(say_text(run.next(None)), "1/1");
    }
}

/// Z-214 (half: a stored source set runs without the folder, and the same answers give the same steps)
#[test]
fn stored_source_runs_without_the_folder() {
    let module = demo(&[
        (
            "flows/main.ts",
            "import { greet } from '../lib/greet';\nexport default async function* (ctx) {
            const name = yield { type: 'ask', key: 'n', text: 'Name?' };
            yield { type: 'say', text: greet(name) + Math.random() }; }",
        ),
        (
            "lib/greet.ts",
            "import words from './words.json';\nexport const greet = (n: string) => `${words.hello} ${n} `;",
        ),
        ("lib/words.json", r#"{ "hello": "Hello" }"#),
    ]);
    assert_eq!(module.errors, []);
    let stored = serde_json::to_string(&*module.sources[&module.flows[0].version]).expect("JSON");
    let texts: Vec<String> = (0..2)
        .map(|_| {
            let set = serde_json::from_str(&stored).expect("a source set");
            let mut run = start(
                std::sync::Arc::new(set),
                "main",
                json!({}),
                ScriptLimits::default(),
            );
            run.next(None);
            say_text(run.next(Some(&json!("Ana"))))
        })
        .collect();
    assert!(texts[0].starts_with("Hello Ana 0."), "{texts:?}");
    assert_eq!(texts[0], texts[1]);
}

/// An instance moves between threads with everything it holds.
#[test]
fn instance_moves_between_threads() {
    let mut flow = flow(
        "let n = 1; n += yield { type: 'ask', key: 'a', text: 'A' }; yield { type: 'say', text: String(n) };",
    );
    let mut flow = std::thread::spawn(move || {
        flow.next(None);
        flow
    })
    .join()
    .expect("no panic");
    assert_eq!(say_text(flow.next(Some(&json!(41)))), "42");
}

/// Z-63 (half: a flow that waits for a host call is closed too; the call is refused)
#[test]
fn closing_refuses_calls_that_wait() {
    let mut run = flow(
        "try { await ctx.session.kv.get('a'); yield ctx.say('not reached'); }
         catch (e) { yield ctx.say(e.code); } finally { console.log('cleaned'); }",
    );
    assert!(matches!(run.next(None), FlowStep::HostCalls(_)));
    let step = run.close();
    assert!(
        matches!(step, FlowStep::Closed { failure: None, .. }),
        "{step:?}"
    );
    assert_eq!(run.take_logs()[0].text, "cleaned");
    assert!(!run.is_usable());
}
