//! Which of the protocol's fixture workflows this host can run. Discovery lists them, so the list
//! must be correct.

use tandem_record::TenantId;
use tandem_runtime::{
    AllowedPackTypes, Definition, Fault, PackTypes, Permissions, Runtime, ToolServers,
};

/// Fixtures that every host can run but that test a capability beyond their node types; listing one
/// would claim the capability.
const CAPABILITY_PROBES: [&str; 5] = [
    // Agent packs that are installed, exported and check handoffs against a schema.
    "conformance-agent-pack-install",
    "conformance-agent-pack-export",
    "conformance-agent-pack-handoff-schema-validation",
    // Model text turned into JSON by another model call.
    "conformance-envelope-nl-to-format-engaged",
    // The MCP revision with `server/discover`.
    "conformance-mcp-client",
];

const MOCK_AGENT: &str = "core.conformance.mock-agent";

/// Shared workflows with the name of a fixture whose node types are all served. Call this after the
/// operator's workflows are registered. Fixtures that need a secret are listed if `has_secret`
/// returns true for it.
pub async fn runnable_fixtures(
    runtime: &Runtime,
    has_secret: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Fault> {
    // No tenant has this name, so only shared workflows are listed.
    let nobody = TenantId::new("").into();
    let mut fixtures = Vec::new();
    for registered in runtime.workflows(&nobody).await? {
        let id = &registered.workflow;
        if !registered.shared {
            continue;
        }
        let definition = runtime.current_definition(&nobody, id).await?;
        let is_supported_here = |d: &Definition| {
            let agents = runtime.agent_policy().first_missing_capability(d).is_none();
            let served = agents && is_served(d, runtime.tools(), runtime.packs());
            served && d.is_conformance() && d.needed_secrets().all(&has_secret)
        };
        if definition.is_some_and(|d| is_supported_here(&d))
            && is_runnable(&registered.document, runtime)
        {
            fixtures.push(id.to_string());
        }
    }
    Ok(fixtures)
}

/// Whether this host has what the fixture needs: conformance node types and hooks, and agents where
/// it uses them.
fn is_runnable(document: &str, runtime: &Runtime) -> bool {
    let parsed = serde_json::from_str(document).unwrap_or_default();
    let permissions = Permissions {
        packs: AllowedPackTypes::PreviouslyAccepted,
        ..Permissions::default()
    };
    let Ok(definition) = Definition::compile(&parsed, permissions) else {
        return false;
    };
    let mut types = definition.type_ids();
    let uses_mock_agent = types.any(|type_id| type_id == MOCK_AGENT);
    (runtime.has_conformance_types() || definition.test_only().is_none())
        && (runtime.agent_policy().is_supported() || !uses_mock_agent)
}

fn is_served(definition: &Definition, tools: &ToolServers, packs: &PackTypes) -> bool {
    let id = definition.id().as_str();
    let mut foreign = definition.pack_types();
    let has_packs = foreign.all(|type_id| packs.get(type_id).is_some());
    definition.gated().is_none()
        && !CAPABILITY_PROBES.contains(&id)
        && has_packs
        && tools.can_serve(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn served(id: &str, type_id: &str, config: Value) -> bool {
        served_with(&[], id, type_id, config)
    }

    fn served_with(tools: &[&str], id: &str, type_id: &str, config: Value) -> bool {
        let document = json!({
            "id": id, "name": id, "version": "1.0", "metadata": {}, "settings": {},
            "triggers": [], "variables": [], "edges": [],
            "nodes": [{"id": "n", "typeId": type_id, "name": "n", "position": {"x": 0, "y": 0},
                       "config": config, "inputs": {}}],
        });
        let permissions = Permissions {
            // The same rules as for a document that is already registered.
            packs: AllowedPackTypes::PreviouslyAccepted,
            ..Permissions::default()
        };
        let packs = [(
            "vendor.openwop.rust-hello.greet",
            "vendor.openwop.rust-hello@1.0.0",
        )];
        let definition = Definition::compile(&document, permissions).expect("compiles");
        let tools = tools.iter().map(|id| (*id).to_owned()).collect();
        is_served(&definition, &tools, &PackTypes::from_iter(packs))
    }

    #[test]
    fn tool_fixture_is_listed_only_with_one_tool_server() {
        let (id, call) = ("conformance-mcp-tool-roundtrip", "core.ai.callPrompt");
        let config = json!({"mcp": {"tool": "echo", "arguments": {}}});
        for (tools, named) in [(&[][..], false), (&["any"], true), (&["a", "b"], false)] {
            assert_eq!(served_with(tools, id, call, config.clone()), named);
        }
        let client = "core.conformance.mcp-client";
        assert!(!served_with(
            &["any"],
            "conformance-mcp-client",
            client,
            json!({})
        ));
    }

    #[test]
    fn only_fully_supported_fixtures_are_listed() {
        // R-0023-22 (half: with all capabilities, fixtures with the mock agent are listed)
        assert!(served(
            "conformance-agent-reasoning",
            "core.conformance.mock-agent",
            json!({"mockReasoning": true})
        ));
        let hook = json!({"memoryAction": "write-then-read"});
        assert!(served("conformance-identity", "core.identity", json!({})));
        assert!(served(
            "conformance-agent-memory-roundtrip",
            "core.identity",
            hook
        ));
        assert!(!served(
            "conformance-agent-pack-install",
            "core.identity",
            json!({})
        ));
        for (id, type_id, whole) in [
            (
                "conformance-wasm-pack-roundtrip",
                "vendor.openwop.rust-hello.greet",
                true,
            ),
            (
                "conformance-wasm-pack-memory-cap-breach",
                "vendor.openwop.misbehaving.memory-bomb",
                false,
            ),
        ] {
            assert_eq!(
                served(id, type_id, json!({})),
                whole,
                "{id}: only what is loaded"
            );
        }
        let asks = json!({"provider": "mock", "model": "m", "outputSchema": {}});
        for (id, whole) in [
            ("conformance-envelope-refusal", true),
            ("conformance-envelope-nl-to-format-engaged", false),
        ] {
            let named = served(id, "core.ai.structuredOutput", asks.clone());
            assert_eq!(named, whole, "{id}");
        }
        assert!(!served(
            "conformance-governed",
            "core.openwop.governance.approvalGate",
            json!({})
        ));
    }
}
