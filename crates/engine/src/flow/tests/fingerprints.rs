//! Fingerprints, and arbitrary values as effects.

use super::minimal;
use crate::flow::{FlowEffect, fingerprint};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn fingerprint_covers_all_data_and_only_data() {
    // Z-204 (half: what the fingerprint is computed from)
    let effect = json!({"type": "ask", "key": "k", "text": "When?", "extra": 1});
    let reordered: Value =
        serde_json::from_str(r#"{"extra": 1, "text": "When?", "type": "ask", "key": "k"}"#)
            .expect("JSON");
    assert_eq!(fingerprint(&effect), fingerprint(&reordered));
    assert_eq!(fingerprint(&effect).len(), 64);
    for (field, value) in [
        ("text", json!("Where?")),
        ("extra", json!(2)),
        ("more", json!(null)),
    ] {
        let mut other = effect.clone();
        other[field] = value;
        assert_ne!(fingerprint(&effect), fingerprint(&other), "{field}");
    }
    let hook =
        |marker: Value| json!({"type": "interrupt.proxy.wait", "processBeforeForward": marker});
    let plain = fingerprint(&hook(json!({"$fn": true})));
    assert_eq!(
        plain,
        fingerprint(&hook(json!({"$fn": true, "name": "f", "line": 3})))
    );
    assert_ne!(plain, fingerprint(&hook(json!(null))));
    // A change here makes stored runs diverge.
    assert_eq!(
        fingerprint(&json!({"type": "say", "text": "Hello"})),
        "9e3031b208d4f63f9f2eae4aa16daa9e71d8edae53c1f863e8c87bc300f909d2"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!({"$fn": true})),
        Just(json!({"$standard": true})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_effect() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(minimal().map(|(effect, _)| effect).to_vec());
    let names = prop::sample::select(vec![
        "type",
        "text",
        "key",
        "name",
        "args",
        "to",
        "input",
        "reason",
        "question",
        "id",
        "timeoutSeconds",
        "positiveKeywords",
        "responseSchema",
        "reminders",
        "mode",
        "metadata",
        "waitFor",
        "target",
        "processBeforeForward",
        "workflowId",
        "wait",
        "approvers",
    ]);
    (types, prop::collection::vec((names, any_json()), 0..4)).prop_map(|(mut effect, changes)| {
        for (name, value) in changes {
            effect[name] = value;
        }
        effect
    })
}

proptest! {
    #[test]
    fn parsing_never_panics_and_lists_a_problem_for_every_refusal(
        value in prop_oneof![any_json(), any_effect()],
    ) {
        let first = fingerprint(&value);
        prop_assert_eq!(&first, &fingerprint(&value));
        match FlowEffect::parse(&value) {
            Ok(effect) => prop_assert_eq!(effect.type_name(), value["type"].as_str().unwrap_or("")),
            Err(bad) => prop_assert!((1..=50).contains(&bad.problems.len())),
        }
    }
}
