//! The global environment.

use super::fixtures::*;
use crate::{FlowInstance, FlowStart, ScriptLimits, Surroundings};
use serde_json::json;

/// Z-207 (half: no network, timers, modules, compiler, threads or process)
#[test]
fn nothing_ambient_exists() {
    let names = "['fetch', 'require', 'setTimeout', 'setInterval', 'setImmediate', 'process', 'WebAssembly', 'SharedArrayBuffer',
        'Atomics', 'WeakRef', 'FinalizationRegistry', 'eval', 'Function', 'Deno', 'Bun', 'performance', 'Intl', 'std', 'os', 'print',
        'navigator', 'global', 'window', 'native', 'driver', 'scriptArgs', 'gc']";
    let found = says(&format!(
        "{names}.filter((n) => typeof globalThis[n] !== 'undefined').join() || 'nothing'"
    ));
    assert_eq!(found, "nothing");
}

/// Z-207 (half: code cannot be made from text through the constructors of functions either)
#[test]
fn function_constructors_are_unreachable() {
    let probe = "[function () {}, async function () {}, function* () {}, async function* () {}, () => 1, class {}].map((f) => {
        try { return typeof f.constructor('return 1')(); } catch (e) { return 'refused'; } })";
    let found = says(probe);
    assert!(!found.contains("number"), "{found}");
    assert_eq!(
        says(
            "[...Object.getOwnPropertyNames(Object.getPrototypeOf(() => 1))].includes('constructor')"
        ),
        "false"
    );
}

/// Z-207 (half: only modules of the source set can be imported dynamically)
#[test]
fn dynamic_import_is_limited_to_the_source_set() {
    let mut flow =
        flow("try { const n = 'fs'; await import(n); } catch (e) { yield ctx.say('refused'); }");
    assert_eq!(say_text(flow.next(None)), "refused");
}

/// Z-207 (half: every clock gives the time of the last record)
#[test]
fn time_is_the_recorded_time() {
    let mut flow = flow(
        "for (;;) yield ctx.say([Date.now(), new Date().getTime(), +new Date(Date())].join());",
    );
    assert_eq!(
        say_text(flow.next(None)),
        format!("{NOON_MS},{NOON_MS},{NOON_MS}")
    );
    flow.set_now(NOON_MS + 60_000);
    let later = NOON_MS + 60_000;
    assert_eq!(
        say_text(flow.next(None)),
        format!("{later},{later},{later}")
    );
}

/// Z-207 (half: chance follows the seed)
#[test]
fn chance_follows_the_seed() {
    let body = "yield ctx.say([Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(4)).join('-')].join('|'));";
    let (set, _) = source_of(&format!("export async function* main(ctx) {{ {body} }}"));
    let text_of = |seed: &str| {
        let surroundings = Surroundings {
            seed: seed.into(),
            ..surroundings()
        };
        let start = FlowStart {
            flow_id: "main",
            context: &object(json!({})),
            surroundings: &surroundings,
        };
        let mut run =
            FlowInstance::create(set.clone(), ScriptLimits::default(), &start).expect("a flow");
        say_text(run.next(None))
    };
    let first = text_of("one");
    assert_eq!(first, text_of("one"));
    assert_ne!(first, text_of("two"));
    let uuid = first.split('|').nth(1).expect("three parts");
    assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
}

/// Z-207 (half: `console` goes to the log, bounded)
#[test]
fn console_goes_to_the_log() {
    let mut flow = flow(
        "console.log('a', { b: 1 }, undefined); console.error(new Error('oops')); for (let i = 0; i < 1000; i++) console.info(i); yield ctx.say('x');",
    );
    flow.next(None);
    let lines = flow.take_logs();
    assert_eq!(
        (lines[0].level.as_str(), lines[0].text.as_str()),
        ("log", "a {\"b\":1} undefined")
    );
    assert_eq!(
        (lines[1].level.as_str(), lines[1].text.as_str()),
        ("error", "oops")
    );
    assert_eq!(lines.len(), 200);
    assert_eq!(flow.take_logs(), []);
}

/// §10.4: current syntax and the standard library work.
#[test]
fn modern_syntax_works() {
    let source = "(() => { class A { #x = 1_000; static y = 2; get x() { return this.#x; } }
        const o = { a: { b: null } }; let n = null; n ??= 5;
        return [new A().x, A.y, o?.a?.b ?? 'none', n, [3, 1, 2].toSorted().at(-1), Object.groupBy([1, 2], (v) => v % 2 ? 'o' : 'e').o,
          'é'.normalize('NFD').length, new Map([[1, 2]]).get(1), 10n ** 3n].join(); })()";
    assert_eq!(says(source), "1000,2,none,5,3,1,2,2,1000");
}
