//! What a called node can do, and what it cannot.

use super::fixtures::{
    Module, TYPE, answer_of, call_with, describe, limits, load, manifest, pack_call,
};
use crate::{Caller, PackLimits, Packs, Stop, conformance_packs};
use serde_json::json;
use std::time::Duration;
use tandem_record::{EffectId, NodeId, PackResult, RunId};

#[test]
fn response_determines_the_result() {
    let table = [
        (r#"{"outcome":"completed","output":{"n":1}}"#, r#"{"n":1}"#),
        (
            r#"{"outcome":"completed","output":"text"}"#,
            r#"{"output":"text"}"#,
        ),
        (r#"{"outcome":"completed"}"#, "{}"),
        (
            r#"{"outcome":"failed","error":{"code":"no_stock","message":"none left"}}"#,
            "no_stock",
        ),
        (
            r#"{"outcome":"failed","error":{"code":"busy","retryable":true}}"#,
            "busy (again)",
        ),
        (
            r#"{"outcome":"failed","error":{"code":"no stock"}}"#,
            "pack_failed",
        ),
        (
            r#"{"outcome":"suspended","interrupt":{"kind":"approval"}}"#,
            "wasm_suspend_not_implemented",
        ),
        (r#"{"outcome":"vanished"}"#, "pack_response_invalid"),
        ("{}", "pack_response_invalid"),
        ("not JSON", "pack_response_invalid"),
        ("", "pack_response_invalid"),
    ];
    for (response, expected) in table {
        let answer = answer_of(&Module::responding_with(response), json!({}));
        assert_eq!(describe(&answer), expected, "{response}");
    }
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let response = format!(r#"{{"outcome":"completed","output":{deep}}}"#);
    let answer = answer_of(&Module::responding_with(&response), json!({}));
    assert_eq!(
        describe(&answer),
        "pack_response_invalid",
        "too deeply nested"
    );
}

#[test]
fn response_outside_memory_is_invalid() {
    let table = [
        // Outside its memory; past the end; longer than may be read.
        (1_u64 << 32 | 0xffff_0000, "pack_response_invalid"),
        (100 << 32 | 65_500, "pack_response_invalid"),
        (2000 << 32 | 512, "pack_response_invalid"),
    ];
    for (packed, expected) in table {
        let module = Module {
            invoke: format!("(i64.const {})", packed.cast_signed()),
            ..Module::default()
        };
        assert_eq!(describe(&answer_of(&module, json!({}))), expected);
    }
}

#[test]
fn failure_kinds_are_distinguished() {
    let table = [
        ("(unreachable)", "pack_trap"),
        (
            "(loop $on (br $on))",
            "wasm-fuel 5000000 sandbox_fuel_exceeded",
        ),
        // Beyond the host's limit: stopped at once, although it would continue without.
        (
            "(drop (memory.grow (i32.const 16)))",
            "wasm-memory 1048576 sandbox_memory_exceeded",
        ),
        // Within the limit.
        (
            "(drop (memory.grow (i32.const 15)))",
            "pack_response_invalid",
        ),
        ("(drop (i32.load (i32.const 70000)))", "pack_trap"),
    ];
    for (body, expected) in table {
        assert_eq!(
            describe(&answer_of(&Module::with_body(body), json!({}))),
            expected,
            "{body}"
        );
    }
}

#[test]
fn endless_recursion_fails_only_the_call() {
    let module = Module {
        data: "(func $deeper (call $deeper))".to_owned(),
        ..Module::with_body("(call $deeper)")
    };
    assert_eq!(describe(&answer_of(&module, json!({}))), "pack_trap");
}

#[test]
fn module_may_declare_a_lower_memory_maximum() {
    let bounded = |body: &str| Module {
        memory: r#"(memory (export "memory") 1 4)"#,
        ..Module::with_body(body)
    };
    // The growth is refused and the module continues.
    let copes = answer_of(
        &bounded("(drop (memory.grow (i32.const 16000)))"),
        json!({}),
    );
    assert_eq!(
        describe(&copes),
        "wasm-memory 262144 sandbox_memory_exceeded"
    );
    let copes = answer_of(&bounded("(drop (memory.grow (i32.const 8)))"), json!({}));
    assert_eq!(describe(&copes), "pack_response_invalid");
    // The growth is refused and the module traps.
    let body = "(if (i32.eq (memory.grow (i32.const 8)) (i32.const -1)) (then (unreachable)))";
    let gives_up = answer_of(&bounded(body), json!({}));
    assert_eq!(
        describe(&gives_up),
        "wasm-memory 262144 sandbox_memory_exceeded"
    );
}

#[test]
fn call_ends_on_timeout_and_when_stopped() {
    let module =
        wat::parse_str(Module::with_body("(loop $on (br $on))").text()).expect("assembles");
    let slow = PackLimits {
        fuel: u64::MAX,
        time: Duration::ZERO,
        ..limits()
    };
    let mut packs = Packs::new(slow);
    // The calls while loading end before the first check of the clock.
    let added = packs.add(&manifest().to_string(), &|_, _| Ok(module.clone()));
    added.expect("loads");
    let answer = call_with(&packs, &pack_call(TYPE, json!({})), 0);
    assert_eq!(describe(&answer), "wasm-execution-time 0 sandbox_timeout");

    let stop = Stop::default();
    stop.now();
    let who = Caller {
        effect: &EffectId::new("e"),
        run: &RunId::new("r"),
        node: &NodeId::new("n"),
        attempt: 0,
    };
    let answer = packs.call(who, &pack_call(TYPE, json!({})), stop);
    assert_eq!(describe(&answer), "pack_trap");
}

#[test]
fn request_size_is_limited() {
    let answer = answer_of(
        &Module::responding_with("{}"),
        json!({"text": "x".repeat(4000)}),
    );
    assert_eq!(describe(&answer), "content_too_long");
}

#[test]
fn allocation_outside_memory_fails_the_call() {
    let module = Module {
        alloc: r#"(func (export "openwop_alloc") (param i32) (result i32) (i32.const -8))"#,
        ..Module::responding_with("{}")
    };
    assert_eq!(describe(&answer_of(&module, json!({}))), "pack_trap");
}

#[test]
fn declared_schemas_are_enforced() {
    let table = [
        ("configSchemaRef", json!({}), r#"{"text":1}"#, "{}"),
        (
            "inputSchemaRef",
            json!({"text": 1}),
            "{}",
            "validation_error",
        ),
        ("inputSchemaRef", json!({"other": 1}), "{}", "{}"),
        (
            "outputSchemaRef",
            json!({}),
            r#"{"text":1}"#,
            "pack_response_invalid",
        ),
        (
            "outputSchemaRef",
            json!({}),
            r#"{"other":1}"#,
            r#"{"other":1}"#,
        ),
    ];
    for (shape, inputs, output, expected) in table {
        let mut manifest = manifest();
        manifest["nodes"][0][shape] = json!("no-text.json");
        let response = format!(r#"{{"outcome":"completed","output":{output}}}"#);
        let packs = load(&manifest, &Module::responding_with(&response).text()).expect("loads");
        let mut call = pack_call(TYPE, inputs);
        if shape == "configSchemaRef" {
            call.config.insert("text".to_owned(), json!(1));
            assert_eq!(describe(&call_with(&packs, &call, 0)), "validation_error");
            continue;
        }
        assert_eq!(describe(&call_with(&packs, &call, 0)), expected, "{shape}");
    }
}

const LOG: &str = r#"(import "openwop" "openwop_log" (func $log (param i32 i32 i32)))"#;

#[test]
fn node_log_is_limited() {
    let module = Module {
        imports: LOG,
        data: r#"(data (i32.const 600) "so it goes")"#.to_owned(),
        ..Module::with_body(
            "(call $log (i32.const 3) (i32.const 600) (i32.const 10))
             (call $log (i32.const 77) (i32.const 600) (i32.const 60000))",
        )
    };
    let log = answer_of(&module, json!({})).log_lines;
    assert_eq!(
        (log[0].level.as_str(), log[0].message.as_str()),
        ("warn", "so it goes")
    );
    assert_eq!(
        (log[1].level.as_str(), log[1].message.len()),
        ("info", 1024)
    );

    let chatty = Module {
        imports: LOG,
        ..Module::with_body(
            "(local $n i32)
             (loop $on
               (call $log (i32.const 2) (i32.const 0) (i32.const 6))
               (local.set $n (i32.add (local.get $n) (i32.const 1)))
               (br_if $on (i32.lt_u (local.get $n) (i32.const 100))))",
        )
    };
    assert_eq!(answer_of(&chatty, json!({})).log_lines.len(), 32);

    let astray = Module {
        imports: LOG,
        ..Module::with_body("(call $log (i32.const 2) (i32.const 65530) (i32.const 60))")
    };
    assert_eq!(describe(&answer_of(&astray, json!({}))), "pack_trap");
}

/// Logs the time and sixteen random bytes.
#[test]
fn time_and_randomness_are_determined_by_the_call() {
    let module = Module {
        imports: r#"(import "openwop" "openwop_log" (func $log (param i32 i32 i32)))
                    (import "openwop" "openwop_now_ms" (func $now (result i64)))
                    (import "openwop" "openwop_random" (func $random (param i32 i32)))"#,
        ..Module::with_body(
            "(if (i64.ne (call $now) (i64.const 1700000000000)) (then (unreachable)))
             (call $random (i32.const 600) (i32.const 40))
             (call $log (i32.const 2) (i32.const 600) (i32.const 40))",
        )
    };
    let packs = load(&manifest(), &module.text()).expect("loads");
    let call = pack_call(TYPE, json!({}));
    let first = call_with(&packs, &call, 0);
    assert_eq!(first.log_lines.len(), 1, "{}", describe(&first));
    assert_eq!(first, call_with(&packs, &call, 0));
    assert_ne!(first, call_with(&packs, &call, 1));
}

#[test]
fn unknown_type_fails_with_pack_unavailable() {
    let packs = Packs::new(limits());
    let answer = call_with(&packs, &pack_call("vendor.acme.gone", json!({})), 0);
    assert_eq!(describe(&answer), "pack_unavailable");
}

#[test]
fn greet_pack_greets_the_name_of_its_input() {
    let mut packs = Packs::new(PackLimits::default());
    conformance_packs(&mut packs);
    let greet = "vendor.openwop.rust-hello.greet";
    let table = [
        (json!({}), "Hello, world!"),
        (json!({"name": "openwop"}), "Hello, openwop!"),
        (
            json!({"name": "a \"quoted\" one\\"}),
            "Hello, a \"quoted\" one\\!",
        ),
        (
            json!({"deep": {"name": "no"}, "name": "yes"}),
            "Hello, yes!",
        ),
        (json!({"deep": {"name": "no"}}), "Hello, world!"),
        (json!({"a": "name", "name": 7}), "Hello, world!"),
        (
            json!({"name": "ü".repeat(40_000)}),
            &format!("Hello, {}!", "ü".repeat(40_000)),
        ),
    ];
    for (inputs, greeting) in table {
        let mut call = pack_call(greet, inputs.clone());
        call.configurable.insert("name".to_owned(), json!("nobody"));
        let answer = call_with(&packs, &call, 0);
        let PackResult::Completed { outputs } = &answer.result else {
            panic!("{}", describe(&answer));
        };
        assert_eq!(outputs["greeting"], json!(greeting), "{inputs}");
        assert_eq!(answer.log_lines.len(), 1);
    }
}

#[test]
fn memory_bomb_pack_is_stopped() {
    let mut packs = Packs::new(PackLimits::default());
    conformance_packs(&mut packs);
    let call = pack_call("vendor.openwop.misbehaving.memory-bomb", json!({}));
    assert_eq!(
        describe(&call_with(&packs, &call, 0)),
        "wasm-memory 67108864 sandbox_memory_exceeded"
    );
}
