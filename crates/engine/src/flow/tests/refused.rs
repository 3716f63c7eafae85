//! What is no effect, and the error that the flow gets.

use super::{minimal, problems};
use crate::flow::{FlowEffect, FlowError};
use serde_json::{Value, json};

#[test]
fn every_required_field_is_missed_by_name() {
    // Z-47 (half: a missing required field)
    for (effect, _) in minimal() {
        let fields = effect.as_object().expect("an object");
        let optional = |name: &str| name == "type" || name == "wait";
        for name in fields.keys().filter(|name| !optional(name)) {
            let mut without = fields.clone();
            without.remove(name);
            let found = problems(&Value::Object(without));
            assert_eq!(found.len(), 1, "{effect} without {name}: {found:?}");
            assert!(
                found[0].starts_with(&format!("{name}: is required")),
                "{found:?}"
            );
        }
    }
}

#[test]
fn wrong_fields_are_refused_and_named() {
    // Z-47 (half: wrong types and values), Z-84 (half: the durable sleep needs its time)
    // Z-102 (half: a generator function is refused), Z-242 (half: five reminders)
    let reminder = json!({"afterSeconds": 1, "text": "x"});
    let six = vec![reminder; 6];
    let confirm = |field: &str, value: Value| {
        let mut effect = json!({"type": "interrupt.confirm", "question": "Sure?"});
        effect[field] = value;
        effect
    };
    let table = [
        (
            json!({"type": "shout", "text": "x"}),
            "type: \"shout\" is not an effect",
        ),
        (
            json!({"type": "interupt.confirm"}),
            "did you mean `interrupt.confirm`?",
        ),
        (json!({"text": "x"}), "type: is required"),
        (json!({"type": 7}), "type: must be text, not a number"),
        (json!({"type": ""}), "type: must not be empty"),
        (
            json!({"type": "say", "text": 7}),
            "text: must be text, not a number",
        ),
        (
            json!({"type": "ask", "key": " ", "text": "x"}),
            "key: must not be empty",
        ),
        (
            json!({"type": "tool", "name": "t", "args": [1]}),
            "args: must be an object",
        ),
        (
            json!({"type": "tool", "name": "t", "args": {}, "onError": "ignore"}),
            "onError: must be one of throw, return",
        ),
        (json!({"type": "end", "reason": 1}), "reason: must be text"),
        (
            confirm("question", json!("")),
            "question: must not be empty",
        ),
        (
            confirm("timeoutSeconds", json!(0)),
            "timeoutSeconds: must be above 0",
        ),
        (
            confirm("timeoutSeconds", json!(-1)),
            "timeoutSeconds: must be above 0",
        ),
        (
            confirm("timeoutSeconds", json!(1e300)),
            "timeoutSeconds: must be above 0 and at most",
        ),
        (
            confirm("timeoutSeconds", json!("5")),
            "timeoutSeconds: must be a number of seconds",
        ),
        (
            confirm("positiveKeywords", json!("yes")),
            "positiveKeywords: must be a list",
        ),
        (
            confirm("positiveKeywords", json!(["yes", 1])),
            "positiveKeywords/1: must be text",
        ),
        (
            confirm("negativeKeywords", json!(vec!["x"; 101])),
            "has at most 100 entries",
        ),
        (
            confirm("responseSchema", json!({"type": 7})),
            "responseSchema/type: ",
        ),
        (
            confirm("reminders", json!(six)),
            "reminders: has at most 5 entries",
        ),
        (
            confirm("reminders", json!([{"text": "x"}])),
            "reminders/0/afterSeconds: is required",
        ),
        (
            confirm("reminders", json!([{"afterSeconds": 1}])),
            "reminders/0/text: is required",
        ),
        (
            json!({"type": "interrupt.escalate", "mode": "later", "reason": "r"}),
            "mode: must be one of async_resolution, live_takeover",
        ),
        (
            json!({"type": "interrupt.escalate", "mode": "live_takeover", "reason": "r",
                "metadata": "x"}),
            "metadata: must be an object",
        ),
        (
            json!({"type": "interrupt.wait", "waitFor": "timeout"}),
            "timeoutSeconds: is required when waitFor is timeout",
        ),
        (
            json!({"type": "interrupt.proxy.start", "target": "t", "replace": "yes"}),
            "replace: must be true or false",
        ),
        (
            json!({"type": "interrupt.proxy.wait", "processBeforeForward": "f"}),
            "processBeforeForward: must be a function",
        ),
        (
            json!({"type": "interrupt.proxy.wait",
                "processBeforeForward": {"$fn": true, "generator": true}}),
            "processBeforeForward: must be an async function",
        ),
    ];
    for (effect, expected) in table {
        let found = problems(&effect);
        assert_eq!(found.len(), 1, "{effect}: {found:?}");
        assert!(
            found[0].contains(expected),
            "{effect}: {found:?} without {expected:?}"
        );
    }
}

#[test]
fn values_that_are_no_objects_are_bad_effects() {
    // Z-49 (half: values that are no objects)
    for value in [
        json!(null),
        json!(true),
        json!(1),
        json!("say"),
        json!(["say"]),
    ] {
        let found = problems(&value);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("an effect is an object"), "{found:?}");
    }
}

#[test]
fn several_problems_are_listed_and_become_one_thrown_error() {
    // Z-47 (half: the error lists the problem)
    let effect = json!({"type": "interrupt.escalate", "priority": "urgent"});
    let bad = FlowEffect::parse(&effect).expect_err("three problems");
    assert_eq!(bad.problems.len(), 3);
    let thrown = serde_json::to_value(FlowError::from(bad)).expect("JSON");
    assert_eq!(
        (&thrown["name"], &thrown["code"]),
        (&json!("FlowEffectError"), &json!("bad_effect"))
    );
    assert!(
        thrown["message"]
            .as_str()
            .is_some_and(|m| m.contains("reason: is required"))
    );
    assert_eq!(thrown["problems"].as_array().map(Vec::len), Some(3));
}

#[test]
fn thrown_errors_carry_their_fields_beside_code_and_message() {
    let active = FlowError::effect("proxy_active", "busy").with("proxyId", "p1");
    let thrown = serde_json::to_value(&active).expect("JSON");
    assert_eq!(
        thrown,
        json!({"name": "FlowEffectError", "code": "proxy_active", "message": "busy",
            "proxyId": "p1"})
    );
    assert_eq!(
        serde_json::from_value::<FlowError>(thrown).expect("an error"),
        active
    );
    let name = |error: FlowError| serde_json::to_value(error).expect("JSON")["name"].clone();
    assert_eq!(name(FlowError::tool("failed", "x")), "ToolError");
    assert_eq!(name(FlowError::interrupt_timeout("x")), "InterruptTimeout");
}

/// Z-49 (half: what is wrong with a value that is no data reaches the flow)
#[test]
fn value_that_is_no_data_is_refused_with_its_problem() {
    let marker = crate::flow::not_an_effect("a BigInt is not JSON");
    assert_eq!(problems(&marker), ["a BigInt is not JSON"]);
}
