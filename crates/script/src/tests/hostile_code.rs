//! Code that tries to hang, exhaust or deceive its host.

use super::fixtures::*;
use crate::{ErrorData, FlowInstance, FlowStart, FlowStep, ScriptLimits};
use serde_json::json;
use std::time::{Duration, Instant};

/// Fails with `flow_limit` soon, and the next instance works.
fn contained(body: &str) -> String {
    let mut run = flow(body);
    let started = Instant::now();
    let (code, message) = failure(run.next(None));
    assert_eq!(code, "flow_limit", "{body}: {message}");
    assert!(started.elapsed() < Duration::from_secs(20), "{body}");
    assert!(!run.is_usable());
    assert!(matches!(run.next(None), FlowStep::Failed(_)));
    assert_eq!(says("'alive'"), "alive");
    message
}

/// Z-209 (half: CPU time between two effects is limited, and code cannot catch it)
#[test]
fn endless_loops_are_stopped() {
    contained("for (;;) {}");
    contained("try { for (;;) {} } catch { yield ctx.say('caught'); } finally { for (;;) {} }");
    contained("const spin = () => Promise.resolve().then(spin); await spin();");
    contained("/(a+)+$/.test('a'.repeat(40) + 'b'); yield ctx.say('x');");
    contained("await ({ then() { for (;;) {} } });");
}

/// Z-209 (half: limits of heap and stack cannot be caught either)
#[test]
fn broken_limits_of_memory_are_not_caught() {
    let heap = "let all = []; const fill = () => { for (;;) all.push(new Array(1e5).fill(1)); };";
    let deep = "const deep = () => deep();";
    for (fill, call) in [(heap, "fill()"), (deep, "deep()")] {
        for caught in [
            format!("try {{ {call}; }} catch (e) {{ yield ctx.say('on'); }}"),
            format!("try {{ {call}; }} catch {{ yield ctx.say('on'); }}"),
            format!("try {{ {call}; }} catch ({{ message }}) {{ yield ctx.say(message); }}"),
            format!("try {{ await (async () => {call})(); }} catch (e) {{ yield ctx.say('on'); }}"),
            format!("await (async () => {call})().catch(() => 1); yield ctx.say('on');"),
            format!("await (async () => {call})().then(null, () => 1); yield ctx.say('on');"),
            format!("await Promise.allSettled([(async () => {call})()]); yield ctx.say('on');"),
        ] {
            let message = contained(&format!("{fill} {caught}"));
            assert!(message.contains("the code needs more than"), "{message}");
        }
    }
}

/// What is no limit is caught as everywhere.
#[test]
fn other_errors_are_caught_as_everywhere() {
    for (body, said) in [
        (
            "try { throw new RangeError('x'); } catch (e) { yield ctx.say(e.message); }",
            "x",
        ),
        (
            "try { throw { a: 1, b: { c: 2 } }; } catch ({ a, b: { c } }) { yield ctx.say(`${a}${c}`); }",
            "12",
        ),
        (
            "try { throw [1, 2]; } catch ([a, ...rest]) { yield ctx.say(`${a}${rest}`); }",
            "12",
        ),
        ("try { null.x; } catch { yield ctx.say('none'); }", "none"),
        (
            "try { throw null; } catch (e) { yield ctx.say(`${e}`); }",
            "null",
        ),
        (
            "const catch_ = { catch: 1 }; yield ctx.say(`catch (e) { ${catch_.catch}`);",
            "catch (e) { 1",
        ),
        (
            "const x = await Promise.reject(7).catch((e) => e + 1); yield ctx.say(`${x}`);",
            "8",
        ),
    ] {
        let FlowStep::Effect(effect) = flow(body).next(None) else {
            panic!("{body}");
        };
        assert_eq!(effect["text"], said, "{body}");
    }
}

/// Z-209 (half: the CPU time is counted anew after every effect, and across host calls between them)
#[test]
fn cpu_time_is_counted_between_effects() {
    let limits = ScriptLimits {
        cpu_ms: 60,
        ..ScriptLimits::default()
    };
    let burn = "const burn = (n) => { let x = 0; for (let i = 0; i < n; i++) x += i; return x; };";
    // Finds work that takes about half of the limit on this machine.
    let mut rounds = 200_000;
    loop {
        let body = format!("{burn} burn({rounds}); yield ctx.say('x');");
        let mut probe = flow_with(
            &body,
            json!({}),
            ScriptLimits {
                cpu_ms: 35,
                ..limits
            },
        );
        if matches!(probe.next(None), FlowStep::Failed(_)) {
            break;
        }
        rounds *= 2;
    }
    let half = rounds / 2;
    let mut fair = flow_with(
        &format!("{burn} for (let i = 0; i < 6; i++) {{ burn({half}); yield ctx.say('x'); }}"),
        json!({}),
        limits,
    );
    for _ in 0..6 {
        assert_eq!(say_text(fair.next(None)), "x");
    }
    let mut greedy = flow_with(
        &format!(
            "{burn} for (let i = 0; i < 9; i++) {{ burn({half}); await ctx.session.kv.get('a'); }}"
        ),
        json!({}),
        limits,
    );
    let mut step = greedy.next(None);
    while let FlowStep::HostCalls(calls) = &step {
        step = greedy.answer(calls[0].index, Ok(&json!(null)));
    }
    assert_eq!(failure(step).0, "flow_limit");
}

/// Z-209 (half: the heap is limited)
#[test]
fn memory_bombs_are_stopped() {
    contained(
        "const all = []; all.push(new Array(2e7).fill(0)); yield ctx.say(String(all.length));",
    );
    contained("let s = 'x'; for (;;) s += s;");
    contained("yield ctx.say('x'.repeat(2 ** 28));");
    contained("const m = new Map(); for (let i = 0; ; i++) m.set(i, new Uint8Array(65536));");
}

/// Z-65 (half: whatever is thrown is an exception of the author)
#[test]
fn values_that_are_no_errors_are_exceptions_when_thrown() {
    for (thrown, expected) in [
        ("null", "null"),
        ("undefined", "undefined"),
        ("'out of stock'", "out of stock"),
        ("7", "7"),
        ("{ why: 'sold' }", ""),
        ("Symbol('x')", "symbol"),
    ] {
        let mut run = flow(&format!("yield ctx.say('x'); throw {thrown};"));
        run.next(None);
        let (code, message) = failure(run.next(None));
        assert_eq!(
            (code, message.as_str()),
            ("exception", expected),
            "{thrown}"
        );
    }
}

/// Z-209 (half: the stack is limited)
#[test]
fn deep_recursion_is_stopped() {
    let message = contained("const f = (n) => f(n + 1) + 1; f(0);");
    assert!(message.contains("stack"), "{message}");
    contained("let a = []; for (let i = 0; i < 1e6; i++) a = [a]; JSON.stringify(a);");
}

/// Z-209 (half: an effect larger than 256 KB fails the run, and so does a result)
#[test]
fn values_are_limited() {
    contained("yield { type: 'say', text: 'x'.repeat(300_000) };");
    contained("yield { type: 'say', text: 'x', list: new Array(1e9) };");
    let mut run = flow("yield ctx.say('x');");
    run.next(None);
    let huge = json!("x".repeat(300_000));
    assert_eq!(failure(run.next(Some(&huge))).0, "flow_limit");
}

/// Z-47 (half: effects that are no plain data are told apart, and the flow may go on)
#[test]
fn effects_that_are_no_data_are_refused() {
    for (bad, expected) in [
        (
            "const e = { type: 'say' }; e.e = e; yield e;",
            "contains itself",
        ),
        (
            "let e = {}; for (let i = 0; i < 100; i++) e = { e }; yield e;",
            "nested deeper",
        ),
        (
            "yield { type: 'say', get text() { throw new Error('trap'); } };",
            "trap",
        ),
        (
            "yield new Proxy({ type: 'say' }, { ownKeys() { throw new Error('trap'); } });",
            "trap",
        ),
        ("yield { type: 'say', n: 10n };", "BigInt"),
        (
            "yield { type: 'say', toJSON() { throw new Error('trap'); } };",
            "trap",
        ),
    ] {
        let mut run = flow(&format!(
            "try {{ {bad} }} catch (e) {{ yield ctx.say(e.code); }}"
        ));
        let step = run.next(None);
        let FlowStep::NotAnEffect { problem } = &step else {
            panic!("{bad}: {step:?}");
        };
        assert!(problem.contains(expected), "{bad}: {problem}");
        let error = ErrorData::new("FlowEffectError", "bad_effect", problem.clone());
        assert_eq!(say_text(run.throw(&error)), "bad_effect");
    }
    contained("yield { type: 'say', get text() { for (;;) {} } };");
    contained("yield new Proxy({}, { get() { for (;;) {} } });");
}

/// Getters and proxies are read once; the same object may appear twice without being a cycle.
#[test]
fn accessors_are_read_into_plain_data() {
    let mut run = flow(
        "const shared = { n: 1 };
         yield { type: 'x', get text() { return 'read'; }, a: shared, b: shared, u: undefined, f: () => 1, s: Symbol('s'), d: new Date(0),
           nan: NaN, big: 2 ** 53, neg: -1, lone: '\\ud800', p: new Proxy({ q: 1 }, {}), '__proto__x': 1, ['__proto__']: { y: 1 } };",
    );
    let read = effect(run.next(None));
    assert_eq!(
        read,
        json!({"type": "x", "text": "read", "a": {"n": 1}, "b": {"n": 1}, "f": {"$fn": true}, "d": "1970-01-01T00:00:00.000Z",
            "nan": null, "big": 9007199254740992.0, "neg": -1, "lone": "\u{fffd}", "p": {"q": 1}, "__proto__x": 1, "__proto__": {"y": 1}})
    );
}

/// The driver does not depend on built-ins that code has replaced.
#[test]
fn replaced_built_ins_do_not_disturb_the_driver() {
    let poison = "
        const boom = () => { throw new Error('poisoned'); };
        const { defineProperty, ownKeys } = Reflect;
        const trap = { __proto__: null, get: boom, set: boom, configurable: true };
        const protos = [Promise.prototype, String.prototype, Map.prototype, WeakSet.prototype, Error.prototype, Symbol.prototype,
          Object.getPrototypeOf(async function* () {}).prototype, Object.getPrototypeOf(boom), Array.prototype, Object.prototype];
        const keys = protos.map((proto) => ownKeys(proto));
        // Without the constructor, `await` itself would fail.
        for (let p = 0; p < 10; p++) for (let k = 0; k < keys[p].length; k++) {
          if (p !== 0 || keys[p][k] !== 'constructor') defineProperty(protos[p], keys[p][k], trap);
        }
        const more = ['0', '1', 'next', 'done', 'value', 'resolve', 'index', 'call', 'type', 'run', 'target', 'get', 'set', 'enumerable'];
        for (let k = 0; k < more.length; k++) defineProperty(Object.prototype, more[k], trap);
        JSON.parse = JSON.stringify = Reflect.apply = Object.defineProperty = boom;
        globalThis.Promise = globalThis.Error = globalThis.Map = globalThis.JSON = globalThis.Reflect = globalThis.Symbol = boom;";
    let mut run = flow(&format!(
        "{poison}
         const kv = await ctx.session.kv.get('a');
         const a = yield ctx.confirm({{ question: 'q' + kv }});
         let code; try {{ yield {{ type: 'tool', name: 'n', args: {{ a }} }}; }} catch (e) {{ code = e.code; }}
         yield {{ type: 'say', text: code }};
         return {{ reason: 'end' }};"
    ));
    let step = run.next(None);
    assert!(matches!(step, FlowStep::HostCalls(_)), "{step:?}");
    assert_eq!(effect(run.answer(0, Ok(&json!("v"))))["question"], "qv");
    assert_eq!(
        effect(run.next(Some(&json!({"x": [1]}))))["args"],
        json!({"a": {"x": [1]}})
    );
    assert_eq!(
        say_text(run.throw(&ErrorData::new("ToolError", "failed", "no"))),
        "failed"
    );
    assert_eq!(run.next(None), FlowStep::Ended(json!({"reason": "end"})));
}

/// What is thrown may be anything.
#[test]
fn thrown_values_are_read_with_care() {
    assert_eq!(
        failure(flow("throw 'text';").next(None)),
        ("exception", "text".to_owned())
    );
    assert_eq!(failure(flow("throw undefined;").next(None)).0, "exception");
    assert_eq!(
        failure(flow("throw { get message() { throw 1; } };").next(None)).0,
        "exception"
    );
    assert_eq!(
        failure(flow("throw { get message() { for (;;) {} } };").next(None)).0,
        "flow_limit"
    );
    assert_eq!(
        failure(
            flow("throw new Proxy({}, { get() { throw 1; }, ownKeys() { throw 1; } });").next(None)
        )
        .0,
        "exception"
    );
}

/// A file that never finishes loading is reported; the process goes on.
#[test]
fn endless_module_is_reported() {
    for source in [
        "for (;;) {}",
        "await new Promise(() => {});",
        "const a = []; for (;;) a.push(new Array(1e6).fill(1));",
    ] {
        let file = format!("{source}\nexport async function* f(ctx) {{}}");
        let module = demo(&[("flows/f.ts", file.as_str())]);
        assert_eq!(module.errors.len(), 1, "{source}");
        assert_eq!(module.errors[0].file, "flows/f.ts");
    }
}

/// Too many calls at once are refused inside the code.
#[test]
fn host_calls_are_limited() {
    let mut run = flow(
        "const all = []; for (let i = 0; i < 1001; i++) all.push(ctx.session.kv.get('k'));
         try { await all[1000]; } catch (e) { await ctx.session.kv.get('x').catch(() => {}); throw e; }",
    );
    let FlowStep::HostCalls(calls) = run.next(None) else {
        panic!("calls")
    };
    assert_eq!(calls.len(), 1000);
}

/// Z-209 (half: built-in methods that loop without running code are bounded)
#[test]
fn endless_built_in_methods_are_refused() {
    for body in [
        "new Array(4294967295).reverse();",
        "[].sort.call({ length: 2 ** 53 - 1 });",
        "[].join.call({ length: 2 ** 53 - 1 }, '');",
        "let n = 1; [].reverse.call({ get length() { return n++ > 1 ? 2 ** 53 - 1 : 1; } });",
        "[].shift.call(Object.create({ length: 2 ** 53 - 1 }));",
        "[].concat(new Array(4294967295));",
        "[[new Array(4294967295)]].flat(2);",
        "new Array(4294967295).slice(5);",
        "'a'.repeat(1e7).indexOf('a'.repeat(5e6) + 'b');",
        "'a'.repeat(1e7).replaceAll({ toString: () => 'a'.repeat(5e6) + 'b' }, '');",
        "'a'.repeat(1e7).split('a'.repeat(5e6) + 'b');",
    ] {
        let started = Instant::now();
        let (code, message) = failure(flow(body).next(None));
        let is_refused = code == "flow_limit" || message.starts_with("TypeError: the length");
        assert!(is_refused, "{body}: {code} {message}");
        assert!(started.elapsed() < Duration::from_secs(10), "{body}");
    }
    contained("new Array(4294967295).forEach(() => {});");
    contained("[].indexOf.call({ length: 2 ** 53 - 1 }, 1);");
}

/// The bounded methods behave as the originals.
#[test]
fn bounded_methods_keep_their_behaviour() {
    let expected = "3,2,1|1-2|a,b|x b|2|1,2,3|1,2|1|a,b|ba|true|a|TypeError|reverse 0|c-b";
    let text = says(
        "[[1, 2, 3].reverse(), [1, 2].join('-'), 'a b'.split(' '), 'a b'.replace('a', 'x'), 'abc'.indexOf('c'), [1].concat([2], 3),
          [[1], [2]].flat(), [].slice.call({ length: 1, 0: 1 })[0], 'a1b'.split(/\\d/), 'ab'.replace(/(a)(b)/, '$2$1'), 'null'.includes(null),
          'a'.split(), (() => { try { 'a'.includes(/a/); } catch (e) { return e.name; } })(),
          [].reverse.name + ' ' + [].reverse.length, [1, 2].map((n) => 'bc'[n - 1]).toSorted().toReversed().join('-')].join('|')",
    );
    assert_eq!(text, expected);
}

/// Z-209 (half: whatever allocation fails, the instance fails and the process goes on)
#[test]
fn every_heap_limit_is_survived() {
    let (set, _) = source_of(
        "export async function* main(ctx) { const all = []; try { for (;;) all.push({ text: 'x'.repeat(all.length), at: new Date() }); }
           finally { await ctx.session.kv.set('n', all.length); } }",
    );
    let mut began = 0;
    for kilobytes in (20..1_500).step_by(35) {
        let limits = ScriptLimits {
            heap_bytes: kilobytes << 10,
            ..ScriptLimits::default()
        };
        let start = FlowStart {
            flow_id: "main",
            context: &object(json!({})),
            surroundings: &surroundings(),
        };
        let Ok(mut run) = FlowInstance::create(set.clone(), limits, &start) else {
            continue;
        };
        began += 1;
        let step = run.next(None);
        assert!(
            matches!(step, FlowStep::Failed(_) | FlowStep::HostCalls(_)),
            "{step:?}"
        );
    }
    assert!(began > 10, "{began} instances began");
}
