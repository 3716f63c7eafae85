//! Schemas in documents: refused with their path at registration, harmless in documents stored
//! earlier.

use crate::definition::{Definition, Permissions, Problem};
use crate::pack::AllowedPackTypes;
use serde_json::{Value, json};

/// A schema that cannot be evaluated in bounded time.
const LOOK_AROUND: &str = "(?=x|(a|a)*b)^(a|aa)+$";

fn document(node: Value, extra: &Value) -> Value {
    let mut node = node;
    node["id"] = json!("n");
    node["name"] = json!("n");
    node["position"] = json!({"x": 0, "y": 0});
    node["inputs"] = json!({});
    let mut document = json!({"id": "wf", "name": "wf", "version": "1.0.0",
        "nodes": [node], "edges": [], "triggers": [], "variables": [], "metadata": {},
        "settings": {}});
    for (key, value) in extra.as_object().expect("an object") {
        document[key] = value.clone();
    }
    document
}

/// Every place of a document that takes a schema, with a schema there.
fn places(schema: &Value) -> Vec<(Value, &'static str)> {
    let node = |type_id: &str, config: Value| json!({"typeId": type_id, "config": config});
    let noop = node("core.noop", json!({}));
    let question = json!({"id": "q", "question": "?", "schema": schema});
    let output = json!({"provider": "p", "outputSchema": schema});
    let cases = [
        (
            noop.clone(),
            json!({"configurableSchema": schema}),
            "/configurableSchema",
        ),
        (
            noop,
            json!({"channels": {"c": {"reducer": "replace", "schema": schema}}}),
            "/channels/c/schema",
        ),
        (
            node("core.approvalGate", json!({"artifactSchema": schema})),
            json!({}),
            "/nodes/0/config/artifactSchema",
        ),
        (
            node("core.approvalGate", json!({"resumeSchema": schema})),
            json!({}),
            "/nodes/0/config/resumeSchema",
        ),
        (
            node("core.clarificationGate", json!({"questions": [question]})),
            json!({}),
            "/nodes/0/config/questions/0/schema",
        ),
        (
            node("core.conversationGate", json!({"schema": schema})),
            json!({}),
            "/nodes/0/config/schema",
        ),
        (
            node("core.ai.structuredOutput", output),
            json!({}),
            "/nodes/0/config/outputSchema",
        ),
    ];
    let with_place = cases.map(|(node, extra, place)| (document(node, &extra), place));
    with_place.into_iter().collect()
}

fn problems(document: &Value) -> Vec<Problem> {
    match Definition::compile(document, Permissions::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

#[test]
fn unbounded_schema_is_refused_in_every_place() {
    let mut doubled = json!({"d23": {"type": "integer"}});
    for i in 0..23 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        doubled[format!("d{i}")] = json!({"anyOf": [next, next]});
    }
    for schema in [
        json!({"pattern": LOOK_AROUND}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/d0", "$defs": doubled}),
        json!({"$ref": "https://example.com/schema.json"}),
    ] {
        for (document, place) in places(&schema) {
            let found = problems(&document);
            assert_eq!(found.len(), 1, "{place}: {found:?}");
            assert!(found[0].path.starts_with(place), "{place}: {found:?}");
            assert_eq!(found[0].reason, Some("schema_refused"), "{place}");
        }
    }
}

#[test]
fn ordinary_schema_is_accepted_in_every_place() {
    for (document, place) in places(&json!({"type": "object", "properties": {"a": {}}})) {
        assert_eq!(problems(&document), [], "{place}");
    }
}

#[test]
fn the_patterns_of_all_nodes_count_together() {
    let schema = json!({"pattern": "^a"});
    let gate = json!({"typeId": "core.approvalGate", "config": {"artifactSchema": schema}});
    let mut document = document(gate, &json!({}));
    let node = document["nodes"][0].clone();
    for i in 1..=256 {
        let mut copy = node.clone();
        copy["id"] = json!(format!("n{i}"));
        document["nodes"].as_array_mut().expect("nodes").push(copy);
    }
    let found = problems(&document);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("256 patterns"), "{found:?}");
}

#[test]
fn a_stored_document_compiles_with_a_schema_that_is_refused_today() {
    let stored = Permissions {
        packs: AllowedPackTypes::PreviouslyAccepted,
        ..Permissions::default()
    };
    for (document, place) in places(&json!({"pattern": LOOK_AROUND})) {
        let compiled = Definition::compile(&document, stored);
        assert!(compiled.is_ok(), "{place}: {:?}", compiled.err());
    }
    // Its default answer was checked at registration.
    let config = json!({
        "kind": "custom", "data": {"customKind": "x"}, "resumeSchema": {"pattern": LOOK_AROUND},
        "timeoutMs": 5, "tandem": {"onTimeout": {"policy": "default", "value": "aa"}},
    });
    let node = json!({"typeId": "core.interrupt", "config": config});
    let document = document(node, &json!({}));
    let compiled = Definition::compile(&document, stored);
    assert!(compiled.is_ok(), "{:?}", compiled.err());
}

#[test]
fn patterns_of_conditions_count_and_many_heavy_ones_are_refused() {
    let noop = json!({"typeId": "core.noop", "config": {}});
    let mut document = document(noop, &json!({}));
    let node = document["nodes"][0].clone();
    let mut copy = node.clone();
    copy["id"] = json!("m");
    document["nodes"] = json!([node, copy]);
    let edges = |pattern: fn(usize) -> String, count| {
        let edge = |i| {
            json!({"id": format!("e{i}"), "sourceNodeId": "n", "targetNodeId": "m",
                   "condition": {"type": "regex", "left": "x", "right": pattern(i)}})
        };
        (0..count).map(edge).collect::<Vec<Value>>()
    };
    document["edges"] = json!(edges(|i| format!("^{i}"), 256));
    assert_eq!(problems(&document), []);
    for (pattern, count, place) in [
        (
            (|i| format!("^{i}")) as fn(usize) -> String,
            257,
            "/edges/256/condition/right",
        ),
        (|i| format!(r"^\p{{L}}{{40}}{i}"), 1_500, "/edges/"),
    ] {
        document["edges"] = json!(edges(pattern, count));
        let found = problems(&document);
        assert!(found[0].path.starts_with(place), "{:?}", found[0]);
        assert!(found[0].message.contains("patterns"), "{:?}", found[0]);
    }
}
