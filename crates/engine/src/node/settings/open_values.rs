//! Which settings may hold an object or a list of objects of any shape. Every other one refuses them.

use super::super::{Availability, all_types};
use super::{AllowedSettings, Setting, SettingValue};
use crate::definition::{ConformanceTypes, Definition, Permissions};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Values, schemas and payloads of the author.
const OPEN: [&str; 14] = [
    "arguments",
    "artifactData",
    "artifactSchema",
    "attrs",
    "body",
    "content",
    "correlation",
    "decision",
    "input",
    "outputSchema",
    "payload",
    "resumeSchema",
    "schema",
    "value",
];

/// Passed on or left alone as they are: nothing in them is read here.
const NOT_READ: [(&str, &[&str]); 5] = [
    ("core.subWorkflow", &["outputAttestation"]),
    (
        "core.approvalGate",
        &[
            "subjects",
            "groups",
            "roles",
            "overrideBypassesQuorum",
            "artifactId",
            "artifactType",
        ],
    ),
    (
        "core.interrupt",
        &[
            "subjects",
            "groups",
            "roles",
            "overrideBypassesQuorum",
            "artifactId",
            "artifactType",
        ],
    ),
    ("core.conversationGate", &["lifecycle"]),
    // Those of other actions.
    ("vendor.tandem.memory", &["keyFrom", "tag", "text", "limit"]),
];

fn is_open(type_id: &str, name: &str) -> bool {
    let mut listed = NOT_READ.iter();
    OPEN.contains(&name) || listed.any(|(of, names)| *of == type_id && names.contains(&name))
}

/// A sound configuration of a type, to which one setting is added.
fn sound(type_id: &str) -> Value {
    match type_id {
        "core.fail" => json!({"code": "c", "message": "m"}),
        "core.setVariable" | "core.getVariable" => json!({"name": "v"}),
        "core.channelWrite" => json!({"channelName": "log"}),
        "core.subWorkflow" => json!({"workflowId": "w"}),
        "core.clarificationGate" => json!({"questions": [{"id": "q", "question": "?"}]}),
        "core.ai.structuredOutput" => json!({"provider": "acme", "outputSchema": {}}),
        "core.llm.chat" => json!({"provider": "acme", "userPrompt": "?"}),
        "core.mcp.toolCall" => json!({"serverId": "s", "toolName": "t"}),
        "vendor.tandem.flow" => {
            json!({"agentId": "a", "flowId": "f", "target": {"sessionId": "s"}})
        }
        "vendor.tandem.http" => json!({"url": "https://a.test"}),
        "vendor.tandem.memory" => json!({"action": "put", "key": "k", "value": 1}),
        "core.conformance.mcp-invoke" => json!({"mcp": {"tool": "t"}}),
        "conformance.cost.emit" => json!({"attrs": {}}),
        "conformance.secret.echo" => json!({"secretId": "s"}),
        "conformance.artifact.emit" => json!({"artifactType": "t", "content": 1}),
        _ => json!({}),
    }
}

/// The paths of all settings whose value is read by the parser of their type.
fn parsed(settings: &'static [Setting], at: &str, paths: &mut Vec<String>) {
    for setting in settings {
        let path = format!("{at}/{}", setting.name);
        match setting.inside {
            SettingValue::Anything => paths.push(path),
            SettingValue::Object(inner) => parsed(inner, &path, paths),
            SettingValue::ListOf(inner) => parsed(inner, &format!("{path}/0"), paths),
            SettingValue::MapOf(inner) => parsed(inner, &format!("{path}/a"), paths),
        }
    }
}

/// Puts a value at a path, and what is missing on the way to it.
fn put(config: &mut Value, path: &str, value: Value) {
    let mut place = config;
    for part in path.split('/').skip(1) {
        place = if part == "0" {
            if !place.is_array() {
                *place = json!([{}]);
            }
            &mut place[0]
        } else {
            if !place.is_object() {
                *place = json!({});
            }
            &mut place[part]
        };
    }
    *place = value;
}

/// What is wrong with a node of this configuration.
fn faults(type_id: &str, config: &Value) -> BTreeSet<String> {
    let flow = json!({
        "id": "conformance-flow", "name": "Flow", "version": "1.0", "metadata": {}, "settings": {},
        "triggers": [], "variables": [{"name": "v", "type": "string"}],
        "channels": {"log": {"reducer": "append"}}, "edges": [],
        "nodes": [{"id": "n", "typeId": type_id, "name": "n", "position": {"x": 0, "y": 0},
            "config": config, "inputs": {}}],
    });
    let permissions = Permissions {
        conformance: ConformanceTypes::Everywhere,
        ..Permissions::default()
    };
    let found = Definition::admit(&flow, permissions).err();
    let errors = found.into_iter().flatten().filter(|p| !p.warning);
    errors
        .map(|p| format!("{} {}", p.path, p.message))
        .collect()
}

#[test]
fn settings_that_are_no_values_of_the_author_refuse_objects_of_any_shape() {
    let mut open = Vec::new();
    let mut look = |type_id: &str, settings: &'static [Setting], base: &Value| {
        let mut paths = Vec::new();
        parsed(settings, "", &mut paths);
        let known = faults(type_id, base);
        let sound = known.iter().all(|fault| !fault.contains("/config"));
        assert!(sound, "{type_id}: {known:?}");
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or_default();
            for made_up in [json!({"madeUpKey": 1}), json!([{"madeUpKey": 1}])] {
                let mut config = base.clone();
                put(&mut config, &path, made_up);
                if !is_open(type_id, name) && faults(type_id, &config).is_subset(&known) {
                    open.push(format!("{type_id} {config}"));
                }
            }
        }
    };
    for known in all_types() {
        let base = sound(known.type_id);
        match known.settings {
            AllowedSettings::Open => {}
            // No run of it starts.
            _ if matches!(known.availability, Availability::Gated(_)) => {}
            AllowedSettings::Closed(settings) | AllowedSettings::ClosedByProtocol(settings) => {
                look(known.type_id, settings, &base);
            }
            AllowedSettings::ByConfig(choose) => {
                let configs = match known.type_id {
                    "core.interrupt" => vec![
                        json!({"kind": "approval", "data": {"artifactId": "a",
                            "artifactType": "t", "title": "?", "actions": ["accept"]}}),
                        json!({"kind": "clarification",
                            "data": {"questions": [{"id": "q", "question": "?"}]}}),
                        json!({"kind": "external-event",
                            "data": {"eventType": "e", "correlation": {}}}),
                        json!({"kind": "custom", "data": {"customKind": "c"}}),
                        json!({"kind": "low-confidence",
                            "data": {"agentId": "abc", "threshold": 0.5, "observed": 0.1}}),
                    ],
                    _ => vec![json!({"promptId": "p"}), json!({"mcp": {"tool": "t"}})],
                };
                for config in configs {
                    let chosen = config.as_object().expect("an object");
                    look(known.type_id, choose(chosen), &config);
                }
            }
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
}
