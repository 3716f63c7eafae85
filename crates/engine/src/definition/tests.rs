//! What may be registered: each check with the path and the reason it reports.

use super::{ConformanceTypes, Definition, Permissions, Problem};
use crate::pack::{AllowedPackTypes, PackType, PackTypes};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A valid document; each case breaks one place.
fn sound() -> Value {
    let node = |id: &str, type_id: &str| {
        json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0},
            "config": {}, "inputs": {}})
    };
    json!({
        "id": "sound", "name": "Sound", "version": "1.0", "metadata": {}, "settings": {},
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [{"name": "v", "type": "string"}],
        "channels": {"c": {"reducer": "append"}},
        "nodes": [node("a", "core.noop"), node("b", "core.noop"), node("c", "core.noop")],
        "edges": [
            {"id": "e1", "sourceNodeId": "a", "targetNodeId": "b"},
            {"id": "e2", "sourceNodeId": "b", "targetNodeId": "c"},
        ],
    })
}

/// Sets a value at a JSON pointer and creates the last key if it is new; `/-` appends.
/// A sound document with one change.
pub(crate) fn sound_with(at: &str, value: Value) -> Value {
    with(sound(), at, value)
}

pub(crate) fn with(mut document: Value, at: &str, value: Value) -> Value {
    let (parent, key) = at.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).expect("a place to change");
    match parent {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        other => other[key] = value,
    }
    document
}

fn problems(document: &Value) -> Vec<Problem> {
    match Definition::compile(document, Permissions::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

#[test]
fn a_sound_document_compiles() {
    assert_eq!(problems(&sound()), []);
}

#[test]
fn each_fault_is_reported_at_its_place() {
    let edge = |id: &str, from: &str, to: &str| json!({"id": id, "sourceNodeId": from, "targetNodeId": to});
    let trigger = |extra: Value| {
        let mut trigger = json!({"id": "t", "type": "channel-write", "nodeId": "b",
            "config": {"channel": "c"}});
        for (key, value) in extra.as_object().expect("an object") {
            trigger[key] = value.clone();
        }
        trigger
    };
    let sub = |config: Value| {
        json!({"id": "a", "typeId": "core.subWorkflow", "name": "a", "position": {"x": 0, "y": 0},
            "config": config, "inputs": {}})
    };
    let cases = [
        // Shape.
        ("/id", json!("Upper"), "/id"),
        ("/nodes", json!([]), "/nodes"),
        ("/surprise", json!(1), ""),
        (
            "/settings/maxLoopbackIterations",
            json!(0),
            "/settings/maxLoopbackIterations",
        ),
        ("/nodes/0/typeId", json!("9bad"), "/nodes/0/typeId"),
        (
            "/edges/0/triggerRule",
            json!("sometimes"),
            "/edges/0/triggerRule",
        ),
        // Unique names.
        ("/nodes/1/id", json!("a"), "/nodes/1/id"),
        ("/edges/1/id", json!("e1"), "/edges/1/id"),
        (
            "/triggers/-",
            json!({"id": "manual", "type": "manual"}),
            "/triggers/1/id",
        ),
        (
            "/variables/-",
            json!({"name": "v", "type": "string"}),
            "/variables/1/name",
        ),
        // References.
        ("/edges/0/sourceNodeId", json!("x"), "/edges/0/sourceNodeId"),
        ("/edges/1/targetNodeId", json!("x"), "/edges/1/targetNodeId"),
        (
            "/nodes/1/inputs/p",
            json!({"type": "connection", "nodeId": "x", "outputKey": "o"}),
            "/nodes/1/inputs/p/nodeId",
        ),
        (
            "/triggers/-",
            json!({"id": "t", "type": "manual", "nodeId": "x"}),
            "/triggers/1/nodeId",
        ),
        (
            "/groups",
            json!([{"id": "g", "name": "g", "nodeIds": ["a", "x"], "position": {"x": 0, "y": 0},
                "size": {"width": 1, "height": 1}}]),
            "/groups/0/nodeIds/1",
        ),
        // Cycles.
        ("/edges/-", edge("e3", "c", "a"), "/edges"),
        // Types and their configuration.
        (
            "/nodes/0/typeId",
            json!("core.unheardOf"),
            "/nodes/0/typeId",
        ),
        (
            "/nodes/0/typeId",
            json!("conformance.cost.emit"),
            "/nodes/0/typeId",
        ),
        ("/nodes/0", sub(json!({})), "/nodes/0/config/workflowId"),
        (
            "/nodes/0",
            sub(json!({"workflowId": "w", "waitForCompletion": false})),
            "/nodes/0/config/waitForCompletion",
        ),
        (
            "/nodes/0",
            sub(json!({"workflowId": "w", "inputMapping": {"a": 1}})),
            "/nodes/0/config/inputMapping/a",
        ),
        (
            "/nodes/0/agent",
            json!({"agentId": "abc", "channel": "beta"}),
            "/nodes/0/agent/channel",
        ),
        // Schemas and channels.
        (
            "/configurableSchema",
            json!({"type": "nonsense"}),
            "/configurableSchema/type",
        ),
        (
            "/channels/c/reducer",
            json!("shuffle"),
            "/channels/c/reducer",
        ),
        ("/channels/c/ttlMs", json!(0), "/channels/c/ttlMs"),
        (
            "/channels/c/schema",
            json!({"type": "nonsense"}),
            "/channels/c/schema/type",
        ),
        (
            "/channels/v",
            json!({"reducer": "append"}),
            "/variables/0/name",
        ),
        (
            "/triggers/-",
            trigger(json!({"config": {"channel": "no"}})),
            "/triggers/1/config/channel",
        ),
        (
            "/triggers/-",
            trigger(json!({"config": {"channel": "c", "debounceMs": 60_001}})),
            "/triggers/1/config/debounceMs",
        ),
        (
            "/triggers/-",
            trigger(json!({"nodeId": null})),
            "/triggers/1/nodeId",
        ),
        // Unwinding.
        (
            "/settings/compensation",
            json!({}),
            "/settings/compensation",
        ),
        // Expressions and patterns.
        (
            "/nodes/1/inputs/p",
            json!({"type": "expression", "expression": "1 +"}),
            "/nodes/1/inputs/p/expression",
        ),
        (
            "/edges/0/condition",
            json!({"type": "expression", "expression": "(("}),
            "/edges/0/condition/expression",
        ),
        (
            "/edges/0/condition",
            json!({"type": "regex", "left": "x", "right": "("}),
            "/edges/0/condition/right",
        ),
    ];
    for (at, value, place) in cases {
        let found = problems(&with(sound(), at, value.clone()));
        let places: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
        assert!(
            places.contains(&place),
            "{at} = {value}: {places:?}, not {place:?}"
        );
    }
}

#[test]
fn reasons_are_named_where_the_protocol_names_them() {
    let cycle = with(
        sound(),
        "/edges/-",
        json!({"id": "e3", "sourceNodeId": "c", "targetNodeId": "a"}),
    );
    assert_eq!(problems(&cycle)[0].reason, Some("cycle_detected"));
    let expression = json!({"type": "expression", "expression": "1 +"});
    let broken = with(sound(), "/nodes/1/inputs/p", expression);
    assert_eq!(problems(&broken)[0].reason, Some("expression_invalid"));
    let unknown = problems(&with(sound(), "/nodes/0/typeId", json!("core.unheardOf")));
    assert_eq!(unknown[0].type_id.as_deref(), Some("core.unheardOf"));
    assert_eq!(unknown[0].node.as_ref().map(|n| n.as_str()), Some("a"));
    let unwinding = problems(&with(sound(), "/settings/compensation", json!({})));
    assert_eq!(unwinding[0].capability, Some("compensation"));
}

#[test]
fn unsupported_features_are_refused_at_registration_but_compile_when_stored() {
    let schedule = json!({"id": "daily", "type": "schedule", "config": {"cron": "daily"}});
    let child = json!({"id": "d", "typeId": "core.subWorkflow", "name": "d",
        "position": {"x": 0, "y": 0}, "inputs": {},
        "config": {"workflowId": "child", "outputMapping": {"c": "x"}}});
    for (at, value, place) in [
        ("/triggers/-", schedule, "/triggers/1/config/cron"),
        ("/nodes/-", child, "/nodes/3/config/outputMapping/c"),
    ] {
        let document = with(sound(), at, value);
        let refused = Definition::admit(&document, Permissions::default()).expect_err("refused");
        assert_eq!(refused[0].path, place);
        assert_eq!(problems(&document), []);
    }
}

#[test]
fn test_only_types_are_for_conformance_workflows_and_keys() {
    let emits = with(
        sound(),
        "/nodes/0/typeId",
        json!("conformance.artifact.emit"),
    );
    let refused = &problems(&emits)[0];
    assert_eq!(refused.reason, Some("typeId_refused"));
    assert_eq!(refused.node.as_ref().map(|node| node.as_str()), Some("a"));
    let named = with(emits.clone(), "/id", json!("conformance-x"));
    assert_eq!(problems(&named), []);
    let role = Permissions {
        conformance: ConformanceTypes::Everywhere,
        ..Permissions::default()
    };
    assert!(Definition::compile(&emits, role).is_ok());
}

#[test]
fn shipped_workflows_do_not_use_the_mock_agent_shorthand() {
    // R-0023-28 (half: our own workflows do not use the shorthand)
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut read = 0;
    let mut folders = vec![examples];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                let text = std::fs::read_to_string(&path).expect("a document");
                assert!(!text.contains("mockConfidence"), "{}", path.display());
                read += 1;
            }
        }
    }
    assert!(read > 0, "there are examples");
}

#[test]
fn gated_types_register_and_name_the_missing_capability() {
    let governed = "core.openwop.governance.approvalGate";
    let gated = with(sound(), "/nodes/1/typeId", json!(governed));
    let compiled = Definition::compile(&gated, Permissions::default()).expect("registered");
    let (node, type_id, capability) = compiled.gated().expect("gated");
    assert_eq!(
        (node.as_str(), type_id, capability),
        ("b", governed, "authorization")
    );
}

#[test]
fn back_edges_to_loops_and_supervisors_are_allowed_and_others_are_cycles() {
    let looped = |head: &str| {
        let document = with(sound(), "/nodes/0/typeId", json!(head));
        with(
            document,
            "/edges/-",
            json!({"id": "e3", "sourceNodeId": "c", "targetNodeId": "a"}),
        )
    };
    assert_eq!(problems(&looped("core.loop")), []);
    let supervised = looped("core.orchestrator.supervisor");
    let supervised = with(supervised, "/id", json!("conformance-loop"));
    assert_eq!(problems(&supervised), []);
    assert_eq!(
        problems(&looped("core.delay"))[0].reason,
        Some("cycle_detected")
    );
}

#[test]
fn definition_hash_ignores_formatting() {
    let compiled = |document: &Value| {
        let definition = Definition::compile(document, Permissions::default());
        definition.expect("sound").hash
    };
    let text = serde_json::to_string_pretty(&sound()).expect("JSON");
    let reread: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(compiled(&sound()), compiled(&reread));
    let renamed = with(sound(), "/name", json!("Other"));
    assert_ne!(compiled(&sound()), compiled(&renamed));
}

/// Uses the published workflows if a checkout of them exists beside this one.
#[test]
fn published_workflows_register_or_name_a_type_this_host_lacks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/openwop/fixtures");
    let Ok(files) = std::fs::read_dir(folder) else {
        return;
    };
    let mut compiled = 0;
    for file in files {
        let path = file.expect("a readable folder").path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        if document.get("nodes").is_none() {
            continue;
        }
        let admitted = Definition::admit(&document, Permissions::default());
        let mut found = admitted.map_or_else(|problems| problems, |_| Vec::new());
        found.retain(|p| !p.warning);
        // Deployment channels are refused by rule on a host without them.
        let unavailable = |p: &Problem| p.type_id.is_some() || p.path.ends_with("/agent/channel");
        assert!(found.iter().all(unavailable), "{path:?}: {found:#?}");
        compiled += usize::from(found.is_empty());
    }
    assert!(compiled > 20, "only {compiled} compile");
}

#[test]
fn packs_add_types_but_never_reserved_ones() {
    let types = PackTypes::from_iter([("vendor.acme.act", "a@1.0.0"), ("core.acted", "a@1.0.0")]);
    let compiles = |type_id: &str, packs| {
        let document = with(sound(), "/nodes/0/typeId", json!(type_id));
        let permissions = Permissions {
            packs,
            ..Permissions::default()
        };
        Definition::compile(&document, permissions).is_ok()
    };
    for (type_id, nothing, listed, once) in [
        ("vendor.acme.act", false, true, true),
        ("vendor.acme.gone", false, false, true),
        ("core.acted", false, false, false),
        ("vendor.tandem.acted", false, false, false),
        ("conformance.acted", false, false, false),
        ("core.noop", true, true, true),
    ] {
        assert_eq!(
            compiles(type_id, AllowedPackTypes::None),
            nothing,
            "{type_id}"
        );
        assert_eq!(
            compiles(type_id, AllowedPackTypes::Listed(&types)),
            listed,
            "{type_id}"
        );
        // A document that was accepted keeps its meaning.
        assert_eq!(
            compiles(type_id, AllowedPackTypes::PreviouslyAccepted),
            once,
            "{type_id}"
        );
    }
}

#[test]
fn types_of_packs_are_those_that_only_packs_provide() {
    let document = with(sound(), "/nodes/1/typeId", json!("vendor.acme.act"));
    let permissions = Permissions {
        packs: AllowedPackTypes::PreviouslyAccepted,
        ..Permissions::default()
    };
    let compiled = Definition::compile(&document, permissions).expect("a definition");
    assert_eq!(
        compiled.pack_types().collect::<Vec<_>>(),
        ["vendor.acme.act"]
    );
}

#[test]
fn secrets_that_test_nodes_echo_are_listed() {
    let document = with(sound(), "/id", json!("conformance-secrets"));
    let document = with(
        document,
        "/nodes/1/typeId",
        json!("conformance.secret.echo"),
    );
    let document = with(document, "/nodes/1/config", json!({"secretId": "key"}));
    let compiled = Definition::compile(&document, Permissions::default()).expect("a definition");
    assert_eq!(compiled.needed_secrets().collect::<Vec<_>>(), ["key"]);
}

#[test]
fn invalid_pack_node_config_is_refused_with_its_path() {
    let shape = json!({"required": ["tone"], "properties": {"tone": {"enum": ["kind"]}}});
    let known = PackType {
        pack: "a@1.0.0".to_owned(),
        config: Some(Arc::new(tandem_schema::Schema::builtin(&shape))),
    };
    let types = PackTypes::from_iter([("vendor.acme.act".to_owned(), known)]);
    let acts = with(sound(), "/nodes/0/typeId", json!("vendor.acme.act"));
    let permissions = Permissions {
        packs: AllowedPackTypes::Listed(&types),
        ..Permissions::default()
    };
    for (config, place) in [
        (json!({"tone": "kind"}), None),
        (json!({"tone": "gruff"}), Some("/nodes/0/config/tone")),
        (json!({}), Some("/nodes/0/config")),
    ] {
        let document = with(acts.clone(), "/nodes/0/config", config);
        let found = Definition::compile(&document, permissions).err();
        let found = found.map(|problems| problems[0].path.clone());
        assert_eq!(found.as_deref(), place);
    }
}
